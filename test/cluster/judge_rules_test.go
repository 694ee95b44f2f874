package cluster

import (
	"strings"
	"testing"

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
