package pipe

import (
	"context"
	"net"
	"sync"
)

// Listener is where connections are asked for and taken.
type Listener struct {
	name   string
	conns  chan *Conn
	closed chan struct{}
	once   sync.Once
}

var _ net.Listener = (*Listener)(nil)

// NewListener makes a listener. Its name is the address of its connections.
func NewListener(name string) *Listener {
	return &Listener{name: name, conns: make(chan *Conn), closed: make(chan struct{})}
}

// Dial asks for a connection and waits until it is taken. After Close it is net.ErrClosed.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	near, far := pair(l.name)
	var err error
	select {
	case <-l.closed: // the others may be ready as well
		err = net.ErrClosed
	default:
		select {
		case l.conns <- far:
			return near, nil
		case <-l.closed:
			err = net.ErrClosed
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	return nil, &net.OpError{Op: "dial", Net: network, Addr: l.Addr(), Err: err}
}

// Accept takes the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: network, Addr: l.Addr(), Err: net.ErrClosed}
	}
}

// Close ends the listener, not its connections. Safe twice.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr has the listener's name.
func (l *Listener) Addr() net.Addr { return addr(l.name) }
