package kafka

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// A handler that panics costs its connection, and nothing else.
func TestPanics(t *testing.T) {
	for name, test := range map[string]struct {
		h     *handler
		quiet bool // the connection is over anyway
	}{
		"Connected": {h: &handler{connected: func(*Conn) error { panic("oops") }}},
		"Begin":     {h: &handler{begin: func(context.Context, *Request) Finish { panic("oops") }}},
		"Begin of a Produce": {h: &handler{begin: func(_ context.Context, r *Request) Finish {
			r.Produce.Next()
			panic("oops")
		}}},
		"Finish":       {h: finishing(func(context.Context, *Writer) error { panic("oops") })},
		"Disconnected": {h: &handler{disconnected: func() { panic("oops") }}, quiet: true},
	} {
		t.Run(name, func(t *testing.T) {
			var log testkit.Buffer
			memory := admission.NewMemory(1<<20, 1<<20, admission.DefaultPatience)
			f := serve(t, test.h, func(c *Config) {
				c.Log = slog.New(slog.NewTextHandler(&log, nil))
				c.Memory = memory
			})
			other := f.client()
			other.lives()
			c := f.client()
			r := produceOf(9, make([]byte, 3000))
			c.send(r)
			if test.quiet {
				c.answer(r)
				c.nc.Close()
			} else {
				c.gone()
			}
			testkit.Eventually(t, "it was counted", func() bool { return f.refused(reasonPanic) == 1 })
			other.lives()
			testkit.That(t, strings.Contains(log.String(), "oops") && strings.Contains(log.String(), "panic_test.go"),
				"the log has no panic with its stack: %s", log.String())
			testkit.Eventually(t, "memory is given back", func() bool { return memory.Share("other", nil).TryTake(1 << 20) })
		})
	}
}

// Requests that are under way when a handler panics are finished all the same.
func TestPanicInTheMidstOfMany(t *testing.T) {
	finished := make(chan string, 3)
	n := 0
	f := serve(t, &handler{begin: func(context.Context, *Request) Finish {
		n++
		me := n
		return func(ctx context.Context, w *Writer) error {
			if me == 2 {
				panic("oops")
			}
			finished <- "one"
			w.Nothing()
			return nil
		}
	}, disconnected: func() { finished <- "left" }})
	c := f.client()
	r := request(3, 12)
	c.send(r, r)
	c.write(c.encode(r))
	c.gone()
	count := 0
	for receive(t, finished, "the end") != "left" {
		count++
	}
	testkit.That(t, count == 1 || count == 2, "%d were finished: the first, and the third if it was begun", count)
}
