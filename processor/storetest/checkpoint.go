package storetest

import (
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/processor"
)

var checkpointTests = []test{
	{"a group that did nothing has no checkpoints", noCheckpoints},
	{"beginning a partition without a checkpoint gives none", beginEmpty},
	{"a saved checkpoint is read and begun with", saveAndRead},
	{"checkpoints are saved one after the other, each in the version before", saveChain},
	{"a renewal of the lease in between does no harm", saveAfterRenewal},
	{"saving in an old version is a conflict", saveStale},
	{"offset only, sequence only and offsets that are no numbers are kept", positions},
	{"the hub's identity is kept", hubIdentity},
	{"the epoch is that of the lease", checkpointEpoch},
	{"checkpoints of all partitions are read", manyCheckpoints},
	{"versions change with every save, also of the same position", checkpointVersions},
	{"an operator moves a checkpoint whoever owns the partition", forceOwned},
	{"an operator makes the first checkpoint of a partition nobody owned", forceFirst},
	{"an operator moves what a partition has that was only begun", forceBegun},
	{"an operator's move in an old version is a conflict", forceStale},
	{"after an operator's first checkpoint the owner's first save is a conflict", forceBeforeFirstSave},
}

func noCheckpoints(f *fixture) {
	if got := f.checkpoints(); len(got) != 0 {
		f.Errorf("read %+v", got)
	}
}

func beginEmpty(f *fixture) {
	l := f.claim(lease("0", "a", 1))
	c := f.begin(l)
	if c.Partition != "0" || c.Sequence != -1 || c.Offset != "" {
		f.Errorf("begin gave %+v, want no position", c)
	}
	again := f.begin(l) // as after an answer that was lost
	if again.Sequence != -1 || again.Offset != "" {
		f.Errorf("begin gave %+v the second time", again)
	}
	for _, c := range f.checkpoints() { // the trace of a fence is no position
		if c.Sequence != -1 || c.Offset != "" {
			f.Errorf("read %+v, though nothing was saved", c)
		}
	}
}

func saveAndRead(f *fixture) {
	l := f.claim(lease("5", "a", 1))
	c := f.begin(l)
	c.Sequence, c.Offset = 41, "41"
	saved := f.save(l, c)
	f.wantCheckpoints(saved)
	f.wantPosition(f.begin(l), 41, "41")
}

func saveChain(f *fixture) {
	l := f.claim(lease("0", "a", 1))
	c := f.begin(l)
	for i := range int64(5) {
		c.Sequence, c.Offset = i*10, fmt.Sprint(i*10)
		c = f.save(l, c)
	}
	f.wantCheckpoints(c)
}

func saveAfterRenewal(f *fixture) {
	old := f.claim(lease("0", "a", 1))
	c := f.begin(old)
	now := f.claim(old)
	c.Sequence = 1
	c = f.save(old, c) // told of the renewal or not, it is the same lease
	c.Sequence = 2
	c = f.save(now, c)
	f.claim(now)
	f.wantPosition(f.begin(now), 2, "")
}

func saveStale(f *fixture) {
	l := f.claim(lease("0", "a", 1))
	begun := f.begin(l)
	first := begun
	first.Sequence = 1
	first = f.save(l, first)
	now := first
	now.Sequence = 2
	now = f.save(l, now)
	for _, stale := range []processor.Checkpoint{begun, first} {
		stale.Sequence = 9
		f.saveFails(l, stale, processor.ErrConflict)
	}
	f.wantCheckpoints(now)
}

func positions(f *fixture) {
	l := f.claim(lease("0", "a", 1))
	c := f.begin(l)
	for _, p := range []struct {
		sequence int64
		offset   string
	}{
		{7, "7"}, {-1, "8589936128"}, {9, ""}, {0, "0"}, {12, "12:345:-6.a_b"}, {-1, "-1"},
		{1<<62 + 1, "4611686018427387905"},
	} {
		c.Sequence, c.Offset = p.sequence, p.offset
		c = f.save(l, c)
		f.wantPosition(c, p.sequence, p.offset)
		f.wantCheckpoints(c)
		c = f.begin(l)
		f.wantPosition(c, p.sequence, p.offset)
	}
}

