package server

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/eventyard/eventyard/internal/config"
)

// DoorError: a door could not be opened.
type DoorError struct {
	// Door is its name: amqp, amqps, http or https.
	Door    string
	Address string
	Err     error
}

func (e *DoorError) Error() string {
	return fmt.Sprintf("open the %s door at %s: %v", e.Door, e.Address, e.Err)
}

func (e *DoorError) Unwrap() error { return e.Err }

// openDoor is a door with its listener. Its address is the one that it is bound to.
type openDoor struct {
	config.Door
	listener net.Listener
}

// url is what clients are told. The schemes are the doors' names.
func (d openDoor) url() string { return d.Name + "://" + d.Address }

// openDoors are the doors of one yard.
type openDoors []openDoor

// listen opens the addresses of all doors, or none and tells of each that could not be.
func listen(cfg Config) (openDoors, error) {
	var open openDoors
	var problems []error
	for _, door := range cfg.doors() {
		if !door.Open() {
			continue
		}
		opened, err := listenAt(cfg, door)
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

func listenAt(cfg Config, door config.Door) (openDoor, error) {
	listener, err := net.Listen(network(door.Address), door.Address)
	if err != nil {
		return openDoor{}, &DoorError{door.Name, door.Address, withoutAddress(err)}
	}
	// A name may mean anything by the time it is looked up; what counts is what the
	// door is bound to.
	bound := door
	bound.Address = listener.Addr().String()
	err = bound.CheckPlaintext(cfg.AllowPlaintext)
	if err == nil && cfg.AcceptAnyJWT {
		if err = bound.CheckAnyJWT(); err != nil {
			err = fmt.Errorf("every token is taken: %w", err)
		}
	}
	if err != nil {
		return openDoor{}, errors.Join(&DoorError{door.Name, door.Address, err}, listener.Close())
	}
	return openDoor{bound, listener}, nil
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

// CheckAddress tells why a door could not be opened at an address; nil if it could.
func CheckAddress(address string) error {
	listener, err := net.Listen(network(address), address)
	if err != nil {
		return err
	}
	return listener.Close()
}

// withoutAddress leaves the place out of an error that is told with it.
func withoutAddress(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

func (c Config) doors() []config.Door {
	return config.Config{AMQP: c.AMQP, AMQPS: c.AMQPS, HTTP: c.HTTP, HTTPS: c.HTTPS}.Doors()
}

// close may be called more than once.
func (o openDoors) close() {
	for _, door := range o {
		_ = door.listener.Close()
	}
}

// development tells whether nobody but this machine can reach the yard.
func (o openDoors) development() bool {
	return !slices.ContainsFunc(o, func(d openDoor) bool { return !d.OnLoopback() })
}

func (o openDoors) addresses() map[string]string {
	all := map[string]string{}
	for _, door := range o {
		all[door.Name] = door.url()
	}
	return all
}
