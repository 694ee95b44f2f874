package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/jetstream/logs"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natsstreams"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/testkit/history"
)

const (
	logPartitions = 3
	// logCalls is how many calls each of logClients makes to each node while all is well, and again in each trouble.
	logClients, logCalls = 2, 12
)

// logNodes is the engines of three nodes on real servers, whose clients append to the partitions of a log and ask for
// their ends, and what they heard.
type logNodes struct {
	servers *natstest.Servers
	yard    string
	parts   [size][logPartitions]eventlog.Partition
	past    [logPartitions]history.Log
	stop    context.CancelFunc // of readers
	reading sync.WaitGroup
}

// C1, C2: a log to which three nodes append is linearizable, with its end as each of them is told it, while leaders step
// down and servers are killed and frozen.
func TestLogsAreLinearizable(t *testing.T) {
	n := startLogs(t)
	control := n.servers.Dial(t, 0)
	stream := "Y_" + n.yard + "_l=h-texts-0"
	leader := func() int { return n.servers.Leader(t, control, stream) }
	n.work(t, "calm", func() {})
	n.work(t, "steps down", func() {
		if err := natstest.StepDown(control, stream); err != nil {
			t.Logf("step down: %v", err)
		}
	})
	killed := leader()
	n.work(t, "killed", func() { n.servers.Kill(t, killed) })
	n.work(t, "back", func() { n.servers.Restart(t, killed) })
	frozen := leader()
	n.work(t, "frozen", func() { n.servers.Freeze(t, frozen) })
	n.work(t, "thawed", func() { n.servers.Thaw(t, frozen) })
	n.judge(t)
}

// startLogs opens an engine for each node, and has each read along what is appended.
func startLogs(t *testing.T) *logNodes {
	t.Helper()
	n := &logNodes{servers: natstest.Shared(t, size), yard: natstest.Yard()}
	store, shape := metatest.NewMemory(), eventlog.Shape{Partitions: logPartitions}
	for i := range size {
		dial := func() natsstreams.Conns {
			o := connect.Options()
			return natsstreams.Conns{Publish: n.servers.Dial(t, i, o...), Read: n.servers.Dial(t, i, o...), Control: n.servers.Dial(t, i, o...)}
		}
		storage := testkit.Value(natsstreams.Open(dial(), natsstreams.Config{Yard: n.yard, Replicas: size}))(t)
		t.Cleanup(func() { testkit.Check(t, storage.Close()) })
		e := logs.New(logs.Config{Storage: storage, Store: store, Replicas: size, Log: testkit.Quiet()})
		t.Cleanup(func() { testkit.Check(t, e.Close()) })
		testkit.Run(t, e.Run)
		testkit.Must(t, e.Provide(t.Context(), "texts", shape))
		for p := range logPartitions {
			n.parts[i][p] = testkit.Value(e.Partition(eventlog.PartitionID{Log: "texts", Number: p}))(t)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	n.stop = stop
	for i := range size {
		for p := range logPartitions {
			n.reading.Go(func() { n.read(ctx, t, i, p) })
		}
	}
	t.Cleanup(func() {
		n.stop()
		n.reading.Wait()
	})
	return n
}

// work has each client make its calls while something happens to the servers.
func (n *logNodes) work(t *testing.T, phase string, happens func()) {
	t.Helper()
	var all sync.WaitGroup
	for client := range logClients * size {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(client), uint64(len(phase))))
			for made := 0; made < logCalls && t.Context().Err() == nil; made++ {
				if !n.call(t, client, random.IntN(logPartitions), fmt.Sprintf("%s %d/%d", phase, client, made), random.IntN(3) == 0) {
					idle(t.Context(), pause) // what is out of reach is tried again, with another text
				}
			}
		})
	}
	t.Cleanup(all.Wait) // where what happens fails the test; the context has ended by then
	happens()
	all.Wait()
}

// call appends a text or asks for the end, and records what was heard; false: nothing was.
func (n *logNodes) call(t *testing.T, client, partition int, text string, asks bool) bool {
	past, part := &n.past[partition], n.parts[client%size][partition]
	begun := past.Now()
	if asks {
		bounds, err := part.Sealed(t.Context())
		if err != nil {
			return false
		}
		past.End(client, begun, int64(bounds.Next))
		return true
	}
	done, err := eventlog.Append(t.Context(), part, eventlog.Batch{Events: []eventlog.Event{{Message: []byte(text)}}})
	switch {
	case err == nil:
		past.Append(client, begun, text, int64(done.First))
	case errors.Is(err, eventlog.ErrUnavailable) && !errors.Is(err, eventlog.ErrUncertain): // it promises that nothing is stored
	default:
		past.AppendUnheard(client, begun, text)
	}
	return err == nil
}

// read reads a partition through a node as it grows.
func (n *logNodes) read(ctx context.Context, t *testing.T, node, partition int) {
	past := &n.past[partition]
	for next := eventlog.Sequence(0); ctx.Err() == nil; idle(ctx, time.Second) { // after a time out of reach
		c, err := n.parts[node][partition].Cursor(ctx, eventlog.At(next))
		for err == nil {
			begun := past.Now()
			var run eventlog.Run
			if run, err = c.Next(ctx); err != nil {
				break
			}
			testkit.That(t, run.First == next, "a reader at %d is given %d", next, run.First)
			if count := run.Len(); count > 0 { // the last one says the most
				past.Read(logClients*size+node, begun, string(run.Events[count-1].Message), int64(run.Next())-1)
			}
			next = run.Next()
		}
		if c != nil {
			c.Close()
		}
	}
}

// judge compares the histories with what each node has in the end.
func (n *logNodes) judge(t *testing.T) {
	t.Helper()
	n.stop()
	n.reading.Wait()
	calls := 0
	for p := range logPartitions {
		var texts []string
		for i := range size { // one that nothing was heard of may still come
			bounds := testkit.Value(n.parts[i][p].Sealed(t.Context()))(t)
			before := texts
			texts = n.texts(t, i, p, bounds.Next)
			testkit.Slices(t, texts[:min(len(before), len(texts))], before, "partition %d at node %d", p, i)
		}
		testkit.Check(t, n.past[p].Check(texts), "partition %d", p)
		calls += n.past[p].Len()
	}
	t.Logf("%d calls", calls)
}

func (n *logNodes) texts(t *testing.T, node, partition int, end eventlog.Sequence) (texts []string) {
	t.Helper()
	c := testkit.Value(n.parts[node][partition].Cursor(t.Context(), eventlog.Earliest()))(t)
	defer c.Close()
	for c.At() < end {
		run := testkit.Value(c.Next(t.Context()))(t)
		for _, e := range run.Events {
			texts = append(texts, string(e.Message))
		}
	}
	return texts
}
