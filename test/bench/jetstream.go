package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk"
)

// measureJetStream feeds the same events, in process, to an embedded NATS server with
// JetStream on files, one replica, and to the engine, at like durability.
func measureJetStream(ctx context.Context, b *bench) error {
	for _, d := range []struct {
		name string
		ours disk.SyncMode
		js   bool
		lim  limit
	}{
		{"`os` / its default", disk.OS, false, limit{period: b.period, bytes: cachedBytes}},
		{"`always` / its sync on every write", disk.Always, true, limit{period: b.period}},
	} {
		if err := b.againstJetStream(ctx, d.name, d.ours, d.js, d.lim); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) againstJetStream(ctx context.Context, durability string, ours disk.SyncMode, syncAlways bool, lim limit) error {
	b.progress("jetstream: %s, looking for its best settings", durability)
	all := []contender{engineAppends("engine: batches of 100", ours, shape{partitions, partitions, batchEvents})}
	for _, way := range jsWays() {
		c, err := b.tune(ctx, way, syncAlways)
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		all = append(all, c)
	}
	b.progress("jetstream: %s", durability)
	r, err := b.compare(ctx, lim, all...)
	if err != nil {
		return err
	}
	theirs := best(r[1].rate(), r[2].rate())
	b.report.goal("embedded JetStream, "+durability+": engine / its best with events as messages", r[0].rate().Over(theirs), "×", atLeast(5))
	b.report.goal("embedded JetStream, "+durability+": engine / frames of 100 events as one message", r[0].rate().Over(r[3].rate()), "×", target{})
	b.report.rates("Embedded JetStream, 16 streams of 1 KiB events: "+durability, r)
	return nil
}

// jsSettings are what its rate depends on on the client's side.
type jsSettings struct {
	connections int // shared by the 16 streams' publishers
	window      int // publications of a stream that wait for their acknowledgement
}

// jsWay is a way to publish 100 events.
type jsWay struct {
	name    string
	atomic  bool // the streams have to allow atomic batches
	windows []int
	publish func(l *jsLane, ctx context.Context) error
}

func jsWays() []jsWay {
	return []jsWay{
		{"JetStream: asynchronous publish", false, []int{64, 256, 1024}, (*jsLane).publishSingles},
		{"JetStream: atomic batches of 100", true, []int{1, 4, 16}, (*jsLane).publishAtomic},
		{"JetStream: 100 events as one message", false, []int{1, 4, 16}, (*jsLane).publishFrame},
	}
}

// tune finds the settings with which a way is fastest, by short runs.
func (b *bench) tune(ctx context.Context, way jsWay, syncAlways bool) (contender, error) {
	if b.period < time.Second { // too short to tell anything
		return jsPublishes(way, syncAlways, jsSettings{connections: 4, window: way.windows[1]}), nil
	}
	var fastest contender
	var most float64
	for _, connections := range []int{1, 4, 16} {
		for _, window := range way.windows {
			c := jsPublishes(way, syncAlways, jsSettings{connections, window})
			t, err := b.once(ctx, limit{period: b.period / 6, bytes: cachedBytes}, c)
			if err != nil {
				return contender{}, err
			}
			if rate := float64(t.events) / t.took.Seconds(); rate > most {
				fastest, most = c, rate
			}
		}
	}
	return fastest, nil
}

// jsPublishes is the embedded server under a load.
func jsPublishes(way jsWay, syncAlways bool, s jsSettings) contender {
	name := fmt.Sprintf("%s (window per stream: %d, connections: %d)", way.name, s.window, s.connections)
	return contender{name, func(ctx context.Context, dir string, lim limit) (t tally, err error) {
		y, err := openJetStream(ctx, dir, syncAlways, way.atomic, s)
		if err != nil {
			return tally{}, err
		}
		defer func() { err = errors.Join(err, y.close()) }()
		return drive(ctx, lim, job{writers: partitions, events: batchEvents, bytes: batchEvents * eventBytes,
			do:     func(ctx context.Context, w int) error { return way.publish(y.lanes[w], ctx) },
			settle: y.settle})
	}}
}
