package delivery

import (
	"context"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retrylog"
	"github.com/eventyard/eventyard/internal/sleep"
)

// How often Run does what it does by itself.
const (
	saveEvery  = time.Second
	retryEvery = 5 * time.Second
)

// Run delivers until ctx ends: then it takes no more, lets requests under way end for a moment,
// saves the cursors and returns nil. It is called once.
//
// What stops last is what others rely on: readers and those who take first, then requests, then
// the storing of what came of them, then the retry logs, which save what was reported as done.
func (s *Service) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	apart := context.WithoutCancel(ctx)
	sending, stopSending := context.WithCancel(apart)
	defer stopSending()
	keeping, stopKeeping := context.WithCancel(apart)
	defer stopKeeping()
	s.crew.hire(shift{taking: ctx, sending: sending, keeping: keeping})
	// The retry logs hand out what is due while ctx lasts; if they cannot, the service stops. They
	// end last: they have to outlive those who report entries as done.
	handing, stopRetryLogs := context.WithCancel(apart)
	defer stopRetryLogs()
	ended := make(chan error, 1)
	go func() {
		err := s.cfg.RetryLogs.Run(handing, func(handing context.Context, due []retrylog.Entry) {
			if s.take(ctx, due); ctx.Err() != nil {
				<-handing.Done() // what is due now is handed out again after the next start
			}
		})
		if err != nil {
			stop()
		}
		ended <- err
	}()
	s.crew.start(func(w shift) { s.clock.run(w.taking) })
	s.reconciler.follow(ctx)
	close(s.stopping)
	gone := s.crew.dismiss()
	select { // requests may end by themselves for a while
	case <-gone:
	case <-time.After(max(s.cfg.Grace, 0)):
	}
	stopSending()
	soon := time.AfterFunc(keepGrace, stopKeeping)
	<-gone
	soon.Stop()
	stopRetryLogs()
	err := <-ended
	saving, cancel := context.WithTimeout(apart, keepGrace) // which must not take for ever
	defer cancel()
	s.reconciler.saveAll(saving)
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
		if again == nil && (r.missing > 0 || len(r.unforgotten) > 0 || r.ahead) { // something could not be done
			again = time.After(retryEvery)
		}
		select {
		case <-ctx.Done():
			return
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
			r.saveAll(ctx)
		}
	}
}

// breaths is how much longer Run rests after a look at the definitions than the look took, so
// that thousands of changes one after another do not keep a processor busy with indexes.
const breaths = 4
