package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/testkit"
)

// inYard runs a test with simulated nodes, on a simulated clock.
func inYard(t *testing.T, faults model.Faults, change func(*Config), test func(*testing.T, *yard)) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(1, faults)
		y.cfg.TendInterval = time.Second
		change(&y.cfg)
		test(t, y)
	})
}

var orders = eventlog.Shape{Partitions: 4}

// handle provides a log and gives a partition of it.
func handle(t *testing.T, e *Engine, shape eventlog.Shape, number int) eventlog.Partition {
	t.Helper()
	testkit.Must(t, e.Provide(t.Context(), "orders", shape))
	p, err := e.Partition(eventlog.PartitionID{Log: "orders", Number: number})
	testkit.Must(t, err)
	return p
}

func text(s string) eventlog.Batch {
	return eventlog.Batch{Events: []eventlog.Event{{Message: []byte(s)}}}
}

func mustAppend(t *testing.T, p eventlog.Partition, s string) eventlog.Appended {
	t.Helper()
	return testkit.Value(eventlog.Append(t.Context(), p, text(s)))(t)
}

// readAll reads from a position to the end, and checks that numbers are dense.
func readAll(t *testing.T, p eventlog.Partition, at eventlog.Position) (texts []string) {
	t.Helper()
	c, err := p.Cursor(t.Context(), at)
	testkit.Must(t, err)
	defer func() { testkit.Check(t, c.Close()) }()
	for next := c.At(); ; next = c.At() {
		run, err := c.TryNext(t.Context())
		testkit.Must(t, err)
		if run.Len() == 0 {
			return texts
		}
		testkit.MustEqual(t, run.First, next, "numbers are dense")
		for _, e := range run.Events {
			texts = append(texts, string(e.Message))
		}
	}
}

// C1: from every position, over marks that are written on the way, at a node that was there and at one
// that comes later.
func TestReadingFromMarks(t *testing.T) {
	inYard(t, model.Faults{}, small, func(t *testing.T, y *yard) {
		a := y.open(t, "a")
		testkit.Run(t, a.Run)
		p, other := handle(t, a, orders, 0), handle(t, a, orders, 1)
		var want []string
		var times []time.Time
		for i := range 200 {
			mustAppend(t, other, "other")
			times = append(times, mustAppend(t, p, fmt.Sprint(i)).Time)
			want = append(want, fmt.Sprint(i))
			time.Sleep(700 * time.Millisecond)
		}
		late := handle(t, y.open(t, "b"), orders, 0)
		for _, p := range []eventlog.Partition{p, late} {
			for i := 0; i < 200; i += 7 {
				testkit.Slices(t, readAll(t, p, eventlog.At(eventlog.Sequence(i))), want[i:], "from number %d", i)
				testkit.Slices(t, readAll(t, p, eventlog.Since(times[i])), want[i:], "from the time of %d", i)
				testkit.Slices(t, readAll(t, p, eventlog.Since(times[i].Add(1))), want[i+1:], "from behind the time of %d", i)
			}
			testkit.Slices(t, readAll(t, p, eventlog.Earliest()), want)
		}
		marks := 0
		for _, m := range y.cluster.Messages("h-orders-0") {
			if m.Subject == markSubject {
				marks++
			}
		}
		testkit.That(t, marks >= 5 && marks <= 50, "%d marks", marks)
	})
}

