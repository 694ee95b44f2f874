package processor_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/server"
	"github.com/eventyard/eventyard/servertest"
)

// runSetUpWrongly runs a processor that cannot work, and gives what it ended with.
func runSetUpWrongly(t *testing.T, h processor.Hub, group string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	p := processor.New(h, processor.Config{Group: group, Log: slog.New(slog.DiscardHandler)})
	err := p.Run(ctx, func(context.Context, *processor.Batch) error { return nil })
	if ctx.Err() != nil {
		t.Fatal("it did not end by itself")
	}
	return err
}

// P1: what does not pass by waiting ends the run, in words that help.
func TestAGroupOrHubThatIsNotThereEndsTheRun(t *testing.T) {
	yard := servertest.Start(t)
	yard.Hub(t, "orders", 1)
	client := yard.Dial(t)
	for want, err := range map[string]error{
		`no group "nobody" in hub orders: create it with: eventyard group create orders nobody`: runSetUpWrongly(t, client.Hub("orders"), "nobody"),
		`no hub nothing: create it with: eventyard hub create nothing`:                          runSetUpWrongly(t, client.Hub("nothing"), ""),
	} {
		if !errors.Is(err, hub.ErrNotFound) || err.Error() != want {
			t.Errorf("it ended with %v, want %s", err, want)
		}
	}
}

// P1: a key that may only send, at a real yard.
func TestNoRightToListenEndsTheRun(t *testing.T) {
	till := server.Policy{Name: "till", Rights: []string{"send"}, PrimaryKey: "the-key-of-the-till"}
	yard := servertest.Start(t, func(cfg *server.Config) {
		cfg.AMQP = "127.0.0.1:0"
		cfg.Policies = []server.Policy{till}
	})
	yard.Hub(t, "orders", 1)
	err := runSetUpWrongly(t, dialAs(t, yard, till).Hub("orders"), "")
	want := `no right to read hub orders as group "$Default": it takes a key or token that is valid and has the right to listen`
	if !errors.Is(err, hub.ErrUnauthorized) || err.Error() != want {
		t.Errorf("it ended with %v", err)
	}
}

// P11: what is removed while it is read is told of and waited for; the stop is as graceful as ever.
func TestAGroupThatIsRemovedLaterIsWaitedFor(t *testing.T) {
	bubble(t, 2, func(w *world) {
		cfg, gone := w.faulty("a")
		gone.why = hub.ErrNotFound
		w.start(cfg, w.note)
		after(time.Second)
		gone.set(gone.deny, "entries", 1000)
		w.hub.Cut("0", hub.ErrNotFound)
		after(20 * time.Second)
		w.wantReported(hub.ErrNotFound)
		gone.set(gone.deny, "entries", 0)
		w.feed(time.Minute, "0", 3)
		w.wantAll()
	})
}

// P1: who has given two instances one id is told what to do.
func TestADuplicateIDSaysWhatToDo(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.start(w.config("a"), w.note)
		after(time.Second)
		err := <-w.start(w.config("a"), w.note).done
		if !errors.Is(err, processor.ErrDuplicateID) || !strings.Contains(err.Error(), "leave Config.ID empty") {
			t.Errorf("the second ended with %v", err)
		}
	})
}
