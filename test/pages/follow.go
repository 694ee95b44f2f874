package pages

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// Reader does what pages say, one page after the other, in a folder of its own.
type Reader struct {
	Dir string
	// Env are variables of all commands beside those of the test itself.
	Env []string
	// Instead has what is written in pages, such as an address, and what stands for it here.
	Instead map[string]string

	terminals map[string]*terminal
}

// commandTime is how long one block may take on a machine under load.
const commandTime = 3 * time.Minute

// Follow does what a page says, and ends the test where something else happens than it shows.
func (r *Reader) Follow(t *testing.T, file string) {
	t.Helper()
	blocks := testkit.Value(Read(file))(t)
	ran := 0
	for _, b := range blocks {
		at := fmt.Sprintf("%s:%d", filepath.Base(file), b.Line)
		b.Text, b.Shows = r.instead(b.Text), r.instead(b.Shows)
		switch b.Kind {
		case After:
			r.end(t, at, b)
			r.run(t, at, b)
		case Run, Exits:
			r.run(t, at, b)
		case Until:
			r.until(t, at, b)
		case Background:
			r.background(t, at, b)
		case Prints:
			r.prints(t, at, b)
		case File:
			testkit.Must(t, os.WriteFile(filepath.Join(r.Dir, b.Name), []byte(b.Text+"\n"), 0o644), at)
		case NotRun:
			t.Logf("%s is not run: %s", at, b.Name)
			continue
		}
		ran++
	}
	testkit.That(t, ran > 0, "%s has nothing to run", file)
}

func (r *Reader) instead(text string) string {
	for written, here := range r.Instead {
		text = strings.ReplaceAll(text, written, here)
	}
	return text
}

func (r *Reader) run(t *testing.T, at string, b Block) {
	t.Helper()
	out, err := r.shell(t.Context(), b.Text)
	if exit, ended := errors.AsType[*exec.ExitError](err); ended && b.Kind == Exits && strconv.Itoa(exit.ExitCode()) == b.Name {
		err = nil
	} else if err == nil && b.Kind == Exits {
		err = errors.New("exit status 0, and not " + b.Name)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s\n%s", at, err, b.Text, out, r.said())
	}
	if missing, like := Like(b.Shows, out); !like {
		t.Fatalf("%s: the page shows the line\n%s\nand\n%s\nprinted\n%s\n%s", at, missing, b.Text, out, r.said())
	}
}

func (r *Reader) until(t *testing.T, at string, b Block) {
	t.Helper()
	if b.Shows == "" {
		t.Fatalf("%s: until what? the page shows nothing", at)
	}
	var out, missing string
	t.Cleanup(func() {
		if t.Failed() && missing != "" {
			t.Logf("%s: the page shows the line\n%s\nand\n%s\nprinted last\n%s\n%s", at, missing, b.Text, out, r.said())
		}
	})
	testkit.Eventually(t, at+": "+b.Text, func() (like bool) {
		out, _ = r.shell(t.Context(), b.Text) // one that fails has not printed it
		missing, like = Like(b.Shows, out)
		return like
	})
}

// shell runs a text in a shell that ends at the first error, and gives all that is printed.
func (r *Reader) shell(ctx context.Context, text string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-e", "-c", text)
	cmd.Dir, cmd.Env = r.Dir, append(os.Environ(), r.Env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// said is what the terminals have printed, for who looks for a fault.
func (r *Reader) said() string {
	var all strings.Builder
	for name, terminal := range r.terminals {
		fmt.Fprintf(&all, "in terminal %s:\n%s\n", name, terminal.out.String())
	}
	return all.String()
}

// terminal is one in which a command goes on.
type terminal struct {
	cmd *exec.Cmd
	out testkit.Buffer
}

// background starts a command, and waits until it has printed what the page shows.
func (r *Reader) background(t *testing.T, at string, b Block) {
	t.Helper()
	if before := r.terminals[b.Name]; before != nil {
		before.end()
	}
	if r.terminals == nil {
		r.terminals = map[string]*terminal{}
	}
	started := &terminal{cmd: exec.Command("sh", "-c", "exec "+b.Text)}
	started.cmd.Dir, started.cmd.Env = r.Dir, append(os.Environ(), r.Env...)
	started.cmd.Stdout, started.cmd.Stderr, started.cmd.WaitDelay = &started.out, &started.out, time.Second
	inGroup(started.cmd)
	testkit.Must(t, started.cmd.Start(), at)
	t.Cleanup(started.end)
	r.terminals[b.Name] = started
	r.prints(t, at, Block{Name: b.Name, Text: b.Shows})
}

// prints waits until a terminal has printed what the page shows.
func (r *Reader) prints(t *testing.T, at string, b Block) {
	t.Helper()
	terminal := r.terminals[b.Name]
	testkit.MustThat(t, terminal != nil, "%s: there is no terminal %s", at, b.Name)
	seen := ""
	t.Cleanup(func() {
		if t.Failed() && seen != "" {
			t.Logf("%s: the page shows\n%s\nand terminal %s printed\n%s", at, b.Text, b.Name, seen)
		}
	})
	testkit.Eventually(t, at, func() bool {
		seen = terminal.out.String()
		_, like := Like(b.Text, seen)
		if like {
			seen = ""
		}
		return like
	})
}

// end ends the terminals that a block is to run after.
func (r *Reader) end(t *testing.T, at string, b Block) {
	t.Helper()
	for name := range strings.SplitSeq(b.Name, ", ") {
		terminal := r.terminals[name]
		testkit.MustThat(t, terminal != nil, "%s: there is no terminal %s", at, name)
		terminal.end()
	}
}

// end is what Ctrl-C does.
func (t *terminal) end() {
	if t.cmd.ProcessState != nil {
		return
	}
	late := time.AfterFunc(commandTime, func() { _ = t.cmd.Process.Kill() })
	defer late.Stop()
	_ = interrupt(t.cmd) // it may have ended already
	_ = t.cmd.Wait()     // by the signal, or by itself
}