// H4, C1: what retention removes leaves the servers, readers go on, and who comes later knows the
// numbers.
func TestRetentionRemovesFromTheServers(t *testing.T) {
	inYard(t, model.Faults{}, small, func(t *testing.T, y *yard) {
		a := y.open(t, "a")
		testkit.Run(t, a.Run)
		shape := eventlog.Shape{Partitions: 4, Retention: eventlog.Retention{Age: 30 * time.Second}}
		p := handle(t, a, shape, 0)
		slow, err := p.Cursor(t.Context(), eventlog.Earliest())
		testkit.Must(t, err)
		for i := range 300 {
			mustAppend(t, p, fmt.Sprint(i))
			if i%50 == 0 { // a partition that is seldom used holds nothing up for long
				mustAppend(t, handle(t, a, shape, 1), "seldom")
			}
			time.Sleep(500 * time.Millisecond)
		}
		b := testkit.Value(p.Bounds(t.Context()))(t)
		testkit.That(t, b.Next == 300 && b.First > 150 && b.First < 260, "bounds %+v", b)
		held := len(y.cluster.Messages("h-orders-0"))
		testkit.That(t, held < 220, "%d messages are kept", held)
		late := handle(t, y.open(t, "b"), shape, 0)
		for _, p := range []eventlog.Partition{p, late} {
			got := readAll(t, p, eventlog.Earliest())
			testkit.Equal(t, got[len(got)-1], "299")
			testkit.That(t, len(got) < 150, "%d events are kept", len(got))
		}
		run := testkit.Value(slow.Next(t.Context()))(t)
		testkit.That(t, run.First >= b.First, "an overtaken cursor gives %d", run.First)
		time.Sleep(5 * time.Minute)
		b = testkit.Value(p.Bounds(t.Context()))(t)
		testkit.That(t, b.Empty() && b.Next == 300, "bounds %+v", b)
		testkit.Equal(t, mustAppend(t, handle(t, y.open(t, "c"), shape, 0), "more").First, 300)
	})
}

// C1: logs that share a stream: one is removed, the others stay, and no new log gets its numbers.
func TestRemovingFromAPool(t *testing.T) {
	inYard(t, model.Faults{}, small, func(t *testing.T, y *yard) {
		a := y.open(t, "a")
		testkit.Run(t, a.Run)
		var parts []eventlog.Partition
		for i := range 40 {
			log := fmt.Sprint("topic-", i)
			testkit.Must(t, a.Provide(t.Context(), log, eventlog.Shape{Partitions: 1, Kind: eventlog.KindTopic}))
			p, err := a.Partition(eventlog.PartitionID{Log: log})
			testkit.Must(t, err)
			parts = append(parts, p)
		}
		for i, p := range parts {
			for n := range 5 {
				mustAppend(t, p, fmt.Sprint(i, "/", n))
			}
		}
		for i := 0; i < 40; i += 2 {
			testkit.Must(t, a.Remove(t.Context(), fmt.Sprint("topic-", i)))
		}
		b := y.open(t, "b")
		for i := range 40 {
			p, err := b.Partition(eventlog.PartitionID{Log: fmt.Sprint("topic-", i)})
			if i%2 == 0 {
				if err == nil { // not heard of yet
					_, err = p.Bounds(t.Context())
				}
				testkit.ErrorIs(t, err, eventlog.ErrRemoved)
				continue
			}
			testkit.Must(t, err)
			testkit.Equal(t, mustAppend(t, p, "more").First, 5)
			testkit.Equal(t, testkit.Value(parts[i].Bounds(t.Context()))(t).Next, 6)
			testkit.Equal(t, len(readAll(t, parts[i], eventlog.Earliest())), 6, "topic %d", i)
		}
		for _, name := range testkit.Value(y.cluster.Node("x").Names(t.Context()))(t) {
			for _, m := range y.cluster.Messages(name) {
				var i int
				if n, _ := fmt.Sscanf(m.Subject, "topic-%d/0", &i); n == 1 && i%2 == 0 {
					t.Errorf("%s has a message of %s", name, m.Subject)
				}
			}
		}
	})
}

