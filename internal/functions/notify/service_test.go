package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// F6: each change is one event; people hear of an incident's beginning and end, and not of each
// probe.
func TestPeopleAreNotifiedOfIncidentsAndTheGridOfEachChange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat)
		defer w.run(w.open())()
		r := opened(breaker.Record{}, "i1")
		w.circuits.set("resize", r)
		settle()
		want(t, "grid", w.published(), "Opened/1")
		want(t, "chat", w.notified(chat), "Opened:i1")
		for range 3 {
			time.Sleep(time.Minute)
			r = halfOpened(r)
			w.circuits.set("resize", r)
			time.Sleep(time.Second)
			r = reopened(r)
			w.circuits.set("resize", r)
		}
		settle()
		want(t, "grid", w.published(), "Opened/1 HalfOpened/2 Opened/3 HalfOpened/4 Opened/5 HalfOpened/6 Opened/7")
		want(t, "chat", w.notified(chat), "Opened:i1")
		time.Sleep(time.Minute)
		w.circuits.set("resize", closed(r, "Ada"))
		settle()
		want(t, "chat", w.notified(chat), "Opened:i1 Closed:i1")
		last := w.posted(chat)[1]
		if !strings.Contains(last.Text, "resize was resumed by Ada, after 4 min 3 s") || last.ResumeURL != "" {
			t.Errorf("the end is told as %q with link %q", last.Text, last.ResumeURL)
		}
	})
}

func TestAnEventHoldsAllButTheLink(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat)
		stop := w.run(w.open())
		r := opened(breaker.Record{}, "i1")
		r.Policy = breaker.Policy{Probe: time.Minute}
		w.circuits.set("resize", r)
		settle()
		w.circuits.set("resize", closed(r, "Ada"))
		settle()
		stop()
		e := w.events[0]
		want(t, "subject", e.Subject, "hubs/Images/groups/resizer/functions/resize")
		want(t, "time", e.EventTime, r.Since.UTC().Format(time.RFC3339Nano))
		text, _ := json.Marshal(e)
		for _, part := range []string{
			`"function":"resize"`, `"hub":"Images"`, `"group":"resizer"`, `"state":"open"`, `"previousState":"closed"`, `"incident":"i1"`, `"term":1`, `"by":"host-1"`,
			`"reason":"more than 100 failures within 30s"`, `"failures":101`, `"error":"no such image"`, `"sequence":1841`, `"lag":1234`,
			`"policy":{"failures":100,"within":"30s","probe":"1m0s","probeMax":"5m0s"}`,
		} {
			testkit.That(t, strings.Contains(string(text), part), "%s is missing in %s", part, text)
		}
		token := strings.TrimPrefix(w.posted(chat)[0].ResumeURL, yardURL+PathPrefix)
		if token == "" || strings.Contains(string(text), token) || strings.Contains(string(text), "resume") {
			t.Errorf("token %q; the event is %s", token, text)
		}
		if end := w.events[1]; end.Data.Incident != "i1" || end.Data.PreviousState != breaker.Open || end.ID == e.ID || end.Data.Errors == nil {
			t.Errorf("the end is %+v", end)
		}
	})
}

// The event is one that the grid can deliver in any schema.
func TestAnEventIsInTheStoredForm(t *testing.T) {
	l := &ledger{}
	l.note(Circuit{resizers, "resize", opened(breaker.Record{}, "i1")}, nil, noon)
	stored, err := json.Marshal(eventOf(l, l.Changes[0], 5))
	testkit.Must(t, err)
	var e schema.Envelope
	testkit.Must(t, e.Scan(schema.EventGridForm, stored))
	want(t, "type", string(e.Type), "Eventyard.CircuitOpened")
	want(t, "subject", string(e.Subject), "hubs/Images/groups/resizer/functions/resize")
	for _, kind := range []schema.Kind{schema.EventGrid, schema.CloudEvents} {
		if out, err := schema.AppendEvent(nil, &e, kind); err != nil || !json.Valid(out) {
			t.Errorf("as %s: %s: %v", kind, out, err)
		}
	}
}

