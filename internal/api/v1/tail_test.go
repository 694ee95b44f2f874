package v1

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// follower reads a tail the way a browser does.
type follower struct {
	t    *testing.T
	body io.ReadCloser
	scan *bufio.Scanner
	id   string // of the newest event
}

// serverSent is one server-sent event, or a comment.
type serverSent struct {
	name, data, comment string
}

// follow opens a tail.
func (y *yard) follow(t *testing.T, path string, header ...string) *follower {
	t.Helper()
	resp := y.in(t).open(t.Context(), "GET", path, nil, append(header, "Accept", "text/event-stream")...)
	if ct := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || ct != "text/event-stream" {
		t.Fatalf("answered %d %s", resp.StatusCode, ct)
	}
	f := &follower{t: t, body: resp.Body, scan: bufio.NewScanner(resp.Body)}
	f.scan.Buffer(nil, 4<<20)
	t.Cleanup(f.leave)
	return f
}

func (f *follower) leave() { f.body.Close() }

// message reads up to the next empty line; false at the end. One with an id alone is
// taken note of and not given, as browsers do.
func (f *follower) message() (got serverSent, ok bool) {
	for f.scan.Scan() {
		line := f.scan.Text()
		field, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "" && got == (serverSent{}):
		case line == "":
			return got, true
		case field == "id":
			f.id = value
		case field == "event":
			got.name = value
		case field == "data":
			got.data += value
		case field == "":
			got.comment = value
		default:
			f.t.Errorf("a line that is no field: %q", line)
		}
	}
	return got, false
}

// event reads the next event; comments are passed over.
func (f *follower) event() shown {
	f.t.Helper()
	for {
		got, ok := f.message()
		if !ok || got.comment == "" && got.name != "event" {
			f.t.Fatalf("no event but %+v", got)
		}
		if got.comment != "" {
			continue
		}
		var e shown
		var plain any
		testkit.Must(f.t, json.Unmarshal([]byte(got.data), &e))
		testkit.Must(f.t, json.Unmarshal([]byte(got.data), &plain))
		checkEvent(f.t, plain)
		return e
	}
}

// end reads the last message, behind which there is nothing.
func (f *follower) end() endJSON {
	f.t.Helper()
	got, ok := f.message()
	if !ok || got.name != "end" {
		f.t.Fatalf("no end but %+v", got)
	}
	var e endJSON
	testkit.Must(f.t, json.Unmarshal([]byte(got.data), &e))
	if more, ok := f.message(); ok {
		f.t.Errorf("after the end comes %+v", more)
	}
	testkit.Check(f.t, f.scan.Err(), "the answer did not end cleanly")
	return e
}

func (y *yard) tails() float64 { return testutil.ToFloat64(y.handler.metrics.tails) }

// H4: a tail gives what is there and then what comes, of all partitions.
func TestTailFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("orders", 2)
		y.send("orders", "0", "a", "b")
		f := y.follow(t, "/api/v1/hubs/orders/events")
		for i, want := range []string{"a", "b"} {
			if e := f.event(); e.text() != want || e.Partition != "0" || e.Sequence != int64(i) {
				t.Errorf("got %+v", e)
			}
		}
		synctest.Wait()
		testkit.Equal(t, y.tails(), 1, "tails are counted")
		y.send("orders", "1", "c")
		if e := f.event(); e.text() != "c" || e.Partition != "1" {
			t.Errorf("got %+v", e)
		}
		testkit.Equal(t, f.id, "0:2,1:1", "the id")
		f.leave()
		synctest.Wait()
		testkit.Equal(t, y.tails(), 0, "tails are left")
	})
}

// H4: from the latest there is only what comes; of the partitions named, no others.
func TestTailFromTheLatestOfOnePartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("orders", 2)
		y.send("orders", "1", "old")
		f := y.follow(t, "/api/v1/hubs/orders/events?partition=1&from=latest&count=1")
		y.send("orders", "0", "elsewhere")
		y.send("orders", "1", "new")
		if e := f.event(); e.text() != "new" {
			t.Errorf("got %+v", e)
		}
		if end := f.end(); end.Reason != "count" || end.Resume != "1:2" {
			t.Errorf("ended with %+v", end)
		}
	})
}