// C1: what nobody uses costs nothing, and is there when it is used again.
func TestIdleStreams(t *testing.T) {
	inYard(t, model.Faults{}, asItIs, func(t *testing.T, y *yard) {
		a, b := y.open(t, "a"), y.open(t, "b")
		p, there := handle(t, a, orders, 0), handle(t, b, orders, 0)
		c := testkit.Value(p.Cursor(t.Context(), eventlog.Earliest()))(t)
		for round := range 3 {
			mustAppend(t, p, fmt.Sprint(round))
			time.Sleep(5 * time.Minute)
			for _, s := range a.streams {
				s.mu.Lock()
				testkit.That(t, !s.running && s.unheard == nil, "a stream is followed that nobody uses")
				s.mu.Unlock()
			}
			mustAppend(t, there, "there")
			testkit.Equal(t, p.Peek().Next, eventlog.Sequence(2*round+1), "what is known")
			run := testkit.Value(c.Next(t.Context()))(t)
			testkit.Equal(t, string(run.Events[0].Message), fmt.Sprint(round))
			testkit.Must(t, testkit.Err(c.Next(t.Context())))
		}
	})
}

// C5: a batch that fits nowhere is refused at once, and nothing is in doubt that was never handed over.
func TestNoSpace(t *testing.T) {
	inYard(t, model.Faults{}, func(cfg *Config) { cfg.MaxStreamBytes = 100 << 10 }, func(t *testing.T, y *yard) {
		p := handle(t, y.open(t, "a"), orders, 0)
		began := time.Now()
		var err error
		for n := 0; err == nil; n++ {
			_, err = eventlog.Append(t.Context(), p, text(strings.Repeat("x", 1000)))
			testkit.MustThat(t, n < 200, "the stream takes more than it may")
		}
		testkit.ErrorIs(t, err, eventlog.ErrNoSpace)
		testkit.That(t, time.Since(began) < time.Second, "it took %v", time.Since(began))
	})
}

// C5: a stream that events have filled has room for the mark behind which retention removes old ones: it
// takes events again without anybody's help. So it does at a node that would have made it without a limit.
func TestRoomComesBack(t *testing.T) {
	const limit = 200 << 10
	for name, own := range map[string]int64{"of the node that made it": limit, "of a node without a limit": 0} {
		t.Run(name, func(t *testing.T) {
			inYard(t, model.Faults{}, func(cfg *Config) { cfg.MaxStreamBytes = limit }, func(t *testing.T, y *yard) {
				shape := orders
				shape.Retention.Age = time.Hour
				testkit.Must(t, y.open(t, "maker").Provide(t.Context(), "orders", shape))
				y.cfg.MaxStreamBytes = own
				testComesBack(t, y.open(t, "a"), shape)
			})
		})
	}
}

func testComesBack(t *testing.T, e *Engine, shape eventlog.Shape) {
	testkit.Run(t, e.Run)
	p := handle(t, e, shape, 0)
	fill := func() (n int) {
		for ; n < 400; n++ {
			if _, err := eventlog.Append(t.Context(), p, text(strings.Repeat("x", 100))); err != nil {
				testkit.ErrorIs(t, err, eventlog.ErrNoSpace)
				return n
			}
			time.Sleep(100 * time.Millisecond) // marks are written
		}
		return n
	}
	for fill() > 0 {
	}
	time.Sleep(2 * time.Hour)
	taken := 0
	for range 30 { // the first find it full, and have it looked after
		taken += fill()
		time.Sleep(time.Second)
	}
	testkit.That(t, taken > 200, "there is room for only %d after retention", taken)
}

// C5: a node that would make streams with a limit goes on with those that have none, however much they hold.
func TestLimitIsTheStreams(t *testing.T) {
	inYard(t, model.Faults{}, asItIs, func(t *testing.T, y *yard) {
		large := strings.Repeat("x", 100<<10)
		p := handle(t, y.open(t, "a"), orders, 0)
		for range 5 {
			mustAppend(t, p, large)
		}
		y.cfg.MaxStreamBytes = 200 << 10
		e := y.open(t, "b")
		testkit.Run(t, e.Run)
		p = handle(t, e, orders, 0)
		for range 5 {
			mustAppend(t, p, large)
			time.Sleep(3 * time.Second) // it is measured
		}
	})
}

