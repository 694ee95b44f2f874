package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/eventyard/eventyard/internal/grid/signature"
)

// hookProcess is an "eventyard listen" of a script.
type hookProcess struct {
	cmd    *exec.Cmd
	events chan string // what it printed, a line each; closed at its end
}

// hookCommand is the script's "hook start NAME [FLAGS]", "hook await NAME PATTERN" and "hook stop
// NAME". Starting sets a variable NAME to the webhook's URL; awaiting reads what it prints up to a
// line that fits, and prints that.
func hookCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: hook start NAME [FLAGS] | hook await NAME PATTERN | hook stop NAME")
	}
	hooks := ts.Value("hooks").(map[string]*hookProcess)
	name := args[1]
	switch args[0] {
	case "start":
		hooks[name] = startHook(ts, name, args[2:])
	case "await":
		hooks[name].await(ts, args[2])
	case "stop":
		ts.Check(hooks[name].cmd.Process.Signal(syscall.SIGINT))
		for range hooks[name].events {
			continue
		}
		ts.Check(hooks[name].cmd.Wait())
	default:
		ts.Fatalf("hook does not know %q", args[0])
	}
}

var listening = regexp.MustCompile(`^listening at (http://\S+) ; `)

func startHook(ts *testscript.TestScript, name string, flags []string) *hookProcess {
	program, err := exec.LookPath("eventyard")
	ts.Check(err)
	h := &hookProcess{cmd: exec.Command(program, append([]string{"listen", "127.0.0.1:0"}, flags...)...), events: make(chan string, 1000)}
	h.cmd.Dir = ts.MkAbs(".")
	h.cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "GORACE=" + gorace, "NO_COLOR=1"}
	stdout, err := h.cmd.StdoutPipe()
	ts.Check(err)
	stderr, err := h.cmd.StderrPipe()
	ts.Check(err)
	ts.Check(h.cmd.Start())
	process := h.cmd.Process
	ts.Defer(func() { _ = process.Kill() }) // where the script did not stop it
	said := bufio.NewReader(stderr)
	line, err := said.ReadString('\n')
	at := listening.FindStringSubmatch(line)
	if at == nil {
		ts.Fatalf("the webhook said %q, %v", line, err)
	}
	ts.Setenv(name, at[1])
	go func() { _, _ = io.Copy(io.Discard, said) }() // until it ends
	go func() {
		defer close(h.events)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			h.events <- lines.Text()
		}
	}()
	return h
}

// patience is how long something that happens in the background may take.
const patience = 30 * time.Second

func (h *hookProcess) await(ts *testscript.TestScript, pattern string) {
	want, late := regexp.MustCompile(pattern), time.After(patience)
	for {
		select {
		case line := <-h.events:
			if want.MatchString(line) {
				fmt.Fprintln(ts.Stdout(), line)
				return
			}
		case <-late:
			ts.Fatalf("nothing came that is like %s", pattern)
		}
	}
}

// silentCommand is the script's "silent NAME": an endpoint that answers 200 and not a word.
func silentCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: silent NAME")
	}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.URL+"/")
}

// strictCommand is the script's "strict NAME KEY": an endpoint that answers nothing that is not signed with
// the key, the validation included.
func strictCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: strict NAME KEY")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if signature.Verify(r.Header, body, args[1:], time.Now(), 0) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var asked []struct {
			Data struct{ ValidationCode string }
		}
		if json.Unmarshal(body, &asked) == nil && len(asked) == 1 {
			fmt.Fprintf(w, `{"validationResponse":%q}`, asked[0].Data.ValidationCode)
		}
	}))
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.URL+"/")
}

// untilCommand is the script's "until PATTERN COMMAND...": it runs a command again and again until
// what it prints fits, and prints that.
func untilCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND [ARGS]")
	}
	want, late := regexp.MustCompile("(?m)"+args[0]), time.Now().Add(patience)
	for {
		_ = ts.Exec(args[1], args[2:]...) // what it prints decides
		text := ts.ReadFile("stdout")
		if want.MatchString(text) {
			return
		}
		if time.Now().After(late) {
			ts.Fatalf("%s never printed %s, but\n%s%s", strings.Join(args[1:], " "), args[0], text, ts.ReadFile("stderr"))
		}
		time.Sleep(20 * time.Millisecond) // it is another process that is waited for
	}
}
