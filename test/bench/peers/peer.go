package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/eventyard/eventyard/test/parts"
)

// durability is what a server has done with an event when it acknowledges it.
type durability string

const (
	page  durability = "page"  // given to the operating system: it survives a crash of the server
	fsync durability = "fsync" // synced: it survives a power cut
	none  durability = "none"  // thrown away
)

// peer is a server in the race. It is started once, in an empty folder that is its alone.
type peer interface {
	about() about
	// start returns when all listeners take connections. What this machine lacks is a missingError.
	start(ctx context.Context, dir string) error
	// address is HOST:PORT of the listener for a protocol, or empty.
	address(protocol string) string
	// pid is the process whose memory and processor time are the server's.
	pid() int
	// startTook is from the start of its process to the first connection that it took.
	startTook() time.Duration
	// stop ends it and removes its folder. One that does not run is left alone.
	stop() error
}

// about is what is known of a peer before it is started.
type about struct {
	name   string // in tables
	kind   string // the name by which -peers chooses it
	stores durability
	jvm    bool // has to run for a while before it is fast
	ours   bool // a yard, whose failure ends the run; all others are guests
}

// missingError says what a peer needs that this machine does not have.
type missingError struct{ err error }

func (e missingError) Error() string { return e.err.Error() }
func (e missingError) Unwrap() error { return e.err }

// missing marks an error, if there is one, as the lack of something.
func missing(err error) error {
	if err == nil {
		return nil
	}
	return missingError{err}
}

// process is a peer that is one program.
type process struct {
	is about
	// prepare writes what the program needs into its folder, and gives its command line.
	prepare func(ctx context.Context, dir string, l *launch) error

	launch  launch
	program *parts.Program // nil while it does not run
	id      int
	took    time.Duration
}

// launch is how a program is started.
type launch struct {
	args []string
	// host is a loopback address of the program's own, so that all ports of it are free.
	host string
	// ports are those of its listeners, by protocol.
	ports map[string]string
}

func (l *launch) address(protocol string) string {
	if l.ports[protocol] == "" {
		return ""
	}
	return net.JoinHostPort(l.host, l.ports[protocol])
}

func (p *process) about() about                   { return p.is }
func (p *process) pid() int                       { return p.id }
func (p *process) startTook() time.Duration       { return p.took }
func (p *process) address(protocol string) string { return p.launch.address(protocol) }

func (p *process) start(ctx context.Context, dir string) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.launch = launch{host: parts.OwnLoopback()}
	if err := p.prepare(ctx, dir, &p.launch); err != nil {
		return err
	}
	program := parts.NewProgram(dir, p.launch.args...)
	began := time.Now()
	if err := program.Start(func(string) bool { return ctx.Err() != nil || p.listens() }); err != nil {
		return err
	}
	p.took, p.program = time.Since(began), program
	if p.id, err = program.PID(); ctx.Err() != nil { // it may be too early for an id then
		err = ctx.Err()
	}
	if err != nil {
		return errors.Join(err, p.stop())
	}
	return nil
}

func (p *process) listens() bool {
	for protocol := range p.launch.ports {
		conn, err := net.DialTimeout("tcp", p.address(protocol), time.Second)
		if err != nil {
			return false
		}
		conn.Close()
	}
	return true
}

func (p *process) stop() error {
	if p.program == nil {
		return nil
	}
	err := p.program.Remove()
	p.program = nil
	return err
}

// stand starts peers side by side. Those that cannot be had, and guests that do not start, are left out, and the report
// says why. stop ends them all.
func (b *bench) stand(ctx context.Context, all ...peer) (standing []peer, stop func() error, err error) {
	stop = func() error {
		var errs []error
		for _, p := range standing {
			errs = append(errs, b.end(p))
		}
		return errors.Join(errs...)
	}
	for _, p := range all {
		if !b.wants(p.about().kind) {
			continue
		}
		dir, err := os.MkdirTemp(b.folder, p.about().kind+"-")
		if err != nil {
			return nil, nil, errors.Join(err, stop())
		}
		b.progress("starting %s", p.about().name)
		switch started, err := b.begin(ctx, p, dir); {
		case err != nil:
			return nil, nil, errors.Join(err, stop())
		case started:
			standing = append(standing, p)
		}
	}
	return standing, stop, nil
}

// begin starts one peer. Where that is left out it gives no error.
func (b *bench) begin(ctx context.Context, p peer, dir string) (started bool, err error) {
	err = p.start(ctx, dir)
	var lack missingError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &lack):
		b.leaveOut(p.about().name, lack)
		return false, nil
	case ctx.Err() != nil || p.about().ours:
		return false, fmt.Errorf("%s: %w", p.about().name, err)
	}
	b.leaveOut(p.about().name, err)
	return false, nil
}

// end stops one peer. A guest that leaves something behind is mentioned: what was measured of it holds.
func (b *bench) end(p peer) error {
	err := p.stop()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("stop %s: %w", p.about().name, err)
	if p.about().ours {
		return err
	}
	b.progress("  %v", err)
	return nil
}
