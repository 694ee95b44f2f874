package functions

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestWaryCallsAreAloneAndAllOthersShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSolo()
		var calls, alone, together atomic.Int64
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				for range 50 {
					time.Sleep(rand.N(time.Second))
					if i%10 == 0 {
						end, err := s.alone(t.Context(), nil)
						if err != nil {
							t.Error(err)
							return
						}
						testkit.That(t, alone.Add(1) <= 1 && calls.Load() <= 0, "a wary call was not alone")
						time.Sleep(rand.N(10 * time.Millisecond))
						alone.Add(-1)
						end()
						continue
					}
					if err := s.share(t.Context(), nil); err != nil {
						t.Error(err)
						return
					}
					if calls.Add(1) > 1 {
						together.Add(1)
					}
					testkit.That(t, alone.Load() <= 0, "a call ran beside a wary one")
					time.Sleep(rand.N(10 * time.Millisecond))
					calls.Add(-1)
					s.end()
				}
			})
		}
		all.Wait()
		testkit.That(t, together.Load() != 0, "nothing was shared")
		if s.sharing.Load() != 0 || s.wary.Load() != 0 {
			t.Errorf("%d and %d are left", s.sharing.Load(), s.wary.Load())
		}
	})
}

func TestWhoWaitsToBeAloneOrToShareCanLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, leaving, ended := newSolo(), make(chan struct{}), errors.New("ended")
		testkit.Must(t, s.share(t.Context(), nil))
		close(leaving)
		testkit.ErrorIs(t, testkit.Err(s.alone(t.Context(), leaving)), circuit.ErrLeaving, "it ended with")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(ended)
		testkit.ErrorIs(t, testkit.Err(s.alone(ctx, nil)), ended, "it ended with")
		s.end()
		end, err := s.alone(t.Context(), nil)
		testkit.Must(t, err)
		if err := s.share(ctx, nil); !errors.Is(err, ended) {
			t.Errorf("it ended with %v", err)
		}
		end()
		testkit.Check(t, s.share(ctx, leaving), "with nobody wary")
	})
}