// The same change has the same id, also from another process; another change has another.
func TestEventIDsStay(t *testing.T) {
	r := opened(breaker.Record{}, "i1")
	id := eventID(resizers, "resize", r)
	spelled := resizers
	spelled.Hub, spelled.Namespace = "images", ""
	testkit.Equal(t, eventID(spelled, "resize", r), id, "the id depends on how the hub is spelled")
	later, other := r, r
	later.Term++
	other.Since = other.Since.Add(time.Second) // made anew
	for _, r := range []breaker.Record{later, other, halfOpened(r)} {
		testkit.That(t, eventID(resizers, "resize", r) != id, "%+v has the same id", r)
	}
	testkit.That(t, eventID(resizers, "crop", r) != id, "another function's has the same id")
}

// An operator's hold is notified, and has no link.
func TestTheNoticeOfAHoldHasNoLink(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat)
		defer w.run(w.open())()
		r := held(breaker.Record{}, "h1", "Bob")
		w.circuits.set("resize", r)
		settle()
		p := w.posted(chat)[0]
		if p.Type != "Eventyard.CircuitHeld" || p.ResumeURL != "" || !strings.Contains(p.Text, "stopped by Bob") || p.Command != "eventyard circuit close resize" {
			t.Errorf("got %+v", p)
		}
		w.circuits.set("resize", closed(r, "Bob"))
		settle()
		want(t, "chat", w.notified(chat), "Held:h1 Closed:h1")
		// A circuit that opened by itself and is then held is told of twice: the link is worth
		// nothing any more.
		r = opened(w.circuits.get("resize"), "i2")
		w.circuits.set("resize", r)
		settle()
		r = held(r, "", "Bob")
		w.circuits.set("resize", r)
		settle()
		w.circuits.set("resize", closed(r, "Bob"))
		settle()
		want(t, "chat", w.notified(chat), "Held:h1 Closed:h1 Opened:i2 Held:i2 Closed:i2")
	})
}

func TestWithoutAnAddressTheNoticeNamesTheCommand(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat)
		w.cfg.Link = nil
		defer w.run(w.open())()
		w.circuits.set("re size$", opened(breaker.Record{}, "i1"))
		settle()
		if p := w.posted(chat)[0]; p.ResumeURL != "" || !strings.Contains(p.Text, "eventyard circuit close 're size$'") {
			t.Errorf("got %+v", p)
		}
	})
}

// What happened while the yard was down is noticed when it starts.
func TestChangesWhileTheYardWasDownAreNoticed(t *testing.T) {
	tests := []struct {
		name              string
		meanwhile         func(r breaker.Record) breaker.Record // after i1 was open and told
		grid, notifiedNow string
	}{
		{"nothing", func(r breaker.Record) breaker.Record { return r }, "", ""},
		{"it was resumed", func(r breaker.Record) breaker.Record { return closed(r, "Ada") }, "Closed/2", "Closed:i1"},
		{"it was tried", func(r breaker.Record) breaker.Record { return halfOpened(r) }, "HalfOpened/2", ""},
		{"it was resumed and opened again", func(r breaker.Record) breaker.Record { return opened(closed(r, "Ada"), "i2") }, "Opened/3", "Closed:i1 Opened:i2"},
		{"it came and went several times", func(r breaker.Record) breaker.Record {
			return closed(opened(closed(r, "Ada"), "i2"), "Ada")
		}, "Closed/4", "Closed:i1"},
		{"it was removed and made anew", func(breaker.Record) breaker.Record { return opened(breaker.Record{}, "n1") }, "Opened/1", "Closed:i1 Opened:n1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, chat)
				stop := w.run(w.open())
				w.circuits.set("resize", opened(breaker.Record{}, "i1"))
				settle()
				stop()
				w.events, w.posts = nil, map[string][]posted{}
				time.Sleep(time.Hour)
				w.circuits.set("resize", test.meanwhile(w.circuits.get("resize")))
				defer w.run(w.open())()
				time.Sleep(time.Minute)
				settle()
				want(t, "grid", w.published(), test.grid)
				want(t, "chat", w.notified(chat), test.notifiedNow)
			})
		})
	}
}

