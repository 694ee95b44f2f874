package topics

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/hubs/hubstest"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// yard is what registries can be opened on, also several, also again.
type yard struct{ *hubstest.Yard }

func newYard(t testing.TB) *yard {
	t.Helper()
	return &yard{hubstest.Open(t, storagetest.Config{SegmentBytes: 16 << 10})}
}

// open opens a registry on the yard, and makes topics; what cfg leaves out is the yard's.
func (y *yard) open(t testing.TB, cfg Config, topics ...string) *Registry {
	t.Helper()
	if cfg.Engine == nil {
		cfg.Engine = y.Engine
	}
	if cfg.Meta == nil {
		cfg.Meta = y.Memory
	}
	cfg.Broker, cfg.Log = y.Broker, testkit.Quiet()
	k, err := Open(t.Context(), cfg)
	testkit.Must(t, err)
	for _, name := range topics {
		mustTopic(t, k, name)
	}
	return k
}

// wantNoSubscriptions checks that none is stored.
func (y *yard) wantNoSubscriptions(t testing.TB) {
	t.Helper()
	left, err := y.Memory.List(t.Context(), subscriptionsPrefix)
	testkit.Must(t, err)
	testkit.Equal(t, len(left), 0, "left: %v", left)
}

func mustTopic(t testing.TB, k *Registry, name string) Topic {
	t.Helper()
	made, err := k.CreateTopic(t.Context(), TopicConfig{Topic{Name: name}})
	testkit.Must(t, err)
	return made
}

func mustCreate(t testing.TB, k *Registry, source Source, name string, s Settings) Subscription {
	t.Helper()
	made, err := k.Create(t.Context(), source, name, s)
	testkit.Must(t, err)
	return made
}

func mustFind(t testing.TB, k *Registry, source Source, name string) Subscription {
	t.Helper()
	found, err := k.Find(source, name)
	testkit.Must(t, err)
	return found
}

func wantFound(t testing.TB, k *Registry, source Source, name string, is func(Subscription) bool) {
	t.Helper()
	if found := mustFind(t, k, source, name); !is(found) {
		t.Errorf("found %+v", found)
	}
}

func mustPublish(t testing.TB, k *Registry, topic string, events ...string) {
	t.Helper()
	batch := make([][]byte, len(events))
	for i, e := range events {
		batch[i] = []byte(e)
	}
	testkit.Must(t, k.Publish(t.Context(), topic, batch, nil))
}

// topic is a source, hook settings with a webhook.
func topic(name string) Source { return Source{Topic: name} }

func hook(url string) Settings { return Settings{Webhook: &egress.Endpoint{URL: url}} }

const example = "https://example.com/hook?code=secret"

// stored gives the bodies of a topic's events.
func stored(t testing.TB, k *Registry, name string) (bodies []string) {
	t.Helper()
	its, err := k.Topic(name)
	testkit.Must(t, err)
	log, err := k.Log(&its)
	testkit.Must(t, err)
	cursor, err := log.Cursor(t.Context(), eventlog.Earliest())
	testkit.Must(t, err)
	defer cursor.Close()
	for {
		run, err := cursor.TryNext(t.Context())
		testkit.Must(t, err)
		if len(run.Events) == 0 {
			return bodies
		}
		for _, e := range run.Events {
			body, ok := message.Body(e.Message)
			if !ok {
				t.Fatalf("stored event %q has no plain body", e.Message)
			}
			bodies = append(bodies, string(body))
		}
	}
}

// wantError checks that an error is of a kind and says something.
func wantError(t testing.TB, err, kind error, says string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want %q that says %q", err, kind, says)
	}
}

// endpoint answers handshakes as told, and counts them.
type endpoint struct {
	answer func(s Subscription, topic, code, url string) Agreement

	mu    sync.Mutex
	asked int // guarded by mu
}

func (e *endpoint) Validate(_ context.Context, s Subscription, topic, code, url string) Agreement {
	e.mu.Lock()
	e.asked++
	e.mu.Unlock()
	if e.answer == nil {
		return Agreement{Agreed: true}
	}
	return e.answer(s, topic, code, url)
}

func (e *endpoint) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked
}

func (e *endpoint) says(a Agreement) {
	e.answer = func(Subscription, string, string, string) Agreement { return a }
}

// link is how validation links look in tests.
func link(s Subscription, token string) string { return s.ID + " " + token }

// confirm opens a link.
func confirm(t testing.TB, k *Registry, url string, rate int) (Subscription, error) {
	id, token, _ := strings.Cut(url, " ")
	return k.Confirm(t.Context(), id, token, rate)
}

// faults decides which step of a course of changes fails. From then on all do, as if the process
// had died there.
type faults struct {
	mu      sync.Mutex
	step    int // the step that fails, counted from 1; 0: none. Guarded by mu.
	taken   int // guarded by mu
	removed []string
	// answerLost: the step is taken, but nobody learns of it.
	answerLost bool
}

var errCrashed = errors.New("the process died here")

// take gives what is to be injected for the next step: nil, a crash, or a crash after it.
func (f *faults) take(unheard func(error) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken++
	switch {
	case f.step == 0 || f.taken < f.step:
		return nil
	case f.taken == f.step && f.answerLost:
		return unheard(errCrashed)
	}
	return errCrashed
}

// fail lets a step fail from now on, or (zero) none.
func (f *faults) fail(step int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.step, f.taken = step, 0
}

func (f *faults) store(inner meta.Store) meta.Store {
	store := metatest.NewFaulty(inner)
	store.Inject(func(op metatest.Op) error {
		if op.Changes() {
			return f.take(metatest.Unheard)
		}
		return nil
	})
	return store
}

func (f *faults) engine(inner eventlog.Engine) eventlog.Engine {
	engine := logtest.NewFaulty(inner)
	engine.Inject(func(op logtest.Op) error {
		if op.Kind != logtest.OpRemove {
			return nil
		}
		err := f.take(logtest.Unheard)
		if err != errCrashed {
			f.removed = append(f.removed, op.ID.Log)
		}
		return err
	})
	return engine
}

// on is the yard's store, with something injected into operations of a kind.
func (y *yard) on(kind metatest.OpKind, inject func(metatest.Op) error) meta.Store {
	store := metatest.NewFaulty(y.Memory)
	store.Inject(func(op metatest.Op) error {
		if op.Kind != kind {
			return nil
		}
		return inject(op)
	})
	return store
}
