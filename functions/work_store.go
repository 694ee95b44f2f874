package functions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/functions/triage"
	"github.com/eventyard/eventyard/processor"
)

// workPrefix is of the entries that have the work on partitions: work/FUNCTION/PARTITION.
const workPrefix = "work/"

// storeTimeout bounds one call of the store: whoever waits for it has to notice in time that the
// partition is to be given up.
const storeTimeout = 10 * time.Second

// record is the work on one partition: in memory, where the calls of all its lanes share it, and in
// the store, where it outlives this instance. It is changed in memory first and then saved; who
// saves takes along what others have changed meanwhile.
//
// Each write names the version of the last one, and the first, at open, that of the former owner's
// last. So a former owner that does not know yet that it is none can write nothing after open has
// returned.
type record struct {
	store    processor.Store
	group    processor.Group
	key      string
	function string
	reader   *workReader
	epoch    int64
	instance string

	// pen is a token, held while the store is written. version and written belong to its holder.
	pen     chan struct{}
	version processor.Version
	written uint64 // the newest change that is in the store

	mu      sync.Mutex
	work    triage.Work // guarded by mu
	changes uint64      // guarded by mu

	// calm: nothing is recorded that a batch would have to heed. It stands before every call.
	calm atomic.Bool
	// begun is the work's: an event that is not above it has been rewound.
	begun atomic.Int64
}

// open reads what the last owner left, counts what it died of, and fences it. unreadable is what
// was wrong with a record that had to be begun anew. A store that fails is tried a few times: to
// give the partition back and take it again looks like a death to the next.
func (r *record) open(ctx context.Context, policy triage.Policy, checkpoint int64) (unreadable, err error) {
	for try := 1; ; try++ {
		var work triage.Work
		var version processor.Version
		if work, version, unreadable, err = r.read(ctx); err == nil {
			work, _ = work.Begin(policy, r.epoch, r.instance, checkpoint)
			if !work.Owned(r.epoch, r.instance) {
				return nil, fmt.Errorf("work of epoch %d by %s: %w", work.Epoch, work.Instance, processor.ErrFenced)
			}
			r.version = version
			r.change(func(w *triage.Work) { *w = work })
			err = r.write(ctx)
		}
		if err == nil || errors.Is(err, processor.ErrFenced) || try == 5 {
			return unreadable, err
		}
		if err := sleep(ctx, nil, backoff(try)); err != nil {
			return nil, err
		}
	}
}

// read gives what is stored. A record that cannot be read is begun anew: attempts are forgotten
// then, but no event is lost.
func (r *record) read(ctx context.Context) (w triage.Work, v processor.Version, unreadable, err error) {
	entries, err := r.reader.read(ctx, func(ctx context.Context) ([]processor.Entry, error) {
		return r.store.Entries(ctx, r.group, workPrefix+r.function+"/")
	})
	if err != nil {
		return triage.Work{}, "", nil, fmt.Errorf("read %s: %w", r.key, err)
	}
	for _, f := range entries {
		if f.Key == r.key {
			w, unreadable = triage.DecodeWork(f.Value)
			return w, f.Version, unreadable, nil
		}
	}
	return triage.Work{}, "", nil, nil
}

// look gives the work as it is. What it holds is not to be changed.
func (r *record) look() triage.Work {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.work
}

// change changes the work in memory.
func (r *record) change(do func(*triage.Work)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do(&r.work)
	r.changes++
	r.calm.Store(r.work.Calm())
	r.begun.Store(r.work.Begun)
}

// save stores the work as it is now, or later. It tries once; nil means that it is durable.
func (r *record) save(ctx context.Context) error {
	r.mu.Lock()
	wanted := r.changes
	r.mu.Unlock()
	select {
	case r.pen <- struct{}{}:
		defer func() { <-r.pen }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if r.written >= wanted {
		return nil // another has taken it along
	}
	err := r.write(ctx)
	if errors.Is(err, errReread) {
		err = r.write(ctx)
	}
	return err
}

// errReread: the record was in another version, which is known now.
var errReread = errors.New("the record of the work was changed by someone else")

// write stores the work once. The pen is held, or nobody else knows the record yet.
func (r *record) write(ctx context.Context) error {
	r.mu.Lock()
	work, changes := r.work, r.changes
	r.mu.Unlock()
	value, err := triage.EncodeWork(work)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	stored, err := r.store.Put(ctx, r.group, processor.Entry{Key: r.key, Value: value, Version: r.version})
	switch {
	case err == nil:
		r.version, r.written = stored.Version, changes
		return nil
	case errors.Is(err, processor.ErrConflict):
		return r.conflict(ctx)
	}
	return fmt.Errorf("write %s: %w", r.key, err)
}

// conflict finds out who has written: a write of our own whose answer was lost, or a newer owner.
// What an older one wrote before it knew of us, or an operator removed, is written over.
func (r *record) conflict(ctx context.Context) error {
	last, version, _, err := r.read(ctx)
	switch {
	case err != nil:
		return err
	case last.Epoch > r.epoch, last.Epoch == r.epoch && last.Instance != r.instance:
		return fmt.Errorf("write %s: it is of epoch %d by %s: %w", r.key, last.Epoch, last.Instance, processor.ErrFenced)
	}
	r.version = version
	return errReread
}
