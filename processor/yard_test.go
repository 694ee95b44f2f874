package processor_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/servertest"
)

// tally counts what was handled, in order, by partition.
type tally struct {
	mu   sync.Mutex
	seqs map[string][]int64
	n    int
}

func (c *tally) handle(ctx context.Context, b *processor.Batch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ev := range b.Events {
		c.seqs[ev.Partition] = append(c.seqs[ev.Partition], ev.Sequence)
		c.n++
	}
	return nil
}

func (c *tally) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// owned is how many partitions an instance reads.
func owned(p *processor.Processor) (n int) {
	for _, s := range p.Status() {
		if s.State == processor.Running {
			n++
		}
	}
	return n
}

// P1, P2, P11, P12: the same code against a real yard, which also keeps the records.
func TestTwoInstancesShareAYardsHubAndAPlannedMoveRepeatsNothing(t *testing.T) {
	yard := servertest.Start(t)
	yard.Hub(t, "orders", 4)
	orders := yard.Dial(t).Hub("orders")
	seen := &tally{seqs: map[string][]int64{}}
	start := func(id string) (*processor.Processor, func()) {
		p := processor.New(orders, processor.Config{ID: id, Log: slog.New(slog.DiscardHandler),
			Checkpoints: processor.Checkpoints{Auto: true, Every: time.Minute},
			OnError:     func(err error) { t.Errorf("%s: %v", id, err) }})
		return p, testkit.Run(t, func(ctx context.Context) error { return p.Run(ctx, seen.handle) })
	}
	sent := 0
	send := func() {
		for i := range 4 {
			testkit.Must(t, orders.SendTo(t.Context(), fmt.Sprint(i), event.Text("a"), event.Text("b")))
			sent += 2
		}
	}
	a, stopA := start("a")
	testkit.Eventually(t, "a reads all", func() bool { return owned(a) == 4 })
	send()
	testkit.Eventually(t, "a handles all", func() bool { return seen.count() == sent })
	b, stopB := start("b")
	testkit.Eventually(t, "a and b share", func() bool { send(); return owned(a) == 2 && owned(b) == 2 })
	testkit.Eventually(t, "both handle all", func() bool { return seen.count() >= sent })
	stopA()
	testkit.Eventually(t, "b reads all", func() bool { send(); return owned(b) == 4 })
	testkit.Eventually(t, "b handles all", func() bool { return seen.count() >= sent })
	stopB()
	for part, seqs := range seen.seqs {
		testkit.Slices(t, seqs, upTo(int64(sent/4)), "partition %s: handled: of %d", part, sent/4)
	}
}

// P6, P10, P12: the table of a real yard, and a partition that begins at its end, empty or not.
func TestInspectReadsAYardsTableAndAStartAtTheEndIsKept(t *testing.T) {
	yard := servertest.Start(t)
	yard.Hub(t, "orders", 2)
	orders := yard.Dial(t).Hub("orders")
	send := func(partition string) {
		testkit.Must(t, orders.SendTo(t.Context(), partition, event.Text("a"), event.Text("b")))
	}
	send("0")
	p := processor.New(orders, processor.Config{ID: "a", Log: slog.New(slog.DiscardHandler),
		Start:   func(string) hub.Position { return hub.Latest },
		OnError: func(err error) { t.Error(err) }})
	seen := &tally{seqs: map[string][]int64{}}
	stop := testkit.Run(t, func(ctx context.Context) error { return p.Run(ctx, seen.handle) })
	testkit.Eventually(t, "both are read", func() bool { return owned(p) == 2 })
	send("1")
	testkit.Eventually(t, "what is new is handled", func() bool { return seen.count() == 2 })
	table := inspectYard(t, orders)
	if i := table.Instances; len(i) != 1 || i[0].ID != "a" || !i[0].Present || i[0].Partitions != 2 || i[0].Renewed.IsZero() {
		t.Errorf("instances %+v", i)
	}
	for _, row := range table.Partitions {
		if row.Lease.Owner != "a" || row.Lease.Epoch != 1 || row.First != 0 || row.Last != 1 || row.Lag == nil {
			t.Errorf("row %+v", row)
		}
	}
	stop()
	send("0")
	table = inspectYard(t, orders)
	if c, lag := table.Partitions[0].Checkpoint, table.Partitions[0].Lag; c == nil || c.Sequence != 1 || lag.Events != 2 || lag.Oldest < 0 {
		t.Errorf("partition 0: checkpoint %+v, lag %+v", c, lag)
	}
	if n := table.Recommended(1); len(table.Instances) != 0 || table.TotalLag() != 4 || n != 2 {
		t.Errorf("instances %+v, lag %d, worth %d", table.Instances, table.TotalLag(), n)
	}
}

func inspectYard(t *testing.T, h *hub.Hub) processor.Table {
	t.Helper()
	table, err := processor.Inspect(t.Context(), h, nil, "")
	testkit.Must(t, err)
	return table
}

var _ processor.Hub = (*hub.Hub)(nil)
