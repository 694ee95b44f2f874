package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Keys of the development mode, which every yard on loopback takes.
const developmentKeys = "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"

// amqpServer is a process that speaks AMQP on loopback: a yard, or the canned peer.
type amqpServer struct {
	cmd     *exec.Cmd
	address string
	stderr  bytes.Buffer
	rest    chan struct{} // closed when its output has ended
}

// startAMQP starts a program that prints the address of its AMQP listener.
func startAMQP(cmd *exec.Cmd) (*amqpServer, error) {
	s := &amqpServer{cmd: cmd, rest: make(chan struct{})}
	cmd.Stderr = &s.stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(stdout)
	url, err := findAddress(lines, "amqp")
	go func() {
		defer close(s.rest)
		_, _ = io.Copy(io.Discard, lines)
	}()
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	s.address = strings.TrimPrefix(url, "amqp://")
	return s, nil
}

// poisonHub is for what a function cannot handle.
const poisonHub = "poison"

// startYard starts the real program with a hub of so many partitions, and what else is configured.
func startYard(ctx context.Context, name, dir, sync string, partitions int, more string) (*amqpServer, error) {
	data := filepath.Join(dir, "data")
	file := filepath.Join(dir, "eventyard.yaml")
	text := fmt.Sprintf("hubs:\n  - name: %s\n    partitions: %d\n  - name: %s\n    partitions: 1\n%s", hubName, partitions, poisonHub, more)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, name, "serve", "--config", file, "--data", data, "--sync", sync,
		"--amqp", "127.0.0.1:0", "--amqps", "off", "--http", "off", "--https", "off", "--kafka", "off", "--kafkas", "off")
	cmd.Dir = dir
	return startAMQP(cmd)
}

// startPeer starts this program once more, as the canned peer.
// With a folder it writes there what it takes.
func startPeer(ctx context.Context, eventBytes int, folder string) (*amqpServer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), peerCommand+"="+strconv.Itoa(eventBytes), peerFolder+"="+folder)
	return startAMQP(cmd)
}

// connectionString is what Event Hubs clients take.
func (s *amqpServer) connectionString() string {
	return "Endpoint=sb://" + s.address + ";" + developmentKeys
}

// stop ends the process as an operator would, and waits for it.
func (s *amqpServer) stop() error {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		_ = s.cmd.Process.Kill()
	}
	<-s.rest
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(s.cmd.Path), err, s.stderr.String())
	}
	return nil
}

// program builds the yard's program once for the whole run.
func (b *bench) program(ctx context.Context) (string, error) {
	if b.built != "" {
		return b.built, nil
	}
	dir, err := b.newFolder()
	if err != nil {
		return "", err
	}
	b.progress("building eventyard")
	b.built, err = buildProgram(ctx, dir)
	return b.built, err
}

// onYard is a contender that works against a yard.
func onYard(name, program, sync string, partitions int, work amqpWork) contender {
	return contender{name, func(ctx context.Context, dir string, lim limit) (t tally, err error) {
		s, err := startYard(ctx, program, dir, sync, partitions, "")
		if err != nil {
			return tally{}, err
		}
		defer func() { err = errors.Join(err, s.stop()) }()
		return work(ctx, s, lim)
	}}
}

// onPeer is the same against the canned peer.
func onPeer(name string, eventBytes int, work amqpWork) contender {
	return contender{name, func(ctx context.Context, _ string, lim limit) (t tally, err error) {
		return againstPeer(ctx, eventBytes, "", work, lim)
	}}
}

// onRegistry is the same against one that writes what it takes to the page cache.
func onRegistry(name string, eventBytes int, work amqpWork) contender {
	return contender{name, func(ctx context.Context, dir string, lim limit) (t tally, err error) {
		return againstPeer(ctx, eventBytes, dir, work, lim)
	}}
}

func againstPeer(ctx context.Context, eventBytes int, folder string, work amqpWork, lim limit) (t tally, err error) {
	s, err := startPeer(ctx, eventBytes, folder)
	if err != nil {
		return tally{}, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	return work(ctx, s, lim)
}

// amqpWork is what clients do to a server.
type amqpWork func(ctx context.Context, s *amqpServer, lim limit) (tally, error)
