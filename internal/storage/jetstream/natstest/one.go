package natstest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/eventyard/eventyard/test/parts"
)

// readyLine is what natsserver prints when clients can connect.
const readyLine = "natsserver: ready"

// one is a server: a process with a folder.
type one struct {
	name          string
	client, route string // HOST:PORT, where others reach it
	// clients and routes are where it listens for them: at other addresses where proxies are between.
	clients, routes string
	dir, store      string // store is the folder of its streams
	program         *parts.Program
}

// newOne gives a server its folder and its addresses, and does not start it. No host means this
// machine, at an address and at ports that nobody else has.
func newOne(program, name string, host *parts.Host) (*one, error) {
	dir, err := os.MkdirTemp("", "eventyard-nats-")
	if err != nil {
		return nil, err
	}
	o := &one{name: name, dir: dir, store: filepath.Join(dir, "store")}
	if host != nil {
		if host.Disk != nil {
			o.store = filepath.Join(host.Disk.Folder, "store")
		}
		o.client, o.route = net.JoinHostPort(host.Address, "4222"), net.JoinHostPort(host.Address, "6222")
		var other error
		o.clients, err = host.Listen("4222")
		o.routes, other = host.Listen("6222")
		err = errors.Join(err, other)
	} else {
		o.client, o.route, err = freePorts(parts.OwnLoopback())
		o.clients, o.routes = o.client, o.route
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	o.program = host.Program(dir, program, o.configFile())
	return o, nil
}

// freePorts has the kernel choose two ports of an address that no other server has.
func freePorts(host string) (first, second string, err error) {
	var ports [2]string
	for i := range ports {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			return "", "", err
		}
		defer l.Close() // both are open at once, so that they differ
		ports[i] = l.Addr().String()
	}
	return ports[0], ports[1], nil
}

func (o *one) url() string        { return "nats://" + o.client }
func (o *one) configFile() string { return filepath.Join(o.dir, "nats.conf") }

// configure writes the configuration file. A server without routes is alone.
func (o *one) configure(routes []string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "server_name: %s\nlisten: %q\nclient_advertise: %q\nmax_payload: %d\n", o.name, o.clients, o.client, 8<<20)
	// What it may keep is said: else it would be a part of what is free when it starts, little on a disk that
	// is full just then.
	fmt.Fprintf(&b, "jetstream { store_dir: %q, sync_interval: always, max_file: %d }\n", o.store, int64(1)<<40)
	user, password, _ := strings.Cut(SystemUser, ":")
	fmt.Fprintf(&b, "accounts { $SYS { users: [{ user: %s, password: %s }] } }\n", user, password)
	if len(routes) > 0 {
		fmt.Fprintf(&b, "cluster { name: yard, listen: %q, advertise: %q, routes: [%s] }\n", o.routes, o.route, strings.Join(routes, ", "))
	}
	return os.WriteFile(o.configFile(), []byte(b.String()), 0o644)
}

// start runs the server until clients can connect, again while another has its port.
func (o *one) start() error {
	deadline := time.Now().Add(patience)
	for {
		err := o.program.Start(func(printed string) bool { return strings.Contains(printed, readyLine) })
		if err == nil || !strings.Contains(err.Error(), "address already in use") || time.Now().After(deadline) {
			return err
		}
	}
}
