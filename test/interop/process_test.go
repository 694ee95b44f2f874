//go:build linux

package interop

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eventyard/eventyard/internal/testkit"
)

// process is a program that dies with the tests, however they end.
type process struct {
	cmd *exec.Cmd
	// done is closed when the program has ended; err is its end, to be read after.
	done chan struct{}
	err  error
	out  *output
}

// launch starts a program. Its standard output and error are gathered together.
func launch(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, done: make(chan struct{}), out: newOutput()}
	cmd.Stdout, cmd.Stderr = p.out, p.out
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// The kernel kills the program when the thread that started it ends; so that
	// thread stays until the program has ended.
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.WaitDelay = 5 * time.Second
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			p.out.close()
			close(p.done)
		}
	}()
	testkit.Must(t, <-started, "start %s", cmd)
	t.Cleanup(p.kill)
	return p
}

// kill ends the program without a word and waits for its end.
func (p *process) kill() {
	select {
	case <-p.done:
	default:
		p.cmd.Process.Kill()
		<-p.done
	}
}

// finish waits for the program's own end.
func (p *process) finish(t *testing.T, within time.Duration) error {
	t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.err
	case <-timer.C:
		p.cmd.Process.Signal(syscall.SIGQUIT)
		p.kill()
		return errors.New("it had not ended after " + within.String())
	}
}

// script runs a client's program to its end and shows its output: what it proved, or
// all of it when it failed.
func script(t *testing.T, cmd *exec.Cmd, within time.Duration) {
	t.Helper()
	p := launch(t, cmd)
	err := p.finish(t, within)
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, p.out)
	}
	proofs := 0
	for line := range strings.Lines(p.out.String()) {
		if strings.HasPrefix(line, "proved: ") {
			proofs++
			t.Log(strings.TrimSpace(line))
		}
	}
	if proofs == 0 {
		t.Errorf("%s proved nothing:\n%s", cmd, p.out)
	}
}

// ownPort is one of 127.0.0.1 where nobody listens, and nobody else is given it while the test
// runs: it is bound. A program that is told of it can listen there all the same, as both take part
// in reusing it.
func ownPort(t *testing.T) string {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	testkit.Must(t, err)
	t.Cleanup(func() { unix.Close(socket) })
	testkit.Must(t, unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	testkit.Must(t, unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	bound, err := unix.Getsockname(socket)
	testkit.Must(t, err)
	return strconv.Itoa(bound.(*unix.SockaddrInet4).Port)
}

// environment is the process's own with further variables.
func environment(more map[string]string) []string {
	all := os.Environ()
	for key, value := range more {
		all = append(all, key+"="+value)
	}
	return all
}

// output gathers what a program writes and lets others wait for it.
type output struct {
	mu     sync.Mutex
	grown  *sync.Cond
	buffer bytes.Buffer // guarded by mu
	closed bool         // guarded by mu
}

func newOutput() *output {
	o := &output{}
	o.grown = sync.NewCond(&o.mu)
	return o
}

func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.grown.Broadcast()
	return o.buffer.Write(data)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.grown.Broadcast()
}

// await waits until the output satisfies found; false if the program ended before.
func (o *output) await(found func(text string) bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !found(o.buffer.String()) {
		if o.closed {
			return false
		}
		o.grown.Wait()
	}
	return true
}