// A stale read, as a replicated store may give, is not news.
func TestWhatIsOldIsNotNews(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat)
		defer w.run(w.open())()
		first := opened(breaker.Record{}, "i1")
		w.circuits.set("resize", first)
		time.Sleep(time.Second)
		second := closed(first, "Ada")
		w.circuits.set("resize", second)
		w.circuits.set("resize", first)
		w.circuits.set("resize", second)
		settle()
		want(t, "grid", w.published(), "Opened/1 Closed/2")
	})
}

// Clocks of several hosts differ: what is told late is old although its time is later, and what was
// made anew is new although its time is earlier.
func TestClocksThatDifferNeitherLoseNorDouble(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat)
		defer w.run(w.open())()
		ahead := opened(breaker.Record{}, "i1")
		ahead.Since = ahead.Since.Add(time.Hour)
		w.circuits.set("resize", ahead)
		settle()
		w.circuits.set("resize", closed(ahead, "Ada"))
		settle()
		w.circuits.notify("resize", ahead)
		settle()
		want(t, "grid", w.published(), "Opened/1 Closed/2")
		want(t, "chat", w.notified(chat), "Opened:i1 Closed:i1")

		w.circuits.set("resize", opened(w.circuits.get("resize"), "i3"))
		settle()
		behind := opened(breaker.Record{}, "n1") // removed and made anew, and nobody saw that
		behind.Since = behind.Since.Add(-time.Hour)
		w.circuits.set("resize", behind)
		settle()
		want(t, "grid", w.published(), "Opened/1 Closed/2 Opened/3 Opened/1")
		want(t, "chat", w.notified(chat), "Opened:i1 Closed:i1 Opened:i3 Closed:i3 Opened:n1")
	})
}

// F6: a circuit that a probe closes and the next failures open again, for hours, is no reason to
// send a hundred mails; how it is in the end is told all the same.
func TestAFlappingCircuitIsNoStorm(t *testing.T) {
	for _, end := range []string{"open", "closed"} {
		t.Run("in the end it is "+end, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, chat)
				defer w.run(w.open())()
				r := breaker.Record{}
				for i := range 240 { // four hours
					r = opened(r, fmt.Sprint("i", i))
					w.circuits.set("resize", r)
					time.Sleep(30 * time.Second)
					r = closed(halfOpened(r), "host-1")
					w.circuits.set("resize", r)
					time.Sleep(30 * time.Second)
				}
				if end == "open" {
					r = opened(r, "last")
					w.circuits.set("resize", r)
				}
				time.Sleep(paceEvery + time.Second)
				settle()
				notified := w.posted(chat)
				if len(notified) < paceBurst || len(notified) > 60 {
					t.Errorf("%d notices in four hours", len(notified))
				}
				begun, last := map[string]bool{}, notified[len(notified)-1]
				for _, p := range notified {
					if p.State == breaker.Closed {
						delete(begun, p.Incident)
					} else {
						begun[p.Incident] = true
					}
				}
				if string(last.State) != end || end == "open" && (last.Incident != "last" || last.ResumeURL == "") {
					t.Errorf("the last thing told is %s of %s", last.State, last.Incident)
				}
				if delete(begun, "last"); len(begun) > 0 {
					t.Errorf("the end of %v was not told", begun)
				}
				time.Sleep(2 * time.Hour)
				w.circuits.set("resize", opened(closed(r, "Ada"), "much later"))
				settle()
				if notified := w.posted(chat); notified[len(notified)-1].Incident != "much later" {
					t.Error("after a while of peace a notice is not sent at once")
				}
			})
		})
	}
}

// F6: kill -9 at any write of ours, and start anew: nothing is lost, and repeats have the same ids.
func TestNothingIsLostWhereverTheProcessDies(t *testing.T) {
	for _, stored := range []bool{false, true} {
		for step := range 24 {
			t.Run(fmt.Sprintf("write %d, which is stored: %t", step, stored), func(t *testing.T) {
				bubble(t, func(t *testing.T) { dieAt(t, step, stored) })
			})
		}
	}
}

