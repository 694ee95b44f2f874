package notify

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// items gives what a ledger is to send, briefly.
func items(l *ledger, target string) string {
	var all []string
	for _, it := range l.Items {
		if it.Target != target {
			continue
		}
		c := l.change(it.Change)
		all = append(all, fmt.Sprintf("%s:%s/%d", it.Kind, c.Incident, c.Record.Term))
	}
	return strings.Join(all, " ")
}

func TestWhatALedgerSends(t *testing.T) {
	open1 := opened(breaker.Record{}, "i1")
	tests := []struct {
		name         string
		records      []breaker.Record
		grid, people string
	}{
		{"a circuit that never was open is nothing to tell", []breaker.Record{{}, {State: breaker.Closed}}, "", ""},
		{"an opening", []breaker.Record{open1, open1}, "event:i1/1", "opened:i1/1"},
		{"probes are told to the grid only", []breaker.Record{open1, halfOpened(open1), reopened(halfOpened(open1))}, "event:i1/1 event:i1/2 event:i1/3", "opened:i1/1"},
		{"an end that comes before the beginning was sent tells both", []breaker.Record{open1, closed(open1, "Ada")}, "event:i1/1 event:i1/2", "ended:i1/2"},
		{"a hold of an open circuit replaces what was not sent", []breaker.Record{open1, held(open1, "", "Bob")}, "event:i1/1 event:i1/2", "held:i1/2"},
		{"a hold is told once", []breaker.Record{open1, held(open1, "", "Bob"), held(held(open1, "", "Bob"), "", "Eve")}, "event:i1/1 event:i1/2 event:i1/3", "held:i1/2"},
		{"an incident that followed another unseen", []breaker.Record{open1, opened(closed(open1, "Ada"), "i2")}, "event:i1/1 event:i2/3", "ended:i1/0 opened:i2/3"},
		{"an incident that nobody saw", []breaker.Record{closed(open1, "Ada")}, "event:/2", ""},
		{"a state of a later version is told to the grid only", []breaker.Record{{State: "melted", Term: 1, Incident: "m"}}, "event:m/1", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := &ledger{}
			for _, r := range test.records {
				l.note(Circuit{resizers, "resize", r}, []string{chat}, noon)
			}
			want(t, "grid", items(l, ""), test.grid)
			want(t, "people", items(l, chat), test.people)
		})
	}
}

// What is being sent is left alone, whatever comes.
func TestAClaimedItemStays(t *testing.T) {
	l, r := &ledger{}, opened(breaker.Record{}, "i1")
	l.note(Circuit{resizers, "resize", r}, []string{chat}, noon)
	it, _ := l.head(chat)
	if !l.claim(it, claim{By: "n1", ID: "c1"}) || l.claim(it, claim{By: "n2", ID: "c2"}) {
		t.Fatal("it was claimed twice, or not at all")
	}
	l.note(Circuit{resizers, "resize", closed(r, "Ada")}, nil, noon)
	want(t, "while it is sent", items(l, chat), "opened:i1/1 ended:i1/2")
	testkit.That(t, !l.settle(it.Number, "c2", failed, time.Second, false), "another's failure counts")
	l.settle(it.Number, "c1", failed, time.Second, false)
	want(t, "when that failed", items(l, chat), "ended:i1/2")
	testkit.That(t, !l.settle(it.Number, "c1", sent, 0, false), "what is gone was settled")
}

