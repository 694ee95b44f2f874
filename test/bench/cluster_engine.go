package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/jetstream/entries"
	"github.com/eventyard/eventyard/internal/storage/jetstream/logs"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natsstreams"
)

// engineNode is the storage of a node in this process, without the rest of it.
type engineNode struct {
	conns   *connect.Conns
	store   *entries.Store
	streams *natsstreams.Storage
	stop    context.CancelFunc // of following entries
	follows sync.WaitGroup
	used    int // logs made
}

func openNode(ctx context.Context, servers *natsServers) (_ *engineNode, err error) {
	n := &engineNode{stop: func() {}}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	cfg := servers.config("engine")
	cfg.Yard = "engine" // beside that of nodes that are processes
	if n.conns, err = connect.Dial(ctx, cfg); err != nil {
		return nil, err
	}
	if n.store, err = entries.New(n.conns.Control, entries.Config{Yard: cfg.Yard, Log: quiet()}); err != nil {
		return nil, err
	}
	following, stop := context.WithCancel(context.Background())
	n.stop = stop
	n.follows.Go(func() { _ = n.store.Run(following) }) // what fails is told to those who read
	if err := n.store.Load(ctx); err != nil {
		return nil, err
	}
	n.streams, err = natsstreams.Open(natsstreams.Conns(*n.conns), natsstreams.Config{Yard: cfg.Yard})
	return n, err
}

func (n *engineNode) close() (err error) {
	if n.streams != nil {
		err = n.streams.Close()
	}
	if n.store != nil {
		err = errors.Join(err, n.store.Close())
	}
	n.stop()
	n.follows.Wait()
	if n.conns != nil {
		n.conns.Close()
	}
	return err
}

// appends makes a log, appends to it, each append waited for, and removes it. The background work
// runs, as it does in a node.
func (n *engineNode) appends(name string, s spread) contender {
	return contender{name, func(ctx context.Context, _ string, lim limit) (t tally, err error) {
		e := logs.New(logs.Config{Storage: n.streams, Store: n.store, HubStreams: s.streams, Log: quiet()})
		defer func() { err = errors.Join(err, e.Close()) }()
		background, stop := context.WithCancel(ctx)
		var running sync.WaitGroup
		running.Go(func() { _ = e.Run(background) })
		defer running.Wait()
		defer stop()
		n.used++
		log := fmt.Sprint(logName, "-", n.used)
		if err := e.Provide(ctx, log, eventlog.Shape{Partitions: s.partitions}); err != nil {
			return tally{}, err
		}
		defer func() { err = errors.Join(err, e.Remove(context.WithoutCancel(ctx), log)) }()
		parts := make([]eventlog.Partition, s.partitions)
		for i := range parts {
			if parts[i], err = e.Partition(eventlog.PartitionID{Log: log, Number: i}); err != nil {
				return tally{}, err
			}
		}
		batches := make([]eventlog.Batch, s.senders*s.ahead)
		for w, bodies := range s.bodies() {
			for _, body := range bodies {
				batches[w].Events = append(batches[w].Events, eventlog.Event{Message: body})
			}
		}
		return driveTimed(ctx, lim, s.job(func(ctx context.Context, w int) error {
			_, err := eventlog.Append(ctx, parts[s.partition(w)], batches[w])
			return err
		}))
	}}
}
