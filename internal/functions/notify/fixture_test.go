package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
	"github.com/eventyard/eventyard/processor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	boss    = "mailto:boss@example.com"
	chat    = "https://chat.example.com/hooks/SECRET"
	pager   = "https://pager.example.com/notify"
	yardURL = "https://yard.example.com"
)

var resizers = processor.Group{Namespace: "yard.example.com", Hub: "Images", Group: "resizer"}

// circuits are functions' circuits without functions.
type circuits struct {
	mu      sync.Mutex
	changed *sync.Cond
	present map[string]Circuit
	history []Circuit // guarded by mu: what watchers are told
	targets []string
	lag     int64
	trouble error // of Circuit and Resume
}

func newCircuits(targets ...string) *circuits {
	c := &circuits{present: map[string]Circuit{}, targets: targets, lag: 1234}
	c.changed = sync.NewCond(&c.mu)
	return c
}

func (c *circuits) Watch(ctx context.Context, notify func(Circuit)) error {
	defer context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.changed.Broadcast()
	})()
	c.mu.Lock()
	defer c.mu.Unlock()
	next := len(c.history)
	for _, circuit := range c.present {
		c.notifyLocked(notify, circuit)
	}
	for ctx.Err() == nil {
		if next < len(c.history) {
			next++
			c.notifyLocked(notify, c.history[next-1])
			continue
		}
		c.changed.Wait()
	}
	return nil
}

func (c *circuits) notifyLocked(notify func(Circuit), circuit Circuit) {
	c.mu.Unlock()
	defer c.mu.Lock()
	notify(circuit)
}

func (c *circuits) Circuit(_ context.Context, g processor.Group, function string) (Circuit, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	circuit, ok := c.present[keyOf(g, function)]
	return circuit, ok, c.trouble
}

func (c *circuits) Resume(_ context.Context, g processor.Group, function, incident, by string) (Circuit, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	circuit := c.present[keyOf(g, function)]
	if c.trouble != nil {
		return Circuit{}, false, c.trouble
	}
	if r := circuit.Record; r.Incident != incident || r.State != breaker.Open && r.State != breaker.HalfOpen {
		return circuit, false, nil
	}
	circuit.Record = closed(circuit.Record, by)
	c.setLocked(circuit)
	return circuit, true, nil
}

func (c *circuits) Targets(processor.Group, string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.targets)
}

// Own is all that no client made up.
func (c *circuits) Own(_ processor.Group, function string) bool {
	return !strings.HasPrefix(function, "invented")
}

func (c *circuits) Lag(context.Context, processor.Group) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lag
}

// set gives a function's circuit a record.
func (c *circuits) set(function string, r breaker.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setLocked(Circuit{resizers, function, r})
}

func (c *circuits) setLocked(circuit Circuit) {
	c.present[keyOf(circuit.Group, circuit.Function)] = circuit
	c.history = append(c.history, circuit)
	c.changed.Broadcast()
}

// notify tells watchers of a record that is not what is there, as when they hear of it late.
func (c *circuits) notify(function string, r breaker.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history = append(c.history, Circuit{resizers, function, r})
	c.changed.Broadcast()
}

func (c *circuits) setTrouble(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble = err
}

func (c *circuits) remove(function string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.present, keyOf(resizers, function))
}

func (c *circuits) get(function string) breaker.Record {
	circuit, _, _ := c.Circuit(context.Background(), resizers, function)
	return circuit.Record
}

func (c *circuits) setTargets(targets ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.targets = targets
}

// The life of a circuit, as internal/functions/breaker writes it.

func opened(r breaker.Record, incident string) breaker.Record {
	now := time.Now()
	return breaker.Record{
		State: breaker.Open, Term: r.Term + 1, Incident: incident, Since: now, Opened: now, By: "host-1", Reason: "more than 100 failures within 30s",
		Failures: 101, Samples: []breaker.Sample{{At: now, Partition: "3", Sequence: 1841, Error: "no such image"}},
	}
}

func halfOpened(r breaker.Record) breaker.Record {
	r.State, r.Term, r.Since, r.Prober = breaker.HalfOpen, r.Term+1, time.Now(), "host-2"
	return r
}

