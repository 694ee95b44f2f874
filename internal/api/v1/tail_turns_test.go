package v1

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// loading counts the cursors that have events in memory: from when they gave some until
// they found nothing more, or were closed.
type loading struct {
	eventlog.Cursor
	loaded *atomic.Int64
	has    bool
}

func (c *loading) note(has bool) {
	if has != c.has {
		c.has = has
		c.loaded.Add(map[bool]int64{true: 1, false: -1}[has])
	}
}

func (c *loading) TryNext(ctx context.Context) (eventlog.Run, error) {
	run, err := c.Cursor.TryNext(ctx)
	c.note(len(run.Events) > 0)
	return run, err
}

func (c *loading) Next(ctx context.Context) (eventlog.Run, error) {
	run, err := c.Cursor.Next(ctx)
	c.note(len(run.Events) > 0)
	return run, err
}

func (c *loading) Close() error {
	c.note(false)
	return c.Cursor.Close()
}

// loadingYard has a hub of many partitions, whose loaded cursors are counted.
func loadingYard(t *testing.T, partitions int) (*yard, *atomic.Int64) {
	loaded := new(atomic.Int64)
	y := newYard(t, func(c *Config) {
		c.Broker = watched{Broker: c.Broker.(*broker.Broker), wrap: func(_ string, c eventlog.Cursor) eventlog.Cursor {
			return &loading{Cursor: c, loaded: loaded}
		}}
	})
	y.hub("orders", partitions)
	return y, loaded
}

// fill stores a batch of large events in every partition.
func (y *yard) fill(partitions, events int) {
	body := []byte(strings.Repeat("x", 20<<10))
	for p := range partitions {
		batch := make([]eventlog.Event, events)
		for i := range batch {
			batch[i].Message = body
		}
		_, err := y.broker.Publish(y.t.Context(), "orders", broker.Target{Partition: fmt.Sprint(p)}, batch)
		testkit.Must(y.t, err)
	}
}

// wholeTurn is how many such events make a turn.
const wholeTurn = turnBytes/(20<<10) + 1

// The memory that a tail takes does not grow with the partitions, neither when a stuck
// client has everything still before it, nor when it gets stuck later.
func TestTailHoldsFewPartitionsInMemory(t *testing.T) {
	for _, tt := range []struct {
		stuck                       string
		partitions, batches, events int
		taken                       int // events before the client gets stuck
		again                       bool
	}{
		{"from the start", 256, 1, 3, 0, false},
		{"in the midst, after several turns", 24, 2, wholeTurn, 12 * wholeTurn, false},
		{"at the end, when more comes", 256, 1, 2, 512, true},
	} {
		t.Run(tt.stuck, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y, loaded := loadingYard(t, tt.partitions)
				for range tt.batches {
					y.fill(tt.partitions, tt.events)
				}
				f := y.follow(t, "/api/v1/hubs/orders/events")
				for range tt.taken {
					f.event()
				}
				synctest.Wait()
				if tt.again {
					testkit.Equal(t, loaded.Load(), 0, "cursors hold events at the end")
					y.fill(tt.partitions, tt.events)
					synctest.Wait()
				}
				// None, where what the client does not take was the last that its cursor had when more came.
				held := loaded.Load()
				testkit.That(t, held == 1 || held == 0 && tt.again, "%d cursors hold events for a client that takes none", held)
				f.leave()
				synctest.Wait()
				testkit.Equal(t, loaded.Load(), 0, "cursors hold events for a client that left")
			})
		})
	}
}

// H4: partitions that take turns lose nothing, repeat nothing, and none of them starves.
func TestTailTakesTurns(t *testing.T) {
	const partitions, batches = 16, 28
	y, _ := loadingYard(t, partitions)
	for range batches / 2 {
		y.fill(partitions, 3)
	}
	f := y.follow(t, fmt.Sprintf("/api/v1/hubs/orders/events?count=%d", 3*partitions*batches))
	var sending sync.WaitGroup
	sending.Go(func() {
		for range batches / 2 {
			y.fill(partitions, 3)
		}
	})
	next, firsts := map[string]int64{}, 0
	for i := range 3 * partitions * batches {
		e := f.event()
		testkit.MustEqual(t, e.Sequence, next[e.Partition], "partition %s", e.Partition)
		if next[e.Partition]++; e.Sequence == 0 {
			firsts = i
		}
	}
	if firsts > 3*partitions*batches*3/4 {
		t.Errorf("a partition had its first turn after %d events", firsts)
	}
	sending.Wait()
	if end := f.end(); end.Reason != "count" {
		t.Errorf("ended with %+v", end)
	}
}

// H1, H4: a tail does not go on in a hub that was created
// anew under the same name.
func TestTailEndsThoughTheHubIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const partitions = 24
		y, _ := loadingYard(t, partitions)
		y.fill(partitions, wholeTurn)
		f := y.follow(t, "/api/v1/hubs/orders/events")
		synctest.Wait()
		testkit.Must(t, y.broker.DeleteHub(t.Context(), "orders"))
		time.Sleep(time.Millisecond) // hubs are told apart by when they were created
		y.hub("orders", partitions)
		for p := range partitions {
			y.send("orders", fmt.Sprint(p), "of the new hub")
		}
		for {
			got, ok := f.message()
			if !ok || got.name == "end" {
				if !strings.Contains(got.data, `"reason":"deleted"`) {
					t.Errorf("ended with %+v", got)
				}
				return
			}
			if strings.Contains(got.data, "of the new hub") {
				t.Fatalf("got %s", got.data)
			}
		}
	})
}
