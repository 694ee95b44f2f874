package hub_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
)

// quickly is for a network that is down on purpose.
var quickly = hub.Retry{Attempts: 200, First: 5 * time.Millisecond, Max: 50 * time.Millisecond}

// P3, P12: a yard that is restarted in mid-read and mid-send costs time, but no event, and
// nothing is read twice or out of order.
func TestARestartOfTheYardLosesNothing(t *testing.T) {
	y := start(t)
	_, h := y.quick(t)
	readers := map[string]hub.Reader{
		"plain": open(t, h, hub.ReadConfig{Partition: "0"}),
		"epoch": open(t, h, hub.ReadConfig{Partition: "0", Group: "g", Epoch: hub.Exclusive(3)}),
	}
	sent := make(chan int)
	stop := make(chan struct{})
	go func() { sent <- sendUntil(t, h, stop) }()
	for _, r := range readers {
		next(t, r, 20)
	}
	for range 2 {
		y.restart(t, func() {})
		for _, r := range readers {
			next(t, r, 20)
		}
	}
	close(stop)
	count := <-sent
	check := y.dial(t, y.ConnectionString(), hub.Config{}).Hub("h")
	info := bounds(t, check, "0")
	all := next(t, open(t, check, hub.ReadConfig{Partition: "0"}), int(info.Last+1))
	// Sending again may store twice, but what was stored is in order.
	testkit.Slices(t, slices.Compact(bodies(all)), bodies(numbers(0, count)), "stored")
	for name, r := range readers {
		t.Run(name, func(t *testing.T) {
			rest := next(t, r, len(all)-60)
			for i, ev := range rest {
				testkit.MustEqual(t, ev.Sequence, int64(60+i), "%s: read: in place of %d", name, 60+i)
			}
		})
	}
}

// sendUntil sends numbers and tells how many.
func sendUntil(t *testing.T, h *hub.Hub, stop chan struct{}) int {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return i
		default:
		}
		if err := h.SendTo(context.Background(), "0", event.Text(fmt.Sprint(i))); err != nil {
			t.Error(err)
			return i
		}
	}
}

// A connection that breaks without a word is replaced, under all that stands on it.
func TestABrokenConnectionIsReplaced(t *testing.T) {
	y := start(t)
	client, h := y.quick(t)
	r := open(t, h, hub.ReadConfig{Partition: "0"})
	for i := range 10 {
		testkit.Must(t, h.SendTo(t.Context(), "0", event.Text(fmt.Sprint(i))))
		wantBodies(t, next(t, r, 1), fmt.Sprint(i))
		hub.BreakConnection(client)
		testkit.Must(t, infoError(h))
	}
}

// A reader of the latest that has seen nothing yet goes on where it was opened, whenever it
// is connected again.
func TestTheLatestIsThatOfTheBeginning(t *testing.T) {
	y := start(t)
	testkit.Must(t, y.hub.SendTo(t.Context(), "0", event.Text("old")))
	client := y.dial(t, y.ConnectionString(), hub.Config{Retry: quickly})
	r := open(t, client.Hub("h"), hub.ReadConfig{Partition: "0", From: hub.Latest})
	hub.BreakConnection(client)
	testkit.Must(t, y.hub.SendTo(t.Context(), "0", event.Text("meanwhile")))
	wantBodies(t, next(t, r, 1), "meanwhile")
}

// While nothing can be reached a reader waits for as long as its context allows, and a send
// for as many attempts.
func TestAYardThatIsAway(t *testing.T) {
	y := start(t)
	client := y.dial(t, y.ConnectionString(), hub.Config{Retry: hub.Retry{Attempts: 3, First: time.Millisecond, Max: time.Millisecond}})
	h := client.Hub("h")
	r := open(t, h, hub.ReadConfig{Partition: "0"})
	y.restart(t, func() {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		events, err := r.Next(ctx, nil, 1)
		if !errors.Is(err, context.DeadlineExceeded) || len(events) != 0 {
			t.Errorf("read %v, %v", events, err)
		}
		if err := h.Send(t.Context(), event.Text("x")); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("sent with %v", err)
		}
		if _, err := h.Info(ctx); err == nil {
			t.Error("it told about itself")
		}
	})
	testkit.Must(t, y.dial(t, y.ConnectionString(), hub.Config{}).Hub("h").SendTo(t.Context(), "0", event.Text("back")))
	wantBodies(t, next(t, r, 1), "back")
}