// H4: a tail resumed at any of its ids goes on without gap and without repeat.
func TestTailResumes(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 3)
	want := map[string]bool{}
	for i := range 30 {
		partition := fmt.Sprint(i % 3)
		y.send("orders", partition, fmt.Sprint(i))
		want[fmt.Sprintf("%s/%d=%d", partition, i/3, i)] = true
	}
	for _, header := range []bool{true, false} {
		seen, id := map[string]bool{}, ""
		for len(seen) < 30 {
			path, with := "/api/v1/hubs/orders/events?follow=true&count=4", []string(nil)
			if header {
				path, with = path+"&from=latest", []string{"Last-Event-ID", id}
				if id == "" {
					with = []string{"Last-Event-ID", "earliest"}
				}
			} else {
				path += "&from=" + id
			}
			f := y.follow(t, path, with...)
			for range min(4, 30-len(seen)) {
				e := f.event()
				position := fmt.Sprintf("%s/%d=%s", e.Partition, e.Sequence, e.text())
				if seen[position] || !want[position] {
					t.Errorf("%s came twice, or never was", position)
				}
				seen[position] = true
			}
			id = f.id
			f.leave()
		}
	}
}

// A quiet tail says every 15 seconds that it lives.
func TestTailHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("orders", 1)
		f := y.follow(t, "/api/v1/hubs/orders/events")
		began := time.Now()
		for i := range 3 {
			got, ok := f.message()
			if !ok || got.comment == "" {
				t.Fatalf("no comment but %+v", got)
			}
			testkit.Equal(t, time.Since(began), time.Duration(i+1)*15*time.Second,
				"heartbeat %d came after", i)
		}
	})
}

// A tail says why it ends, and where to go on.
func TestTailEnds(t *testing.T) {
	for _, tt := range []struct {
		what   string
		end    func(y *yard)
		reason string
	}{
		{"because the hub is deleted", func(y *yard) { testkit.Must(y.t, y.broker.DeleteHub(y.t.Context(), "orders")) }, "deleted"},
		{"because the yard is stopping", func(y *yard) { y.stopping() }, "stopping"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard(t)
				y.hub("orders", 3)
				y.send("orders", "1", "a")
				f := y.follow(t, "/api/v1/hubs/orders/events")
				f.event()
				synctest.Wait()
				tt.end(y)
				if end := f.end(); end.Reason != tt.reason || end.Resume != "0:0,1:1,2:0" || end.Detail == "" {
					t.Errorf("ended with %+v", end)
				}
				synctest.Wait()
				testkit.Equal(t, y.tails(), 0, "tails are left")
			})
		})
	}
}

// Damage ends a tail with a position behind it.
func TestTailEndsAtDamage(t *testing.T) {
	y := damagedYard(t, damage)
	f := y.follow(t, "/api/v1/hubs/orders/events?partition=0")
	f.event()
	f.event()
	if end := f.end(); end.Reason != "damaged" || end.Resume != "0:4" {
		t.Errorf("ended with %+v", end)
	}
}

// counting counts the events that its cursors gave.
type counting struct {
	eventlog.Cursor
	given *atomic.Int64
}

func (c counting) TryNext(ctx context.Context) (eventlog.Run, error) {
	run, err := c.Cursor.TryNext(ctx)
	c.given.Add(int64(len(run.Events)))
	return run, err
}

