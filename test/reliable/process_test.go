//go:build linux

package reliable

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// process is a program that was started, and ends with the test at the latest.
type process struct {
	name       string
	cmd        *exec.Cmd
	out        io.Reader
	complaints testkit.Buffer
	// gone is closed when it has ended; err is read after that.
	gone chan struct{}
	err  error
}

// start runs a program; it ends even if the test is killed. Whoever reads out reads it to the end.
func start(t *testing.T, name string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{name: name, cmd: cmd, gone: make(chan struct{})}
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, &p.complaints
	p.out = out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	testkit.Must(t, cmd.Start())
	go func() {
		defer close(p.gone)
		p.err = cmd.Wait()
		in.Close()
	}()
	t.Cleanup(func() { p.end(t) })
	return p
}

// end is of a process whose test is over: it has nothing more to say but what it complained about.
func (p *process) end(t *testing.T) {
	text := p.complaints.String()
	if t.Failed() && *keep != "" {
		p.confess(t)
	}
	_ = p.cmd.Process.Kill()
	<-p.gone
	if strings.Contains(text, "DATA RACE") {
		t.Errorf("%s has a race:\n%s", p.name, text)
	} else if t.Failed() && text != "" {
		t.Logf("%s said:\n%s", p.name, tail(text, 4000))
	}
}

// confess has a process that is alive write where all its goroutines are, for whoever wants to know
// why the test failed.
func (p *process) confess(t *testing.T) {
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-p.gone:
	case <-time.After(10 * time.Second):
	}
	file := filepath.Join(*keep, fmt.Sprintf("%s-%d.err", strings.ReplaceAll(p.name, " ", "-"), p.cmd.Process.Pid))
	testkit.Check(t, os.WriteFile(file, []byte(p.complaints.String()), 0o644))
}

func tail(text string, n int) string { return text[max(0, len(text)-n):] }

// kill ends it as the machine's end would.
func (p *process) kill(t *testing.T) {
	t.Helper()
	testkit.Must(t, p.cmd.Process.Kill(), "kill %s", p.name)
	<-p.gone
}

// stop ends it gracefully.
func (p *process) stop(t *testing.T) {
	t.Helper()
	testkit.Must(t, p.cmd.Process.Signal(syscall.SIGTERM), "stop %s", p.name)
	p.wait(t)
	if p.err != nil {
		t.Errorf("%s did not stop gracefully: %v\n%s", p.name, p.err, tail(p.complaints.String(), 4000))
	}
}

func (p *process) wait(t *testing.T) {
	t.Helper()
	select {
	case <-p.gone:
	case <-time.After(*patience):
		t.Fatalf("%s did not end", p.name)
	}
}

// died waits until it has killed itself.
func (p *process) died(t *testing.T) {
	t.Helper()
	p.wait(t)
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("%s was to die, and ended with %v: %s", p.name, p.err, tail(p.complaints.String(), 4000))
	}
}

func (p *process) alive() bool {
	select {
	case <-p.gone:
		return false
	default:
		return true
	}
}
