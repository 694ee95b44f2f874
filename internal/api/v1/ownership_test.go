package v1

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

const ownershipPath = "/api/v1/hubs/orders/groups/billing/ownership"

// owned makes a hub and a group and has a worker own and checkpoint partition 0.
func (y *yard) owned(sequence int64) (processor.Group, processor.Lease, processor.Checkpoint) {
	y.t.Helper()
	y.hub("orders", 2)
	_, err := y.broker.CreateGroup(y.t.Context(), "orders", "billing")
	testkit.Must(y.t, err)
	y.send("orders", "0", "a", "b", "c", "d")
	g := processor.Group{Hub: "orders", Group: "billing"}
	won, err := y.groups.Claim(y.t.Context(), g, []processor.Lease{{Partition: "0", Owner: "worker", Epoch: 3}})
	testkit.Must(y.t, err)
	c, err := y.groups.Begin(y.t.Context(), g, won[0])
	testkit.Must(y.t, err)
	c.Sequence, c.Offset = sequence, "1"
	c, err = y.groups.Save(y.t.Context(), g, won[0], c)
	testkit.Must(y.t, err)
	return g, won[0], c
}

func (y *yard) ownership(query string) (o admin.Ownership) {
	y.t.Helper()
	y.want(200, "GET", ownershipPath+query, nil).json(y.t, &o)
	return o
}

// P6: the table is served: owner, times, checkpoint, lag, readers, instances, advice.
func TestOwnership(t *testing.T) {
	y := newYard(t)
	g, _, _ := y.owned(1)
	for key, value := range map[string]string{"presence/worker": `{"started":"2026-11-15T08:00:00Z"}`, "next/0": `{"instance":"other"}`} {
		_, err := y.groups.Put(t.Context(), g, processor.Entry{Key: key, Value: []byte(value)})
		testkit.Must(t, err)
	}
	reader, err := y.broker.Receive(t.Context(), broker.ReceiverConfig{
		Hub: "orders", Group: "billing", Partition: "1", At: eventlog.Earliest(), Epoch: new(int64(0)), Name: "sdk",
	})
	testkit.Must(t, err)
	defer reader.Cursor.Close()
	defer reader.Close()

	o := y.ownership("?target=1")
	if o.Namespace != "eventyard" || o.Hub != "orders" || o.Group != "billing" || len(o.Partitions) != 2 || o.At.IsZero() {
		t.Errorf("got %+v", o)
	}
	p := o.Partitions[0]
	if p.Owner != "worker" || !p.Alive || p.Epoch != 3 || p.Acquired == nil || p.Renewed == nil || p.Next != "other" || p.Last != 3 {
		t.Errorf("partition 0: %+v", p)
	}
	if p.Checkpoint == nil || *p.Checkpoint.Sequence != 1 || p.Checkpoint.Offset != "1" || p.Checkpoint.Updated == nil || *p.LagEvents != 2 || p.LagSeconds == nil {
		t.Errorf("partition 0: %+v", p)
	}
	p = o.Partitions[1]
	if p.Owner != "" || p.Checkpoint != nil || *p.LagEvents != 0 || len(p.Readers) != 1 || p.Readers[0].Name != "sdk" || *p.Readers[0].Epoch != 0 {
		t.Errorf("partition 1: %+v", p)
	}
	if len(o.Instances) != 1 || o.Instances[0].ID != "worker" || !o.Instances[0].Alive || !o.Instances[0].Present || o.Instances[0].Partitions != 1 || o.Instances[0].Started == nil {
		t.Errorf("instances: %+v", o.Instances)
	}
	testkit.Equal(t, o.LagEvents, 2, "lag %d, advice %+v", o.LagEvents, o.Recommended)
	testkit.Equal(t, o.Recommended, (admin.Recommended{Instances: 2, Target: 1}), "lag %d, advice %+v", o.LagEvents, o.Recommended)
	testkit.Equal(t, y.ownership("").Recommended, (admin.Recommended{Instances: 1, Target: 1000}), "advice")
}

