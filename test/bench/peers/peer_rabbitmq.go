package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/eventyard/eventyard/test/parts"
)

// rabbitProgram is where Debian has RabbitMQ's start script that does not ask for a user of its own.
const rabbitProgram = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// rabbit is Debian's RabbitMQ with its plugin for AMQP 1.0. Debian 12 has 3.10; RabbitMQ 4, which has AMQP 1.0 at its
// core, is not packaged there. It confirms a durable message of a durable queue when that is on disk.
//
// Erlang's nodes find each other by a daemon, epmd, which the first of them would start and leave behind. So one is
// started before, and ended after.
type rabbit struct {
	process
	daemon process
}

func (b *bench) rabbit() *rabbit {
	r := &rabbit{
		process: process{is: about{name: "RabbitMQ 3.10, durable queue", kind: "rabbitmq", stores: fsync}},
		daemon:  process{is: about{name: "epmd", kind: "epmd"}},
	}
	r.daemon.prepare = func(_ context.Context, _ string, l *launch) error {
		if err := errors.Join(parts.Need(rabbitProgram, "rabbitmq-server"), parts.Need("epmd", "erlang-base")); err != nil {
			return missing(err)
		}
		free, err := freePorts(1)
		if err != nil {
			return err
		}
		// Its nodes are of the host localhost, and look for it there.
		l.host, l.ports = "127.0.0.1", map[string]string{"epmd": free[0]}
		l.args = []string{"epmd", "-address", l.host, "-port", free[0]}
		return nil
	}
	r.process.prepare = r.configure
	return r
}

func (r *rabbit) configure(_ context.Context, dir string, l *launch) error {
	for _, name := range []string{"home", "data", "logs"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	free, err := freePorts(2)
	if err != nil {
		return err
	}
	l.host, l.ports = r.daemon.launch.host, map[string]string{"amqp": free[0]}
	for name, text := range map[string]string{
		"rabbitmq.conf": fmt.Sprintf("listeners.tcp.1 = %s\ndistribution.listener.interface = %s\nloopback_users = none\nlog.file.level = warning\n",
			l.address("amqp"), l.host),
		"plugins": "[rabbitmq_amqp1_0].\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	// With input allowed the script becomes the server, so that its process is the one to end; what it is not to do is
	// to read its input.
	l.args = []string{"env", "RABBITMQ_ALLOW_INPUT=true", "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-noinput",
		"HOME=" + filepath.Join(dir, "home"), "ERL_EPMD_ADDRESS=" + l.host, "ERL_EPMD_PORT=" + r.daemon.launch.ports["epmd"],
		"RABBITMQ_NODENAME=peers" + free[0] + "@localhost", "RABBITMQ_MNESIA_BASE=" + filepath.Join(dir, "data"),
		"RABBITMQ_LOG_BASE=" + filepath.Join(dir, "logs"), "RABBITMQ_CONFIG_FILE=" + filepath.Join(dir, "rabbitmq.conf"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(dir, "plugins"), "RABBITMQ_DIST_PORT=" + free[1], rabbitProgram}
	return nil
}

// start starts the daemon before the server.
func (r *rabbit) start(ctx context.Context, dir string) error {
	for _, one := range []struct {
		process *process
		dir     string
	}{{&r.daemon, filepath.Join(dir, "epmd")}, {&r.process, filepath.Join(dir, "rabbitmq")}} {
		if err := os.Mkdir(one.dir, 0o700); err != nil {
			return errors.Join(err, r.stop())
		}
		if err := one.process.start(ctx, one.dir); err != nil {
			return errors.Join(err, r.stop())
		}
	}
	return nil
}

func (r *rabbit) stop() error { return errors.Join(r.process.stop(), r.daemon.stop()) }

// freePorts has the kernel choose ports, all at once so that they differ.
func freePorts(n int) (all []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		all = append(all, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
	return all, nil
}
