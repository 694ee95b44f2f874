package deadletter

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/setaside"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// desk is the boxes of some subscriptions, and their writers: of all, on one machine, or of those of
// a shard while this node holds it. What it knows of their letters is good for that time only.
type desk struct {
	s *Service
	// held is the shard; nil: the desk is of all.
	held *shards.Held
	// lost is closed when a later holder of the shard was met.
	lost   chan struct{}
	losing sync.Once

	mu    sync.Mutex
	boxes map[string]*box // guarded by mu: by the subscription's ID
	// writers are at work, by subscription; guarded by mu.
	writers map[string]*writer
	// wanted are subscriptions that have letters and no writer; guarded by mu. begin wakes run for
	// them.
	wanted map[string]bool
	begin  chan struct{}
}

func newDesk(s *Service, held *shards.Held) *desk {
	return &desk{
		s: s, held: held, lost: make(chan struct{}), boxes: map[string]*box{}, writers: map[string]*writer{},
		wanted: map[string]bool{}, begin: make(chan struct{}, 1),
	}
}

// Serve keeps the dead letters of a shard's subscriptions, and writes them to their targets, while
// this node holds it: until ctx ends. It returns when nothing is under way any more. It may be called
// by many goroutines at once, once for each time a shard is held. The error is shards.ErrLost where a
// later holder was met. Storage that cannot be reached is waited for.
//
// Those who put letters are served first and ended before: until its letters are kept an event is
// not done.
func (s *Service) Serve(ctx context.Context, held shards.Held) error {
	d := newDesk(s, &held)
	for wait := pauses[0]; ; wait = min(2*wait, pauses[2]) {
		err := d.load(ctx)
		if err == nil {
			break
		}
		if errors.Is(err, shards.ErrLost) {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		s.cfg.Log.Warn("the dead letters of a shard cannot be opened, trying again", "shard", held.Name(), "after", wait, "error", err)
		if sleep.For(ctx, wait, nil) != nil {
			return nil
		}
		d = newDesk(s, &held)
	}
	s.mu.Lock()
	s.desks[held.Shard] = d
	s.mu.Unlock()
	d.run(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.desks[held.Shard] == d {
		delete(s.desks, held.Shard)
	}
	if d.isLost() {
		return shards.ErrLost
	}
	return nil
}

// lose says that a later holder has begun.
func (d *desk) lose() { d.losing.Do(func() { close(d.lost) }) }

func (d *desk) isLost() bool {
	select {
	case <-d.lost:
		return true
	default:
		return false
	}
}

// load reads which subscriptions have dead letters. The holder of a shard writes each state once,
// under its epoch: what it has read is the last that any holder before has written or will.
func (d *desk) load(ctx context.Context) error {
	if d.held != nil { // an entry that the holder before has made a moment ago must not be missed
		if err := d.s.cfg.Meta.Fresh(ctx, entryPrefix); err != nil {
			return err
		}
	}
	entries, err := d.s.cfg.Meta.List(ctx, entryPrefix)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := d.loadOne(ctx, e); err != nil {
			return err
		}
	}
	if d.held == nil {
		return nil
	}
	for _, b := range d.boxes { // nobody else has them yet
		if b.state.Revision == 0 {
			continue
		}
		if err := b.changeState(ctx, func(*state) {}); err != nil {
			return err
		}
	}
	return nil
}

// loadOne takes one entry in: a subscription's state, or, if its key goes on, marks.
func (d *desk) loadOne(ctx context.Context, e meta.Entry) error {
	id, _, isLeaf := strings.Cut(strings.TrimPrefix(e.Key, entryPrefix), "/")
	if d.held != nil && shards.Of(id) != d.held.Shard {
		return nil
	}
	b, err := d.openBox(id)
	if err == nil {
		err = d.s.provide(ctx, b)
	}
	if errors.Is(err, eventlog.ErrRemoved) {
		return d.s.cfg.Meta.Delete(ctx, e.Key, e.Revision) // a removal that was interrupted
	}
	if err != nil {
		return err
	}
	if isLeaf {
		return b.book.Adopt(e)
	}
	b.state, err = stateCodec.Read(e)
	return err
}

// openBox gives the box of a subscription, and makes it if need be.
func (d *desk) openBox(id string) (*box, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if b := d.boxes[id]; b != nil {
		return b, nil
	}
	log, err := d.s.cfg.Engine.Partition(eventlog.PartitionID{Log: logOf(id)})
	if err != nil {
		return nil, err
	}
	b := &box{
		id: id, log: log, meta: d.s.cfg.Meta, redriving: setaside.NewTurn(),
		book: setaside.NewBook(d.s.cfg.Meta, entryPrefix+id+"/", leafCodec),
	}
	if d.held != nil {
		b.epoch = d.held.Epoch
	}
	d.boxes[id] = b
	return b, nil
}

// box gives that of a subscription; nil if it never had a dead letter.
func (d *desk) box(id string) *box {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.boxes[id]
}

// want has a subscription's letters written. Where nobody runs, the next run finds them.
func (d *desk) want(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.writers[id]; w != nil {
		ring(w.bell)
	} else {
		d.wanted[id] = true
		ring(d.begin)
	}
}

// deleted reports whether the subscription of a box that the definitions do not have was deleted. On
// several nodes they may just not have heard of it: the store is asked.
func (d *desk) deleted(ctx context.Context, id string) (bool, error) {
	if d.held == nil {
		return true, nil
	}
	return d.s.cfg.Topics.Deleted(ctx, id)
}
