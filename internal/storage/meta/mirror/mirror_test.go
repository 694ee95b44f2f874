package mirror

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

const orders = prefix + "orders"

func live(revision meta.Revision) state[string] {
	return state[string]{Item: Item[string]{Key: orders, Revision: revision, Value: fmt.Sprint(revision)}}
}

func gone(revision meta.Revision) state[string] {
	return deleted(Item[string]{Key: orders, Revision: revision})
}

func watched(s state[string]) state[string] {
	s.watched = true
	return s
}

// Late news never replaces newer news.
func TestLateNews(t *testing.T) {
	tests := []struct {
		what string
		news []state[string]
		want string // empty: there is none
	}{
		{"the newer state counts", []state[string]{live(1), live(2)}, "2"},
		{"an older one is ignored", []state[string]{live(2), live(1)}, "2"},
		{"our own deletion has the revision of the state before", []state[string]{live(2), gone(2)}, ""},
		{"a late watch does not bring it back", []state[string]{live(2), gone(2), watched(live(1)), watched(live(2))}, ""},
		{"nor where the state was never known here", []state[string]{gone(2), watched(live(2))}, ""},
		{"one made anew is seen", []state[string]{live(2), gone(2), live(4)}, "4"},
		{"the deletion of the old one does not harm it", []state[string]{live(4), watched(gone(3))}, "4"},
		{"a deletion that the watch reports counts", []state[string]{live(4), watched(gone(5))}, ""},
		{"what it reports after it, too", []state[string]{live(4), watched(gone(5)), watched(live(6))}, "6"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			x := newTable(t, nil)
			for _, s := range tt.news {
				x.apply(s)
			}
			want := map[string]string{}
			if tt.want != "" {
				want["orders"] = tt.want
			}
			x.want(-1, want)
		})
	}
}

// In whatever order the watch and our own changes bring the history of a key, the end of it counts,
// and one that is gone leaves nothing in memory.
func TestAnyOrderOfNewsEndsInTheTruth(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		history := drawHistory(r)
		x := newTable(t, nil)
		watch, own := drawNews(r, history)
		var ends []func()
		for range own {
			ends = append(ends, x.begin())
		}
		for len(watch)+len(own) > 0 {
			if len(own) == 0 || len(watch) > 0 && rapid.Bool().Draw(r, "watch first") {
				x.apply(watched(watch[0]))
				watch = watch[1:]
				continue
			}
			i := rapid.IntRange(0, len(own)-1).Draw(r, "own")
			x.apply(own[i])
			ends[0]()
			ends = ends[1:]
			own = append(own[:i:i], own[i+1:]...)
		}
		truth, want := history[len(history)-1], map[string]string{}
		if !truth.gone {
			want["orders"] = truth.Value
		}
		x.want(len(want), want)
		if t.Failed() {
			r.Fatalf("history %+v", history)
		}
	})
}

// drawHistory makes the states that one key went through.
func drawHistory(t *rapid.T) []state[string] {
	var history []state[string]
	revision := meta.Revision(0)
	next := func(f func(meta.Revision) state[string]) {
		revision += meta.Revision(rapid.IntRange(1, 3).Draw(t, "gap"))
		history = append(history, f(revision))
	}
	for range rapid.IntRange(1, 4).Draw(t, "incarnations") {
		for range rapid.IntRange(1, 3).Draw(t, "states") {
			next(live)
		}
		next(gone)
	}
	return history[:rapid.IntRange(1, len(history)).Draw(t, "length")]
}

// drawNews splits a history: the watch leaves out what was overtaken, in order; any state may be
// the outcome of a change of our own, where a deletion is known by the revision of the state
// before.
func drawNews(t *rapid.T, history []state[string]) (watch, own []state[string]) {
	for i, s := range history {
		if i == len(history)-1 || rapid.Bool().Draw(t, "reported") {
			watch = append(watch, s)
		}
		if rapid.Bool().Draw(t, "ours") {
			if s.gone {
				s.Revision = history[i-1].Revision
			}
			own = append(own, s)
		}
	}
	return watch, own
}

func TestListenersComeAndGo(t *testing.T) {
	var l Listeners
	l.Notify()
	heard := ""
	removeA := l.Add(func() { heard += "a" })
	var removeB func()
	removeB = l.Add(func() { heard += "b"; removeB() })
	l.Notify()
	removeA()
	removeA()
	l.Notify()
	if heard != "ab" && heard != "ba" {
		t.Errorf("heard %q", heard)
	}
}
