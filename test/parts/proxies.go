package parts

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
)

// proxies pass on what the hosts of a network say to each other and to the test process. Each address of a
// host is a proxy's; the program behind it listens at another one, which nobody is told. Whose a connection
// is that comes in is looked up by its socket, so that a cut holds back also what a host has begun itself.
//
// What is held back is passed on when both ends are joined, as TCP would by sending it again. Unlike behind
// a pulled cable a new connection to a host that was cut off is taken, and hears nothing.
type proxies struct {
	running sync.WaitGroup

	mu        sync.Mutex
	changed   *sync.Cond // when a host was joined, and when all is closed
	hosts     []*Host
	listeners []net.Listener    // guarded by mu
	open      map[net.Conn]bool // guarded by mu; nil once all is closed
}

// newProxies makes a network of them that is there until the test ends.
func newProxies(t testing.TB, hosts int) (*Network, error) {
	if !canFindOwners {
		return nil, errors.New("a network of proxies takes Linux")
	}
	p := &proxies{open: map[net.Conn]bool{}}
	p.changed = sync.NewCond(&p.mu)
	t.Cleanup(p.close)
	n := &Network{Address: OwnLoopback(), proxies: p}
	for range hosts {
		n.hosts = append(n.hosts, &Host{Address: OwnLoopback(), inner: OwnLoopback(), proxies: p})
	}
	p.hosts = n.hosts
	return n, nil
}

// add says in which folder a host has a program, whose process id is there while it runs.
func (p *proxies) add(h *Host, dir string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.programs = append(h.programs, dir)
}

// set cuts a host off, or joins it.
func (p *proxies) set(h *Host, cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.cut = cut
	p.changed.Broadcast()
}

// pass passes connections to an address of a host, nil for the test process, on to another one.
func (p *proxies) pass(from, to string, host *Host) error {
	listener, err := net.Listen("tcp", from)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.listeners = append(p.listeners, listener)
	p.mu.Unlock()
	p.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.carryBoth(conn.(*net.TCPConn), to, host) })
		}
	})
	return nil
}

// carryBoth carries both directions of a connection until one side ends it; the other then sees the same.
func (p *proxies) carryBoth(conn *net.TCPConn, to string, host *Host) {
	defer p.drop(conn)
	peer := p.owner(conn)
	if !p.keep(conn) || !p.await(host, peer) {
		return
	}
	dialed, err := net.Dial("tcp", to)
	if err != nil {
		_ = conn.SetLinger(0) // who dials is refused, more or less
		return
	}
	defer p.drop(dialed)
	if !p.keep(dialed) {
		return
	}
	inner := dialed.(*net.TCPConn)
	var both sync.WaitGroup
	both.Go(func() { p.carry(inner, conn, host, peer) })
	both.Go(func() { p.carry(conn, inner, host, peer) })
	both.Wait()
}

// carry copies one direction, while both hosts are joined.
func (p *proxies) carry(to, from *net.TCPConn, hosts ...*Host) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if !p.await(hosts...) {
			return
		}
		if _, failed := to.Write(buffer[:n]); failed != nil {
			_ = from.Close() // what ends one end ends the other
			return
		}
		switch {
		case errors.Is(err, io.EOF):
			_ = to.CloseWrite()
			return
		case err != nil:
			_ = to.SetLinger(0)
			_ = to.Close()
			return
		}
	}
}

// await waits until all of some hosts are joined, of which nil is the test process; false: all is closed.
func (p *proxies) await(hosts ...*Host) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.open != nil && slices.ContainsFunc(hosts, func(h *Host) bool { return h != nil && h.cut }) {
		p.changed.Wait()
	}
	return p.open != nil
}

// owner is the host whose program has the other end of a connection; nil: the test process, or one that has
// ended.
func (p *proxies) owner(conn *net.TCPConn) *Host {
	p.mu.Lock()
	dirs := map[*Host][]string{}
	for _, h := range p.hosts {
		dirs[h] = slices.Clone(h.programs)
	}
	p.mu.Unlock()
	socket, err := socketOf(conn.RemoteAddr().(*net.TCPAddr), conn.LocalAddr().(*net.TCPAddr))
	if err != nil {
		return nil
	}
	for h, dirs := range dirs {
		if slices.ContainsFunc(dirs, func(dir string) bool { return hasSocket(dir, socket) }) {
			return h
		}
	}
	return nil
}

func (p *proxies) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		return false
	}
	p.open[conn] = true
	return true
}

func (p *proxies) drop(conn net.Conn) {
	_ = conn.Close() // it may be closed
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, conn)
}

func (p *proxies) close() {
	p.mu.Lock()
	for _, l := range p.listeners {
		_ = l.Close()
	}
	for conn := range p.open {
		_ = conn.Close()
	}
	p.open = nil
	p.changed.Broadcast()
	p.mu.Unlock()
	p.running.Wait()
}
