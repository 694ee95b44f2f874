package delivery

import (
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/eventyard/eventyard/internal/grid/webhook"
)

func TestHowManyWorkersAreStarted(t *testing.T) {
	now := time.Now()
	spent := rate.NewLimiter(1, 1)
	spent.AllowN(now, 1)
	single, batches := &terms{concurrency: 4}, &terms{concurrency: 4, order: &webhook.Order{Batched: true, MaxEvents: 10}}
	for _, tt := range []struct {
		name          string
		terms         *terms
		sending       sending
		gate          gate
		ready, chores int
		want          int
	}{
		{"nothing to do", single, sending{}, open, 0, 0, 0},
		{"one for each event", single, sending{}, open, 3, 0, 3},
		{"up to the concurrency", single, sending{}, open, 9, 0, 4},
		{"less those who are busy", single, sending{busy: 3}, open, 9, 0, 1},
		{"all are busy", single, sending{busy: 4}, open, 9, 9, 0},
		{"one for each batch", batches, sending{}, open, 21, 0, 3},
		{"no more requests for now", single, sending{limiter: spent}, open, 9, 0, 0},
		{"what is too old is put away whatever the rate", single, sending{limiter: spent}, open, 9, 9, 1},
		{"or the gate", single, sending{}, shut, 0, 9, 1},
		{"nothing is sent while it is shut", single, sending{}, shut, 9, 0, 0},
		{"or vacant", single, sending{}, vacant, 9, 0, 0},
		{"one probes", single, sending{}, probe, 9, 0, 1},
		{"once", single, sending{probeSent: true}, probe, 9, 0, 0},
		{"receivers need no workers", &terms{concurrency: 4, pull: true}, sending{}, open, 9, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if n := tt.sending.workers(tt.terms, tt.gate, tt.ready, tt.chores, now); n != tt.want {
				t.Errorf("%d workers, want %d", n, tt.want)
			}
		})
	}
}

func TestWhenTheRateAllowsTheNextRequest(t *testing.T) {
	now := time.Now()
	s := sending{}
	if at := s.nextToken(now); !at.IsZero() {
		t.Errorf("without a limit: %v", at)
	}
	s.limiter = rate.NewLimiter(4, 1)
	if at := s.nextToken(now); !at.IsZero() {
		t.Errorf("before the first: %v", at)
	}
	s.begin(7, true, now)
	if at := s.nextToken(now); at.Sub(now) != 250*time.Millisecond || s.inFlight != 7 || !s.probeSent {
		t.Errorf("after the first: %v later, %+v", at.Sub(now), s)
	}
}
