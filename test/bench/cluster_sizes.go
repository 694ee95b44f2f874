package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/logs"
	"github.com/eventyard/eventyard/test/bench/measure"
)

// sizedStreams is how many streams a yard has when its memory is looked at.
const sizedStreams = 100

// measureSizes finds what a cluster has to be sized by: how fast a node catches up that has nothing
// in memory, and what streams cost nodes and servers.
func measureSizes(ctx context.Context, b *bench) error {
	return b.withServers(ctx, func(servers *natsServers) (err error) {
		if err := b.measureCatchUp(ctx, servers); err != nil {
			return err
		}
		return b.measureStreams(ctx, servers)
	})
}

// measureCatchUp fills a log and has engines read it that know nothing of it.
func (b *bench) measureCatchUp(ctx context.Context, servers *natsServers) (err error) {
	node, err := openNode(ctx, servers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.close()) }()
	batches := max(b.during(20_000)/partitions/batchEvents, 2)
	b.progress("sizes: reading %d events from 16 partitions in 1 stream", batches*partitions*batchEvents)
	fill := logs.New(logs.Config{Storage: node.streams, Store: node.store, Log: quiet()})
	defer func() { err = errors.Join(err, fill.Close()) }()
	if err := fill.Provide(ctx, logName, eventlog.Shape{Partitions: partitions}); err != nil {
		return err
	}
	events := newBatches(partitions, batchEvents)
	err = eachPartition(fill, func(i int, p eventlog.Partition) error {
		for range batches {
			if _, err := eventlog.Append(ctx, p, events[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	r, err := b.alternate(ctx, limit{}, contender{"engine: cursors at the oldest event of each partition", func(ctx context.Context, _ string, _ limit) (t tally, err error) {
		e := logs.New(logs.Config{Storage: node.streams, Store: node.store, Log: quiet()})
		defer func() { err = errors.Join(err, e.Close()) }()
		began := time.Now()
		err = eachPartition(e, func(_ int, p eventlog.Partition) error { return readThrough(ctx, p, batches*batchEvents) })
		n := int64(batches * partitions * batchEvents)
		return tally{events: n, bytes: n * eventBytes, took: time.Since(began)}, err
	}})
	if err != nil {
		return err
	}
	b.report.rates("Reading from the servers by a node that has nothing in memory: batches of 100 × 1 KiB, 16 partitions in 1 stream", r)
	return nil
}

// eachPartition does something with all partitions of the log at once.
func eachPartition(e *logs.Engine, do func(i int, p eventlog.Partition) error) error {
	return each(partitions, func(i int) error {
		p, err := e.Partition(eventlog.PartitionID{Log: logName, Number: i})
		if err != nil {
			return err
		}
		return do(i, p)
	})
}

// measureStreams makes hubs of one stream each, uses them, and looks at node and servers at rest.
func (b *bench) measureStreams(ctx context.Context, servers *natsServers) (err error) {
	node, err := b.startNode(ctx, servers, "node-1")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.stop()) }()
	count := sizedStreams
	if b.short() {
		count = 2
	}
	before, err := b.atRest(ctx, servers, node)
	if err != nil {
		return err
	}
	b.progress("sizes: %d hubs of 16 partitions", count)
	client, err := hub.Dial(ctx, node.connectionString(), hub.Config{Log: quiet()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	for range count {
		name, err := node.newHub(ctx, spread{streams: 1, partitions: partitions})
		if err != nil {
			return err
		}
		if err := client.Hub(name).SendTo(ctx, "0", event.Text("used")); err != nil {
			return err
		}
	}
	after, err := b.atRest(ctx, servers, node)
	if err != nil {
		return err
	}
	b.report.table(measure.Table{Title: "What streams cost at rest", Head: []string{"what", "new yard", fmt.Sprintf("%d more streams, each just used", count)},
		Rows: [][]string{
			{"resident memory of a node (MiB)", measure.Number(before.node), measure.Number(after.node)},
			{"resident memory of a server (MiB)", measure.Number(before.server), measure.Number(after.server)},
			{"CPU of a node (ms a second)", measure.Number(before.nodeCPU), measure.Number(after.nodeCPU)},
			{"CPU of a server (ms a second)", measure.Number(before.serverCPU), measure.Number(after.serverCPU)},
		}})
	return nil
}

// rest is what node and servers take while nobody asks anything of them; of servers the mean.
type rest struct{ node, server, nodeCPU, serverCPU float64 }

func (b *bench) atRest(ctx context.Context, servers *natsServers, node *yardNode) (r rest, err error) {
	kib, _ := measure.ResidentKiB(node.cmd.Process.Pid)
	r.node, r.server = kib/1024, servers.residentMiB()
	look := func() (nodeTime, serverTime time.Duration) {
		for _, one := range servers.all {
			serverTime += cpuTime(one.cmd) / replicas
		}
		return cpuTime(node.cmd), serverTime
	}
	nodeBefore, serverBefore := look()
	began := time.Now()
	select {
	case <-time.After(b.period):
	case <-ctx.Done():
		return r, ctx.Err()
	}
	nodeAfter, serverAfter := look()
	seconds := time.Since(began).Seconds()
	r.nodeCPU, r.serverCPU = (nodeAfter-nodeBefore).Seconds()*1000/seconds, (serverAfter-serverBefore).Seconds()*1000/seconds
	return r, nil
}

// cpuTime is zero where nobody knows it.
func cpuTime(cmd *exec.Cmd) time.Duration {
	took, _ := measure.CPUTime(cmd.Process.Pid)
	return took
}
