package demo

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// child is a process of the demo. Its methods may be called by any goroutine.
type child struct {
	name    string
	started time.Time
	cmd     *exec.Cmd
	done    chan struct{} // closed when it has ended

	mu     sync.Mutex
	in     io.WriteCloser
	ending string // why somebody ended it, such as "killed"; empty: nobody did
	ended  time.Time
}

// launch starts a process of the demo. What it writes to standard output goes to hear, line by line,
// and its errors to a file of its name in the folder.
func launch(program, dir, name string, hear func(line []byte), args ...string) (*child, error) {
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir // no configuration of the user's is in it
	cmd.Env = environment()
	cmd.Stderr = log
	detach(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c := &child{name: name, started: time.Now(), cmd: cmd, in: in, done: make(chan struct{})}
	go c.attend(out, hear) // until the process ends
	return c, nil
}

// lastWords are the end of what a process has written to its log, for errors: the folder may be gone
// when somebody wants to look.
func lastWords(dir, name string) string {
	text, err := os.ReadFile(filepath.Join(dir, name+".log"))
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(text[max(0, len(text)-1000):]))
}

// environment is ours without settings of yards: the demo's has its own.
func environment() []string {
	var kept []string
	for _, v := range os.Environ() {
		if len(v) < 10 || v[:10] != "EVENTYARD_" {
			kept = append(kept, v)
		}
	}
	return kept
}

func (c *child) attend(out io.Reader, hear func([]byte)) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		hear(lines.Bytes())
	}
	_ = c.cmd.Wait() // how it ended shows in its log
	c.mu.Lock()
	c.ended = time.Now()
	c.mu.Unlock()
	close(c.done)
}

// order writes a line to the process. One that has ended hears nothing, which shows elsewhere.
func (c *child) order(line any) {
	text, _ := json.Marshal(line) // of plain fields
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.in.Write(append(text, '\n'))
}

// kill ends the process as kill -9 does; stop asks it to.
func (c *child) kill() { c.end("killed", syscall.SIGKILL) }
func (c *child) stop() { c.end("stopped", syscall.SIGTERM) }

func (c *child) end(why string, signal syscall.Signal) {
	c.mu.Lock()
	c.ending = why
	c.mu.Unlock()
	if err := c.cmd.Process.Signal(signal); err != nil && c.running() {
		_ = c.cmd.Process.Kill() // a system without signals
	}
}

// leave stops the process and waits for its end, which is hurried after a while.
func (c *child) leave(patience time.Duration) {
	c.stop()
	select {
	case <-c.done:
	case <-time.After(patience):
		_ = c.cmd.Process.Kill()
		<-c.done
	}
}

func (c *child) running() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// fate is why and when the process ended; empty while nobody has ended it and it runs.
func (c *child) fate() (why string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending == "" && !c.ended.IsZero() {
		return "ended by itself", c.ended
	}
	return c.ending, c.ended
}

func (c *child) process() int { return c.cmd.Process.Pid }
