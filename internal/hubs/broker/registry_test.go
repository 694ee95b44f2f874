package broker

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

func testRegistry(t interface{ Fatal(...any) }) *registry {
	m, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	return newRegistry(nowhere{}, m)
}

func live(revision meta.Revision) sighting {
	return sighting{name: "orders", revision: revision, def: definition{Name: "orders", Log: fmt.Sprint("orders-", revision), Partitions: 1}}
}

func deleting(revision meta.Revision) sighting {
	s := live(revision)
	s.def.State = stateDeleting
	return s
}

func gone(revision meta.Revision) sighting {
	return sighting{name: "orders", revision: revision, gone: true}
}

func watched(s sighting) sighting {
	s.watched = true
	return s
}

// H1: late news never overwrites newer news.
func TestLateNews(t *testing.T) {
	tests := []struct {
		what string
		news []sighting
		want string // the log in use; empty: none
	}{
		{"the newer state counts", []sighting{live(1), live(2)}, "orders-2"},
		{"an older one is ignored", []sighting{live(2), live(1)}, "orders-2"},
		{"a marked hub is not seen", []sighting{live(1), deleting(2)}, ""},
		{"nor is it brought back by what was before", []sighting{deleting(2), live(1)}, ""},
		{"our own deletion has the revision of the mark", []sighting{deleting(2), gone(2), watched(live(1)), watched(deleting(2))}, ""},
		{"a new incarnation is seen", []sighting{deleting(2), gone(2), live(4)}, "orders-4"},
		{"the deletion of the old one does not harm it", []sighting{deleting(2), live(4), watched(gone(3))}, "orders-4"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			r := testRegistry(t)
			for _, s := range tt.news {
				r.apply(s)
			}
			got := ""
			if h := r.find("ORDERS"); h != nil {
				got = h.log
			}
			if got != tt.want {
				t.Errorf("in use is %q, want %q", got, tt.want)
			}
		})
	}
}

// H1: in whatever order the watch and our own changes bring the history of a hub, the
// end of it counts, and a hub that is gone leaves nothing in memory.
func TestAnyOrderOfNewsEndsInTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history := drawHistory(t)
		r := testRegistry(t)
		watch, own := drawNews(t, history)
		for range own {
			r.begin()
		}
		for len(watch)+len(own) > 0 {
			if len(own) == 0 || len(watch) > 0 && rapid.Bool().Draw(t, "watch first") {
				r.apply(watched(watch[0]))
				watch = watch[1:]
				continue
			}
			i := rapid.IntRange(0, len(own)-1).Draw(t, "own")
			r.apply(own[i])
			r.end()
			own = append(own[:i:i], own[i+1:]...)
		}
		checkTruth(t, r, history[len(history)-1])
	})
}

// drawHistory makes the states that one key went through.
func drawHistory(t *rapid.T) []sighting {
	var history []sighting
	revision := meta.Revision(0)
	next := func(f func(meta.Revision) sighting) {
		revision += meta.Revision(rapid.IntRange(1, 3).Draw(t, "gap"))
		history = append(history, f(revision))
	}
	for range rapid.IntRange(1, 4).Draw(t, "incarnations") {
		next(live)
		for range rapid.IntRange(0, 2).Draw(t, "updates") {
			next(live)
		}
		next(deleting)
		next(gone)
	}
	return history[:rapid.IntRange(1, len(history)).Draw(t, "length")]
}

// drawNews splits a history: the watch leaves out what was overtaken, in order; any
// state may be the outcome of a change of our own, where a deletion is known by the
// revision of the mark before it.
func drawNews(t *rapid.T, history []sighting) (watch, own []sighting) {
	for i, s := range history {
		if i == len(history)-1 || rapid.Bool().Draw(t, "told") {
			watch = append(watch, s)
		}
		if rapid.Bool().Draw(t, "ours") {
			if s.gone {
				s.revision = history[i-1].revision
			}
			own = append(own, s)
		}
	}
	return watch, own
}

func checkTruth(t *rapid.T, r *registry, truth sighting) {
	h := r.find("orders")
	switch {
	case truth.visible() && (h == nil || h.log != truth.def.Log):
		t.Fatalf("in use is %+v, want %s", h, truth.def.Log)
	case !truth.visible() && h != nil:
		t.Fatalf("in use is %s, want none", h.log)
	case truth.gone && len(r.seen) > 0:
		t.Fatalf("still remembered: %+v", r.seen)
	}
}