// Whatever happens while nothing can be sent, a ledger stays far below what the meta store takes,
// and has the newest.
func TestALedgerIsBounded(t *testing.T) {
	l, r := &ledger{}, breaker.Record{}
	targets := make([]string, maxTargets)
	for i := range targets {
		targets[i] = fmt.Sprintf("https://%02d.example.com/%s", i, strings.Repeat("<", maxTargetBytes-24))
	}
	worst := func(r breaker.Record) breaker.Record {
		long := strings.Repeat("\x01\xff\"\\\u2028", 2000)
		r.By, r.Reason, r.Samples = long, long, slices.Repeat([]breaker.Sample{{At: noon, Partition: long, Sequence: 1 << 60, Error: long}}, 50)
		return r
	}
	for i := range 60 {
		now := noon.Add(time.Duration(i) * time.Hour)
		r = opened(r, fmt.Sprintf("%064d", i))
		l.note(Circuit{resizers, "resize", worst(r)}, targets, now)
		for range 2 {
			r = reopened(halfOpened(r))
			l.note(Circuit{resizers, "resize", worst(r)}, targets, now)
		}
		r = closed(r, "Ada")
		l.note(Circuit{resizers, "resize", worst(r)}, targets, now)
	}
	if n := len(l.encode()); n > meta.MaxValueBytes*3/4 {
		t.Errorf("it has %d bytes", n)
	}
	if got := items(l, targets[3]); strings.Count(got, "ended") != maxNotices || !strings.HasSuffix(got, fmt.Sprintf("%064d/%d", 59, r.Term)) {
		t.Errorf("it is to send %s", got)
	}
	if got := items(l, ""); strings.Count(got, "event") != maxEvents || !strings.HasSuffix(got, fmt.Sprint("/", r.Term)) {
		t.Errorf("the grid is to be told %s", got)
	}
	given := 0
	for _, d := range l.dropped {
		if d.why == givenUp {
			given++
		}
	}
	testkit.That(t, given != 0, "what was given up is not told")
}

func TestAClockThatWasSetBackDelaysNothing(t *testing.T) {
	l, r := &ledger{}, breaker.Record{}
	for i := range 20 {
		r = opened(r, fmt.Sprint("i", i))
		l.note(Circuit{resizers, "resize", r}, []string{chat}, noon.AddDate(1, 0, 0))
		r = closed(r, "Ada")
		l.note(Circuit{resizers, "resize", r}, []string{chat}, noon.AddDate(1, 0, 0))
	}
	l.note(Circuit{resizers, "resize", opened(r, "now")}, []string{chat}, noon)
	for _, it := range l.Items {
		testkit.That(t, !it.waits(noon), "%+v waits", it)
	}
}

// Any life of a circuit, with claims, failures and successes in between, over the store and back:
// each change is published once and in order; of each incident that a target was told of, it hears
// the end last, and the beginning unless it ended first. It is told of all of them, except of those
// that came and went while too much had been told.
func TestALedgerLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{t: t, ledger: &ledger{}, notified: map[string][]string{}, step: rapid.SampledFrom([]time.Duration{time.Second, 3 * paceEvery}).Draw(t, "time between")}
		h.Repeat(t)
		h.drain()
		h.check()
	})
}

// history drives a ledger and remembers.
type history struct {
	t         *rapid.T
	ledger    *ledger
	record    breaker.Record
	now       time.Time
	step      time.Duration       // how much later each thing happens
	terms     []int64             // that were noticed
	incidents []string            // that were noticed while they were open
	notified  map[string][]string // kind:incident/term that a target got; "" is the grid
}

var historyTargets = []string{chat, pager}

func (h *history) Repeat(t *rapid.T) {
	h.now = noon
	for range rapid.IntRange(1, 25).Draw(t, "steps") {
		h.now = h.now.Add(h.step)
		if rapid.Bool().Draw(t, "the circuit changes") {
			h.change()
		} else {
			h.send(rapid.SampledFrom(append([]string{""}, historyTargets...)).Draw(t, "target"), rapid.Bool().Draw(t, "arrives"))
		}
		h.restart()
	}
}

// change makes one or, unseen, two changes of the circuit.
func (h *history) change() {
	for range rapid.IntRange(1, 2).Draw(h.t, "changes") {
		next := rapid.SampledFrom([]string{"probe", "hold", "close"}).Draw(h.t, "next")
		switch r := h.record; {
		case r.Incident == "" && next == "hold":
			h.record = held(r, fmt.Sprint("h", r.Term), "Bob")
		case r.Incident == "":
			h.record = opened(r, fmt.Sprint("i", r.Term))
		case next == "close":
			h.record = closed(r, "Ada")
		case r.State == breaker.Held:
			return
		case next == "hold":
			h.record = held(r, "", "Bob")
		case r.State == breaker.Open:
			h.record = halfOpened(r)
		default:
			h.record = reopened(r)
		}
		h.record.Since = h.now
	}
	if h.ledger.note(Circuit{resizers, "resize", h.record}, historyTargets, h.now) {
		h.terms = append(h.terms, h.record.Term)
		if i := h.record.Incident; i != "" && !slices.Contains(h.incidents, i) {
			h.incidents = append(h.incidents, i)
		}
	}
}