// P6: what is asked wrongly is told.
func TestOwnershipErrors(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	y.refused(404, "not-found", "GET", ownershipPath, nil)
	y.refused(404, "not-found", "GET", "/api/v1/hubs/nothing/groups/$Default/ownership", nil)
	y.refused(404, "not-found", "GET", ownershipPath+"?watch=true", nil)
	y.refused(400, "bad-request", "GET", "/api/v1/hubs/orders/groups/$Default/ownership?target=0", nil)
	y.refused(400, "bad-request", "GET", "/api/v1/hubs/orders/groups/$Default/ownership?watch=perhaps", nil)
	sender := y.policy("orders", "sender", auth.Send)
	y.as(basic(sender.Name, sender.Primary)).refused(403, "insufficient-rights", "GET", ownershipPath, nil)
}

// R1, H5: an operator takes a partition from whoever keeps others from it, and nobody else does.
func TestReleaseAPartition(t *testing.T) {
	y := newYard(t)
	y.owned(1)
	var evicted atomic.Bool
	wedge := broker.ReceiverConfig{
		Hub: "orders", Group: "billing", Partition: "0", At: eventlog.Latest(), Epoch: new(int64(math.MaxInt64)), Name: "wedge",
		Evict: func(*broker.EvictedError) { evicted.Store(true) },
	}
	r, err := y.broker.Receive(t.Context(), wedge)
	testkit.Must(t, err)
	defer r.Cursor.Close()
	plain := broker.ReceiverConfig{Hub: "orders", Group: "billing", Partition: "0", At: eventlog.Latest(), Name: "plain"}
	other, err := y.broker.Receive(t.Context(), broker.ReceiverConfig{Hub: "orders", Group: "billing", Partition: "1", At: eventlog.Latest(), Epoch: new(int64(1))})
	testkit.Must(t, err)
	defer other.Cursor.Close()
	defer other.Close()
	listener := y.policy("orders", "listens", auth.Listen)
	y.as(basic(listener.Name, listener.Primary)).refused(403, "insufficient-rights", "DELETE", ownershipPath+"/0", nil)
	testkit.That(t, !evicted.Load(), "it was evicted")
	released := read[admin.Released](t, y.want(200, "DELETE", ownershipPath+"/0", nil))
	testkit.Equal(t, released.Disconnected, 1, "disconnected")
	testkit.That(t, evicted.Load() && released.Owner != "" && released.Epoch > 0, "released %+v", released)
	again, err := y.broker.Receive(t.Context(), plain)
	testkit.Must(t, err, "it is not free")
	again.Close()
	again.Cursor.Close()
	testkit.Equal(t, read[admin.Released](t, y.want(200, "DELETE", ownershipPath+"/0", nil)), admin.Released{Partition: "0"}, "what nobody has")
	y.refused(404, "not-found", "DELETE", ownershipPath+"/9", nil)
	y.refused(404, "not-found", "DELETE", "/api/v1/hubs/orders/groups/none/ownership/0", nil)
}

// A yard without a registry says so.
func TestAYardThatKeepsNoGroups(t *testing.T) {
	y := newYard(t, func(c *Config) { c.Groups = nil })
	y.hub("orders", 1)
	y.refused(501, "not-kept-here", "GET", "/api/v1/hubs/orders/groups/$Default/ownership", nil)
	y.refused(501, "not-kept-here", "DELETE", "/api/v1/hubs/orders/groups/$Default/ownership/0", nil)
	y.refused(501, "not-kept-here", "GET", "/api/v1/hubs/orders/groups/$Default/checkpoints", nil)
	y.refused(501, "not-kept-here", "PUT", "/api/v1/hubs/orders/groups/$Default/checkpoints/0", `{"to":{"latest":true}}`)
	y.refused(501, "not-kept-here", "POST", "/api/v1/hubs/orders/groups/$Default/checkpoints", `{"checkpoints":[]}`)
}

// ownershipStream reads a watched table.
type ownershipStream struct {
	t     testing.TB
	lines *bufio.Scanner
}

