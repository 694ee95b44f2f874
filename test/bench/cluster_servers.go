package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/test/bench/measure"
	"github.com/eventyard/eventyard/test/parts"
)

// natsCommand makes this program a NATS server, with the configuration file that it names.
const natsCommand = "EVENTYARD_BENCH_NATS"

// natsReady is the line that such a program prints when clients can connect.
const natsReady = "ready"

// replicas is how many servers there are, and how many of them keep each message.
const replicas = 3

// beNATS runs a server until whoever has started this program closes its input, or is gone.
func beNATS(config string) error {
	options, err := server.ProcessConfigFile(config)
	if err != nil {
		return err
	}
	options.NoSigs, options.NoLog = true, true
	srv, err := server.NewServer(options)
	if err != nil {
		return err
	}
	srv.Start()
	if !srv.ReadyForConnections(time.Minute) {
		return errors.New("nats-server does not get ready")
	}
	fmt.Println(natsReady)
	_, err = io.Copy(io.Discard, os.Stdin)
	srv.Shutdown()
	srv.WaitForShutdown()
	return err
}

// natsServers are three servers that are a cluster, processes of their own, which sync before they
// acknowledge.
type natsServers struct {
	dir     string
	all     []*natsServer
	clients []string // HOST:PORT of each
}

type natsServer struct {
	cmd   *exec.Cmd
	input io.Closer
}

// startServers returns when the servers keep streams.
func startServers(ctx context.Context, dir string) (_ *natsServers, err error) {
	s := &natsServers{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	addresses, err := freeAddresses(parts.OwnLoopback(), 2*replicas)
	if err != nil {
		return nil, err
	}
	s.clients = addresses[:replicas]
	routes := "nats://" + strings.Join(addresses[replicas:], ", nats://")
	for i := range replicas {
		file := filepath.Join(dir, fmt.Sprintf("nats-%d.conf", i))
		text := fmt.Sprintf("server_name: n%d\nlisten: %q\nmax_payload: 8MB\njetstream { store_dir: %q, sync_interval: always }\n"+
			"cluster { name: bench, listen: %q, routes: [%s] }\n",
			i, s.clients[i], filepath.Join(dir, fmt.Sprint("store-", i)), addresses[replicas+i], routes)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
		one, err := startServer(ctx, file)
		if err != nil {
			return nil, fmt.Errorf("NATS server %d: %w", i, err)
		}
		s.all = append(s.all, one)
	}
	return s, s.await(ctx)
}

// freeAddresses has the kernel choose ports, all at once so that they differ.
func freeAddresses(host string, n int) (all []string, err error) {
	for range n {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			return nil, err
		}
		defer l.Close()
		all = append(all, l.Addr().String())
	}
	return all, nil
}

func startServer(ctx context.Context, config string) (*natsServer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	one := &natsServer{cmd: exec.CommandContext(ctx, self)}
	one.cmd.Env = append(os.Environ(), natsCommand+"="+config)
	one.cmd.Stderr = os.Stderr
	if one.input, err = one.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := one.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := one.cmd.Start(); err != nil {
		return nil, err
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || strings.TrimSpace(line) != natsReady {
		return nil, errors.Join(fmt.Errorf("it does not start: %q, %w", line, err), one.stop())
	}
	return one, nil
}

// await waits until a stream can be made, which takes a leader and all servers. Each try is short:
// servers without a leader do not answer.
func (s *natsServers) await(ctx context.Context) error {
	conn, err := nats.Connect(s.url())
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	for late := time.Now().Add(time.Minute); ; {
		trying, cancel := context.WithTimeout(ctx, time.Second)
		_, err := js.CreateStream(trying, jetstream.StreamConfig{Name: "bench", Subjects: []string{"bench"}, Replicas: replicas})
		cancel()
		if err == nil || ctx.Err() != nil || time.Now().After(late) {
			return err
		}
		_ = sleep.About(ctx, 20*time.Millisecond)
	}
}

// url is how a yard names them.
func (s *natsServers) url() string { return "nats://" + strings.Join(s.clients, ",") }

// config is how a node connects to them.
func (s *natsServers) config(node string) connect.Config {
	return connect.Config{Node: node, Log: quiet(),
		Settings: connect.Settings{Servers: s.clients, Yard: connect.DefaultYard, Replicas: replicas}}
}

// residentMiB is what the servers have in memory, the mean of them.
func (s *natsServers) residentMiB() float64 {
	var sum float64
	for _, one := range s.all {
		kib, ok := measure.ResidentKiB(one.cmd.Process.Pid)
		if !ok {
			return 0
		}
		sum += kib / 1024
	}
	return sum / float64(len(s.all))
}

func (s *natsServers) stop() error {
	var errs []error
	for _, one := range s.all {
		errs = append(errs, one.stop())
	}
	return errors.Join(errs...)
}

func (one *natsServer) stop() error { return errors.Join(one.input.Close(), one.cmd.Wait()) }