func hubIdentity(f *fixture) {
	if f.opt.NoHubID {
		f.Skip("the store cannot keep it")
	}
	l := f.claim(lease("0", "a", 1))
	c := f.begin(l)
	c.Sequence, c.HubID = 3, "2026-11-15T08:00:00.123Z"
	c = f.save(l, c)
	f.wantCheckpoints(c)
	c.HubID = "another"
	f.save(l, c)
	if got := f.begin(l); got.HubID != "another" {
		f.Errorf("begin gave %+v", got)
	}
}

func checkpointEpoch(f *fixture) {
	if f.opt.NoEpoch {
		f.Skip("the store cannot keep it")
	}
	l := f.claim(lease("0", "a", 6))
	c := f.begin(l)
	c.Sequence, c.Epoch = 3, 99 // what the caller says of it does not matter
	c = f.save(l, c)
	f.wantEpoch(c, 6)
	f.wantEpoch(f.checkpoints()["0"], 6)
	c.Sequence = 1
	f.force(c)
	f.wantEpoch(f.checkpoints()["0"], 0)
}

func manyCheckpoints(f *fixture) {
	var want []processor.Checkpoint
	for i := range Partitions {
		l := f.claim(lease(partition(i), "a", 1))
		c := f.begin(l)
		c.Sequence, c.Offset = int64(i), fmt.Sprint(i)
		want = append(want, f.save(l, c))
	}
	f.wantCheckpoints(want...)
}

func checkpointVersions(f *fixture) {
	l := f.claim(lease("0", "a", 1))
	c := f.begin(l)
	c.Sequence = 5
	seen := map[processor.Version]bool{c.Version: true}
	for i := range 8 {
		if i == 5 {
			c = f.force(c)
		} else {
			c = f.save(l, c)
		}
		if c.Version == "" || seen[c.Version] {
			f.Fatalf("write %d has version %q, which was there before", i, c.Version)
		}
		seen[c.Version] = true
	}
}

func forceOwned(f *fixture) {
	l := f.claim(lease("0", "a", 1))
	c := f.begin(l)
	c.Sequence, c.Offset = 100, "100"
	mine := f.save(l, c)

	moved := f.checkpoints()["0"]
	moved.Sequence, moved.Offset = 20, "20"
	moved = f.force(moved)
	f.wantCheckpoints(moved)

	mine.Sequence, mine.Offset = 101, "101"
	f.saveFails(l, mine, processor.ErrConflict)
	f.wantCheckpoints(moved)

	c = f.begin(l) // begin again and decide
	f.wantPosition(c, 20, "20")
	c.Sequence, c.Offset = 21, "21"
	f.save(l, c)
}

func forceFirst(f *fixture) {
	c := f.force(processor.Checkpoint{Partition: "2", Sequence: 7, Offset: "7"})
	f.wantCheckpoints(c)
	f.wantPosition(f.begin(f.claim(lease("2", "a", 1))), 7, "7")
}

func forceBegun(f *fixture) {
	l := f.claim(lease("0", "a", 1))
	f.begin(l)
	c := f.checkpoints()["0"] // none, or the trace of the fence
	moved := f.force(processor.Checkpoint{Partition: "0", Sequence: 7, Offset: "7", Version: c.Version})
	f.wantCheckpoints(moved)
	f.wantPosition(f.begin(l), 7, "7")
}

func forceStale(f *fixture) {
	first := f.force(processor.Checkpoint{Partition: "0", Sequence: 1})
	now := first
	now.Sequence = 2
	now = f.force(now)
	for _, stale := range []processor.Version{first.Version, ""} {
		_, err := f.store.Force(f.ctx, f.group, processor.Checkpoint{Partition: "0", Sequence: 9, Version: stale})
		if !errors.Is(err, processor.ErrConflict) {
			f.Errorf("force in version %q: %v, want ErrConflict", stale, err)
		}
	}
	_, err := f.store.Force(f.ctx, f.group, processor.Checkpoint{Partition: "1", Sequence: 9, Version: now.Version})
	if !errors.Is(err, processor.ErrConflict) {
		f.Errorf("force of what does not exist: %v, want ErrConflict", err)
	}
	f.wantCheckpoints(now)
}

