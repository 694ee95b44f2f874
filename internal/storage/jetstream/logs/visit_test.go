package logs

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H4, C1: what nobody uses becomes too old all the same, also where all nodes were restarted. It goes
// from the servers, by whichever node comes first, and numbers go on.
func TestRetentionOfStreamsThatNobodyUses(t *testing.T) {
	for nodes := range 3 {
		t.Run(fmt.Sprint(nodes+1, " nodes"), func(t *testing.T) {
			inYard(t, model.Faults{}, asItIs, func(t *testing.T, y *yard) {
				shape := eventlog.Shape{Partitions: 4, Retention: eventlog.Retention{Age: time.Hour}}
				first := y.open(t, "first")
				for number := range 4 {
					p := handle(t, first, shape, number)
					for i := range 10 {
						mustAppend(t, p, fmt.Sprint(i))
					}
				}
				testkit.Must(t, first.Close())
				all := make([]*Engine, nodes+1)
				for i := range all {
					all[i] = y.open(t, fmt.Sprint(i))
					testkit.Must(t, all[i].Provide(t.Context(), "orders", shape))
					testkit.Run(t, all[i].Run)
				}
				time.Sleep(50 * time.Minute)
				testkit.Equal(t, len(y.cluster.Messages("h-orders-0")), 40) // nobody has even marked it
				time.Sleep(time.Hour)
				for _, m := range y.cluster.Messages("h-orders-0") {
					testkit.Equal(t, m.Subject, markSubject)
				}
				marks := len(y.cluster.Messages("h-orders-0"))
				time.Sleep(24 * time.Hour)
				testkit.Equal(t, len(y.cluster.Messages("h-orders-0")), marks, "marks of a stream at rest")
				p := handle(t, all[0], shape, 2)
				b := testkit.Value(p.Bounds(t.Context()))(t)
				testkit.That(t, b.First == 10 && b.Next == 10, "bounds %+v", b)
				testkit.Equal(t, mustAppend(t, p, "next").First, 10)
			})
		})
	}
}

// A stream whose events are due one after the other loses them as they become so, and not all at its end.
func TestAStreamAtRestShrinks(t *testing.T) {
	inYard(t, model.Faults{}, small, func(t *testing.T, y *yard) {
		shape := eventlog.Shape{Partitions: 1, Retention: eventlog.Retention{Age: 24 * time.Hour}}
		a := y.open(t, "a")
		testkit.Run(t, a.Run)
		p := handle(t, a, shape, 0)
		for i := range 240 {
			mustAppend(t, p, fmt.Sprint(i))
			time.Sleep(time.Minute)
		}
		before := len(y.cluster.Messages("h-orders-0"))
		time.Sleep(22*time.Hour + 30*time.Minute)
		after := len(y.cluster.Messages("h-orders-0"))
		testkit.That(t, after < before*3/4 && after > before/4, "of %d messages %d are left", before, after)
		c := testkit.Value(p.Cursor(t.Context(), eventlog.Earliest()))(t)
		defer c.Close()
		testkit.That(t, c.At() > 60 && c.At() < 180, "it begins at %d", c.At())
	})
}