// A hub that is deleted under a reader does not come back by waiting.
func TestAReaderOfADeletedHubEnds(t *testing.T) {
	y := start(t)
	y.Hub(t, "doomed", 1)
	r := open(t, y.client.Hub("doomed"), hub.ReadConfig{Partition: "0"})
	y.remove(t, "doomed")
	wantError(t, nextError(t, r), hub.ErrNotFound)
}

func TestCloseUnblocksEverything(t *testing.T) {
	y := start(t)
	client := y.dial(t, y.ConnectionString(), hub.Config{})
	h := client.Hub("h")
	r := open(t, h, hub.ReadConfig{Partition: "0"})
	closed := open(t, h, hub.ReadConfig{Partition: "0"})
	answers := make(chan error)
	for _, r := range []hub.Reader{r, closed} {
		go func() { answers <- testkit.Err(r.Next(context.Background(), nil, 1)) }()
	}
	testkit.Must(t, closed.Close(t.Context()))
	wantError(t, <-answers, hub.ErrClosed)
	testkit.Must(t, closed.Close(t.Context()))
	testkit.Must(t, client.Close())
	wantError(t, <-answers, hub.ErrClosed)
	testkit.Must(t, client.Close())
	testkit.Must(t, r.Close(t.Context()))
	for name, err := range map[string]error{
		"next": nextError(t, r), "send": h.Send(t.Context(), event.Text("x")), "open": openError(h, hub.ReadConfig{Partition: "0"}),
		"info": infoError(h), "call": callError(h),
	} {
		t.Run(name, func(t *testing.T) {
			testkit.ErrorIs(t, err, hub.ErrClosed, "%s answers", name)
		})
	}
}

// A client that waits for a network that does not answer can be closed.
func TestCloseUnblocksWhoWaitsForTheNetwork(t *testing.T) {
	y := start(t)
	client := y.dial(t, y.ConnectionString(), hub.Config{})
	h := client.Hub("h")
	r := open(t, h, hub.ReadConfig{Partition: "0"})
	answers := make(chan error, 3)
	y.restart(t, func() {
		go func() { answers <- h.Send(context.Background(), event.Text("x")) }()
		go func() { answers <- infoError(h) }()
		go func() { answers <- testkit.Err(r.Next(context.Background(), nil, 1)) }()
		testkit.Must(t, client.Close())
		for range 3 {
			wantError(t, <-answers, hub.ErrClosed)
		}
	})
}

func infoError(h *hub.Hub) error {
	_, err := h.Info(context.Background())
	return err
}

func callError(h *hub.Hub) error {
	_, err := h.Call(context.Background(), "none", nil)
	return err
}

// undead is a connection that the other side is not told the end of.
type undead struct {
	net.Conn
	closed *atomic.Bool
}

func (u undead) Close() error {
	u.closed.Store(true)
	return u.SetReadDeadline(time.Now())
}

func (u undead) Write(p []byte) (int, error) {
	if u.closed.Load() {
		return 0, net.ErrClosed
	}
	return u.Conn.Write(p)
}

// H6: plain readers that have lost their connection come back, although the hub still counts
// what they have lost, once it does so no more.
func TestReadersComeBackInSpiteOfTheirGhosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := startMemory(t, memorySetup{})
		client := y.dial(t, development.String(), hub.Config{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := y.listener.Dial(ctx)
			return undead{conn, new(atomic.Bool)}, err
		}})
		h := client.Hub("h")
		var readers []hub.Reader
		for range 5 {
			readers = append(readers, open(t, h, hub.ReadConfig{Partition: "0"}))
		}
		testkit.Must(t, h.Send(t.Context(), event.Text("before")))
		for _, r := range readers {
			wantBodies(t, next(t, r, 1), "before")
		}
		hub.BreakConnection(client)
		testkit.Must(t, h.Send(t.Context(), event.Text("after")))
		for _, r := range readers {
			events, err := r.Next(t.Context(), nil, 1)
			testkit.Must(t, err)
			wantBodies(t, events, "after")
		}
		wantError(t, openError(h, hub.ReadConfig{Partition: "0"}), hub.ErrRefused) // one without a past
	})
}

func TestAHubHasAName(t *testing.T) {
	y := start(t)
	h := y.client.Hub("")
	for name, err := range map[string]error{
		"send": h.Send(t.Context(), event.Text("x")), "open": openError(h, hub.ReadConfig{Partition: "0"}),
		"info": infoError(h), "call": callError(h),
	} {
		t.Run(name, func(t *testing.T) {
			if !errors.Is(err, hub.ErrNotFound) || !strings.Contains(err.Error(), "EntityPath") {
				t.Errorf("%s answers %v", name, err)
			}
		})
	}
}
