package functions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// F2, V2: of each call is heard what came of it, for all events and for those that it singles out.
func TestOnCallHearsWhatCameOfACall(t *testing.T) {
	for name, c := range map[string]struct {
		goes error
		want string
	}{
		"it goes well":      {nil, "done"},
		"it fails":          {errors.New("no such card"), "failed: no such card"},
		"it is poison":      {Poison(errors.New("cannot be read")), "poison: cannot be read"},
		"it is skipped":     {Skip("of last year"), "skipped: of last year"},
		"a store is down":   {Unavailable(errors.New("refused")), "unavailable: refused"},
		"it panics":         {errPanics, "failed: "},
		"some of it":        {&Results{Failed: map[int]error{1: errors.New("too large")}, Untouched: []int{2}}, "done, 1 failed: too large, 2 untouched"},
		"later, all of it":  {RetryAfter(time.Second, errors.New("busy")), "failed: busy"},
		"it takes too long": {errSlow, "failed: "},
	} {
		t.Run(name, func(t *testing.T) {
			var heard []string
			timeout := time.Minute // a busy machine takes its time even for what returns at once
			if c.goes == errSlow {
				timeout = 10 * time.Millisecond
			}
			f := &function{Binding: Binding{Timeout: timeout}, log: slog.New(slog.DiscardHandler), handler: func(ctx context.Context, _ *Batch) error {
				switch c.goes {
				case errPanics:
					panic("oh")
				case errSlow:
					<-ctx.Done()
					return ctx.Err()
				}
				return c.goes
			}}
			f.onCall = func(b *Batch, e Ended) {
				testkit.That(t, !e.Began.IsZero() && e.Took >= 0 && !e.Cancelled && (e.Err == nil) == (c.goes == nil), "it hears %+v", e)
				heard = append(heard, sayEnded(e))
			}
			f.invoke(t.Context(), &Batch{Events: eventsOf(3), Attempt: 1}, nil)
			testkit.That(t, len(heard) == 1 && strings.HasPrefix(heard[0], c.want), "it hears %q, want %q", heard, c.want)
		})
	}
}

var errPanics, errSlow = errors.New("panics"), errors.New("is slow")

func sayEnded(e Ended) string {
	say := func(f Finding) string { return strings.TrimSuffix(f.Outcome+": "+f.Reason, ": ") }
	words := []string{say(e.Whole())}
	single := maps.Collect(e.Singled())
	for _, n := range slices.Sorted(maps.Keys(single)) {
		words = append(words, fmt.Sprint(n, " ", say(single[n])))
	}
	return strings.Join(words, ", ")
}
