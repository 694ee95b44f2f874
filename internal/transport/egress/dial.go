package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/transport/share"
)

// dialTime and handshakeTime bound how long a connection may take to come about. They are
// well within the time that an answer has.
const (
	dialTime      = 10 * time.Second
	handshakeTime = 10 * time.Second
)

// errShort: no connection was to be had. It is no fault of the endpoint.
var errShort = errors.New("no outgoing connection was free: raise the limit of open files")

// What a connection takes of the share. While it is being made it may need two descriptors: a name
// server is asked for both families of addresses, and then one of each is tried.
const (
	dialCost = 2
	connCost = 1
)

// dialer makes guarded connections, within the share that all of them have.
type dialer struct {
	net.Dialer
	share *share.Share
	// shortage is called when somebody has to wait, and must not.
	shortage func()
	// lookup is the tests' resolver; nil: the net.Dialer resolves.
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
}

func newDialer(cfg Config, g *guard, s *share.Share, shortage func()) *dialer {
	d := &dialer{share: s, shortage: shortage, Dialer: net.Dialer{Timeout: dialTime, KeepAlive: 30 * time.Second, Control: g.control}}
	switch r := cfg.Resolver.(type) {
	case nil:
	case *net.Resolver:
		d.Resolver = r
	default:
		d.lookup = r.LookupNetIP
	}
	return d
}

// DialContext waits until a connection may be made: as long as the request whose turn it is wants
// one, or ctx lasts.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	held, err := d.take(ctx, address)
	if err != nil {
		return nil, err
	}
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		d.share.Give(held, dialCost)
		return nil, err
	}
	d.share.Give(held, dialCost-connCost)
	return &sharedConn{Conn: conn, giveBack: sync.OnceFunc(func() { d.share.Give(held, connCost) })}, nil
}

// take gets what it takes to make a connection.
func (d *dialer) take(ctx context.Context, address string) (*share.Holder, error) {
	w := d.share.Ask(address)
	select {
	case <-w.Granted():
		return w.Holder(), nil
	default:
	}
	t, _ := ctx.Value(turnKey{}).(*turn)
	if t == nil { // nobody comes this way without one; ctx is all there is then
		t = &turn{}
	}
	t.waiting.Store(true)
	d.shortage()
	select {
	case <-w.Granted():
	case <-ctx.Done():
	case <-t.request:
	case <-t.over:
	}
	if d.share.Withdraw(w) {
		return nil, errShort
	}
	t.proceed()
	return w.Holder(), nil
}

// dial tries a name's addresses one after another where the tests resolve.
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if _, literal := netip.ParseAddr(host); d.lookup == nil || err != nil || literal == nil {
		return d.Dialer.DialContext(ctx, network, address)
	}
	addrs, err := d.lookup(ctx, "ip", host)
	if err != nil {
		return nil, &net.DNSError{Err: err.Error(), Name: host, UnwrapErr: err}
	}
	errs := []error{}
	for _, a := range addrs {
		conn, err := d.Dialer.DialContext(ctx, network, net.JoinHostPort(a.String(), port))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// sharedConn gives back what it took of the share when it is closed.
type sharedConn struct {
	net.Conn
	giveBack func()
}

func (c *sharedConn) Close() error {
	defer c.giveBack()
	return c.Conn.Close()
}
