package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/test/bench/measure"
)

// takeovers is how many there are in a second of the measurement.
const takeovers = 30

// measureTakeover has receivers with rising epochs take a partition from each other, through one
// node after the other.
func measureTakeover(ctx context.Context, b *bench) error {
	return b.withServers(ctx, func(servers *natsServers) (err error) {
		var name string
		clients := make([]*hub.Client, replicas)
		for i := range clients {
			node, failed := b.startNode(ctx, servers, fmt.Sprint("node-", i+1))
			if failed != nil {
				return failed
			}
			defer func() { err = errors.Join(err, node.stop()) }()
			if i == 0 {
				if name, err = node.newHub(ctx, spread{streams: 1, partitions: 1}); err != nil {
					return err
				}
			}
			if clients[i], err = hub.Dial(ctx, node.connectionString(), hub.Config{Log: quiet()}); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, clients[i].Close()) }()
		}
		b.progress("takeover: receivers with epochs at %d nodes", len(clients))
		if err := clients[0].Hub(name).SendTo(ctx, "0", event.Text("there is something to receive")); err != nil {
			return err
		}
		race := takeoverRace{hub: name, clients: clients}
		for range b.rounds {
			if err := race.run(ctx, max(int(b.period.Seconds()*takeovers), 4)); err != nil {
				return err
			}
		}
		race.report(&b.report)
		return nil
	})
}

// takeoverRace is one partition for which receivers at several nodes race.
type takeoverRace struct {
	hub     string
	clients []*hub.Client
	epoch   int64
	// attached and received are percentiles in milliseconds, round by round: from when a receiver was
	// opened to when it was let in, and to when it had its first event.
	attached, received latencies
}

// run has one receiver after the other take over, and times all but the first, which takes from nobody.
func (r *takeoverRace) run(ctx context.Context, times int) (err error) {
	var before hub.Reader
	var attached, received []time.Duration
	for i := range times + 1 {
		r.epoch++
		began := time.Now()
		reader, err := r.clients[int(r.epoch)%len(r.clients)].Hub(r.hub).Open(ctx,
			hub.ReadConfig{Partition: "0", From: hub.Earliest, Epoch: hub.Exclusive(r.epoch)})
		if err != nil {
			return err
		}
		letIn := time.Since(began)
		if _, err := reader.Next(ctx, nil, 1); err != nil {
			return err
		}
		if i > 0 {
			attached, received = append(attached, letIn), append(received, time.Since(began))
			if _, err := before.Next(ctx, nil, 2); err == nil {
				return fmt.Errorf("the receiver before epoch %d was not evicted", r.epoch)
			}
			_ = before.Close(ctx) // it has ended
		}
		before = reader
	}
	r.attached.add(slices.Clone(attached))
	r.received.add(slices.Clone(received))
	return before.Close(ctx)
}

func (r *takeoverRace) report(to *report) {
	to.goal("take-over of a receiver with an epoch by another node, until it has its first event, p50", r.received.points[0], "ms", atMost(10))
	to.table(measure.Table{Title: "Take-over of a receiver with an epoch by another of three nodes (ms)",
		Head: []string{"what", "p50", "spread", "p90", "spread", "p99", "spread"},
		Rows: [][]string{r.attached.row("until it is let in"), r.received.row("until it has its first event")}})
}
