package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/eventyard/eventyard/test/bench/measure"
)

// Idle connections: each with a receiving link, five to a group and partition because a
// hub takes no more.
const (
	idleConnections = 2000
	idlePartitions  = 16
	idlePerPosition = 5
)

// measureConnections finds what an idle connection with one link costs the yard.
func measureConnections(ctx context.Context, b *bench) error {
	program, err := b.program(ctx)
	if err != nil {
		return err
	}
	count := idleConnections
	if b.period < time.Second { // only to see that it works
		count = 100
	}
	b.progress("connections: %d idle ones with a receiving link each", count)
	var cost measure.Series
	for range b.rounds {
		kib, err := b.idleCost(ctx, program, count)
		if err != nil {
			return err
		}
		if kib > 0 {
			cost = append(cost, kib)
		}
	}
	if len(cost) == 0 {
		b.progress("  this system does not tell what a process holds")
		return nil
	}
	b.report.goal(fmt.Sprintf("resident memory for each of %d idle connections with a receiving link", count), cost, "KiB", atMost(64))
	return nil
}

// idleCost is in KiB of resident memory per connection; zero where nobody knows.
func (b *bench) idleCost(ctx context.Context, program string, count int) (kib float64, err error) {
	dir, err := b.newFolder()
	if err != nil {
		return 0, err
	}
	s, err := startIdleYard(ctx, program, dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	// What the partitions themselves cost once they are open does not count.
	for _, n := range []int{idlePartitions, count} {
		before, _ := measure.ResidentKiB(s.cmd.Process.Pid)
		conns, err := s.idle(n)
		defer closeAll(conns)
		if err != nil {
			return 0, err
		}
		select { // let it come to rest
		case <-time.After(b.period):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		after, known := measure.ResidentKiB(s.cmd.Process.Pid)
		if !known {
			return 0, nil
		}
		kib = (after - before) / float64(n)
		closeAll(conns)
	}
	b.progress("  %.1f KiB", kib)
	return kib, nil
}

func closeAll(conns []*amqpConn) {
	for _, c := range conns {
		_ = c.Close()
	}
}

func startIdleYard(ctx context.Context, program, dir string) (*amqpServer, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "hubs:\n  - name: %s\n    partitions: %d\n    groups:\n", hubName, idlePartitions)
	for g := range idleConnections/(idlePartitions*idlePerPosition) + 1 {
		fmt.Fprintf(&text, "      - group%d\n", g)
	}
	file := filepath.Join(dir, "eventyard.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "serve", "--config", file, "--data", filepath.Join(dir, "data"),
		"--amqp", "127.0.0.1:0", "--amqps", "off", "--http", "off", "--https", "off", "--kafka", "off", "--kafkas", "off")
	cmd.Dir = dir
	return startAMQP(cmd)
}

// idle opens so many connections with a receiving link that has credit and gets nothing.
func (s *amqpServer) idle(count int) (conns []*amqpConn, err error) {
	for i := range count {
		conn, err := dialAMQP(s.address)
		if err != nil {
			return conns, fmt.Errorf("connection %d: %w", i, err)
		}
		conns = append(conns, conn)
		group := i / (idlePartitions * idlePerPosition)
		address := fmt.Sprintf("%s/ConsumerGroups/group%d/Partitions/%d", hubName, group, i%idlePartitions)
		if err := conn.attachReceiver(address, 300); err != nil {
			return conns, fmt.Errorf("link %d: %w", i, err)
		}
	}
	return conns, nil
}
