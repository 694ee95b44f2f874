package broker

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestSnapshotComesBack(t *testing.T) {
	s := snapshot{upTo: 1 << 40, producers: map[int64]record{
		-1:            {epoch: 0, last: -1, none: true, open: true, used: 1},
		7:             {epoch: 1, last: 0, run: 1, used: 1},
		math.MaxInt64: {epoch: math.MaxInt16, last: math.MaxInt32, run: maxRun, recent: sizes(7, 1, 300), used: 1 << 33},
		1:             {last: 15, run: 15, recent: sizes(1, 2, 3, 4, 5), used: 1},
	}}
	testkit.Equal(t, s.encode()[0], sizesVersion, "the version, which older programs read")
	got := testkit.Value(decodeSnapshot(s.encode()))(t)
	if diff := cmp.Diff(s, got, cmp.AllowUnexported(snapshot{}, record{}, part{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// K3: where frames are stored comes back, also among batches that nobody remembers the position of.
func TestSnapshotWithPositions(t *testing.T) {
	at := func(of ...part) recent { return recent(append(of, make([]part, maxRecent-len(of))...)) }
	for what, of := range map[string]recent{
		"one":                   at(part{3, 3}),
		"one after the other":   at(part{1, 10}, part{2, 9}, part{3, 7}, part{4, 4}),
		"with others between":   at(part{1, 1 << 50}, part{2, 900}, part{5, 7}),
		"some not remembered":   at(part{1, 100}, part{2, 0}, part{3, 50}, part{4, 47}, part{5, 0}),
		"the newest is not one": at(part{9, 0}, part{3, 50}),
		"as far as there is":    at(part{1, math.MaxInt64}, part{1, 1}),
	} {
		s := snapshot{upTo: 7, producers: map[int64]record{7: {last: 15, run: 15, recent: of, used: 1}, 8: {last: 3, run: 3, recent: sizes(3)}}}
		testkit.Equal(t, s.encode()[0], positionsVersion, "%s: the version", what)
		got, err := decodeSnapshot(s.encode())
		testkit.Must(t, err, what)
		testkit.Equal(t, got.producers[7], s.producers[7], what)
		testkit.Equal(t, got.producers[8], s.producers[8], what)
	}
	s := snapshot{producers: map[int64]record{7: {last: 5, run: 5, recent: at(part{2, 4}, part{1, 9}, part{1, 8})}}}
	got := testkit.Value(decodeSnapshot(s.encode()))(t)
	testkit.Equal(t, got.producers[7].recent, at(part{2, 4}, part{1, 0}, part{1, 8}), "of a log that gave numbers again")
	good := s.encode()
	for i := range good {
		testkit.ErrorIs(t, testkit.Err(decodeSnapshot(good[:i])), errSnapshot, "cut after %d", i)
	}
	before := slices.Clone(good)
	before[len(good)-3], before[len(good)-2] = 2, 1 // two events, of which one is at the end of nothing
	testkit.ErrorIs(t, testkit.Err(decodeSnapshot(before)), errSnapshot, "before the beginning")
}

// Whatever is not a snapshot is said to be none.
func TestSnapshotRefusesNonsense(t *testing.T) {
	good := snapshot{upTo: 300, producers: map[int64]record{7: {last: 5, run: 5}}}.encode()
	for i := range good {
		testkit.ErrorIs(t, testkit.Err(decodeSnapshot(good[:i])), errSnapshot, "cut after %d", i)
	}
	bad := [][]byte{append(good[:len(good):len(good)], 0), {4, 0, 0}, {0, 0, 0}, {1, 0, 200, 200, 200, 200, 1}}
	for _, b := range bad {
		testkit.ErrorIs(t, testkit.Err(decodeSnapshot(b)), errSnapshot, "% x", b)
	}
}

// What a number of nothing stored is does not outlast a restart, nor has it to.
func TestSnapshotOfNothingStored(t *testing.T) {
	s := snapshot{producers: map[int64]record{7: {epoch: 1, last: 41, none: true}}}
	got, err := decodeSnapshot(s.encode())
	if want := (record{epoch: 1, last: -1, none: true, open: true}); err != nil || got.producers[7] != want {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Version 1 knew of one recent batch.
func TestSnapshotOfVersion1(t *testing.T) {
	old := []byte{1, 9, 1, 7, 0, 0, 0, 0, 0, 0, 0, 2, 6, 5, 3, 100}
	got, err := decodeSnapshot(old)
	want := record{epoch: 2, last: 5, run: 5, recent: sizes(3), used: 100}
	if err != nil || got.upTo != 9 || got.producers[7] != want {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A partition's producers, as many as are remembered, fit into one entry.
func TestSnapshotFits(t *testing.T) {
	const largest = 32 << 20 / 7 // records of Kafka's in one batch, of as few bytes as they may have
	var newest recent
	for i := range newest {
		newest[i] = part{count: largest, end: math.MaxInt64 - eventlog.Sequence(i)<<40}
	}
	s := snapshot{upTo: math.MaxInt64, producers: make(map[int64]record)}
	for id := range int64(maxProducers) {
		s.producers[id] = record{
			epoch: math.MaxInt16, last: math.MaxInt32, run: maxRun, recent: newest, used: 1 << 34,
		}
	}
	testkit.Check(t, meta.CheckValue(s.encode()))
	testkit.Equal(t, s.encode()[0], sizesVersion, "the version of one that is too large with positions")
	for id := range int64(maxProducers / 2) {
		delete(s.producers, id)
	}
	testkit.Check(t, meta.CheckValue(s.encode()))
	testkit.Equal(t, s.encode()[0], positionsVersion, "the version of one that is not")
}
