package parts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Program is a server with a folder of its own, to be ended, frozen and started again at will. It
// dies with the test process, however that ends, and its folder goes with it. One goroutine at a
// time may use it.
type Program struct {
	dir     string
	args    []string
	process *guarded // nil while it does not run
	frozen  bool
}

// NewProgram is a program that is not started yet. The folder is there, and the program's alone.
func NewProgram(dir string, args ...string) *Program { return &Program{dir: dir, args: args} }

// Start runs the program and waits until what it has printed says that it is ready. One that
// fails to is ended. It does nothing to one that runs.
func (p *Program) Start(ready func(printed string) bool) error {
	if p.process != nil {
		return nil
	}
	// KILL also ends a frozen program.
	process, err := guard(p.dir, "KILL", nil, p.args...)
	if err != nil {
		return err
	}
	if err := process.await(func() bool { return ready(process.log()) }); err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", filepath.Base(p.args[0]), err), process.signal("KILL"))
	}
	p.process = process
	return nil
}

// End ends the program by a signal, TERM or KILL, waits for its end and keeps its folder. It does
// nothing to one that does not run.
func (p *Program) End(signal string) error {
	if p.process == nil {
		return nil
	}
	if signal != "KILL" { // which ends a frozen program as it is
		if err := p.Thaw(); err != nil {
			return err
		}
	}
	process := p.process
	p.process, p.frozen = nil, false
	return process.signal(signal)
}

// Freeze stops the program where it is: its connections stay, and nobody answers. When it returns,
// no thread of it runs.
func (p *Program) Freeze() error {
	pid, err := p.PID()
	if err != nil {
		return err
	}
	p.frozen = true
	if err := freeze(pid); err != nil {
		return err
	}
	return poll(func() (bool, error) { return isFrozen(pid) })
}

// Thaw lets a frozen program go on.
func (p *Program) Thaw() error {
	if !p.frozen {
		return nil
	}
	pid, err := p.PID()
	if err != nil {
		return err
	}
	p.frozen = false
	return thaw(pid)
}

// Empty removes a folder in that of the program, which does not run, with all that is in it.
func (p *Program) Empty(name string) error { return os.RemoveAll(filepath.Join(p.dir, name)) }

// Died tells whether the program has ended although nobody ended it.
func (p *Program) Died() bool { return p.process != nil && p.process.hasEnded() }

// Printed is what the program has printed since its last start.
func (p *Program) Printed() string {
	return (&guarded{dir: p.dir}).log()
}

// Remove ends the program, if it runs, and removes its folder.
func (p *Program) Remove() error {
	if p.process == nil {
		return os.RemoveAll(p.dir)
	}
	process := p.process
	p.process, p.frozen = nil, false
	return process.remove()
}

// PID is the id of the program's process.
func (p *Program) PID() (int, error) {
	if p.process == nil {
		return 0, fmt.Errorf("%s does not run", filepath.Base(p.args[0]))
	}
	text, err := os.ReadFile(filepath.Join(p.dir, "pid"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}
