package embedded

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
)

const (
	// provingTime is how long a connection counts as one that has not shown who it is: those that are open
	// then have shown a certificate, as the server has closed the others.
	provingTime = (handshakeTime + 1) * time.Second
	// resolveEvery is how often the addresses of the peers are looked up.
	resolveEvery = time.Minute
	// refusedEvery is how often it is said that connections are refused.
	refusedEvery = time.Minute
	// passTime is how long the server may take to listen, and to take a connection, which is on this machine.
	passTime = 5 * time.Second
)

// gate listens for other servers in the server's place, which takes any number of connections and spends
// some 20 KiB and a descriptor on each until a certificate is shown or its time is over. It passes those
// that the census admits on to the server's own port on loopback, and looks at addresses and times only:
// certificates are between the two ends. On Linux what is passed on stays in the system's memory.
type gate struct {
	listener net.Listener
	hosts    []string // those of the peers
	to       string   // the server's own port; read after ready
	ready    chan struct{}
	log      *slog.Logger
	peers    atomic.Pointer[map[netip.Addr]bool]
	census   census

	ended   context.Context // by stop
	stop    context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]bool   // both ends of what is passed on; nil: it is closed
	who  map[string]net.Addr // where a connection comes from that the server knows by another address
}

// openGate listens until close. Who comes before serve waits for it for a while.
func openGate(listen string, routes []string, log *slog.Logger) (*gate, error) {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, err
	}
	g := &gate{listener: l, log: log, ready: make(chan struct{}), open: map[net.Conn]bool{}, who: map[string]net.Addr{}}
	for _, route := range routes {
		if host, _, err := net.SplitHostPort(route); err == nil {
			g.hosts = append(g.hosts, host)
		}
	}
	g.ended, g.stop = context.WithCancel(context.Background())
	g.peers.Store(&map[netip.Addr]bool{})
	g.running.Go(g.resolve)
	g.running.Go(g.accept)
	return g, nil
}

// serve says where the server listens: it is connected to from now on.
func (g *gate) serve(to string) {
	g.to = to
	close(g.ready)
}

// close ends all connections, and waits for all that was begun. Safe twice.
func (g *gate) close() {
	g.stop()
	_ = g.listener.Close() // it may be closed
	g.mu.Lock()
	for conn := range g.open {
		_ = conn.Close()
	}
	g.open = nil
	g.mu.Unlock()
	g.running.Wait()
}

// resolve looks up the addresses of the peers until the gate is closed.
func (g *gate) resolve() {
	for {
		peers := map[netip.Addr]bool{}
		for _, host := range g.hosts {
			found, err := net.DefaultResolver.LookupNetIP(g.ended, "ip", host)
			if err != nil && g.ended.Err() == nil {
				g.log.Debug("the address of a peer cannot be looked up", "host", host, "error", err)
			}
			for _, address := range found {
				peers[address.Unmap()] = true
			}
		}
		g.peers.Store(&peers)
		if sleep.About(g.ended, resolveEvery) != nil {
			return
		}
	}
}

func (g *gate) accept() {
	for said := (time.Time{}); g.ended.Err() == nil; {
		conn, err := g.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || sleep.About(g.ended, 100*time.Millisecond) != nil { // there may be no descriptors left
				return
			}
			continue
		}
		from := addressOf(conn)
		if leave := g.census.admit(from, (*g.peers.Load())[from]); leave != nil {
			g.running.Go(func() { g.pass(conn, leave) })
			continue
		}
		_ = conn.Close() // nothing was said
		if time.Since(said) >= refusedEvery {
			said = time.Now()
			g.log.Warn("many connect to the port for peers and show no certificate, so that some are refused: let nobody but the peers reach it", "from", from)
		}
	}
}

// pass has a connection be one to the server, until either end closes it.
func (g *gate) pass(outer net.Conn, leave func()) {
	defer leave()
	defer outer.Close()
	if !g.isReady() {
		return
	}
	inner, err := net.DialTimeout("tcp", g.to, passTime)
	if err != nil {
		return // the server is about to stop
	}
	defer inner.Close()
	if !g.keep(outer, inner) {
		return
	}
	defer g.forget(outer, inner)
	proven := time.AfterFunc(provingTime, leave)
	defer proven.Stop()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(outer, inner) // either end closes it
		_ = outer.Close()
	})
	_, _ = io.Copy(inner, outer)
	_ = inner.Close()
	back.Wait()
}

// isReady waits until the server listens; false: it takes too long, and who has come tries again.
func (g *gate) isReady() bool {
	ctx, cancel := context.WithTimeout(g.ended, passTime)
	defer cancel()
	select {
	case <-g.ready:
		return true
	case <-ctx.Done():
		return false
	}
}

// keep notes both ends; false: the gate is closed.
func (g *gate) keep(outer, inner net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		return false
	}
	g.open[outer], g.open[inner] = true, true
	g.who[inner.LocalAddr().String()] = outer.RemoteAddr()
	return true
}

func (g *gate) forget(outer, inner net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, outer)
	delete(g.open, inner)
	delete(g.who, inner.LocalAddr().String())
}

// origin gives where a connection comes from that the server knows by an address.
func (g *gate) origin(known net.Addr) net.Addr {
	g.mu.Lock()
	defer g.mu.Unlock()
	if from := g.who[known.String()]; from != nil {
		return from
	}
	return known
}

func addressOf(conn net.Conn) netip.Addr {
	if address, is := conn.RemoteAddr().(*net.TCPAddr); is {
		return address.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
