package service

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// diary notes what happened, in order.
type diary struct {
	mu      sync.Mutex
	entries []string // guarded by mu
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, fmt.Sprintf(format, args...))
}

func (d *diary) expect(t *testing.T, want ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.entries, want) {
		t.Errorf("happened:\n  %s\nwant:\n  %s", strings.Join(d.entries, "\n  "), strings.Join(want, "\n  "))
	}
}

// obedient runs until its context ends.
func obedient(d *diary, name string) Part {
	return Part{Name: name, Run: func(ctx context.Context) error {
		<-ctx.Done()
		d.note("%s ended", name)
		return ctx.Err()
	}}
}

// draining needs a while to finish once it is asked to stop.
func draining(d *diary, name string, needs time.Duration) Part {
	finish := make(chan struct{})
	return Part{
		Name: name,
		Run: func(ctx context.Context) error {
			select {
			case <-finish:
				d.note("%s drained", name)
				return nil
			case <-ctx.Done():
				d.note("%s cut off", name)
				return ctx.Err()
			}
		},
		Stop: func(ctx context.Context) error {
			select {
			case <-time.After(needs):
				close(finish)
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	}
}

func TestPartsStopInReverseOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		err := Group{Parts: []Part{
			obedient(&d, "engine"), obedient(&d, "broker"), draining(&d, "listener", time.Second),
		}}.Run(ctx)
		testkit.Check(t, err, "a stop that was asked for is no error")
		d.expect(t, "listener drained", "broker ended", "engine ended")
	})
}

func TestTheFirstFailureStopsAllAndIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		broken, late := errors.New("disk gone"), errors.New("so was I")
		err := Group{Parts: []Part{
			{Name: "engine", Run: func(context.Context) error { time.Sleep(time.Second); return broken }},
			{Name: "broker", Run: func(ctx context.Context) error { <-ctx.Done(); d.note("broker ended"); return late }},
			draining(&d, "listener", time.Second),
		}}.Run(t.Context())
		if !errors.Is(err, broken) || err.Error() != "engine: disk gone" {
			t.Errorf("error is %v", err)
		}
		d.expect(t, "listener drained", "broker ended")
	})
}

func TestAnErrorWhileStoppingIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		late := errors.New("could not flush")
		err := Group{Parts: []Part{
			{Name: "engine", Run: func(ctx context.Context) error { <-ctx.Done(); return late }},
		}}.Run(ctx)
		testkit.ErrorIs(t, err, late)
	})
}

func TestAPartThatEndsByItselfEndsTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		err := Group{Parts: []Part{
			obedient(&d, "engine"), {Name: "listener", Run: func(context.Context) error { return nil }},
		}}.Run(t.Context())
		if !errors.Is(err, ErrEnded) || !strings.HasPrefix(err.Error(), "listener: ") {
			t.Errorf("error is %v", err)
		}
		d.expect(t, "engine ended")
	})
}

func TestACancellationOfItsOwnIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := Group{Parts: []Part{
			{Name: "broker", Run: func(context.Context) error { return context.Canceled }},
		}}.Run(t.Context())
		testkit.ErrorIs(t, err, context.Canceled)
	})
}

func TestASlowPartIsCutOffAfterTheGracePeriod(t *testing.T) {
	tests := map[string]struct {
		grace, needs, takes time.Duration
		want                []string
	}{
		"in time":             {grace: 5 * time.Second, needs: 4 * time.Second, takes: 4 * time.Second, want: []string{"listener drained", "engine ended"}},
		"too slow":            {grace: 5 * time.Second, needs: 6 * time.Second, takes: 5 * time.Second, want: []string{"listener cut off", "engine ended"}},
		"default grace":       {grace: 0, needs: time.Hour, takes: DefaultGrace, want: []string{"listener cut off", "engine ended"}},
		"no grace whatever":   {grace: -1, needs: time.Hour, takes: 0, want: []string{"listener cut off", "engine ended"}},
		"immediate obedience": {grace: time.Second, needs: 0, takes: 0, want: []string{"listener drained", "engine ended"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d diary
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				began := time.Now()
				err := Group{Grace: test.grace, Log: testkit.Quiet(), Parts: []Part{
					obedient(&d, "engine"), draining(&d, "listener", test.needs),
				}}.Run(ctx)
				if err != nil {
					t.Errorf("error is %v", err)
				}
				testkit.Equal(t, time.Since(began), test.takes, "took")
				d.expect(t, test.want...)
			})
		})
	}
}

func TestTheGracePeriodIsSharedByAllParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		_ = Group{Grace: 5 * time.Second, Log: testkit.Quiet(), Parts: []Part{
			draining(&d, "first", 3*time.Second), draining(&d, "second", 3*time.Second),
		}}.Run(ctx)
		testkit.Equal(t, time.Since(began), 5*time.Second, "took")
		d.expect(t, "second drained", "first cut off")
	})
}

// A part whose Stop returns while Run goes on is waited for, and then cut off.
func TestStopMayReturnBeforeRunDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		err := Group{Grace: time.Second, Log: testkit.Quiet(), Parts: []Part{{
			Name: "deaf",
			Run:  func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			Stop: func(context.Context) error { return nil },
		}}}.Run(ctx)
		if err != nil || time.Since(began) != time.Second {
			t.Errorf("ended after %v with %v", time.Since(began), err)
		}
	})
}

func TestAGroupOfNothingWaitsForItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		testkit.Check(t, (Group{}).Run(ctx))
	})
}

// Groups are started, fail, and are stopped at every moment and in every order; each
// life ends with no goroutine left, or synctest reports a deadlock.
func TestStormOfStartsAndStops(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			var d diary
			parts := make([]Part, r.IntN(6))
			for i := range parts {
				parts[i] = anyPart(r, &d, fmt.Sprint(i))
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(20))*time.Millisecond)
			defer cancel()
			g := Group{Parts: parts, Grace: time.Duration(r.IntN(10)) * time.Millisecond, Log: testkit.Quiet()}
			_ = g.Run(ctx)
			if len(d.entries) != len(parts) {
				t.Errorf("seed %d: %d of %d parts had ended", seed, len(d.entries), len(parts))
			}
		})
	}
}

func anyPart(r *rand.Rand, d *diary, name string) Part {
	switch r.IntN(3) {
	case 0:
		return obedient(d, name)
	case 1:
		return draining(d, name, time.Duration(r.IntN(12))*time.Millisecond)
	default:
		after := time.Duration(r.IntN(30)) * time.Millisecond
		return Part{Name: name, Run: func(ctx context.Context) error {
			defer d.note("%s ended", name)
			select {
			case <-time.After(after):
				return errors.New("broken")
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
	}
}

// The same outside the bubble, with real scheduling, for the race detector.
func TestStormOnRealGoroutines(t *testing.T) {
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			var d diary
			ctx, cancel := context.WithCancel(t.Context())
			go cancel()
			g := Group{Parts: []Part{
				obedient(&d, "a"), draining(&d, "b", 0), obedient(&d, "c"),
				{Name: "d", Run: func(context.Context) error { return errors.New("broken") }},
			}, Log: testkit.Quiet()}
			if err := g.Run(ctx); err != nil && err.Error() != "d: broken" {
				t.Errorf("error is %v", err)
			}
		})
	}
	all.Wait()
}
