package delivery

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retrylog"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// holding is the subscriptions that are delivered here under one epoch: all, on one machine, or those
// of a shard. It has what is theirs alone: retry logs, cursors, and the goroutines that work for
// them. So a shard can begin and end while others go on. Feeds, endpoints, the clock and the memory
// are shared by all.
type holding struct {
	s *Service
	// held is the shard; nil: the holding is of all.
	held  *shards.Held
	logs  *retrylog.Logs
	crew  crew
	pumps pumps

	// lost is closed when a later holder was found to have begun.
	lost   chan struct{}
	losing sync.Once

	// What follows is the reconciler's, and, once the lanes were taken out of the feeds, that of who
	// ends the holding.
	cursors cursors
	// unforgotten are deleted subscriptions whose parked logs are still there, with their sources.
	unforgotten map[string]string
	// unsaved are the values that may have changed since they were saved, and since when.
	unsaved map[cursorRef]time.Time
	// moved are lanes that were taken out of the feeds.
	moved []*lane

	ends ends
}

// ends are how a holding that runs is ended. They are of who runs it.
type ends struct {
	stopTaking, stopSending, stopKeeping, stopLogs context.CancelFunc
	ended                                          chan error // gives what Run of the retry logs gave
}

// What a holding has of pumps: one machine has but one holding, a node may have many.
const (
	pumpers        = 8
	pumpersOfShard = 2
)

// newHolding reads where the subscriptions stand. It starts no goroutine. Of a shard it is how the
// holder begins: shards.ErrLost if a later one has.
func (s *Service) newHolding(ctx context.Context, held *shards.Held, logs *retrylog.Logs) (*holding, error) {
	found, err := readCursors(ctx, s.cfg.Meta, held)
	if err != nil {
		return nil, err
	}
	h := &holding{
		s: s, held: held, logs: logs, cursors: found, lost: make(chan struct{}),
		unforgotten: make(map[string]string), unsaved: make(map[cursorRef]time.Time),
	}
	if h.pumps = (pumps{crew: &h.crew, most: pumpers}); held != nil {
		h.pumps.most = pumpersOfShard
	}
	return h, nil
}

// lose says that a later holder has begun: nothing may be written any more.
func (h *holding) lose() { h.losing.Do(func() { close(h.lost) }) }

func (h *holding) isLost() bool {
	select {
	case <-h.lost:
		return true
	default:
		return false
	}
}

// begin lets those work who are started for the holding, until ctx ends, and hands out what is due.
// If the retry logs cannot run, failed is called. finish has to follow.
func (h *holding) begin(ctx context.Context, failed func()) {
	apart := context.WithoutCancel(ctx)
	var sh shift
	sh.taking, h.ends.stopTaking = context.WithCancel(ctx)
	sh.sending, h.ends.stopSending = context.WithCancel(apart)
	sh.keeping, h.ends.stopKeeping = context.WithCancel(apart)
	h.crew.hire(sh)
	// The retry logs hand out what is due while taking lasts. They end last: they have to outlive
	// those who report entries as done.
	var handing context.Context
	handing, h.ends.stopLogs = context.WithCancel(apart)
	h.ends.ended = make(chan error, 1)
	go func() {
		err := h.logs.Run(handing, func(handing context.Context, due []retrylog.Entry) {
			if h.take(sh.taking, due); sh.taking.Err() != nil {
				<-handing.Done() // what is due now is handed out again after the next start
			}
		})
		if errors.Is(err, shards.ErrLost) {
			h.lose()
		}
		if err != nil {
			failed()
		}
		h.ends.ended <- err
	}()
}

// finish ends what begin has begun: nothing more is taken, requests under way have grace to end by
// themselves, then what came of them has a while to be stored. It returns when all have ended, with
// the error of the retry logs.
//
// What stops last is what others rely on: those who take first, then requests, then the storing of
// what came of them, then the retry logs, which save what was reported as done.
func (h *holding) finish(grace time.Duration) error {
	h.ends.stopTaking()
	gone := h.crew.dismiss()
	select { // requests may end by themselves for a while
	case <-gone:
	case <-time.After(max(grace, 0)):
	case <-h.lost: // whoever has the shard sends, too
	}
	h.ends.stopSending()
	soon := time.AfterFunc(keepGrace, h.ends.stopKeeping)
	<-gone
	soon.Stop()
	h.ends.stopKeeping()
	h.ends.stopLogs()
	return <-h.ends.ended
}

// deleted reports whether a subscription that the definitions do not have was deleted. On several
// nodes they may just not have heard of it, and what is done for a deleted one cannot be undone: so
// the store is asked. An error: it is not known.
func (h *holding) deleted(ctx context.Context, subscription string) (bool, error) {
	if h.s.cfg.Topics.Snapshot().Subscriptions.Get(subscription) != nil {
		return false, nil
	}
	if h.held == nil {
		return true, nil
	}
	deleted, err := h.s.cfg.Topics.Deleted(ctx, subscription)
	if err != nil && !errors.Is(err, eventlog.ErrClosed) {
		err = fmt.Errorf("look whether subscription %s was deleted: %w", subscription, err)
	}
	return deleted, err
}