func (y *yard) watchOwnership(ctx context.Context, also ...string) *ownershipStream {
	y.t.Helper()
	resp := y.open(ctx, "GET", ownershipPath+"?watch=true"+strings.Join(also, ""), nil)
	if ct := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || ct != "text/event-stream" {
		body, _ := io.ReadAll(resp.Body)
		y.t.Fatalf("answered %d, %s: %s", resp.StatusCode, ct, body)
	}
	y.t.Cleanup(func() { resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return &ownershipStream{t: y.t, lines: lines}
}

// next gives the next event, comments left out.
func (s *ownershipStream) next() (name string, data []byte) {
	s.t.Helper()
	for s.lines.Scan() {
		switch line := s.lines.Text(); {
		case strings.HasPrefix(line, "event: "):
			name = strings.TrimPrefix(line, "event: ")
		case strings.HasPrefix(line, "data: "):
			data = []byte(strings.TrimPrefix(line, "data: "))
		case line == "" && name != "":
			return name, data
		}
	}
	s.t.Fatalf("the stream broke off: %v", s.lines.Err())
	return "", nil
}

func (s *ownershipStream) table() (o admin.Ownership) {
	s.t.Helper()
	name, data := s.next()
	testkit.MustEqual(s.t, name, "ownership", "got: %s", data)
	testkit.Must(s.t, json.Unmarshal(data, &o))
	var v any
	testkit.Must(s.t, json.Unmarshal(data, &v))
	checkSchema(s.t, "Ownership", v)
	return o
}

// P6: a watched table comes anew when a lease, a checkpoint or the lag has changed.
func TestWatchedOwnership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		g, l, c := y.owned(3)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := y.watchOwnership(ctx)
		if o := s.table(); o.Partitions[0].Owner != "worker" || o.LagEvents != 0 {
			t.Errorf("at first: %+v", o)
		}
		time.Sleep(5 * time.Second) // nothing changes
		_, err := y.groups.Claim(t.Context(), g, []processor.Lease{{Partition: "1", Owner: "other", Epoch: 1}})
		testkit.Must(t, err)
		changed := time.Now()
		if o := s.table(); o.Partitions[1].Owner != "other" {
			t.Errorf("after a claim: %+v", o)
		}
		if took := time.Since(changed); took >= ownershipEvery {
			t.Errorf("the claim was told after %v: nobody watches", took)
		}
		y.send("orders", "0", "e")
		if o := s.table(); o.LagEvents != 1 {
			t.Errorf("after an event: %+v", o)
		}
		c.Sequence, c.Offset = 4, "4"
		_, err = y.groups.Save(t.Context(), g, l, c)
		testkit.Must(t, err)
		for o := s.table(); o.LagEvents != 0; o = s.table() { // it may have aged before
		}
		cancel()
		synctest.Wait()
	})
}

// P6: a watched table ends with a word: when the group is deleted, and when the yard stops.
func TestWatchedOwnershipEnds(t *testing.T) {
	for reason, end := range map[string]func(y *yard){
		"deleted":  func(y *yard) { testkit.Must(y.t, y.broker.DeleteGroup(y.t.Context(), "orders", "billing")) },
		"stopping": func(y *yard) { y.stopping() },
	} {
		t.Run(reason, func(t *testing.T) {
			y := newYard(t)
			y.owned(3)
			s := y.watchOwnership(t.Context())
			s.table()
			end(y)
			name, data := s.next()
			for name == "ownership" {
				name, data = s.next()
			}
			var v map[string]any
			testkit.Must(t, json.Unmarshal(data, &v))
			checkSchema(t, "OwnershipEnd", v)
			testkit.Equal(t, name, "end", "it ended with %s: %s", name, data)
			testkit.Equal(t, v["reason"], any(reason), "it ended with %s: %s", name, data)
		})
	}
}

// A path that has to be cleaned is nobody's: cleaned, that of the group ".." is that of its hub.
func TestPathsAreTakenAsTheyAre(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	for _, path := range []string{
		"/api/v1/hubs/orders/groups/..", "/api/v1/hubs/orders/groups/x/../..", "/api/v1//hubs/orders", "/api/v1/./hubs/orders",
	} {
		y.refused(404, "no-such-path", "DELETE", path, nil)
	}
	y.refused(404, "not-found", "DELETE", "/api/v1/hubs/orders/groups/%2E%2E", nil)
	y.want(200, "GET", "/api/v1/hubs/orders", nil)
}
