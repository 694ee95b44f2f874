package storetest

import (
	"errors"

	"github.com/eventyard/eventyard/processor"
)

// Whoever lost a partition cannot move its checkpoint any more, and is told so.
var fenceTests = []test{
	{"a former owner's save is fenced once the partition is claimed", fencedByClaim},
	{"a former owner's save is fenced once the new owner has begun", fencedByBegin},
	{"a former owner that never saved is fenced, too", fencedFirstSave},
	{"a former owner is fenced after an operator's move, not only in conflict", fencedAfterForce},
	{"who released a partition cannot save", fencedByRelease},
	{"a save needs the lease's owner and the lease's epoch", saveNeedsLease},
	{"a partition without a lease cannot be begun or saved", noLease},
	{"beginning needs the partition's lease", beginNeedsLease},
	{"the new owner begins where the former has come to", beginTakesOver},
}

// takeover gives a partition from a to b: a's lease and last checkpoint, b's lease.
func (f *fixture) takeover(saved bool) (a processor.Lease, mine processor.Checkpoint, b processor.Lease) {
	f.Helper()
	a = f.claim(lease("0", "a", 1))
	mine = f.begin(a)
	if saved {
		mine.Sequence, mine.Offset = 10, "10"
		mine = f.save(a, mine)
	}
	b = f.claim(processor.Lease{Partition: "0", Owner: "b", Epoch: 2, Version: a.Version})
	mine.Sequence, mine.Offset = 11, "11"
	return a, mine, b
}

func fencedByClaim(f *fixture) {
	a, mine, _ := f.takeover(true)
	f.saveFails(a, mine, processor.ErrFenced)
	f.wantPosition(f.checkpoints()["0"], 10, "10")
}

func fencedByBegin(f *fixture) {
	a, mine, b := f.takeover(true)
	c := f.begin(b)
	f.saveFails(a, mine, processor.ErrFenced)
	f.wantPosition(c, 10, "10")
	mine.Version = c.Version // even if it knew the newest version
	f.saveFails(a, mine, processor.ErrFenced)
	c.Sequence, c.Offset = 12, "12"
	c = f.save(b, c)
	f.saveFails(a, mine, processor.ErrFenced)
	f.wantCheckpoints(c)
}

func fencedFirstSave(f *fixture) {
	a, mine, b := f.takeover(false)
	c := f.begin(b)
	f.saveFails(a, mine, processor.ErrFenced)
	f.wantPosition(c, -1, "")
	c.Sequence, c.Offset = 0, "0"
	f.wantCheckpoints(f.save(b, c))
}

func fencedAfterForce(f *fixture) {
	a, mine, b := f.takeover(true)
	f.begin(b)
	moved := f.checkpoints()["0"]
	moved.Sequence, moved.Offset = 3, "3"
	moved = f.force(moved)
	f.saveFails(a, mine, processor.ErrFenced)
	mine.Version = moved.Version
	f.saveFails(a, mine, processor.ErrFenced)
	f.wantCheckpoints(moved)
}

func fencedByRelease(f *fixture) {
	a := f.claim(lease("0", "a", 1))
	c := f.begin(a)
	c.Sequence = 1
	c = f.save(a, c)
	free := a
	free.Owner = ""
	f.claim(free)
	f.saveFails(a, c, processor.ErrFenced)
	f.saveFails(free, c, processor.ErrFenced) // nobody is no owner
	f.wantCheckpoints(c)
}

func saveNeedsLease(f *fixture) {
	a := f.claim(lease("0", "a", 5))
	c := f.begin(a)
	for _, other := range []processor.Lease{
		lease("0", "b", 5), lease("0", "a", 4), lease("0", "a", 6), lease("0", "", 5), lease("0", "A", 5),
	} {
		other.Version = a.Version
		f.saveFails(other, c, processor.ErrFenced)
	}
	c.Sequence = 1
	f.save(a, c)
}

func noLease(f *fixture) {
	l := lease("0", "a", 1)
	f.beginFails(l)
	f.saveFails(l, processor.Checkpoint{Partition: "0", Sequence: 4}, processor.ErrFenced)
	if got := f.checkpoints(); len(got) != 0 {
		f.Errorf("read %+v", got)
	}
}

func beginNeedsLease(f *fixture) {
	a := f.claim(lease("0", "a", 5))
	for _, other := range []processor.Lease{
		lease("0", "b", 5), lease("0", "a", 4), lease("0", "a", 6), lease("0", "", 5),
	} {
		other.Version = a.Version
		f.beginFails(other)
	}
	b := f.claim(processor.Lease{Partition: "0", Owner: "b", Epoch: 6, Version: a.Version})
	f.beginFails(a)
	f.claim(b)
	f.begin(b) // in whatever version
}

func beginTakesOver(f *fixture) {
	_, _, b := f.takeover(true)
	f.wantPosition(f.begin(b), 10, "10")
	f.wantPosition(f.begin(b), 10, "10") // as after an answer that was lost
}

func (f *fixture) beginFails(l processor.Lease) {
	f.Helper()
	if c, err := f.store.Begin(f.ctx, f.group, l); !errors.Is(err, processor.ErrFenced) {
		f.Fatalf("begin %+v gave %+v, %v, want ErrFenced", l, c, err)
	}
}
