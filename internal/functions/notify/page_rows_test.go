package notify

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestRowsOfAPage(t *testing.T) {
	opened := time.Date(2026, 11, 15, 19, 0, 0, 0, time.UTC)
	later := opened.Add(10 * time.Minute)
	tests := []struct {
		name   string
		record breaker.Record
		lag    int64
		want   []row
	}{
		{"open", breaker.Record{State: breaker.Open, Since: opened, Opened: opened, Failures: 1234}, 7,
			[]row{{"Failures", "1,234", "within 30 s"}, {"Waiting", "7 events", "after the checkpoint"}, {"Stopped", "12 min ago", "2026-11-15 19:00:00 UTC"}}},
		{"half open, since later than the incident", breaker.Record{State: breaker.HalfOpen, Since: later, Opened: opened, Failures: 2}, -1,
			[]row{{"Failures", "2", "within 30 s"}, {"Stopped", "12 min ago", "2026-11-15 19:00:00 UTC"}}},
		{"held without an incident before", breaker.Record{State: breaker.Held, Since: later}, 1,
			[]row{{"Waiting", "1 event", "after the checkpoint"}, {"Stopped", "2 min ago", "2026-11-15 19:10:00 UTC"}}},
		{"closed", breaker.Record{State: breaker.Closed, Since: later, Opened: opened, Failures: 2}, 0,
			[]row{{"Waiting", "0 events", "after the checkpoint"}, {"Resumed", "2 min ago", "2026-11-15 19:10:00 UTC"}}},
		{"attempts are counted", breaker.Record{State: breaker.Held, Since: later, Failures: 3, Policy: breaker.Policy{Attempts: true}}, -1,
			[]row{{"Failed attempts", "3", "within 30 s"}, {"Stopped", "2 min ago", "2026-11-15 19:10:00 UTC"}}},
		{"nothing is known", breaker.Record{State: breaker.Open}, -1, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			testkit.Diff(t, test.want, rows(test.record, test.lag, opened.Add(12*time.Minute)))
		})
	}
	testkit.Equal(t, ago(-time.Hour), "just now", "a moment to come")
}

func TestAnErrorThatRepeatsIsShownOnce(t *testing.T) {
	got := errorGroups([]errorLine{{"event 4", "away"}, {"event 3", "bad"}, {"event 2", "away"}})
	want := []errorGroup{{"away", []string{"event 4", "event 2"}}, {"bad", []string{"event 3"}}}
	testkit.Diff(t, want, got)
}

// What stands large above the table is not said in it once more; a moment that differs is.
func TestDetailsAreNotSaidTwice(t *testing.T) {
	all := []detail{{"Function", "resize"}, {"State", "open"}, {"Since", "noon"}, {"By", "host-1"}, {"Reason", "noon"}, {"Failures", "2"}, {"Waiting", "3"}}
	for note, want := range map[string][]detail{
		"noon": {{"By", "host-1"}, {"Reason", "noon"}}, "dawn": {{"Since", "noon"}, {"By", "host-1"}, {"Reason", "noon"}},
	} {
		if diff := cmp.Diff(want, pageDetails(slices.Clone(all), []row{{"Stopped", "1 h ago", note}})); diff != "" {
			t.Errorf("%s: %s", note, diff)
		}
	}
}