func dieAt(t *testing.T, step int, stored bool) {
	w := newWorld(t, chat, pager)
	durable := w.meta
	w.open() // the secret
	changes := []func(breaker.Record) breaker.Record{
		func(r breaker.Record) breaker.Record { return opened(r, "i1") }, halfOpened, func(r breaker.Record) breaker.Record { return closed(r, "Ada") },
	}
	mortal := &mortalStore{Store: durable, last: stored}
	mortal.left.Store(int64(step))
	died := false
	for _, change := range changes {
		w.meta = mortal
		stop := w.run(w.open())
		w.circuits.set("resize", change(w.circuits.get("resize")))
		settle()
		if mortal.dead() && !died {
			// The process is gone. What it still does in this test it does to a store that takes
			// nothing, and before its successor begins.
			died = true
			stop()
			w.meta = durable
			time.Sleep(time.Second)
			stop = w.run(w.open())
			time.Sleep(2 * time.Minute) // its claims run out
			settle()
			mortal.left.Store(1 << 30)
		}
		stop()
		time.Sleep(time.Second)
	}
	w.meta = durable
	stop := w.run(w.open())
	time.Sleep(2 * time.Minute)
	settle()
	stop()
	seen := map[string]bool{}
	for _, e := range w.events {
		seen[e.EventType] = true
		if e.ID != eventID(resizers, "resize", breaker.Record{Term: e.Data.Term, Since: e.Data.Since, Incident: incidentOf(e)}) {
			t.Errorf("event %+v has another id than its change", e)
		}
	}
	testkit.Equal(t, len(seen), 3, "the grid was told only %s", w.published())
	for _, target := range []string{chat, pager} {
		if got := w.notified(target); !strings.Contains(got, "Opened:i1") || !strings.HasSuffix(got, "Closed:i1") {
			t.Errorf("%s was told only %q", target, got)
		}
	}
	for _, e := range must1(durable.List(t.Context(), ledgerPrefix)) {
		if l := w.open().read(e.Key, e.Value); len(l.Items) > 0 {
			t.Errorf("%+v is still to be sent", l.Items)
		}
	}
}

// incidentOf is the one of the record: a closed circuit has none.
func incidentOf(e published) string {
	if e.Data.State == breaker.Closed {
		return ""
	}
	return e.Data.Incident
}

func must1[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// mortalStore takes so many writes, and then none: its process has died.
type mortalStore struct {
	meta.Store
	left atomic.Int64
	last bool // the write in which it dies is stored, though nobody is told
}

func (s *mortalStore) dead() bool { return s.left.Load() < 0 }

func (s *mortalStore) CompareAndSet(ctx context.Context, key string, expected meta.Revision, value []byte) (meta.Revision, error) {
	left := s.left.Add(-1)
	if left >= 0 {
		return s.Store.CompareAndSet(ctx, key, expected, value)
	}
	if left == -1 && s.last {
		_, _ = s.Store.CompareAndSet(ctx, key, expected, value)
	}
	return 0, errors.New("the process is dead")
}

func TestMetricsCountByKindAndOutcome(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat, pager)
		registry := prometheus.NewRegistry()
		w.cfg.Metrics = registry
		w.setDown(only(pager))
		stop := w.run(w.open())
		w.circuits.set("resize", opened(breaker.Record{}, "i1"))
		settle()
		w.setDown(nil)
		time.Sleep(time.Minute)
		settle()
		stop()
		testkit.Must(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP eventyard_notices_total Notices of circuits that were sent, or could not be, by kind and outcome.
# TYPE eventyard_notices_total counter
eventyard_notices_total{kind="event",outcome="sent"} 1
eventyard_notices_total{kind="webhook",outcome="failed"} 1
eventyard_notices_total{kind="webhook",outcome="sent"} 2
`), "eventyard_notices_total"))
	})
}
