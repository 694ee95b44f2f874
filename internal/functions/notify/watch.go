package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

const (
	// troublePause is how long we wait before something of the yard's own is tried again that
	// failed; doubled up to troubleMax.
	troublePause = time.Second
	troubleMax   = 30 * time.Second
	// sweepEvery is how often circuits are looked at that were noticed: a watch need not tell that
	// one is no more.
	sweepEvery = 10 * time.Minute
)

// watchCircuits hands on what it is told, in order. Circuits may hold a lock while it tells, so
// nothing is asked of it from there.
func (s *Service) watchCircuits(ctx context.Context, notified chan<- Circuit) {
	persist(ctx, s.cfg.Log, "circuits cannot be watched", func() error {
		return s.cfg.Circuits.Watch(ctx, func(c Circuit) {
			select {
			case notified <- c:
			case <-ctx.Done():
			}
		})
	})
}

// persist does something that ought to last until ctx ends, again and again.
func persist(ctx context.Context, log *slog.Logger, trouble string, do func() error) {
	wait := troublePause
	for ctx.Err() == nil {
		began := time.Now()
		err := do()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			log.Warn(trouble+", and that is tried again", "error", err)
		}
		if time.Since(began) > troubleMax { // it had worked meanwhile
			wait = troublePause
		}
		sleep.For(ctx, wait, nil)
		wait = min(2*wait, troubleMax)
	}
}

// noteAll notices what it is told.
func (s *Service) noteAll(ctx context.Context, notified <-chan Circuit) {
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-notified:
			s.noteSurely(ctx, c)
		case <-sweep.C:
			s.sweep(ctx)
		}
	}
}

// noteSurely notices a change, however long that takes: while the meta store fails nothing else can
// be noticed either. A circuit that cannot be read holds up nobody else: the sweep looks at it
// again.
func (s *Service) noteSurely(ctx context.Context, c Circuit) {
	for wait := troublePause; ; wait = min(2*wait, troubleMax) {
		err := s.note(ctx, c)
		if err == nil || ctx.Err() != nil {
			return
		}
		log := s.cfg.Log.With("hub", c.Group.Hub, "group", c.Group.Group, "function", c.Function, "error", err)
		switch {
		case errors.Is(err, errUnread):
			log.Warn("a circuit cannot be read, and whether it changed is looked at later", "in", sweepEvery)
			return
		case errors.Is(err, meta.ErrInvalid): // a name that no function of ours has
			log.Error("a change of a circuit cannot be stored, and nobody is told of it: give the function a shorter name")
			return
		}
		log.Warn("a change of a circuit could not be stored, and that is tried again")
		sleep.For(ctx, wait, nil)
	}
}

// note puts down what is to be sent about a circuit, if it changed. Where it does not plainly
// follow what was noticed last it may be old, or the circuit was removed or made anew: what is
// there now decides. That is read after the ledger and before its compare-and-set, so that it is no
// older than what the ledger knows of.
func (s *Service) note(ctx context.Context, c Circuit) error {
	all := s.cfg.Circuits.Targets(c.Group, c.Function)
	targets := union(nil, all)
	if len(targets) < len(all) && len(targets) == maxTargets {
		s.cfg.Log.Warn("a function has too many targets of notices, the rest is not told", "function", c.Function, "targets", len(all), "most", maxTargets)
	}
	var unread error
	var noted change
	err := s.change(ctx, keyOf(c.Group, c.Function), func(l *ledger) bool {
		seen := c
		if unread = nil; l.doubts(c.Record) {
			now, there, err := s.cfg.Circuits.Circuit(ctx, c.Group, c.Function)
			if err != nil {
				unread = fmt.Errorf("%w: %w", errUnread, err)
				return false
			}
			if seen = now; !there { // like one that never was open
				seen = Circuit{Group: c.Group, Function: c.Function}
			}
		}
		known := l.Next
		news := l.note(seen, targets, time.Now())
		noted = l.publishedSince(known)
		return news
	})
	if err == nil && unread == nil && noted.Number > 0 {
		s.cfg.Notes.Note(ctx, activityOf(c, noted))
	}
	return errors.Join(err, unread)
}

// errUnread: what a circuit is now cannot be read.
var errUnread = errors.New("read the circuit")

// sweep looks at all circuits that there is a ledger of, as at any that may be gone, and forgets
// the ledgers of those that are when all is sent.
func (s *Service) sweep(ctx context.Context) {
	for _, there := range s.ledgers.Items() {
		l := there.Value
		if l.Function == "" {
			continue // it could not be read
		}
		var err error
		if l.isSpent() {
			err = s.ledgers.Delete(ctx, there)
		} else {
			err = s.note(ctx, Circuit{Group: l.Group, Function: l.Function})
		}
		if err != nil && !mirror.GoneOrChanged(err) && ctx.Err() == nil { // the watch reports what others have changed
			s.cfg.Log.Warn("what was noticed of a function could not be looked at, and that is tried again", "function", l.Function, "error", err)
		}
	}
}
