package disk

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// maxPendingBytes bounds what waits in a partition's group. A submitter that would
// exceed it waits until the group is taken.
const maxPendingBytes = 4 << 20

// partition implements eventlog.Partition: it gathers what is submitted, decides who writes, and
// wakes readers. What it has on disk are its segments.
type partition struct {
	segments

	// over is set with gone, for readers who do not want the lock.
	over atomic.Bool

	// All below is guarded by segments.mu.

	// gone is set when the partition has ended for good: closed or removed.
	gone error
	// looked: it is known what there is on disk. active is nil where there is nothing.
	looked bool
	// next and lastTime run ahead of visible by what is under way.
	next     eventlog.Sequence
	lastTime int64
	// fill is the group being gathered, nil while there is none.
	fill *group
	// committing is the token of the one who may write; idle is signalled when it is free.
	committing bool
	idle       sync.Cond
	// waiters is how many wait for the token other than to commit.
	waiters int
	// gatherer is of the token's holder.
	gatherer gatherer
	// room is closed when fill is taken; nil while nobody waits for it.
	room chan struct{}
	// wake is closed when there is more to read, or no more ever; nil while nobody waits.
	wake chan struct{}
	// awaiting are called where wake is closed.
	awaiting map[*waiter]struct{}
}

// waiter is told that there is more to read.
type waiter struct{ wake func() }

// segments are what a partition has on disk. Only the holder of the partition's token changes them
// and does I/O, under mu where others read.
type segments struct {
	e   *Engine
	id  eventlog.PartitionID
	p   *partition // whose they are
	log *provided  // what was said of the log, which all its partitions share
	dir string

	known known

	mu sync.Mutex
	// All below is guarded by mu. The token's holder may read files and active without it, since
	// only the holder changes them.

	// broken is set by a failed write or sync: the active segment must not be written again.
	broken bool
	// files are the segments, oldest first; the last one is active.
	files  []*file
	active *file
	// condemned was dropped from files and is still to be removed from the disk; of the
	// token's holder alone.
	condemned *file
	// visible is the end of what was acknowledged: in the active segment, the number
	// that follows, and the newest enqueued time.
	visible end
	// trim says what may be removed, besides retention.
	trim eventlog.Sequence
}

func (s *segments) logger() *slog.Logger { return s.e.log.With("partition", s.id.String()) }

// end is a position in the log.
type end struct {
	offset   int64
	next     eventlog.Sequence
	lastTime int64
	// form is that of the newest batch, if formKnown.
	form      eventlog.Form
	formKnown bool
}

func endOf(t segment.Tail) end {
	return end{
		offset: t.Offset, next: eventlog.Sequence(t.Next), lastTime: t.LastTime, form: eventlog.Form(t.Form), formKnown: t.FormKnown,
	}
}

var _ eventlog.Partition = (*partition)(nil)

// Submit gives the batch its number; see eventlog.Partition.
func (p *partition) Submit(ctx context.Context, b eventlog.Batch) (eventlog.Receipt, error) {
	size, err := b.Check()
	if err != nil {
		return nil, err
	}
	if err := p.mayHold(b.Form); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.admitLocked(ctx, size+headroom); err != nil {
		return nil, err
	}
	return p.enqueueLocked(b), nil
}