// C5: who fills a yard is told why a stream has no room, as retention makes none meanwhile.
func TestAFullStreamIsExplainedToAnImport(t *testing.T) {
	inYard(t, model.Faults{}, func(cfg *Config) { cfg.MaxStreamBytes = 200 << 10 }, func(t *testing.T, y *yard) {
		e := y.open(t, "a")
		testkit.Run(t, e.Run)
		p := handle(t, e, orders, 0).(eventlog.Importer)
		var err error
		for n := eventlog.Sequence(0); n < 4000 && err == nil; n++ {
			var receipt eventlog.Receipt
			run := eventlog.Run{First: n, Time: time.Now(), Events: []eventlog.Event{{Message: []byte(strings.Repeat("x", 100))}}}
			if receipt, err = p.Import(t.Context(), run); err == nil {
				err = testkit.Err(receipt.Wait(t.Context()))
			}
			time.Sleep(100 * time.Millisecond) // the servers say how full it is
		}
		testkit.ErrorIs(t, err, eventlog.ErrNoSpace)
		testkit.That(t, err != nil && strings.Contains(err.Error(), "streamBytes=204800, and nothing is removed while"), "it says %v", err)
	})
}

// D2: a hub has as many streams as is said, and no more than partitions.
func TestHubStreams(t *testing.T) {
	for _, c := range []struct{ set, partitions, want int }{{0, 1, 1}, {0, 17, 2}, {0, 1024, 16}, {4, 32, 4}, {4, 2, 2}, {16, 1024, 16}, {99, 1024, 16}} {
		got := Config{HubStreams: c.set}.hubStreams(eventlog.Shape{Partitions: c.partitions})
		testkit.Equal(t, got, c.want, "streams of %d partitions with %d", c.partitions, c.set)
	}
}

// C5: servers that are gone: what was not handed over is refused as such, within the time that clients
// wait, and all goes on by itself.
func TestServersAreGone(t *testing.T) {
	inYard(t, model.Faults{}, asItIs, func(t *testing.T, y *yard) {
		p := handle(t, y.open(t, "a"), orders, 0)
		mustAppend(t, p, "before")
		y.cluster.StopServers(time.Minute)
		began := time.Now()
		_, err := eventlog.Append(t.Context(), p, text("meanwhile"))
		testkit.That(t, errors.Is(err, eventlog.ErrUnavailable), "got %v", err)
		testkit.That(t, time.Since(began) < 25*time.Second, "it took %v", time.Since(began))
		testkit.ErrorIs(t, testkit.Err(p.Bounds(t.Context())), eventlog.ErrUnavailable)
		time.Sleep(time.Minute)
		got := readAll(t, p, eventlog.Earliest())
		next := mustAppend(t, p, "after").First
		testkit.Equal(t, next, eventlog.Sequence(len(got)), "who looks and does not find appends again")
	})
}

// C2: a damaged copy at one server is read from another; one that is damaged everywhere is told as such,
// and readers go on behind it.
func TestDamage(t *testing.T) {
	inYard(t, model.Faults{}, func(cfg *Config) { cfg.CacheBytes, cfg.indexFrames = 1, 16 }, func(t *testing.T, y *yard) {
		a := y.open(t, "a")
		p := handle(t, a, orders, 0)
		for i := range 40 {
			mustAppend(t, p, fmt.Sprint(i))
		}
		y.cluster.Damage("h-orders-0", 39, 0)
		y.cluster.Hide("h-orders-0", 38, 1)
		y.cluster.Damage("h-orders-0", 5, 2)
		testkit.Equal(t, len(readAll(t, p, eventlog.Earliest())), 40, "one server is damaged")
		for seq, number := range map[streams.Seq]eventlog.Sequence{38: 37, 39: 38} {
			for range 8 {
				y.cluster.Damage("h-orders-0", seq, -1)
			}
			c := testkit.Value(p.Cursor(t.Context(), eventlog.At(number)))(t)
			_, err := c.Next(t.Context())
			corrupt, ok := errors.AsType[*eventlog.CorruptError](err)
			testkit.MustThat(t, ok, "message %d is damaged: %v", seq, err)
			testkit.Equal(t, corrupt.First, number)
			testkit.Equal(t, corrupt.Next, number+1)
			testkit.Equal(t, c.At(), number, "an error moves nothing")
		}
		testkit.Slices(t, readAll(t, p, eventlog.At(39)), []string{"39"})
	})
}

