package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// ownedYard is a real yard whose group billing of hub shop/orders has a worker on partition 0.
func ownedYard(t *testing.T) *admin.Client {
	t.Helper()
	server, records := realYardWithGroups(t)
	c, ctx := dialReal(t, admin.Config{Server: server}), t.Context()
	_, err := c.CreateHub(ctx, admin.HubRequest{Name: "shop/orders", Partitions: new(2)})
	testkit.Must(t, err)
	_, err = c.CreateGroup(ctx, "shop/orders", "a/b")
	testkit.Must(t, err)
	body := json.RawMessage(`{"body":"x"}`)
	_, err = c.Send(ctx, "shop/orders", admin.Batch{Partition: "0", Events: []json.RawMessage{body, body, body}})
	testkit.Must(t, err)
	g := processor.Group{Hub: "shop/orders", Group: "a/b"}
	won, err := records.Claim(ctx, g, []processor.Lease{{Partition: "0", Owner: "worker", Epoch: 2}})
	testkit.Must(t, err)
	cp, err := records.Begin(ctx, g, won[0])
	testkit.Must(t, err)
	cp.Sequence, cp.Offset = 0, "0"
	_, err = records.Save(ctx, g, won[0], cp)
	testkit.Must(t, err)
	return c
}

// P6: the table of a group, as a client gets it.
func TestOwnership(t *testing.T) {
	c := ownedYard(t)
	o, err := c.Ownership(t.Context(), "shop/orders", "a/b", 1)
	testkit.Must(t, err)
	p := o.Partitions[0]
	if o.Hub != "shop/orders" || o.Group != "a/b" || p.Owner != "worker" || p.Epoch != 2 || !p.Alive || p.Renewed == nil {
		t.Errorf("got %+v", o)
	}
	if *p.Checkpoint.Sequence != 0 || p.Checkpoint.Updated == nil || *p.LagEvents != 2 || o.LagEvents != 2 || o.Recommended != (admin.Recommended{2, 1}) {
		t.Errorf("got %+v", o)
	}
	if _, err := c.Ownership(t.Context(), "shop/orders", "other", 0); !isKind(err, "not-found") {
		t.Errorf("got %v", err)
	}
}

func isKind(err error, kind string) bool {
	var p *admin.Problem
	return errors.As(err, &p) && p.Kind() == kind
}

// P7: checkpoints are moved, exported and imported.
func TestCheckpoints(t *testing.T) {
	c, ctx := ownedYard(t), t.Context()
	if _, err := c.MoveCheckpoint(ctx, "shop/orders", "a/b", "0", admin.Target{Latest: true}, admin.MoveOptions{}); !isKind(err, "owned") {
		t.Errorf("an owned partition: %v", err)
	}
	noon := time.Now().Add(time.Hour)
	moved, err := c.MoveCheckpoint(ctx, "shop/orders", "a/b", "0", admin.Target{Time: &noon}, admin.MoveOptions{Force: true})
	testkit.Must(t, err)
	testkit.Equal(t, *moved.From.Sequence, 0, "moved %+v", moved)
	testkit.Equal(t, *moved.To.Sequence, 2, "moved %+v", moved)
	list, err := c.Checkpoints(ctx, "shop/orders", "a/b")
	testkit.Must(t, err)
	if len(list.Checkpoints) != 1 || list.Checkpoints[0].Offset != "2" || list.Group != "a/b" {
		t.Fatalf("got %+v", list)
	}
	for _, opt := range []admin.MoveOptions{{DryRun: true}, {}} {
		moved, err := c.ImportCheckpoints(ctx, "shop/orders", "$Default", list, opt)
		testkit.Must(t, err)
		if len(moved) != 1 || moved[0].From != nil || *moved[0].To.Sequence != 2 {
			t.Errorf("imported %+v", moved)
		}
	}
	copied, err := c.Checkpoints(ctx, "shop/orders", "$Default")
	testkit.Must(t, err)
	testkit.MustEqual(t, len(copied.Checkpoints), 1, "got %+v", copied)
	testkit.Equal(t, *copied.Checkpoints[0].Sequence, 2, "got %+v", copied)
}

// P6: a watched table comes anew when it changes, and ends when its group does.
func TestWatchOwnership(t *testing.T) {
	c, ctx := ownedYard(t), t.Context()
	steps := 0
	for o, err := range c.WatchOwnership(ctx, "shop/orders", "a/b", 0, nil) {
		if err != nil {
			if !isKind(err, "not-found") || steps != 2 {
				t.Errorf("it ended after %d steps with %v", steps, err)
			}
			return
		}
		switch {
		case steps == 0:
			_, err := c.MoveCheckpoint(ctx, "shop/orders", "a/b", "0", admin.Target{Latest: true}, admin.MoveOptions{Force: true})
			testkit.Must(t, err)
			steps++
		case steps == 1 && o.LagEvents == 0:
			testkit.Must(t, c.DeleteGroup(ctx, "shop/orders", "a/b"))
			steps++
		}
	}
	t.Error("it ended without a word")
}

// A watch that breaks off is asked for again, and whoever listens is told.
func TestAWatchThatBreaksOffComesBack(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := calls.Add(1)
		if n == 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"type":"urn:eventyard:problem:stopping","title":"stopping","detail":"stopping"}`)
			return
		}
		_, _ = io.WriteString(w, ": still here\n\nevent: ownership\ndata: {\"lagEvents\":"+string('0'+rune(n))+"}\n\n")
	}))
	defer server.Close()
	c := dialReal(t, admin.Config{Server: server.URL, Pause: time.Millisecond})
	var notices []bool
	var lags []int64
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for o, err := range c.WatchOwnership(ctx, "orders", "billing", 0, func(n admin.Notice) { notices = append(notices, n.Lost != nil) }) {
		testkit.Must(t, err)
		if lags = append(lags, o.LagEvents); len(lags) == 2 {
			break
		}
	}
	if len(lags) != 2 || lags[0] != 1 || lags[1] != 3 {
		t.Errorf("got %v", lags)
	}
	if len(notices) != 2 || !notices[0] || notices[1] {
		t.Errorf("notices: %v", notices)
	}
}

// What a yard refuses at once is an error at once.
func TestAWatchThatIsRefused(t *testing.T) {
	c := ownedYard(t)
	n := 0
	for _, err := range c.WatchOwnership(t.Context(), "shop/orders", "other", 0, nil) {
		if n++; !isKind(err, "not-found") {
			t.Errorf("got %v", err)
		}
	}
	testkit.Equal(t, n, 1, "answers")
}
