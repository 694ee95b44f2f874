package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/testkit/history"
)

// appends is a hub of which each partition has a history: who appends through a node is told the number of its text,
// and readers at all nodes read along.
type appends struct {
	yard   *yard
	hub    string
	past   [appended]history.Log // by partition
	cancel context.CancelFunc
	all    sync.WaitGroup
	errs   errorList
}

// appended is how many partitions it has.
const appended = 2

// append makes the hub, and starts who appends and who reads.
func (y *yard) append(t testing.TB, name string) *appends {
	t.Helper()
	y.createHub(t, name, appended)
	ctx, cancel := context.WithCancel(t.Context())
	a := &appends{yard: y, hub: name, cancel: cancel}
	t.Cleanup(a.stop)
	for i, n := range y.nodes {
		manager := n.admin(t)
		client := testkit.Value(hub.Dial(t.Context(), n.connection(), hub.Config{Log: testkit.Quiet()}))(t)
		t.Cleanup(func() { _ = client.Close() }) // its node may be gone
		for p := range appended {
			a.all.Go(func() { a.write(ctx, manager, i, p) })
			a.all.Go(func() { a.read(ctx, client, i, p) })
		}
	}
	return a
}

// write appends one text after the other through a node. One of which nothing was heard, or an error, is not appended
// again.
func (a *appends) write(ctx context.Context, client *admin.Client, node, partition int) {
	past := &a.past[partition]
	for number := 0; ctx.Err() == nil; number++ {
		text := fmt.Sprintf("node%d %d", node, number)
		encoded, err := admin.Event{Body: []byte(text)}.Encode()
		if err != nil {
			a.errs.add(err)
			return
		}
		// Not even the end of the load interrupts it: what is stored behind that would be in no history.
		trying, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryTime)
		begun := past.Now()
		sent, err := client.Send(trying, a.hub, admin.Batch{Partition: strconv.Itoa(partition), Events: []json.RawMessage{encoded}})
		cancel()
		if err == nil {
			past.Append(node, begun, text, sent.First)
		} else {
			past.AppendUnheard(node, begun, text)
		}
		idle(ctx, 25*pause)
	}
}

// read reads a partition through a node as it grows.
func (a *appends) read(ctx context.Context, client *hub.Client, node, partition int) {
	past := &a.past[partition]
	reader, err := client.Hub(a.hub).Open(ctx, hub.ReadConfig{Partition: strconv.Itoa(partition)})
	if err != nil {
		a.errs.add(fmt.Errorf("read %s through node %d: %w", a.hub, node, err))
		return
	}
	defer closeSoon(ctx, reader)
	for {
		begun := past.Now()
		batch, err := reader.Next(ctx, nil, 100)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			a.errs.add(fmt.Errorf("read %s through node %d: %w", a.hub, node, err))
			return
		}
		for _, ev := range batch {
			past.Read(size+node, begun, string(ev.Body), ev.Sequence)
		}
	}
}

func closeSoon(ctx context.Context, reader hub.Reader) {
	closing, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = reader.Close(closing) // nothing more is expected of it
}

// stop ends it; what is under way ends by itself.
func (a *appends) stop() {
	a.cancel()
	a.all.Wait()
}

// judge: one order of all appends and reads explains what each was told, in each partition.
func (a *appends) judge(t testing.TB) {
	t.Helper()
	for _, err := range a.errs.list() {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := testkit.Value(hub.Dial(ctx, a.yard.nodes[0].connection(), hub.Config{Log: testkit.Quiet()}))(t)
	defer client.Close()
	calls := 0
	for p := range a.past {
		info := testkit.Value(client.Hub(a.hub).Partition(ctx, strconv.Itoa(p)))(t)
		all := testkit.Value(readAll(ctx, client.Hub(a.hub), strconv.Itoa(p), info.Last))(t)
		var texts []string
		for i, e := range all {
			testkit.MustEqual(t, e.Sequence, int64(i), "a number of partition %d", p)
			texts = append(texts, fmt.Sprintf("%s %d", e.Sender, e.Number))
		}
		testkit.Check(t, a.past[p].Check(texts), "appends to partition %d", p)
		calls += a.past[p].Len()
	}
	t.Logf("appends: a history of %d calls", calls)
}
