package natswire

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/testkit"
)

var (
	here  = cluster.Node{ID: "node-1.example", Incarnation: "abc"}
	there = cluster.Node{ID: "node-2", Incarnation: "def"}
)

// pair gives the wires of two nodes, each with a connection of its own.
func pair(t *testing.T) (*Wire, *Wire) {
	t.Helper()
	servers, yard := natstest.Shared(t, 1), natstest.Yard()
	return testkit.Value(New(servers.Dial(t, 0), yard))(t), testkit.Value(New(servers.Dial(t, 0), yard))(t)
}

func serve(t *testing.T, w *Wire, self cluster.Node, handler cluster.Handler) (stop func()) {
	t.Helper()
	stop = testkit.Value(w.Serve(self, handler))(t)
	t.Cleanup(stop)
	return stop
}

func ask(t *testing.T, w *Wire, to cluster.Node, subject string, body []byte) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return w.Ask(ctx, cluster.Request{From: here, To: to, Subject: subject, Body: body})
}

// C4: what nodes ask each other, and what they hear.
func TestRequests(t *testing.T) {
	a, b := pair(t)
	most := b.most()
	serve(t, b, there, func(ctx context.Context, r cluster.Request) ([]byte, error) {
		if _, bounded := ctx.Deadline(); !bounded || r.From != here || r.To != there {
			t.Errorf("got %+v, bounded: %t", r, bounded)
		}
		switch r.Subject {
		case "echo.twice":
			return append(r.Body, r.Body...), nil
		case "large":
			return make([]byte, most+1), nil
		}
		return nil, errors.New("no such\r\nthing: " + r.Subject)
	})
	if got, err := ask(t, a, there, "echo.twice", []byte("x\x00y")); err != nil || string(got) != "x\x00yx\x00y" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := ask(t, a, there, "echo.twice", nil); err != nil || len(got) != 0 {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := ask(t, a, there, "echo.twice", bytes.Repeat([]byte("x"), most/2)); err != nil || len(got) != most/2*2 {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	_, err := ask(t, a, there, "other", nil)
	if refused, ok := errors.AsType[*cluster.RemoteError](err); !ok || refused.Text != "no such thing: other" || refused.Node != there {
		t.Errorf("got %v", err)
	}
	for subject, body := range map[string][]byte{"large": nil, "echo.twice": make([]byte, most+1)} {
		_, err := ask(t, a, there, subject, body)
		testkit.ErrorIs(t, err, cluster.ErrTooLarge, subject)
		if !strings.Contains(err.Error(), "max_payload") {
			t.Errorf("%v does not say what bounds it", err)
		}
	}
}

func TestNobodyAnswers(t *testing.T) {
	a, b := pair(t)
	testkit.ErrorIs(t, testkit.Err(ask(t, a, there, "x", nil)), cluster.ErrNoNode, "nobody ever served")
	stop := serve(t, b, there, func(context.Context, cluster.Request) ([]byte, error) { return nil, nil })
	testkit.Must(t, testkit.Err(ask(t, a, there, "x", nil)))
	other := cluster.Node{ID: there.ID, Incarnation: "later"}
	testkit.ErrorIs(t, testkit.Err(ask(t, a, other, "x", nil)), cluster.ErrNoNode, "another process of that ID")
	stop()
	// The servers may hear of it after who asks.
	testkit.Eventually(t, "that nobody serves any more", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := a.Ask(ctx, cluster.Request{From: here, To: there, Subject: "x"})
		return errors.Is(err, cluster.ErrNoNode)
	})
}

// A request ends with its deadline, and stop waits for the handlers.
func TestDeadlines(t *testing.T) {
	a, b := pair(t)
	var ended atomic.Int32
	began := make(chan struct{}, 1)
	stop := serve(t, b, there, func(ctx context.Context, _ cluster.Request) ([]byte, error) {
		began <- struct{}{}
		<-ctx.Done()
		ended.Add(1)
		return nil, context.Cause(ctx)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := a.Ask(ctx, cluster.Request{From: here, To: there, Subject: "x"})
	if refused := new(cluster.RemoteError); !errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
	<-began
	asked := make(chan error, 1)
	go func() {
		_, err := ask(t, a, there, "x", nil)
		asked <- err
	}()
	<-began
	stop()
	if ended.Load() != 2 {
		t.Errorf("%d handlers had ended when serving had stopped", ended.Load())
	}
	if err := <-asked; err == nil {
		t.Error("the handler was cut off, and its asker heard of success")
	}
}

func TestNodesInSubjects(t *testing.T) {
	for _, n := range []cluster.Node{here, there, {ID: "a.b_c-d", Incarnation: "0"}} {
		if got := decodeNode(encodeNode(n)); got != n {
			t.Errorf("%v came back as %v", n, got)
		}
		if encoded := encodeNode(n); strings.Count(encoded, ".") != 1 {
			t.Errorf("%v is %q in a subject", n, encoded)
		}
	}
	for _, yard := range []string{"", "a.b", "a b", strings.Repeat("x", 33)} {
		if _, err := New(nil, yard); err == nil {
			t.Errorf("a yard of name %q was accepted", yard)
		}
	}
}
