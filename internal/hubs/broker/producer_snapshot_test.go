package broker

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestSnapshotComesBack(t *testing.T) {
	s := snapshot{upTo: 1 << 40, producers: map[int64]record{
		-1:            {epoch: 0, last: -1, none: true, used: 1},
		7:             {epoch: 1, last: 0, run: 1, used: 1},
		math.MaxInt64: {epoch: math.MaxInt16, last: math.MaxInt32, run: maxRun, recent: recent{7, 1, 300}, used: 1 << 33},
		1:             {last: 15, run: 15, recent: recent{1, 2, 3, 4, 5}, used: 1},
	}}
	got := testkit.Value(decodeSnapshot(s.encode()))(t)
	if diff := cmp.Diff(s, got, cmp.AllowUnexported(snapshot{}, record{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Whatever is not a snapshot is said to be none.
func TestSnapshotRefusesNonsense(t *testing.T) {
	good := snapshot{upTo: 300, producers: map[int64]record{7: {last: 5, run: 5}}}.encode()
	for i := range good {
		testkit.ErrorIs(t, testkit.Err(decodeSnapshot(good[:i])), errSnapshot, "cut after %d", i)
	}
	bad := [][]byte{append(good[:len(good):len(good)], 0), {3, 0, 0}, {0, 0, 0}, {1, 0, 200, 200, 200, 200, 1}}
	for _, b := range bad {
		testkit.ErrorIs(t, testkit.Err(decodeSnapshot(b)), errSnapshot, "% x", b)
	}
}

// What a number of nothing stored is does not outlast a restart, nor has it to.
func TestSnapshotOfNothingStored(t *testing.T) {
	s := snapshot{producers: map[int64]record{7: {epoch: 1, last: 41, none: true}}}
	got, err := decodeSnapshot(s.encode())
	if want := (record{epoch: 1, last: -1, none: true}); err != nil || got.producers[7] != want {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Version 1 knew of one recent batch.
func TestSnapshotOfVersion1(t *testing.T) {
	old := []byte{1, 9, 1, 7, 0, 0, 0, 0, 0, 0, 0, 2, 6, 5, 3, 100}
	got, err := decodeSnapshot(old)
	want := record{epoch: 2, last: 5, run: 5, recent: recent{3}, used: 100}
	if err != nil || got.upTo != 9 || got.producers[7] != want {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A partition's producers, as many as are remembered, fit into one entry.
func TestSnapshotFits(t *testing.T) {
	const largest = eventlog.MaxBatchBytes / eventlog.EventOverheadBytes
	s := snapshot{upTo: math.MaxInt64, producers: make(map[int64]record)}
	for id := range int64(maxProducers) {
		s.producers[id] = record{
			epoch: math.MaxInt16, last: math.MaxInt32, run: maxRun, recent: recent{largest, largest, largest, largest, largest}, used: 1 << 34,
		}
	}
	testkit.Check(t, meta.CheckValue(s.encode()))
}
