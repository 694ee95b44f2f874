//go:build linux

package interop

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"
)

// checkpointEvery is how many events there are from one checkpoint to the next, so that what
// is handled is nearly always ahead of what is saved.
const checkpointEvery = 10

// ledger is what all workers of a group write down, as they go, and what is wrong with it.
type ledger struct {
	t *testing.T

	mu         sync.Mutex
	partitions map[string]*history // guarded by mu
	rest       bool                // guarded by mu
}

// history is what has become of a partition.
type history struct {
	worker  string // who handled the last batch
	handled int64  // everything up to here
	repeats int64
	starts  []string
	saves   []int64 // checkpoints, in the order in which they were begun
	before  int     // the first of them that may be read while the group moves
	unheard []int64 // of the saves, those that may not have been stored: no answer came
}

// tenure is the time in which a worker has a partition.
type tenure struct {
	*ledger
	worker, partition string
	misses            int   // how many of the former owner's last checkpoints it may miss while the group moves
	next              int64 // what it has to be given next; -1: nothing yet
}

// How many checkpoints are missed at most by one who takes a partition from a worker that goes on
// for a while.
const (
	// ofOurs: we save only what we own, so it is the one that is being written just then.
	ofOurs = 1
	// ofTheirs: the official library saves without any condition, until its reader is disconnected.
	// We notice at our own first checkpoint.
	ofTheirs = math.MaxInt
)

func newLedger(t *testing.T) *ledger {
	l := &ledger{t: t, partitions: map[string]*history{}}
	for p := range sharedPartitions {
		l.partitions[fmt.Sprint(p)] = &history{handled: -1}
	}
	return l
}

// atRest is told before a processor is stopped in good order: whoever takes over from it reads the
// very last checkpoint.
func (l *ledger) atRest() { l.set(true) }

// moving is told before a processor starts that will take partitions from a running one. The last
// checkpoints of that one may be missed by the new owner. The layout cannot prevent it.
func (l *ledger) moving() { l.set(false) }

func (l *ledger) set(rest bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = rest
	for _, h := range l.partitions {
		h.before = max(0, len(h.saves)-1)
	}
}

func (l *ledger) begin(worker, partition string, misses int) *tenure {
	return &tenure{ledger: l, worker: worker, partition: partition, misses: misses, next: -1}
}

// handle takes in a batch, from its first event to its last. Its events are known to be without
// gaps.
func (t *tenure) handle(first, last int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.partitions[t.partition]
	if first != t.next {
		t.startLocked(h, first)
	}
	h.repeats += max(0, min(h.handled, last)-first+1)
	h.handled, h.worker = max(h.handled, last), t.worker
	t.next = last + 1
}

// startLocked judges where a worker begins, or goes on after a checkpoint of another's has come
// between: nothing may be left out, and nothing be repeated that is saved.
func (t *tenure) startLocked(h *history, first int64) {
	start := fmt.Sprintf("%s at %d of %d", t.worker, first, h.handled)
	h.starts = append(h.starts, start)
	if first > h.handled+1 {
		t.t.Errorf("partition %s: %s leaves out %d..%d", t.partition, start, h.handled+1, first-1)
	}
	misses := t.misses
	if t.rest {
		misses = 0
	}
	if may := h.checkpointsLocked(misses); !slices.Contains(may, first-1) {
		t.t.Errorf("partition %s: %s, where the checkpoint is one of %v", t.partition, start, may)
	}
}

// checkpointsLocked are those that a new owner may have read.
func (h *history) checkpointsLocked(misses int) []int64 {
	from := max(h.before, len(h.saves)-1-misses)
	for from >= 0 && from < len(h.saves) && slices.Contains(h.unheard, h.saves[from]) {
		from-- // the one before it may be the newest that is stored
	}
	if from < 0 || h.before == 0 && len(h.saves) <= misses {
		return append([]int64{-1}, h.saves...) // it may have been before the first one
	}
	return h.saves[from:]
}

// saving is told before a checkpoint is written, and done with what was heard of it: whether it is known
// not to be stored, or nothing is known.
func (t *tenure) saving(at int64) (done func(refused, unheard bool)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.partitions[t.partition]
	h.saves = append(h.saves, at)
	return func(refused, unheard bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if unheard {
			h.unheard = append(h.unheard, at)
		}
		for i, saved := range slices.Backward(h.saves) {
			if refused && saved == at {
				h.saves = slices.Delete(h.saves, i, i+1)
				h.before = min(h.before, max(0, len(h.saves)-1))
				return
			}
		}
	}
}

// checkpointIn is the event of a batch up to which it is saved, if any.
func checkpointIn(first, last int64) (at int64, ok bool) {
	at = (last+1)/checkpointEvery*checkpointEvery - 1
	return at, at >= first
}

func (l *ledger) workers() map[string]string {
	return collect(l, func(h *history) (string, bool) { return h.worker, h.worker != "" })
}

func (l *ledger) handledUpTo() map[string]int64 {
	return collect(l, func(h *history) (int64, bool) { return h.handled, true })
}

func (l *ledger) savedUpTo() map[string]int64 {
	return collect(l, func(h *history) (int64, bool) {
		if len(h.saves) == 0 {
			return 0, false
		}
		return h.saves[len(h.saves)-1], true
	})
}

// collect gives something of each partition that has it.
func collect[T any](l *ledger, of func(*history) (T, bool)) map[string]T {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]T{}
	for p, h := range l.partitions {
		if v, ok := of(h); ok {
			all[p] = v
		}
	}
	return all
}

// report tells the story, and that it was one: what is not saved has been repeated.
func (l *ledger) report() {
	l.mu.Lock()
	defer l.mu.Unlock()
	var repeats int64
	for _, p := range slices.Sorted(maps.Keys(l.partitions)) {
		h := l.partitions[p]
		repeats += h.repeats
		l.t.Logf("partition %s: %d events, %d repeated; %v", p, h.handled+1, h.repeats, h.starts)
	}
	if repeats == 0 {
		l.t.Error("nothing was repeated, though not everything was saved when workers changed")
	}
}