func forceBeforeFirstSave(f *fixture) {
	l := f.claim(lease("0", "a", 1))
	mine := f.begin(l)
	moved := f.force(processor.Checkpoint{
		Partition: "0", Sequence: 7, Offset: "7", Version: f.checkpoints()["0"].Version,
	})
	mine.Sequence = 50
	f.saveFails(l, mine, processor.ErrConflict)
	f.wantCheckpoints(moved)
}

func (f *fixture) begin(l processor.Lease) processor.Checkpoint {
	f.Helper()
	c, err := f.store.Begin(f.ctx, f.group, l)
	if err != nil {
		f.Fatalf("begin %+v: %v", l, err)
	}
	if c.Partition != l.Partition {
		f.Fatalf("begin of partition %s gave %+v", l.Partition, c)
	}
	return c
}

func (f *fixture) save(l processor.Lease, c processor.Checkpoint) processor.Checkpoint {
	f.Helper()
	saved, err := f.store.Save(f.ctx, f.group, l, c)
	if err != nil {
		f.Fatalf("save %+v under %+v: %v", c, l, err)
	}
	f.wantWritten(saved, c)
	return saved
}

func (f *fixture) force(c processor.Checkpoint) processor.Checkpoint {
	f.Helper()
	forced, err := f.store.Force(f.ctx, f.group, c)
	if err != nil {
		f.Fatalf("force %+v: %v", c, err)
	}
	f.wantWritten(forced, c)
	return forced
}

// wantWritten wants what a write gave to be what it was given, in a new version.
func (f *fixture) wantWritten(got, c processor.Checkpoint) {
	f.Helper()
	if got.Version == "" || got.Version == c.Version {
		f.Fatalf("the write of version %q gave version %q", c.Version, got.Version)
	}
	if got.Partition != c.Partition {
		f.Fatalf("the write of partition %s gave %+v", c.Partition, got)
	}
	f.wantPosition(got, c.Sequence, c.Offset)
}

func (f *fixture) saveFails(l processor.Lease, c processor.Checkpoint, want error) {
	f.Helper()
	got, err := f.store.Save(f.ctx, f.group, l, c)
	if !errors.Is(err, want) {
		f.Fatalf("save %+v under %+v gave %+v, %v, want %q", c, l, got, err, want)
	}
}

func (f *fixture) wantPosition(c processor.Checkpoint, sequence int64, offset string) {
	f.Helper()
	if c.Sequence != sequence || c.Offset != offset {
		f.Fatalf("checkpoint is %+v, want sequence %d and offset %q", c, sequence, offset)
	}
}

func (f *fixture) wantEpoch(c processor.Checkpoint, epoch int64) {
	f.Helper()
	if !f.opt.NoEpoch && c.Epoch != epoch {
		f.Fatalf("checkpoint is %+v, want epoch %d", c, epoch)
	}
}

// wantCheckpoints wants these to be all that are read, as their writes gave them.
func (f *fixture) wantCheckpoints(want ...processor.Checkpoint) {
	f.Helper()
	got := f.checkpoints()
	if len(got) != len(want) {
		f.Fatalf("read %d checkpoints %+v, want %d", len(got), got, len(want))
	}
	for _, w := range want {
		g, found := got[w.Partition]
		if !found {
			f.Fatalf("partition %s has no checkpoint", w.Partition)
		}
		f.wantPosition(g, w.Sequence, w.Offset)
		f.wantEpoch(g, w.Epoch)
		if g.Version != w.Version || g.Updated.IsZero() || (!f.opt.NoHubID && g.HubID != w.HubID) {
			f.Fatalf("read %+v, its write gave %+v", g, w)
		}
	}
}

// checkpoints reads all checkpoints of the group, by partition.
func (f *fixture) checkpoints() map[string]processor.Checkpoint {
	f.Helper()
	read, err := f.store.Checkpoints(f.ctx, f.group)
	if err != nil {
		f.Fatalf("checkpoints: %v", err)
	}
	byPartition := map[string]processor.Checkpoint{}
	for _, c := range read {
		if _, twice := byPartition[c.Partition]; twice {
			f.Fatalf("partition %s is read twice", c.Partition)
		}
		byPartition[c.Partition] = c
	}
	return byPartition
}