func (h *history) send(target string, arrives bool) {
	it, ok := h.ledger.head(target)
	if !ok {
		return
	}
	c := h.ledger.change(it.Change)
	h.ledger.claim(it, claim{By: "n", ID: "c"})
	h.restart()
	o := failed
	if arrives {
		o = sent
		h.notified[target] = append(h.notified[target], fmt.Sprintf("%s:%s/%d", it.Kind, c.Incident, c.Record.Term))
	}
	h.ledger.settle(it.Number, "c", o, time.Second, false)
}

// restart reads the ledger anew.
func (h *history) restart() {
	for _, d := range h.ledger.dropped {
		if d.why != superseded && d.Target != "" {
			h.t.Skip("more than a target's lane holds: see TestALedgerIsBounded")
		}
	}
	fresh := &ledger{}
	testkit.Must(h.t, json.Unmarshal(h.ledger.encode(), fresh))
	h.ledger = fresh
}

func (h *history) drain() {
	for len(h.ledger.Items) > 0 {
		h.send(h.ledger.Items[0].Target, true)
	}
	if len(h.ledger.Changes) > 0 {
		h.t.Fatalf("%d changes are left", len(h.ledger.Changes))
	}
}

func (h *history) check() {
	var terms []int64
	for _, text := range h.notified[""] {
		var term int64
		fmt.Sscanf(text[strings.LastIndex(text, "/"):], "/%d", &term)
		terms = append(terms, term)
	}
	if !slices.Equal(terms, h.terms) {
		h.t.Fatalf("the grid was told of %v, want %v", terms, h.terms)
	}
	for _, target := range historyTargets {
		for _, incident := range h.incidents {
			h.checkIncident(target, incident)
		}
	}
}

func (h *history) checkIncident(target, incident string) {
	var kinds []string
	for _, text := range h.notified[target] {
		if k, rest, _ := strings.Cut(text, ":"); strings.HasPrefix(rest, incident+"/") {
			kinds = append(kinds, k)
		}
	}
	over := h.record.Incident != incident
	wanted := [][]string{{"opened"}, {"held"}, {"opened", "held"}}
	if over {
		wanted = [][]string{{"ended"}, {"opened", "ended"}, {"held", "ended"}, {"opened", "held", "ended"}}
		if h.step < paceEvery {
			wanted = append(wanted, nil)
		}
	}
	if !slices.ContainsFunc(wanted, func(w []string) bool { return slices.Equal(w, kinds) }) {
		h.t.Fatalf("of incident %s (over: %t) %s was told %v", incident, over, target, kinds)
	}
}

// What cannot be read is begun anew rather than never, and left alone while there is nothing to be
// noticed.
func TestABrokenLedgerIsBegunAnew(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat)
		must1(w.meta.CompareAndSet(t.Context(), keyOf(resizers, "resize"), 0, []byte("{")))
		idle := must1(w.meta.CompareAndSet(t.Context(), keyOf(resizers, "idle"), 0, []byte("{")))
		defer w.run(w.open())()
		w.circuits.set("resize", opened(breaker.Record{}, "i1"))
		settle()
		want(t, "chat", w.notified(chat), "Opened:i1")
		time.Sleep(2 * sweepEvery)
		settle()
		if there := must1(w.meta.Get(t.Context(), keyOf(resizers, "idle"))); there.Revision != idle {
			t.Errorf("it was changed to %s", there.Value)
		}
	})
}

func TestKeysAreTheSameForAllSpellings(t *testing.T) {
	other := resizers
	other.Hub, other.Namespace = "IMAGES", "elsewhere"
	want(t, "key", keyOf(other, "resize"), keyOf(resizers, "resize"))
	other.Group = "a/b"
	if key := keyOf(other, "x\n/y"); meta.CheckKey(key) != nil || strings.Count(key, "/") != 4 {
		t.Errorf("key is %q", key)
	}
}
