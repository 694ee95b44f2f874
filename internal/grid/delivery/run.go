package delivery

import (
	"context"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
)

// How often Run does what it does by itself.
const (
	saveEvery  = time.Second
	retryEvery = 5 * time.Second
)

// Run delivers until ctx ends: then it takes no more, lets requests under way end for a moment,
// saves the cursors and returns nil. It is called once. Where the yard has several nodes it returns
// when every Serve has.
func (s *Service) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s.crew.hire(shift{taking: ctx})
	s.crew.start(func(w shift) { s.clock.run(w.taking) })
	if s.whole != nil {
		s.whole.begin(ctx, stop) // if the retry logs cannot run, the service stops
	} else {
		s.crew.start(func(w shift) { s.shared.write(w.taking) })
		s.crew.start(func(w shift) { s.shared.follow(w.taking) })
	}
	s.reconciler.follow(ctx)
	close(s.stopping)
	s.attendLast()
	readers := s.crew.dismiss()
	if s.whole == nil {
		<-readers
		return nil
	}
	err := s.whole.finish(s.cfg.Grace)
	<-readers
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepGrace) // which must not take for ever
	defer cancel()
	s.reconciler.saveAll(saving, time.Time{})
	return err
}

// follow starts what there is and keeps up with the definitions until ctx ends.
func (r *reconciler) follow(ctx context.Context) {
	s := r.s
	defer s.cfg.Topics.OnChange(func() { nudge(s.changed) })()
	r.running = true
	r.reconcile(ctx)
	for _, l := range s.allLanes() {
		l.poke(time.Now())
	}
	var save, again <-chan time.Time
	for {
		if again == nil && (r.missing > 0 || r.ahead || slices.ContainsFunc(r.holdings, (*holding).forgets)) { // something could not be done
			again = time.After(retryEvery)
		}
		select {
		case <-ctx.Done():
			return
		case do := <-s.requests:
			do()
		case <-s.changed:
			began := time.Now()
			r.reconcile(ctx)
			if took := time.Since(began); took > time.Millisecond {
				sleep.For(ctx, breaths*took, nil)
			}
		case <-again:
			again = nil
			r.reconcile(ctx)
		case <-s.unsaved:
			if save == nil {
				save = time.After(saveEvery)
			}
		case <-save:
			save = nil
			r.saveAll(ctx, time.Now())
		}
	}
}

// breaths is how much longer Run rests after a look at the definitions than the look took, so
// that thousands of changes one after another do not keep a processor busy with indexes.
const breaths = 4
