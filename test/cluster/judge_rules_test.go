package cluster

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/grid"
	"github.com/eventyard/eventyard/internal/testkit"
)

// The judge finds each kind of wrong that it looks for, and nothing in what is right.
func TestJudge(t *testing.T) {
	once := func(n int) *record {
		r := &record{name: "a"}
		for range n {
			r.sent = append(r.sent, sent{attempts: 1, acknowledged: true})
		}
		return r
	}
	// at gives a reading with these numbers of sender a.
	at := func(node string, numbers ...int) reading {
		r := reading{node: node}
		for i, n := range numbers {
			r.events = append(r.events, stored{Sequence: int64(i), Enqueued: int64(i), Sender: "a", Number: n})
		}
		return r
	}
	changed := func(r reading, change func([]stored)) reading {
		change(r.events)
		return r
	}
	again := func(r *record) *record { r.sent[1].attempts = 2; return r }
	tests := map[string]struct {
		record   *record
		readings []reading
		want     string
	}{
		"all is there":                {once(3), []reading{at("n0", 0, 1, 2), at("n1", 0, 1, 2)}, ""},
		"sent again, stored twice":    {again(once(3)), []reading{at("n0", 0, 1, 1, 2)}, ""},
		"lost":                        {once(3), []reading{at("n0", 0, 2)}, "number 1 was acknowledged"},
		"twice":                       {once(3), []reading{at("n0", 0, 1, 1, 2)}, "number 1 is there 2 times"},
		"out of order":                {once(3), []reading{at("n0", 0, 2, 1)}, "number 1 first comes behind 2"},
		"never sent":                  {once(3), []reading{at("n0", 0, 1, 2, 3)}, "number 3 was never sent"},
		"nodes differ":                {once(2), []reading{at("n0", 0, 1), at("n1", 1, 0)}, "differ from number 0"},
		"a node ends before others":   {once(2), []reading{at("n0", 0, 1), at("n1", 0)}, "differ from number 1"},
		"a gap":                       {once(2), []reading{changed(at("n0", 0, 1), func(e []stored) { e[1].Sequence = 5 })}, "number 5 follows 0"},
		"time goes back":              {once(2), []reading{changed(at("n0", 0, 1), func(e []stored) { e[0].Enqueued = 9 })}, "time of number 1"},
		"idempotent, stored twice":    {&record{name: "a", once: true, sent: []sent{{attempts: 3, acknowledged: true}}}, []reading{at("n0", 0, 0)}, "is there 2 times"},
		"not acknowledged, not there": {&record{name: "a", sent: []sent{{attempts: 1}}}, []reading{at("n0")}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(judge([]*record{tt.record}, tt.readings), "\n")
			testkit.That(t, strings.Contains(got, tt.want) && (got == "") == (tt.want == ""), "got %q, want %q", got, tt.want)
		})
	}
}

// What is there more than once is counted, and that which must not be apart.
func TestTally(t *testing.T) {
	records := []*record{
		{name: "a", sent: []sent{{attempts: 1, acknowledged: true}, {attempts: 2, acknowledged: true}, {attempts: math.MaxInt, acknowledged: true}}},
		{name: "b", once: true, sent: []sent{{attempts: 3, acknowledged: true}}},
	}
	at := func(texts ...string) (r reading) {
		for i, text := range texts {
			r.events = append(r.events, stored{Sequence: int64(i), Sender: text[:1], Number: int(text[1] - '0')})
		}
		return r
	}
	right := at("a0", "b0", "a1", "a1", "a2", "a2")
	testkit.Equal(t, tallyOf(records, []reading{right, right}), tally{stored: 6, numbered: 1, resent: 2, twice: 2})
	wrong := at("a0", "b0", "a0", "b0")
	testkit.Equal(t, tallyOf(records, []reading{wrong}), tally{stored: 4, numbered: 2, resent: 2, twice: 2, repeated: 2})
}

// What comes again to the processor, to a function or to a webhook is counted, and what a processor is not given is
// found.
func TestRepeatsAreCounted(t *testing.T) {
	w := &workers{handled: map[string]int{}}
	give := func(numbers ...int64) {
		var events []event.Event
		for _, n := range numbers {
			events = append(events, event.Event{Body: []byte(strconv.FormatInt(n, 10)), Sequence: n})
		}
		w.note(1, 7, events)
	}
	give(0, 1, 2)
	give(1, 2, 3)
	testkit.Equal(t, w.repeats(), 2, "of the processor")
	testkit.Equal(t, len(w.errs.list()), 0, "what was passed by")
	give(5)
	testkit.Equal(t, len(w.errs.list()), 1, "what was passed by")

	f := &function{handled: map[string]int{}, ids: map[string]bool{}}
	for _, body := range []string{`[{"id":"f/h/0/1","data":"a 1"},{"id":"f/h/0/2","data":"a 1"}]`, `[{"id":"f/h/0/2","data":"a 1"}]`} {
		f.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
	}
	testkit.Equal(t, f.repeats(), 1, "of the function")

	hooks := &webhooks{attempts: map[int]int{1: 1, 2: 2}}
	for i := range hooks.received {
		hooks.received[i] = map[int]int{}
	}
	for _, id := range []string{"1", "2", "1", "2"} {
		testkit.Must(t, hooks.note(3, []grid.Delivery{{Event: grid.Event{ID: id}}}))
	}
	testkit.Must(t, hooks.note(4, []grid.Delivery{{Event: grid.Event{ID: "1"}}}))
	again, beyond := hooks.repeats()
	testkit.Equal(t, again, 2, "of webhooks")
	testkit.Equal(t, beyond, 1, "beyond the attempts to publish")
}
