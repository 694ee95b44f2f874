package delivery

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/sleep"
)

// serving counts those who serve shards, so that Run can wait for them.
type serving struct {
	mu     sync.Mutex
	closed bool           // guarded by mu
	all    sync.WaitGroup // added to with mu held
}

func (s *serving) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.all.Add(1)
	}
	return !s.closed
}

// close lets nobody enter any more; what it gives is closed when all have left.
func (s *serving) close() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	left := make(chan struct{})
	go func() {
		s.all.Wait()
		close(left)
	}()
	return left
}

// Serve delivers the subscriptions of a shard while this node holds it. It returns when the shard is
// at rest here: nothing is sent, and what was done is saved, so that the next holder repeats nothing.
// It may be called by many goroutines at once, once for each time a shard is held, and by a Run that
// goes on.
//
// When ctx ends, requests under way may end by themselves for Config.Grace, unless its cause is
// shards.ErrLost: then they are cancelled, since somebody else may send already. The error is
// shards.ErrLost where a later holder was met, and nil otherwise. Storage that cannot be reached is
// waited for.
func (s *Service) Serve(ctx context.Context, held shards.Held) error {
	if s.cfg.OpenLogs == nil {
		return errors.New("serve a shard: this yard delivers all subscriptions by itself")
	}
	if !s.serving.enter() {
		return nil
	}
	defer s.serving.all.Done()
	h, err := s.openShard(ctx, held)
	if err != nil || h == nil {
		return err
	}
	taking, stop := context.WithCancel(ctx)
	defer stop()
	h.begin(taking, stop)
	joined := s.ask(taking, func() {
		s.reconciler.adopt(h)
		nudge(s.changed)
	})
	select {
	case <-taking.Done():
	case <-h.lost:
	case <-s.stopping:
	}
	h.ends.stopTaking()
	if joined {
		s.ask(context.Background(), func() { s.reconciler.release(h) }) // Run waits for us
	}
	grace := s.cfg.Grace
	if errors.Is(context.Cause(ctx), shards.ErrLost) || h.isLost() {
		grace = 0
	}
	err = h.finish(grace)
	return h.end(context.WithoutCancel(ctx), err)
}

// openShard begins a shard as its new holder. It tries until it succeeds; nil: the shard is given up
// before that, or Run ends.
func (s *Service) openShard(ctx context.Context, held shards.Held) (*holding, error) {
	for wait := firstPause; ; wait = min(2*wait, longestPause) {
		logs, err := s.cfg.OpenLogs(ctx, held)
		if err == nil {
			var h *holding
			if h, err = s.newHolding(ctx, &held, logs); err == nil {
				return h, nil
			}
		}
		if errors.Is(err, shards.ErrLost) {
			return nil, fmt.Errorf("begin shard %s: %w", held.Name(), err)
		}
		if ctx.Err() != nil {
			return nil, nil
		}
		s.log.Warn("a shard of subscriptions cannot be opened, trying again", "shard", held.Name(), "after", wait, "error", err)
		if sleep.For(ctx, wait, s.stopping) != nil || isClosed(s.stopping) {
			return nil, nil
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// end saves where the lanes stand and gives up what they have in memory. Everybody who worked for
// them has ended, with the error of the retry logs.
func (h *holding) end(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(ctx, keepGrace) // it must not take for ever
	defer cancel()
	if !h.isLost() {
		h.saveMoved(ctx)
	}
	for _, l := range h.moved {
		l.drop()
	}
	if h.isLost() {
		return fmt.Errorf("shard %s: %w", h.held.Name(), shards.ErrLost)
	}
	if err != nil {
		h.s.log.Warn("the retry logs of a shard ended early", "shard", h.held.Name(), "error", err)
	}
	return nil
}

// ask has Run's goroutine do something, and waits for it. False: ctx has ended before it was begun.
func (s *Service) ask(ctx context.Context, do func()) bool {
	done := make(chan struct{})
	select {
	case s.requests <- func() { defer close(done); do() }:
		<-done
		return true
	case <-ctx.Done():
		return false
	}
}

// attendLast does for those who serve shards what they ask for, until all of them have left.
func (s *Service) attendLast() {
	for left := s.serving.close(); ; {
		select {
		case do := <-s.requests:
			do()
		case <-left:
			return
		}
	}
}

// release takes the lanes of a holding out of the feeds: nothing more comes to them, and they stand
// where the feeds stood. What they have is theirs until the holding ends.
func (r *reconciler) release(h *holding) {
	for i, other := range r.holdings {
		if other == h {
			r.holdings = append(r.holdings[:i:i], r.holdings[i+1:]...)
			break
		}
	}
	r.s.note(h.held, false)
	for _, src := range r.sources {
		var moved []*lane
		for id, l := range src.lanes {
			if l.holding == h {
				moved = append(moved, l)
				delete(src.lanes, id)
			}
		}
		if len(moved) == 0 {
			continue
		}
		r.s.mu.Lock()
		for _, l := range moved {
			delete(r.s.lanes, l.id)
		}
		r.s.laneCount.Store(int64(len(r.s.lanes)))
		r.s.mu.Unlock()
		src.stale = true
		src.index(moved...)
		for _, l := range moved {
			r.leave(l, l.move())
		}
		h.moved = append(h.moved, moved...)
		if len(src.lanes) == 0 {
			r.closeSource(src)
		}
	}
}

// forgets reports whether something of deleted subscriptions is left.
func (h *holding) forgets() bool { return len(h.unforgotten) > 0 }
