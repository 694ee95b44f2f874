package eventlog_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// provisions is an engine that notes what is provided, and fails as it is told to.
type provisions struct {
	eventlog.Engine
	mu    sync.Mutex
	fails map[string]error          // guarded by mu
	calls map[string]int            // guarded by mu
	done  map[string]eventlog.Shape // guarded by mu
	// during is called in the middle of a call; nil: nothing is.
	during func(log string)
}

func newProvisions() *provisions {
	return &provisions{fails: map[string]error{}, calls: map[string]int{}, done: map[string]eventlog.Shape{}}
}

func (p *provisions) Provide(_ context.Context, log string, shape eventlog.Shape) error {
	if p.during != nil {
		p.during(log)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[log]++
	if err := p.fails[log]; err != nil {
		return err
	}
	p.done[log] = shape
	return nil
}

func (p *provisions) fail(log string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fails[log] = err
}

func (p *provisions) partitions(log string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done[log].Partitions
}

// Each log is provided once for each change, as the newest one says, also where that comes while the
// engine is at work; a log that fails or is gone is in nobody's way.
func TestProvider(t *testing.T) {
	engine := newProvisions()
	p := eventlog.NewProvider(engine)
	testkit.Must(t, p.ProvideAll(t.Context()))
	for n, log := range []string{"a", "b", "gone", "z"} {
		p.Add(log, eventlog.Shape{Partitions: n + 1})
	}
	engine.fail("b", eventlog.ErrUnavailable)
	engine.fail("gone", eventlog.ErrRemoved)
	var once sync.Once
	engine.during = func(log string) {
		if log == "a" {
			once.Do(func() { p.Add("a", eventlog.Shape{Partitions: 9}) })
		}
	}
	testkit.ErrorIs(t, p.ProvideAll(t.Context()), eventlog.ErrUnavailable)
	testkit.ErrorIs(t, p.Provide(t.Context(), "b"), eventlog.ErrUnavailable)
	testkit.Equal(t, engine.partitions("a"), 9, "a has as many partitions")
	testkit.Equal(t, engine.partitions("z"), 4, "z has as many partitions")
	engine.fail("b", nil)
	testkit.Must(t, p.ProvideAll(t.Context()))
	testkit.Must(t, p.Provide(t.Context(), "b"))
	for log, calls := range map[string]int{"a": 2, "b": 3, "gone": 1, "z": 1} {
		testkit.Equal(t, engine.calls[log], calls, "calls for %s", log)
	}
	ctx, cancel := context.WithCancel(t.Context())
	engine.during = func(string) { testkit.ErrorIs(t, p.Provide(ctx, "a"), context.Canceled, "who does not want to wait") }
	cancel()
	p.Add("a", eventlog.Shape{Partitions: 1})
	testkit.Must(t, p.Provide(t.Context(), "a"))
}

// C5: what fails is tried again until it succeeds, and reported once.
func TestProviderTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newProvisions()
		p := eventlog.NewProvider(engine)
		engine.fail("a", eventlog.ErrUnavailable)
		p.Add("a", eventlog.Shape{Partitions: 1})
		var reported []error
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.Run(ctx, func(err error) { reported = append(reported, err) })
		}()
		time.Sleep(time.Minute)
		p.Add("b", eventlog.Shape{Partitions: 2})
		time.Sleep(time.Minute)
		testkit.Equal(t, engine.partitions("b"), 2, "beside one that fails b has as many partitions")
		engine.fail("a", nil)
		time.Sleep(time.Minute)
		testkit.Equal(t, engine.partitions("a"), 1, "a has as many partitions")
		p.Add("a", eventlog.Shape{Partitions: 3})
		synctest.Wait()
		testkit.Equal(t, engine.partitions("a"), 3, "a has as many partitions by now")
		cancel()
		<-done
		testkit.Equal(t, len(reported), 1, "reports")
		testkit.That(t, !slices.ContainsFunc(reported, func(err error) bool { return err == nil }), "an error is reported")
	})
}

func TestKinds(t *testing.T) {
	names := map[string]eventlog.Kind{}
	for kind := eventlog.KindHub; (eventlog.Shape{Partitions: 1, Kind: kind}).Check() == nil; kind++ {
		names[kind.String()] = kind
	}
	testkit.Equal(t, len(names), 7, "kinds with names of their own")
	for wait, want := range map[time.Duration]eventlog.Kind{
		time.Second: eventlog.KindRetryShort, time.Minute: eventlog.KindRetryShort,
		time.Minute + 1: eventlog.KindRetryMedium, time.Hour: eventlog.KindRetryMedium,
		time.Hour + 1: eventlog.KindRetryLong, 12 * time.Hour: eventlog.KindRetryLong,
	} {
		testkit.Equal(t, eventlog.RetryKind(wait), want, "%v", wait)
	}
}
