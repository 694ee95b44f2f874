package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"
)

// dialTime and handshakeTime bound how long a connection may take to come about. They are
// well within the time that an answer has.
const (
	dialTime      = 10 * time.Second
	handshakeTime = 10 * time.Second
)

// dialer makes guarded connections.
type dialer struct {
	net.Dialer
	// lookup is the tests' resolver; nil: the net.Dialer resolves.
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
}

func newDialer(cfg Config, g *guard) *dialer {
	d := &dialer{Dialer: net.Dialer{Timeout: dialTime, KeepAlive: 30 * time.Second, Control: g.control}}
	switch r := cfg.Resolver.(type) {
	case nil:
	case *net.Resolver:
		d.Resolver = r
	default:
		d.lookup = r.LookupNetIP
	}
	return d
}

// DialContext tries a name's addresses one after another where the tests resolve.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
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