// C1: what Trim has allowed to be removed goes also where the log keeps everything else, and the stream is
// not followed any more when it is looked at; others may be using it all the time.
func TestWhatWasTrimmedGoes(t *testing.T) {
	keeps := eventlog.Shape{Partitions: 1, Kind: eventlog.KindRetryLong}
	for _, busy := range []bool{false, true} {
		t.Run(fmt.Sprint("others use it: ", busy), func(t *testing.T) {
			inYard(t, model.Faults{}, small, func(t *testing.T, y *yard) {
				a := y.open(t, "a")
				testkit.Must(t, a.Provide(t.Context(), "waits", keeps))
				p := testkit.Value(a.Partition(eventlog.PartitionID{Log: "waits"}))(t)
				stop := testkit.Run(t, a.Run)
				for i := range 100 {
					mustAppend(t, p, fmt.Sprint(i))
					time.Sleep(time.Second) // there are marks
				}
				stop()
				testkit.Must(t, p.Trim(t.Context(), 90))
				time.Sleep(time.Hour) // nobody has tended it meanwhile
				stream := poolStream("waits", eventlog.KindRetryLong)
				testkit.That(t, len(y.cluster.Messages(stream)) >= 100, "it was tended")
				a.mu.Lock()
				followed := a.streams[stream]
				a.mu.Unlock()
				testkit.That(t, !follows(followed), "it is followed")
				if busy {
					b := y.open(t, "b")
					testkit.Run(t, b.Run)
					testkit.Must(t, b.Provide(t.Context(), "waits", keeps))
					there := testkit.Value(b.Partition(eventlog.PartitionID{Log: "waits"}))(t)
					testkit.Run(t, func(ctx context.Context) error {
						for sleep.For(ctx, 10*time.Second, nil) == nil {
							if _, err := eventlog.Append(ctx, there, text("more")); ctx.Err() == nil && err != nil {
								return err
							}
						}
						return nil
					})
				}
				testkit.Run(t, a.Run)
				time.Sleep(10 * time.Minute)
				c := testkit.Value(testkit.Value(y.open(t, "c").Partition(eventlog.PartitionID{Log: "waits"}))(t).Cursor(t.Context(), eventlog.Earliest()))(t)
				testkit.Equal(t, c.At(), 90, "it begins at")
				testkit.Must(t, c.Close())
				frames := 0
				for _, m := range y.cluster.Messages(stream) {
					if m.Subject != markSubject && m.Seq <= 90 {
						frames++
					}
				}
				testkit.That(t, frames < 50, "%d old frames are left", frames)
				testkit.Equal(t, visitor{a}.unfollowed()[stream].trims, uint64(0), "what is still wanted")
			})
		})
	}
}

// A stream that somebody feeds is not followed by others because of its age.
func TestVisitsLeaveAloneWhatIsUsed(t *testing.T) {
	inYard(t, model.Faults{}, asItIs, func(t *testing.T, y *yard) {
		shape := eventlog.Shape{Partitions: 1, Retention: eventlog.Retention{Age: 10 * time.Minute}}
		a, b := y.open(t, "a"), y.open(t, "b")
		testkit.Run(t, b.Run)
		p := handle(t, a, shape, 0)
		testkit.Must(t, b.Provide(t.Context(), "orders", shape))
		for i := range 240 {
			mustAppend(t, p, fmt.Sprint(i))
			time.Sleep(30 * time.Second)
			b.mu.Lock()
			testkit.Equal(t, len(b.streams), 0)
			b.mu.Unlock()
		}
	})
}

func TestVisit(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name  string
		due   time.Duration
		share float64
		again time.Duration
	}{
		{"at once", 0, 0, time.Minute},
		{"later", 0, 0.5, 2 * time.Minute},
		{"at the latest", 0, 1, 3 * time.Minute},
		{"when something is due", 5 * time.Minute, 0.5, 5 * time.Minute},
		{"the retention may change", time.Hour, 0.5, 15 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := visit{due: now.Add(tt.due)}
			v.next(now, tt.share)
			testkit.Equal(t, v.again.Sub(now), tt.again)
		})
	}
	v := visit{last: 7, due: never}
	testkit.That(t, v.rested(7) && v.due == never, "%+v", v)
	testkit.That(t, !v.rested(8) && v.due.IsZero() && v.rested(8), "%+v", v)
}

func TestDueAt(t *testing.T) {
	oldest := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name  string
		bytes int64
		keep  eventlog.Retention
		want  time.Time
	}{
		{"kept for ever", 100, eventlog.Retention{}, never},
		{"by age", 100, eventlog.Retention{Age: time.Hour}, oldest.Add(time.Hour)},
		{"by size", 100, eventlog.Retention{Age: time.Hour, Bytes: 99}, time.Time{}},
		{"not by size", 100, eventlog.Retention{Bytes: 100}, never},
	} {
		testkit.Equal(t, dueAt(oldest, tt.bytes, tt.keep), tt.want, "%s", tt.name)
	}
	testkit.Equal(t, lesser(eventlog.Retention{Age: 2, Bytes: 0}, eventlog.Retention{Age: 1, Bytes: 3}), eventlog.Retention{Age: 1, Bytes: 3})
	testkit.Equal(t, lesser(eventlog.Retention{Age: 2, Bytes: 1}, eventlog.Retention{Bytes: 3}), eventlog.Retention{Age: 2, Bytes: 1})
}
