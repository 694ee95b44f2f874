package logtest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// created is a batch and its greatest create time.
type created struct {
	first eventlog.Sequence
	time  time.Time
}

// appendCreated appends frames whose create times follow no order, and events among them, whose
// create time is when they are enqueued.
func (f *fixture) appendCreated(p eventlog.Partition, n int, around time.Time) (all []created) {
	f.t.Helper()
	rnd := rand.New(rand.NewPCG(7, uint64(n)))
	text := string(bytes.Repeat([]byte("x"), 300))
	for i := range n {
		if i%7 == 6 {
			done := f.append(p, text, text)
			all = append(all, created{done.First, done.Time})
			continue
		}
		b := Opaque(1+rnd.IntN(3), text)
		b.MaxTime = around.Add(time.Duration(rnd.IntN(2000)-2000) * time.Millisecond)
		done := f.appendBatch(p, b)
		all = append(all, created{done.First, b.MaxTime})
	}
	unset := f.appendBatch(p, Opaque(1, text)) // created when it is enqueued
	return append(all, created{unset.First, unset.Time})
}

// wantCreated compares what cursors find with what reading all finds.
func (f *fixture) wantCreated(p eventlog.Partition, all []created) {
	f.t.Helper()
	bounds := testkit.Value(p.Bounds(f.t.Context()))(f.t)
	find := func(t time.Time) eventlog.Sequence {
		for _, c := range all {
			if c.first >= bounds.First && !c.time.Before(t) {
				return c.first
			}
		}
		return bounds.Next
	}
	var greatest time.Time
	for i, c := range all {
		if c.first >= bounds.First && c.time.After(greatest) {
			greatest = c.time
		}
		for _, t := range []time.Time{c.time, c.time.Add(1), c.time.Add(-time.Millisecond)} {
			if i%3 == 0 {
				testkit.Equal(f.t, f.cursor(p, eventlog.SinceCreated(t)).At(), find(t), "created since %v", t)
			}
		}
	}
	testkit.Equal(f.t, f.cursor(p, eventlog.SinceCreated(time.Time{})).At(), bounds.First, "created ever")
	testkit.Equal(f.t, f.cursor(p, eventlog.SinceCreated(greatest.Add(time.Hour))).At(), bounds.Next, "created in the future")
	testkit.Equal(f.t, f.cursor(p, eventlog.GreatestCreated()).At(), find(greatest), "created last")
}

// K1
func testCreated(t *testing.T, f *fixture) {
	p := f.partition(0)
	for _, at := range []eventlog.Position{eventlog.SinceCreated(time.Time{}), eventlog.SinceCreated(time.Now()), eventlog.GreatestCreated()} {
		testkit.Equal(t, f.cursor(p, at).At(), 0, fmt.Sprint(at, " of nothing"))
	}
	negative := Opaque(2, "before 1970, which Kafka has for no time")
	negative.MaxTime = time.UnixMilli(-1)
	f.appendBatch(p, negative)
	testkit.Equal(t, f.cursor(p, eventlog.GreatestCreated()).At(), 0, "the only create time")
	testkit.Equal(t, f.cursor(p, eventlog.SinceCreated(time.UnixMilli(0))).At(), 2, "behind it")
	all := append([]created{{0, negative.MaxTime}}, f.appendCreated(p, 300, time.Now().Truncate(time.Millisecond))...)
	f.wantCreated(p, all)
}

// K1, H4
func testCreatedLater(t *testing.T, f *fixture) {
	p := f.partition(0)
	now := time.Now().Truncate(time.Millisecond)
	future := Opaque(1, "ahead of its time")
	future.MaxTime = now.Add(24 * time.Hour)
	f.appendBatch(p, future)
	all := append([]created{{0, future.MaxTime}}, f.appendCreated(p, 300, now)...)
	f.wantCreated(p, all)
	f.Engine = f.reopen()
	p = f.partition(0)
	f.wantCreated(p, all)
	testkit.Must(t, p.Trim(t.Context(), 400))
	f.wantCreated(p, all) // also if that which was ahead is gone
	f.Engine = f.reopen()
	f.wantCreated(f.partition(0), all)
}
