package server

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/eventyard/eventyard/internal/config"
)

// ListenerError: a listener could not be opened.
type ListenerError struct {
	// Listener is its name: amqp, amqps, http, https, kafka, kafkas or devStorage.
	Listener string
	Address  string
	Err      error
}

func (e *ListenerError) Error() string {
	return fmt.Sprintf("open the %s listener at %s: %v", e.Listener, e.Address, e.Err)
}

func (e *ListenerError) Unwrap() error { return e.Err }

// openListener is a listener of the configuration with its socket. Its address is the bound one.
type openListener struct {
	config.Listener
	listener net.Listener
}

// openListeners are the listeners of one yard.
type openListeners []openListener

// listen opens all listeners, or none; the error names each that could not be opened.
func listen(cfg Config) (openListeners, error) {
	var open openListeners
	var problems []error
	for _, listener := range cfg.listeners() {
		if !listener.Open() {
			continue
		}
		opened, err := listenAt(cfg, listener)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		open = append(open, opened)
	}
	if len(problems) > 0 {
		open.close()
		return nil, errors.Join(problems...)
	}
	return open, nil
}

func listenAt(cfg Config, asked config.Listener) (openListener, error) {
	listener, err := net.Listen(network(asked.Address), asked.Address)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err // which leaves the address out
		}
		return openListener{}, &ListenerError{asked.Name, asked.Address, err}
	}
	// A name may mean anything by the time it is looked up; what counts is what the
	// listener is bound to.
	bound := asked
	bound.Address = listener.Addr().String()
	err = bound.CheckPlaintext(cfg.AllowPlaintext)
	if err == nil && (cfg.AcceptAnyJWT || cfg.DevStorage != Off) {
		if err = bound.CheckDevelopment(); err != nil {
			err = fmt.Errorf("every token, or a key that everybody knows, is taken: %w", err)
		}
	}
	if err != nil {
		return openListener{}, errors.Join(&ListenerError{asked.Name, asked.Address, err}, listener.Close())
	}
	return openListener{bound, listener}, nil
}

// network is that of the address alone: all addresses of IPv4 are not also those of IPv6,
// as Go and the system would have it. A name, or none, is for both.
func network(address string) string {
	host, _, _ := net.SplitHostPort(address)
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return "tcp"
	case ip.Unmap().Is4():
		return "tcp4"
	}
	return "tcp6"
}

// CheckAddress is the error of opening a listener at an address.
func CheckAddress(address string) error {
	listener, err := net.Listen(network(address), address)
	if err != nil {
		return err
	}
	return listener.Close()
}

func (c Config) listeners() []config.Listener {
	return config.Config{
		AMQP: c.AMQP, AMQPS: c.AMQPS, HTTP: c.HTTP, HTTPS: c.HTTPS, Kafka: c.Kafka, Kafkas: c.Kafkas, DevStorage: c.DevStorage,
	}.Listeners()
}

// close may be called more than once.
func (o openListeners) close() {
	for _, listener := range o {
		_ = listener.listener.Close()
	}
}

// onLoopback: nobody but this machine can reach the listeners.
func (o openListeners) onLoopback() bool {
	return !slices.ContainsFunc(o, func(d openListener) bool { return !d.OnLoopback() })
}
