package journal

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V5: from moves and from who owns what now follows who owned what when.
func TestHistory(t *testing.T) {
	from := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return from.Add(time.Duration(minutes) * time.Minute) }
	move := func(minute int, before, after string, partitions ...string) activity.Entry {
		return activity.Entry{Kind: activity.OwnershipMoved, Moves: []activity.Move{{At: at(minute), From: before, To: after, Partitions: partitions}}}
	}
	entries := []activity.Entry{ // the newest first, as pages are
		move(12, "b", "c", "1"), {Kind: activity.InstanceWent}, move(8, "", "b", "2"), move(5, "a", "b", "0", "1"), move(4, "b", "", "2"), move(-1, "x", "y", "0"),
	}
	got := History(map[string]string{"0": "b", "1": "c", "2": "b", "10": "a", "11": ""}, entries, from, at(15))
	testkit.Deep(t, got, []Span{
		{"0", "a", from, at(5)}, {"0", "b", at(5), at(15)},
		{"1", "a", from, at(5)}, {"1", "b", at(5), at(12)}, {"1", "c", at(12), at(15)},
		{"2", "b", from, at(4)}, {"2", "b", at(8), at(15)},
		{"10", "a", from, at(15)},
	})
	testkit.Equal(t, len(History(nil, nil, from, at(1))), 0, "spans of nothing")
}
