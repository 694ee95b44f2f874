package setaside

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/setaside/ranges"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

const prefix = "aside/x/"

// load gives the book that a new process has.
func load(t testkit.T, store meta.Store) *Book {
	t.Helper()
	b := NewBook(store, prefix, LeafCodec(asIs, asIs))
	entries := testkit.Value(store.List(context.Background(), prefix))(t)
	for _, e := range entries {
		testkit.Must(t, b.Adopt(e))
	}
	return b
}

func asIs(s ranges.Span) ranges.Span { return s }

// around are numbers at the ends of two leaves.
var around = func() (all []int64) {
	for n := int64(-10); n < 10; n++ {
		all = append(all, LeafSize+n, 5*LeafSize+n)
	}
	return all
}()

// Whatever was marked by whichever of two nodes is known to them, and to who comes later. // F4, G8
func TestMarksAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx, store := context.Background(), metatest.NewMemory()
		nodes := []*Book{load(t, store), load(t, store)}
		redriven, purged := map[int64]int64{}, map[int64]bool{}
		number := rapid.SampledFrom(around)
		for at := range int64(rapid.IntRange(1, 12).Draw(t, "changes")) {
			node := nodes[rapid.IntRange(0, 1).Draw(t, "node")]
			numbers := slices.Compact(slices.Sorted(slices.Values(rapid.SliceOfN(number, 0, 15).Draw(t, "numbers"))))
			if rapid.Bool().Draw(t, "purge") {
				testkit.Must(t, node.Purge(ctx, numbers))
				for _, n := range numbers {
					purged[n] = true
					delete(redriven, n)
				}
				continue
			}
			testkit.Must(t, node.Redriven(ctx, numbers, at))
			for _, n := range numbers {
				redriven[n] = at
			}
		}
		same(t, load(t, store).Marks(), redriven, purged)

		// The log has lost its end, or its beginning.
		end := number.Draw(t, "end")
		cut := load(t, store)
		testkit.Must(t, cut.Cut(ctx, end))
		maps.DeleteFunc(redriven, func(n, _ int64) bool { return n >= end })
		maps.DeleteFunc(purged, func(n int64, _ bool) bool { return n >= end })
		same(t, cut.Marks(), redriven, purged)
		testkit.Must(t, cut.Prune(ctx, end))
		gone := end / LeafSize * LeafSize
		maps.DeleteFunc(redriven, func(n, _ int64) bool { return n < gone })
		maps.DeleteFunc(purged, func(n int64, _ bool) bool { return n < gone })
		same(t, cut.Marks(), redriven, purged)
		same(t, load(t, store).Marks(), redriven, purged)
	})
}

func same(t *rapid.T, m Marks, redriven map[int64]int64, purged map[int64]bool) {
	t.Helper()
	for _, n := range around {
		s, got := m.Redriven(n, time.Time{})
		if at, want := redriven[n]; got != want || got && s.At != at {
			t.Fatalf("%d: redriven at %d, %t, want %d, %t", n, s.At, got, at, want)
		}
		testkit.MustEqual(t, m.Purged(n), purged[n], "%d: purged", n)
	}
	testkit.Equal(t, m.Kept(0, 6*LeafSize), 6*LeafSize-int64(len(purged)), "are kept, and")
	for n := range purged {
		kept := n
		for purged[kept] {
			kept++
		}
		testkit.Equal(t, m.FirstKept(n), kept, "from %d on the first that is kept", n)
	}
}

// A mark that is older than the event is about another, which had its number.
func TestAMarkThatIsOlderThanTheEvent(t *testing.T) {
	b := load(t, storagetest.Entries(t))
	testkit.Must(t, b.Redriven(t.Context(), []int64{7}, 1000))
	for _, test := range []struct {
		since int64
		want  bool
	}{{999, true}, {1000, true}, {1001, false}} {
		t.Run(fmt.Sprintf("an event of %d", test.since), func(t *testing.T) {
			if _, got := b.Marks().Redriven(7, time.UnixMilli(test.since)); got != test.want {
				t.Errorf("redriven: %t", got)
			}
		})
	}
}

func TestEntriesThatAreNotLeavesAreErrors(t *testing.T) {
	b := load(t, storagetest.Entries(t))
	for name, value := range map[string]string{
		"x": `{}`, "": `{}`, "-1": `{}`, "1/2": `{}`, fmt.Sprint(int64(math.MaxInt64 / LeafSize)): `{}`, "0": `{"Redriven":7}`, "1": ``,
	} {
		if err := b.Adopt(meta.Entry{Key: prefix + name, Value: []byte(value), Revision: 1}); err == nil || !strings.Contains(err.Error(), prefix+name) {
			t.Errorf("%q with %q: %v", name, value, err)
		}
	}
	testkit.Equal(t, len(b.Marks()), 0, "they left %v", b.Marks())
}

// A change that fails is not taken for made, and one that seemed to fail is not overwritten.
func TestAStoreThatFails(t *testing.T) {
	store := metatest.NewFaulty(storagetest.Entries(t))
	b := load(t, store)
	testkit.Must(t, b.Redriven(t.Context(), []int64{1}, 5))
	for _, test := range []struct {
		name         string
		change, look error // what changes and looks come to
		want         error
	}{
		{"no room", meta.ErrNoSpace, nil, meta.ErrNoSpace},
		{"nobody knows", metatest.Unheard(meta.ErrUncertain), nil, meta.ErrUncertain},
		{"in conflict, and then closed", meta.ErrConflict, meta.ErrClosed, meta.ErrClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			store.Inject(func(op metatest.Op) error {
				if op.Changes() {
					return test.change
				}
				return test.look
			})
			for what, err := range map[string]error{
				"redriven": b.Redriven(t.Context(), []int64{2}, 6), "purged": b.Purge(t.Context(), []int64{3}), "cut": b.Cut(t.Context(), 1),
			} {
				testkit.ErrorIs(t, err, test.want, "%s", what)
			}
			if m := b.Marks(); len(m) != 1 || m.Purged(3) {
				t.Errorf("marks are %v", m)
			}
		})
	}
	if err := b.Prune(t.Context(), LeafSize); !errors.Is(err, meta.ErrClosed) || len(b.Marks()) != 1 {
		t.Errorf("pruned: %v", err)
	}
	store.Inject(nil)
	testkit.Must(t, b.Redriven(t.Context(), []int64{4}, 7))
	if got := load(t, store).Marks()[0].Value; !slices.Equal(got.Redriven, b.Marks()[0].Value.Redriven) || got.Redriven.Last() != 4 {
		t.Errorf("stored %v, known %v", got, b.Marks()[0].Value)
	}
}

