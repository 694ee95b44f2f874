package logtest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

func testTrim(t *testing.T, f *fixture) {
	p := f.partition(0)
	for i := range 500 {
		f.append(p, fmt.Sprintf("%03d %s", i, bytes.Repeat([]byte("x"), 500)))
	}
	slow := f.cursor(p, eventlog.Earliest())
	if err := p.Trim(t.Context(), 400); err != nil {
		t.Fatal(err)
	}
	b, err := p.Bounds(t.Context())
	if err != nil || b.First > 400 || b.Next != 500 {
		t.Errorf("bounds %+v, %v: removed what was to stay", b, err)
	}
	got := f.rest(slow)
	if len(got) < 100 || got[len(got)-100][:3] != "400" {
		t.Errorf("an overtaken cursor reads %d events", len(got))
	}
	if got := f.rest(f.cursor(p, eventlog.At(0))); len(got) != int(b.Next-b.First) {
		t.Errorf("a removed number leads to %d events, want the %d kept", len(got), b.Next-b.First)
	}
}

// H4
func testRetention(t *testing.T, f *fixture) {
	const keep = 256 << 10
	p := f.keeping(0, eventlog.Retention{Bytes: keep})
	for i := range 1500 {
		f.append(p, fmt.Sprintf("%04d %s", i, bytes.Repeat([]byte("x"), 1000)))
	}
	f.runs()
	b := f.until(p, func(b eventlog.Bounds) bool { return b.First > 0 && b.Bytes <= keep })
	if b.Next != 1500 || b.Empty() {
		t.Errorf("bounds %+v: retention must keep the newest", b)
	}
	got := f.rest(f.cursor(p, eventlog.Earliest()))
	if len(got) != int(b.Next-b.First) || got[0][:4] != fmt.Sprintf("%04d", b.First) {
		t.Errorf("%d events from %q, want those from %d on", len(got), got[0][:4], b.First)
	}
}

// runs runs the engine's background work until the test ends.
func (f *fixture) runs() {
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error)
	go func() { ran <- f.Run(ctx) }()
	f.t.Cleanup(func() {
		stop()
		if err := <-ran; err != nil {
			f.t.Errorf("the background work ended with %v", err)
		}
	})
}

// until looks at a partition's bounds until they are as wanted.
func (f *fixture) until(p eventlog.Partition, wanted func(eventlog.Bounds) bool) eventlog.Bounds {
	f.t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for late := time.After(patience); ; {
		b, err := p.Bounds(f.t.Context())
		if err != nil {
			f.t.Fatal(err)
		}
		if wanted(b) {
			return b
		}
		select {
		case <-look.C:
		case <-late:
			f.t.Fatalf("after %v the bounds are %+v", patience, b)
		}
	}
}

// H4
func testRetentionByAge(t *testing.T, f *fixture) {
	p := f.keeping(0, eventlog.Retention{Age: 50 * time.Millisecond})
	for range 99 {
		f.append(p, "old")
	}
	last := f.append(p, "old")
	f.runs()
	b := f.until(p, eventlog.Bounds.Empty)
	if b.Next != 100 || !b.LastTime.Equal(last.Time) {
		t.Errorf("bounds %+v: the numbers and the newest time are to stay", b)
	}
	f.wantRest(p, eventlog.Earliest())
	f.keeping(0, eventlog.Retention{})
	if done := f.append(p, "new"); done.First != 100 || done.Time.Before(last.Time) {
		t.Errorf("the next event got %d at %v", done.First, done.Time)
	}
	f.wantRest(p, eventlog.Earliest(), "new")
}

// H4
func testTrimPastTheEnd(t *testing.T, f *fixture) {
	p := f.partition(0)
	f.append(p, "a", "b")
	last := f.append(p, "c")
	for _, below := range []eventlog.Sequence{3, 4, 1000} {
		if err := p.Trim(t.Context(), below); err != nil {
			t.Fatal(err)
		}
		b, err := p.Bounds(t.Context())
		if err != nil || b.Next != 3 || b.First > 3 || !b.LastTime.Equal(last.Time) {
			t.Errorf("bounds %+v, %v: the numbers and the newest time are to stay", b, err)
		}
	}
	latest := f.cursor(p, eventlog.Latest())
	if done := f.append(p, "d"); done.First != 3 {
		t.Errorf("the next event got %d", done.First)
	}
	if got := f.rest(latest); len(got) > 1 || len(got) == 1 && got[0] != "d" {
		t.Errorf("a cursor at the end reads %q", got)
	}
}

// testOvertaken reads a little, has what follows removed, and goes on. // H4
func testOvertaken(t *testing.T, f *fixture) {
	p := f.partition(0)
	var all []string
	for i := range 500 {
		all = append(all, fmt.Sprintf("%03d %s", i, bytes.Repeat([]byte("x"), 500)))
		f.append(p, all[i])
	}
	c := f.cursor(p, eventlog.Earliest())
	for range 10 {
		if _, err := c.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Trim(t.Context(), 400); err != nil {
		t.Fatal(err)
	}
	var got []string
	for next := c.At(); next < 500; next = c.At() {
		run, err := c.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if run.First < next {
			t.Fatalf("event %d after those before %d", run.First, next)
		}
		for i, e := range run.Events {
			if string(e.Message) != all[int(run.First)+i] {
				t.Fatalf("event %d came back different", int(run.First)+i)
			}
			got = append(got, string(e.Message))
		}
	}
	if kept := all[400:]; len(got) < len(kept) || !slices.Equal(got[len(got)-len(kept):], kept) {
		t.Errorf("%d events were read, want all that was to stay among them", len(got))
	}
}
