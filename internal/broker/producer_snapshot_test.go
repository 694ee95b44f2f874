package broker

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/meta"
)

func TestSnapshotComesBack(t *testing.T) {
	s := snapshot{upTo: 1 << 40, producers: map[int64]record{
		-1:            {epoch: 0, last: -1, used: 1},
		math.MaxInt64: {epoch: math.MaxInt16, last: math.MaxInt32, run: maxRun, newest: 7, used: 1 << 33},
	}}
	got, err := decodeSnapshot(s.encode())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, got, cmp.AllowUnexported(snapshot{}, record{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Whatever is not a snapshot is said to be none.
func TestSnapshotRefusesNonsense(t *testing.T) {
	good := snapshot{upTo: 300, producers: map[int64]record{7: {last: 5, run: 5}}}.encode()
	for i := range good {
		if _, err := decodeSnapshot(good[:i]); !errors.Is(err, errSnapshot) {
			t.Errorf("cut after %d: %v", i, err)
		}
	}
	bad := [][]byte{append(good[:len(good):len(good)], 0), {2, 0, 0}, {1, 0, 200, 200, 200, 200, 1}}
	for _, b := range bad {
		if _, err := decodeSnapshot(b); !errors.Is(err, errSnapshot) {
			t.Errorf("% x: %v", b, err)
		}
	}
}

// A partition's producers, as many as are remembered, fit into one fact.
func TestSnapshotFits(t *testing.T) {
	s := snapshot{upTo: math.MaxInt64, producers: make(map[int64]record)}
	for id := range int64(maxProducers) {
		s.producers[id] = record{epoch: math.MaxInt16, last: math.MaxInt32, run: maxRun, newest: maxRun, used: 1 << 34}
	}
	if err := meta.CheckValue(s.encode()); err != nil {
		t.Error(err)
	}
}
