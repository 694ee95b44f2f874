package notify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
	"github.com/eventyard/eventyard/processor"
)

const (
	// troublePause is how long we wait before something of the yard's own is tried again that failed; doubled up to troubleMax.
	troublePause = time.Second
	troubleMax   = 30 * time.Second
	// sweepEvery is how often circuits are looked at that were noticed: a watch need not tell that one is no more.
	sweepEvery = 10 * time.Minute
)

// watchCircuits hands on what it is told, in order. Circuits may hold a lock while it tells, so nothing is asked of it from there.
func (s *Service) watchCircuits(ctx context.Context, notified chan<- Circuit) {
	notify := func(c Circuit) {
		select {
		case notified <- c:
		case <-ctx.Done():
		}
	}
	s.persist(ctx, "circuits cannot be watched", func() error {
		return s.cfg.Circuits.Watch(ctx, notify)
	})
}

// persist does something that ought to last until ctx ends, again and again.
func (s *Service) persist(ctx context.Context, trouble string, do func() error) {
	wait := troublePause
	for ctx.Err() == nil {
		began := time.Now()
		err := do()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.cfg.Log.Warn(trouble+", and that is tried again", "error", err)
		}
		if time.Since(began) > troubleMax { // it had worked meanwhile
			wait = troublePause
		}
		pause(ctx, wait, nil)
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

// noteSurely notices a change, however long that takes: while the meta store fails nothing else can be noticed either. A circuit that
// cannot be read holds up nobody else: the sweep looks at it again.
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
		pause(ctx, wait, nil)
	}
}

// note puts down what is to be sent about a circuit, if it changed. Where it does not plainly follow what was noticed last it may be old,
// or the circuit was removed or made anew: what is there now decides. That is read after the ledger and before its compare-and-set, so that
// it is no older than what the ledger knows of.
func (s *Service) note(ctx context.Context, c Circuit) error {
	targets := s.targets(c.Group, c.Function)
	var unread error
	err := s.change(ctx, keyOf(c.Group, c.Function), func(l *ledger) bool {
		seen := c
		if unread = nil; l.doubts(c.Record) {
			if seen, unread = s.present(ctx, c); unread != nil {
				return false
			}
		}
		return l.note(seen, targets, time.Now())
	})
	return errors.Join(err, unread)
}

// errUnread: what a circuit is now cannot be read.
var errUnread = errors.New("read the circuit")

// present reads a circuit; one that is no more is like one that never was open.
func (s *Service) present(ctx context.Context, c Circuit) (Circuit, error) {
	now, ok, err := s.cfg.Circuits.Circuit(ctx, c.Group, c.Function)
	if err != nil {
		return c, fmt.Errorf("%w: %w", errUnread, err)
	}
	if !ok {
		c.Record = breaker.Record{}
		return c, nil
	}
	return now, nil
}

// targets are a function's, each once.
func (s *Service) targets(g processor.Group, function string) []string {
	all := s.cfg.Circuits.Targets(g, function)
	some := union(nil, all)
	if len(some) < len(all) && len(some) == maxTargets {
		s.cfg.Log.Warn("a function has too many targets of notices, the rest is not told", "function", function, "targets", len(all), "most", maxTargets)
	}
	return some
}

// sweep looks at all circuits that there is a ledger of, as at any that may be gone, and forgets the ledgers of those that are when all is sent.
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
