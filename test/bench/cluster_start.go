package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/jetstream/entries"
	"github.com/eventyard/eventyard/test/bench/measure"
)

// startEntries is how many entries a node starts with.
const startEntries = 100_000

// measureClusterStart starts nodes of a yard that has many entries.
func measureClusterStart(ctx context.Context, b *bench) error {
	return b.withServers(ctx, func(servers *natsServers) (err error) {
		count := startEntries
		if b.short() {
			count = 500
		}
		if _, err := b.program(ctx); err != nil { // building it does not count
			return err
		}
		var empty, full nodeStarts
		for range b.rounds {
			if err := empty.take(ctx, b, servers); err != nil {
				return err
			}
		}
		b.progress("start: storing %d entries", count)
		if err := fillEntries(ctx, servers, count); err != nil {
			return fmt.Errorf("fill: %w", err)
		}
		for range b.rounds {
			if err := full.take(ctx, b, servers); err != nil {
				return err
			}
		}
		b.report.goal(fmt.Sprintf("start of a node with %d entries until it is ready", count), full.ready, "s", atMost(5))
		b.report.table(measure.Table{Title: "Start of a node",
			Head: []string{"what", "until ready (s)", "spread", "CPU time of the node until then (s)", "spread", "resident memory then (MiB)", "spread"},
			Rows: [][]string{empty.row("new yard"), full.row(fmt.Sprintf("%d entries of 200 bytes", count))}})
		return nil
	})
}

// nodeStarts are what several starts showed.
type nodeStarts struct{ ready, cpu, resident measure.Series }

func (f *nodeStarts) take(ctx context.Context, b *bench, servers *natsServers) (err error) {
	began := time.Now()
	node, err := b.startNode(ctx, servers, "node-1")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.stop()) }()
	f.ready = append(f.ready, time.Since(began).Seconds())
	b.progress("  ready after %s s", measure.Number(time.Since(began).Seconds()))
	f.cpu = append(f.cpu, cpuTime(node.cmd).Seconds())
	if kib, ok := measure.ResidentKiB(node.cmd.Process.Pid); ok {
		f.resident = append(f.resident, kib/1024)
	}
	return nil
}

func (f *nodeStarts) row(name string) []string {
	return []string{name, measure.Number(f.ready.Median()), f.ready.Spread(), measure.Number(f.cpu.Median()), f.cpu.Spread(), measure.Number(f.resident.Median()), f.resident.Spread()}
}

// fillEntries stores entries as processors' leases are.
func fillEntries(ctx context.Context, servers *natsServers, count int) error {
	conns, err := connect.Dial(ctx, servers.config("fill"))
	if err != nil {
		return err
	}
	defer conns.Close()
	store, err := entries.New(conns.Control, entries.Config{Yard: connect.DefaultYard, Log: quiet()})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = store.Run(running)
	}()
	defer func() {
		stop()
		<-ended
	}()
	if err := store.Load(ctx); err != nil {
		return err
	}
	var next atomic.Int64
	value := randomBytes(200)
	return each(64, func(int) error {
		for i := int(next.Add(1) - 1); i < count; i = int(next.Add(1) - 1) {
			if _, err := store.CompareAndSet(ctx, fmt.Sprintf("records/log-%d/$default/lease/%d", i/32, i%32), 0, value); err != nil {
				return err
			}
		}
		return nil
	})
}