// C1, C2: what servers have lost of a stream is read from one that has it, wherever that is: in the index, before
// it, and across its beginning; although the others give what follows as if nothing were between.
func TestWhatMostServersHaveLost(t *testing.T) {
	for name, lost := range map[string]streams.Seq{"before the index": 5, "at its beginning": 22, "in the index": 32} {
		t.Run(name, func(t *testing.T) {
			inYard(t, model.Faults{}, func(cfg *Config) { cfg.CacheBytes, cfg.indexFrames = 1, 16 }, func(t *testing.T, y *yard) {
				p := handle(t, y.open(t, "a"), orders, 0)
				for i := range 40 {
					mustAppend(t, p, fmt.Sprint(i))
				}
				for seq := lost; seq < lost+5; seq++ {
					testkit.That(t, y.cluster.Hide("h-orders-0", seq, 0) && y.cluster.Hide("h-orders-0", seq, 1), "no message %d", seq)
				}
				for range 20 {
					testkit.MustEqual(t, len(readAll(t, p, eventlog.Earliest())), 40, "events that are read")
				}
			})
		})
	}
}

// C2: the largest batches go through, and those that are submitted while the window is full go together.
func TestGathering(t *testing.T) {
	inYard(t, model.Faults{Delay: 5 * time.Millisecond}, asItIs, func(t *testing.T, y *yard) {
		p := handle(t, y.open(t, "a"), orders, 0)
		var receipts []eventlog.Receipt
		for i := range 1000 {
			receipts = append(receipts, testkit.Value(p.Submit(t.Context(), text(fmt.Sprint(i))))(t))
		}
		for i, r := range receipts {
			testkit.MustEqual(t, testkit.Value(r.Wait(t.Context()))(t).First, eventlog.Sequence(i))
		}
		frames := len(y.cluster.Messages("h-orders-0"))
		testkit.That(t, frames <= 20, "%d frames for what could go together", frames)
		huge := bytes.Repeat([]byte("x"), eventlog.MaxBatchBytes-eventlog.EventOverheadBytes)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		testkit.Must(t, testkit.Err(eventlog.Append(ctx, p, eventlog.Batch{Events: []eventlog.Event{{Message: huge}}})))
	})
}

// C2: after ErrUncertain, what bounds do not show is never readable: they wait until the batch's fate is
// settled, by a fence behind which it is void however late it comes.
func TestBoundsAfterDoubt(t *testing.T) {
	inYard(t, model.Faults{}, asItIs, func(t *testing.T, y *yard) {
		p, there := handle(t, y.open(t, "a"), orders, 0), handle(t, y.open(t, "b"), orders, 0)
		mustAppend(t, p, "before")
		y.cluster.SetFaults(model.Faults{Late: 1, LateBy: 5 * time.Minute})
		r := testkit.Value(p.Submit(t.Context(), text("doubtful")))(t)
		time.Sleep(time.Second)
		y.cluster.SetFaults(model.Faults{Lost: 1})
		testkit.ErrorIs(t, testkit.Err(r.Wait(t.Context())), eventlog.ErrUncertain)
		testkit.ErrorIs(t, testkit.Err(p.Bounds(t.Context())), eventlog.ErrUnavailable, "while no fence can be stored")
		y.cluster.SetFaults(model.Faults{})
		next := testkit.Value(p.Bounds(t.Context()))(t).Next
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		for _, p := range []eventlog.Partition{p, there} {
			testkit.Equal(t, testkit.Value(p.Sealed(t.Context()))(t).Next, next)
		}
		testkit.Equal(t, mustAppend(t, p, "after").First, next)
	})
}

