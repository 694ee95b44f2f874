package hub_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
)

// P3: what was sent with success is stored, whatever others on the same link give up and however
// often the connection breaks, and a reader that lives through it gives every event once, in order.
func TestAStormLosesNothing(t *testing.T) {
	y := start(t)
	client, h := y.quick(t)
	r := open(t, h, hub.ReadConfig{Partition: "0", Prefetch: 7})
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		sent = map[string]bool{}
	)
	for sender := range 4 {
		all.Go(func() {
			for i := range 60 {
				name := fmt.Sprintf("%d-%d;", sender, i)
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(20*time.Millisecond))
				err := h.SendTo(ctx, "0", event.Text(name+strings.Repeat("x", rand.IntN(2)*rand.IntN(300<<10))))
				cancel()
				if err == nil {
					mu.Lock()
					sent[name] = true
					mu.Unlock()
				} else if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		all.Wait()
	}()
	var stored []event.Event
	read := func(wait time.Duration) {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		var err error
		if stored, err = r.Next(ctx, stored, 5); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	for breaks := 0; ; breaks++ {
		select {
		case <-done:
		default:
			read(rand.N(30 * time.Millisecond))
			if breaks%20 == 19 {
				hub.BreakConnection(client)
			}
			continue
		}
		break
	}
	info := bounds(t, h, "0")
	for int64(len(stored)) < info.Last+1 {
		read(time.Minute)
	}
	for i := range stored {
		testkit.MustEqual(t, stored[i].Sequence, int64(i), "read: in place of %d", i)
		name, rest, _ := strings.Cut(string(stored[i].Body), ";")
		testkit.MustEqual(t, strings.Trim(rest, "x"), "", "%s is not what was sent", name)
		delete(sent, name+";")
	}
	if len(sent) > 0 {
		t.Errorf("%d events were not stored: %v", len(sent), sent)
	}
	t.Logf("%d stored", len(stored))
}

// Whatever a client is at, it can be closed, and nothing of it is left.
func TestCloseInAStorm(t *testing.T) {
	y := start(t)
	for range 10 {
		client, h := y.quick(t)
		var all sync.WaitGroup
		until := func(do func() error) {
			all.Go(func() {
				for {
					if err := do(); errors.Is(err, hub.ErrClosed) {
						return
					} else if err != nil && !errors.Is(err, hub.ErrRefused) {
						t.Error(err)
						return
					}
				}
			})
		}
		for range 2 {
			until(func() error { return h.SendTo(context.Background(), "1", event.Text("x")) })
			until(func() error { return infoError(h) })
			until(func() error {
				r, err := h.Open(context.Background(), hub.ReadConfig{Partition: "1"})
				if err != nil {
					return err
				}
				if _, err = r.Next(context.Background(), nil, 1); err != nil {
					return err
				}
				return r.Close(context.Background())
			})
		}
		for range 3 {
			testkit.Must(t, infoError(h))
			hub.BreakConnection(client)
		}
		testkit.Must(t, client.Close())
		all.Wait()
	}
}