// SubmitAll gives batches their numbers; see eventlog.Partition. All of them are part of one group,
// so that one write stores them, or power loss a prefix.
func (p *partition) SubmitAll(ctx context.Context, batches []eventlog.Batch) ([]eventlog.Receipt, error) {
	size, err := eventlog.CheckAll(batches)
	if err != nil {
		return nil, err
	}
	for i := range batches {
		if err := p.mayHold(batches[i].Form); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.admitLocked(ctx, size+len(batches)*headroom); err != nil {
		return nil, err
	}
	receipts := make([]eventlog.Receipt, len(batches))
	for i := range batches {
		receipts[i] = p.enqueueLocked(batches[i])
	}
	return receipts, nil
}

// mayHold sees to it that the folder is known as one that may have such batches.
func (p *partition) mayHold(form eventlog.Form) error {
	if form == eventlog.FormEvents {
		return nil
	}
	if err := p.e.renewal.try(); err != nil {
		return fmt.Errorf("append %s: %w", p.id, classify(err))
	}
	return nil
}

// admitLocked returns when so many bytes may join the group that is being gathered.
func (p *partition) admitLocked(ctx context.Context, size int) error {
	if err := p.readyToWriteLocked(); err != nil {
		return err
	}
	for p.fill != nil && len(p.fill.buf)+size > maxPendingBytes {
		if err := p.waitForRoomLocked(ctx); err != nil {
			return err
		}
	}
	return nil
}

// readyToWriteLocked opens the partition at its first use and mends it after a failure.
func (p *partition) readyToWriteLocked() error {
	if err := p.openLocked(); err != nil {
		return err
	}
	for p.broken {
		if p.committing {
			p.idle.Wait()
			continue
		}
		if p.gone != nil {
			return p.gone
		}
		if err := p.mendLocked(); err != nil {
			return fmt.Errorf("reopen %s: %w", p.id, classify(err))
		}
	}
	return p.gone
}

// waitForRoomLocked gives up the lock until fill was taken. It sees to it that somebody takes it.
func (p *partition) waitForRoomLocked(ctx context.Context) error {
	if p.room == nil {
		p.room = make(chan struct{})
	}
	room := p.room
	if !p.committing {
		p.committing = true
		p.startDrainLocked()
	}
	p.mu.Unlock()
	var err error
	select {
	case <-room:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	p.mu.Lock()
	if err != nil {
		return err
	}
	return p.readyToWriteLocked()
}

func (p *partition) enqueueLocked(b eventlog.Batch) *ticket {
	return p.enqueueAtLocked(b, max(time.Now().UnixMilli(), p.lastTime))
}

// enqueueAtLocked gives a batch the next number and a time, which is not before the last one's.
func (p *partition) enqueueAtLocked(b eventlog.Batch, now int64) *ticket {
	if p.fill == nil {
		p.fill = p.e.groups.Get().(*group)
	}
	start := len(p.fill.buf)
	t := p.e.tickets.Get().(*ticket)
	t.p, t.info = p, infoOf(b, p.next, now)
	p.fill.buf = appendBatch(p.fill.buf, b, t.info)
	t.bytes = len(p.fill.buf) - start
	p.fill.tickets = append(p.fill.tickets, t)
	p.next += eventlog.Sequence(t.info.Count)
	p.lastTime = now
	return t
}

// Bounds tells what there is; see eventlog.Partition.
func (p *partition) Bounds(ctx context.Context) (eventlog.Bounds, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.lookLocked(); err != nil {
		return eventlog.Bounds{}, err
	}
	b := p.boundsLocked()
	b.Bytes = p.bytesLocked()
	return b, nil
}

func (s *segments) firstLocked() eventlog.Sequence {
	if len(s.files) == 0 {
		return 0
	}
	return s.files[0].base
}

// bytesLocked counts what holds events: not what is only preallocated.
func (s *segments) bytesLocked() int64 {
	n := s.visible.offset
	for _, f := range s.files {
		if f != s.active {
			n += f.bytes
		}
	}
	return n
}

// Trim allows removal; see eventlog.Partition. Whole segments go, with the next round of retention.
func (p *partition) Trim(ctx context.Context, below eventlog.Sequence) error {
	p.mu.Lock()
	err := p.lookLocked()
	if err == nil {
		p.trim = max(p.trim, below)
	}
	p.mu.Unlock()
	if err != nil {
		return err
	}
	p.applyRetention()
	return nil
}

// end finishes what is under way and ends the partition for the given reason. A removed
// one's files are let go at once, a closed one's by closeFiles.
func (p *partition) end(reason error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.takeTokenLocked()
	defer p.releaseTokenLocked()
	if p.gone != nil {
		return
	}
	p.gone = reason
	p.over.Store(true)
	if reason == eventlog.ErrRemoved {
		if p.fill != nil {
			p.fill.settle(reason)
			p.fill = nil
		}
		p.dropFilesLocked()
	}
	for p.fill != nil {
		p.mu.Unlock()
		p.commitGroup()
		p.mu.Lock()
	}
	p.wakeReadersLocked()
	p.makeRoomLocked()
}

// closeFiles leaves the files of an ended partition as a clean stop should: the newest segment sealed.
func (p *partition) closeFiles() {
	p.mu.Lock()
	a, whole := p.active, p.active != nil && !p.broken
	p.mu.Unlock()
	if whole {
		if err := p.seal(a); err != nil {
			p.logger().Warn("last sync", "error", err)
		}
	}
	p.mu.Lock()
	files := p.files
	p.files = nil
	p.mu.Unlock()
	for _, f := range files { // without the lock: one that is being loaded is waited for
		f.drop()
	}
}

// trySeal seals the active segment before it is closed for another, unless somebody writes or is about
// to: it must not wait, since those who open a segment may hold locks of other partitions. Having the
// token, it waits only for those who hold the lock for moments.
func (p *partition) trySeal(f *file) {
	if !p.mu.TryLock() {
		return
	}
	free := f == p.active && !p.committing && p.fill == nil && p.waiters == 0 && !p.broken && p.gone == nil
	p.committing = p.committing || free
	p.mu.Unlock()
	if !free {
		return
	}
	if err := p.seal(f); err != nil {
		p.logger().Warn("segment closed without its index", "segment", f.name(), "error", err)
	}
	p.mu.Lock()
	p.releaseTokenLocked()
	p.mu.Unlock()
}

func (s *segments) dropFilesLocked() {
	for _, f := range s.files {
		f.drop()
	}
	s.files = nil
}

// takeTokenLocked waits until nobody writes and takes the right to. Committers make way for
// it: else a partition that is written without a pause would never be trimmed or closed.
func (p *partition) takeTokenLocked() {
	p.waiters++
	for p.committing {
		p.idle.Wait()
	}
	p.waiters--
	p.committing = true
}

// releaseTokenLocked gives the right to write away: to those who wait for it, or to a
// goroutine if there is work.
func (p *partition) releaseTokenLocked() {
	if p.fill != nil && p.waiters == 0 {
		p.startDrainLocked()
		return
	}
	p.committing = false
	p.idle.Broadcast()
}

func (p *partition) wakeReadersLocked() {
	if p.wake != nil {
		close(p.wake)
		p.wake = nil
	}
	for w := range p.awaiting {
		w.wake()
	}
	p.awaiting = nil
}

func (p *partition) makeRoomLocked() {
	if p.room != nil {
		close(p.room)
		p.room = nil
	}
}