// An entry that somebody else removed begins anew, and one that is not there need not be removed.
func TestAnEntryThatIsRemovedMeanwhile(t *testing.T) {
	store := storagetest.Entries(t)
	b, other := load(t, store), load(t, store)
	testkit.Must(t, b.Redriven(t.Context(), []int64{1}, 5))
	testkit.Must(t, Remove(t.Context(), store, prefix+"0"))
	testkit.Must(t, Remove(t.Context(), store, prefix+"0"))
	testkit.Must(t, b.Redriven(t.Context(), []int64{2}, 6))
	testkit.Must(t, other.Redriven(t.Context(), []int64{3}, 6))
	testkit.Slices(t, load(t, store).Marks()[0].Value.Redriven, (ranges.Timed{{Range: ranges.Range{First: 2, Last: 3}, At: 6}}))
}

// What was sent is noted also when the caller has left.
func TestACallerWhoHasLeft(t *testing.T) {
	b := load(t, storagetest.Entries(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	testkit.Must(t, b.Redriven(ctx, []int64{1}, 5))
	if _, redriven := b.Marks().Redriven(1, time.Time{}); !redriven {
		t.Error("it is not marked")
	}
}

func TestARound(t *testing.T) {
	for _, test := range []struct {
		name      string
		most      int
		perSecond float64
		want      int
	}{
		{"nobody says", 0, 0, 1000},
		{"fewer", 7, 0, 7},
		{"more than a round has", 5000, 0, 1000},
		{"as many as go in half a minute", 0, 10, 300},
		{"fewer than that", 7, 10, 7},
		{"a fast one", 0, 1e9, 1000},
		{"a slow one", 0, 0.001, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Equal(t, Round(test.most, test.perSecond), test.want)
		})
	}
}

// Events are sent in order, in batches that are neither too many nor too large, and no faster than
// asked for.
func TestRedrive(t *testing.T) {
	for _, test := range []struct {
		name      string
		events    int
		bytes     int
		perSecond float64
		batches   []int
		took      time.Duration
	}{
		{"none", 0, 1, 0, nil, 0},
		{"many small ones", 250, 1, 0, []int{100, 100, 50}, 0},
		{"large ones", 5, 400, 0, []int{3, 2}, 0},
		{"at a rate", 25, 1, 10, []int{10, 10, 5}, 1500 * time.Millisecond},
		{"at a high rate", 300, 1, 100, []int{100, 100, 100}, 2 * time.Second},
		{"at a slow one", 3, 1, 0.5, []int{1, 1, 1}, 4 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var batches, sent []int
				r := NewRedrive(test.perSecond, 1000, func(_ context.Context, batch []int) error {
					batches, sent = append(batches, len(batch)), append(sent, batch...)
					return nil
				})
				began := time.Now()
				for n := range test.events {
					testkit.Must(t, r.Add(t.Context(), n, test.bytes))
					testkit.Equal(t, r.Len()+len(sent), n+1, "wait")
				}
				testkit.Must(t, r.Flush(t.Context()))
				if !slices.Equal(batches, test.batches) || !slices.IsSorted(sent) || r.Len() != 0 {
					t.Errorf("batches %v, want %v", batches, test.batches)
				}
				if took := time.Since(began); took < test.took-time.Millisecond || took > test.took+time.Millisecond {
					t.Errorf("it took %v, want %v", took, test.took)
				}
			})
		})
	}
}

func TestARedriveThatFails(t *testing.T) {
	broken := errors.New("broken")
	r := NewRedrive(1, 1000, func(context.Context, []int) error { return broken })
	testkit.ErrorIs(t, r.Add(t.Context(), 1, 1), broken, "sent")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	testkit.ErrorIs(t, r.Add(ctx, 2, 1), context.Canceled, "nobody waits")
}

func TestATurnIsOneCallersAtATime(t *testing.T) {
	turn := NewTurn()
	for range 2 {
		give := testkit.Value(turn.Take(t.Context()))(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		cancel(enough)
		testkit.ErrorIs(t, testkit.Err(turn.Take(ctx)), enough, "a second one")
		give()
	}
}

// R2: a store that says of each change that there was another first is not asked for ever.
func TestConflictsEnd(t *testing.T) {
	store := metatest.NewFaulty(storagetest.Entries(t))
	codec := JSON[int]()
	there := testkit.Value(codec.Change(t.Context(), store, "aside/n", Entry[int]{}, func(n *int) { *n = 1 }))(t)
	store.Inject(func(op metatest.Op) error {
		if op.Changes() {
			return meta.ErrConflict
		}
		return nil
	})
	_, err := codec.Change(t.Context(), store, "aside/n", there, func(n *int) { *n = 2 })
	testkit.ErrorIs(t, err, errConflicts)
	testkit.ErrorIs(t, Remove(t.Context(), store, "aside/n"), errConflicts)
}