// H3: a process that comes back to a stream reads at least what it has seen acknowledged, also from
// servers that are behind.
func TestReadingIsNeverOlderThanBefore(t *testing.T) {
	inYard(t, model.Faults{Lag: time.Hour}, asItIs, func(t *testing.T, y *yard) {
		y.cfg.CacheBytes = 1
		p := handle(t, y.open(t, "a"), orders, 0)
		c := testkit.Value(p.Cursor(t.Context(), eventlog.Earliest()))(t)
		for i := range 20 {
			mustAppend(t, p, fmt.Sprint(i))
			time.Sleep(2 * time.Minute) // nobody follows the stream any more
			run, err := c.TryNext(t.Context())
			if errors.Is(err, eventlog.ErrUnavailable) { // no server has it yet
				y.cluster.SetFaults(model.Faults{})
				run, err = c.TryNext(t.Context())
				y.cluster.SetFaults(model.Faults{Lag: time.Hour})
			}
			testkit.Must(t, err)
			testkit.MustThat(t, run.Len() == 1 && string(run.Events[0].Message) == fmt.Sprint(i), "round %d: %+v", i, run)
		}
	})
}

// C5: servers that take no batch of the largest size are refused, with what to set.
func TestSmallServersAreRefused(t *testing.T) {
	inYard(t, model.Faults{}, asItIs, func(t *testing.T, y *yard) {
		e := New(Config{Storage: smallStorage{y.cluster.Node("a")}, Store: y.store, Log: testkit.Quiet()})
		defer e.Close()
		err := e.Provide(t.Context(), "orders", orders)
		testkit.That(t, err != nil && strings.Contains(err.Error(), "max_payload: 8MB"), "got %v", err)
	})
}

// smallStorage is that of servers as they are by default.
type smallStorage struct{ streams.Storage }

func (smallStorage) MaxMessageBytes() int { return 1 << 20 }

// C2: the claim of a producer that was silent while nobody followed the stream still stands, unless
// somebody else has claimed it meanwhile.
func TestAClaimOfASilentProducer(t *testing.T) {
	for name, claimed := range map[string]bool{"nobody else": false, "another node": true} {
		t.Run(name, func(t *testing.T) {
			inYard(t, model.Faults{}, asItIs, func(t *testing.T, y *yard) {
				a, b := y.open(t, "a"), y.open(t, "b")
				testkit.Run(t, a.Run)
				here, there := handle(t, a, orders, 0), handle(t, b, orders, 0)
				testkit.Must(t, testkit.Err(there.Claim(t.Context(), 7))) // one before it, which the fold meets again
				claim := testkit.Value(here.Claim(t.Context(), 7))(t)
				send := func(first int32) error {
					batch := text(fmt.Sprint(first))
					batch.Claim, batch.Producer = claim, eventlog.Producer{ID: 7, First: first, Set: true}
					return testkit.Err(eventlog.Append(t.Context(), here, batch))
				}
				testkit.Must(t, send(0))
				time.Sleep(10 * time.Minute)
				testkit.MustEqual(t, len(a.followed()), 0)
				if claimed {
					testkit.Must(t, testkit.Err(there.Claim(t.Context(), 7)))
					testkit.ErrorIs(t, send(1), eventlog.ErrFenced)
					return
				}
				testkit.Must(t, send(1))
				testkit.Must(t, send(2))
				testkit.Slices(t, readAll(t, there, eventlog.Earliest()), []string{"0", "1", "2"})
			})
		})
	}
}