func reopened(r breaker.Record) breaker.Record {
	return breaker.Probed(r, false, "host-2", "the event failed again", time.Now())
}

func held(r breaker.Record, incident, by string) breaker.Record {
	if r.State == breaker.Held { // which no breaker does
		r.Term, r.Since, r.By = r.Term+1, time.Now(), by
		return r
	}
	r, _ = breaker.Hold(r, incident, by, "on purpose", time.Now())
	return r
}

func closed(r breaker.Record, by string) breaker.Record {
	r, _ = breaker.Resume(r, by, "", time.Now())
	return r
}

// world is all that a service reaches, and what it sent there.
type world struct {
	t        *testing.T
	meta     meta.Store
	circuits *circuits
	cfg      Config

	mu       sync.Mutex
	down     func(receiver string) error // guarded by mu; nil: all is well
	events   []published                 // guarded by mu
	posts    map[string][]posted         // guarded by mu
	attempts map[string][]time.Time      // guarded by mu: of a receiver, also those that failed
}

// newWorld may be used inside a synctest bubble: nothing leaves it.
func newWorld(t *testing.T, targets ...string) *world {
	w := &world{t: t, meta: storagetest.Entries(t), circuits: newCircuits(targets...), posts: map[string][]posted{}, attempts: map[string][]time.Time{}}
	client, err := egress.New(egress.Config{Transport: w})
	testkit.Must(t, err)
	t.Cleanup(client.Close)
	w.cfg = Config{
		Circuits: w.circuits, Topics: w, Meta: w.meta, Client: client, Link: func() string { return yardURL + "/" },
		Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	return w
}

func (w *world) open() *Service {
	w.t.Helper()
	w.cfg.Meta = w.meta
	s, err := Open(w.t.Context(), w.cfg)
	testkit.Must(w.t, err)
	return s
}

// run runs a service until the test says stop.
func (w *world) run(s *Service) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return func() {
		cancel()
		testkit.Must(w.t, <-done)
	}
}

// attempt notes that something was sent to a receiver, and says whether it arrives.
func (w *world) attempt(receiver string) error {
	w.mu.Lock()
	w.attempts[receiver] = append(w.attempts[receiver], time.Now())
	down := w.down
	w.mu.Unlock()
	if down != nil {
		return down(receiver)
	}
	return nil
}

// Announce is the grid.
func (w *world) Announce(_ context.Context, events [][]byte) error {
	if err := w.attempt("grid"); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	testkit.Equal(w.t, len(events), 1, "events announced")
	var e published
	testkit.Check(w.t, json.Unmarshal(events[0], &e))
	w.events = append(w.events, e)
	return nil
}

// RoundTrip is the webhooks.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	target := r.URL.String()
	if err := w.attempt(target); err != nil {
		return nil, err
	}
	var p posted
	testkit.Check(w.t, json.NewDecoder(r.Body).Decode(&p))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.posts[target] = append(w.posts[target], p)
	return &http.Response{StatusCode: 204, Body: http.NoBody, Header: http.Header{}, Request: r}, nil
}

// published gives what the grid was told, briefly.
func (w *world) published() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, e := range w.events {
		all = append(all, fmt.Sprintf("%s/%d", strings.TrimPrefix(e.EventType, "Eventyard.Circuit"), e.Data.Term))
	}
	return strings.Join(all, " ")
}

// notified gives what a webhook was told, briefly.
func (w *world) notified(target string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, p := range w.posts[target] {
		all = append(all, fmt.Sprintf("%s:%s", strings.TrimPrefix(p.Type, "Eventyard.Circuit"), p.Incident))
	}
	return strings.Join(all, " ")
}

func (w *world) posted(target string) []posted {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.posts[target])
}

func (w *world) setDown(f func(receiver string) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = f
}

// only is down for these receivers.
func only(receivers ...string) func(string) error {
	return func(receiver string) error {
		if slices.Contains(receivers, receiver) {
			return errors.New("out of reach")
		}
		return nil
	}
}

// bubble runs a test in virtual time. Seconds pass in no time.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// settle waits until nothing moves but time.
func settle() { synctest.Wait() }

func want(t testing.TB, what, got, wanted string) {
	t.Helper()
	testkit.Equal(t, got, wanted, "%s", what)
}
