package main

import (
	"context"
	"errors"
	"fmt"
)

// Of single events one is under way for each sender, or several.
const (
	singleSenders = 64
	singlesAhead  = 16
)

// singleLoads are of senders who wait for each answer, and of such who send on meanwhile.
func (b *bench) singleLoads() []spread {
	loads := []spread{{1, 1, singleSenders, 1, 1}, {1, partitions, singleSenders, 1, 1}, {1, 1, singleSenders, 1, singlesAhead}}
	for _, streams := range b.streamCounts() {
		loads = append(loads, spread{streams, partitions, singleSenders, 1, singlesAhead})
	}
	return loads
}

// describe names a load of single events.
func (s spread) describe() string {
	how, where := "wait for each answer", "one partition"
	if s.ahead > 1 {
		how = fmt.Sprintf("have %d under way", s.ahead)
	}
	if s.partitions > 1 {
		where = fmt.Sprintf("%d partitions in %s", s.partitions, inStreams(s.streams))
	}
	return fmt.Sprintf("%d senders that %s, %s", s.senders, how, where)
}

// packed is the same load in as few messages as there can be, whoever has sent an event and wherever it
// goes to. First in messages of 64 events; then in two, of 64 where no more are under way, else of as
// many as the yard writes into a frame.
func (s spread) packed() (all []spread) {
	const small, largest = 64, 512
	messages := s.senders * s.ahead / small
	all = append(all, spread{s.streams, s.partitions, messages, small, 1})
	if messages > 1 {
		return append(all, spread{s.streams, s.partitions, 2, largest, 1})
	}
	return append(all, spread{s.streams, s.partitions, 2, small, 1})
}

// publishesPacked is the floor: what the servers alone cost, for events that somebody has gathered.
func (c *plainClient) publishesPacked(s spread) contender {
	return c.publishes(fmt.Sprintf("JetStream: messages of %d events, %d under way", s.batch, s.senders), s)
}

// measureClusterSingles has 64 senders of single events.
func measureClusterSingles(ctx context.Context, b *bench) error {
	return b.withNode(ctx, func(servers *natsServers, plain *plainClient, node *engineNode) (err error) {
		yard, err := b.startNode(ctx, servers, "node-1")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, yard.stop()) }()
		for _, s := range b.singleLoads() {
			b.progress("singles: %s", s.describe())
			packed := s.packed()
			r, err := b.alternate(ctx, limit{period: b.period},
				plain.publishes("JetStream: messages of 1 KiB", s), node.appends("engine: single events", s), yard.sends("AMQP: single events", s),
				plain.publishesPacked(packed[0]), plain.publishesPacked(packed[1]),
				plain.publishes("JetStream: messages of 1 KiB, one publisher that waits", spread{1, 1, 1, 1, 1}),
				plain.publishesByLibrary("JetStream: messages of 1 KiB, by Publish of nats.go", s))
			if err != nil {
				return err
			}
			b.judgeSingles(s.describe(), r)
		}
		return nil
	})
}

// judgeSingles puts the yard beside plain publishers, with and without the client library's own layer, the floor, and one
// publisher that waits.
func (b *bench) judgeSingles(what string, r []result) {
	plain, engine, amqp, alone, library := r[0], r[1], r[2], r[5], r[6]
	floor := best(r[3].rate(), r[4].rate())
	fivefold := atLeast(5).unlessBeyond(floor.Over(plain.rate()))
	b.besidePlain("engine, single events, "+what, engine, plain, fivefold)
	b.besidePlain("AMQP, single events, "+what, amqp, plain, fivefold)
	b.report.goal("the floor of the same: rate / plain JetStream's", floor.Over(plain.rate()), "×", target{})
	b.report.goal("the engine / the floor", engine.rate().Over(floor), "×", target{})
	b.report.goal("AMQP / the floor", amqp.rate().Over(floor), "×", target{})
	b.report.goal("the engine / Publish of nats.go", engine.rate().Over(library.rate()), "×", target{})
	b.report.goal("AMQP / Publish of nats.go", amqp.rate().Over(library.rate()), "×", target{})
	b.report.goal("AMQP / one plain publisher that waits", amqp.rate().Over(alone.rate()), "×", target{})
	b.report.timings("Single events of 1 KiB, "+what, r)
}