// A client that takes nothing costs a bounded number of events in memory, and is let
// go when it has taken nothing for the time a write may take.
func TestTailOfASlowClientIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var given atomic.Int64
		y := newYard(t, func(c *Config) {
			c.WriteTimeout = time.Minute
			c.Broker = watched{Broker: c.Broker.(*broker.Broker), wrap: func(_ string, c eventlog.Cursor) eventlog.Cursor {
				return counting{c, &given}
			}}
		})
		y.hub("orders", 4)
		body := strings.Repeat("x", 8<<10) // the connection itself has room for some
		for i := range 1000 {
			y.send("orders", fmt.Sprint(i%4), body)
		}
		resp := y.open(t.Context(), "GET", "/api/v1/hubs/orders/events?follow=true", nil)
		synctest.Wait()
		if n := given.Load(); n < 10 || n > 100 {
			t.Errorf("%d events were taken for a client that takes none", n)
		}
		testkit.Equal(t, y.tails(), 1, "tails are open")
		time.Sleep(time.Minute)
		synctest.Wait()
		testkit.Equal(t, y.tails(), 0, "tails are open after the time for a write")
		resp.Body.Close()
	})
}

// H4: under load from many senders every event comes once and in its partition's order,
// to several followers at once.
func TestTailUnderLoad(t *testing.T) {
	const senders, batches, size = 4, 40, 3
	y := newYard(t)
	y.hub("orders", 3)
	var followers sync.WaitGroup
	for range 3 {
		f := y.follow(t, fmt.Sprintf("/api/v1/hubs/orders/events?count=%d", senders*batches*size))
		followers.Go(func() {
			next := map[string]int64{}
			for range senders * batches * size {
				e := f.event()
				testkit.Equal(t, e.Sequence, next[e.Partition], "partition %s", e.Partition)
				next[e.Partition] = e.Sequence + 1
			}
			if end := f.end(); end.Reason != "count" {
				t.Errorf("ended with %+v", end)
			}
		})
	}
	var sending sync.WaitGroup
	for s := range senders {
		sending.Go(func() {
			for b := range batches {
				y.send("orders", fmt.Sprint((s+b)%3), strings.Fields(strings.Repeat("x ", size))...)
			}
		})
	}
	sending.Wait()
	followers.Wait()
}

// Tails come and go in a storm, with the hub being deleted and the yard stopping in
// the midst of it. Who stays hears why it ends, who comes too late why it does not
// begin; and nothing is left behind (TestMain looks, too).
func TestTailStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("orders", 12)
		y.hub("doomed", 12)
		var storm sync.WaitGroup
		for i := range 24 {
			hub := []string{"orders", "doomed"}[i%2]
			storm.Go(func() {
				ends := map[string]bool{"orders": false, "doomed": true}
				y.weather(t, hub, i%3 == 0, ends[hub])
			})
			storm.Go(func() {
				_, _ = y.broker.Publish(t.Context(), hub, broker.Target{}, []eventlog.Event{{Message: []byte("x")}})
			})
		}
		storm.Go(func() { testkit.Must(t, y.broker.DeleteHub(t.Context(), "doomed")) })
		storm.Go(y.stopping)
		storm.Wait()
		synctest.Wait()
		testkit.Equal(t, y.tails(), 0, "tails are left")
	})
}

// weather follows a hub to the end, unless it leaves at once.
func (y *yard) weather(t *testing.T, hub string, leave, doomed bool) {
	resp := y.in(t).open(t.Context(), "GET", "/api/v1/hubs/"+hub+"/events?follow=true", nil)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		gone := resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone
		if resp.StatusCode != http.StatusServiceUnavailable && !(gone && doomed) {
			t.Errorf("a tail of %s was answered %d", hub, resp.StatusCode)
		}
		return
	}
	if leave {
		return
	}
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("a tail of %s ended with %v", hub, err)
	}
	_, end, _ := bytes.Cut(all, []byte("event: end\ndata: "))
	stopped, deleted := bytes.Contains(end, []byte(`"reason":"stopping"`)), bytes.Contains(end, []byte(`"reason":"deleted"`))
	if !stopped && !(deleted && doomed) {
		t.Errorf("a tail of %s ended with %q", hub, end)
	}
}
