package circuit

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/processor"
)

const (
	// leastPause is between two reads because the store told of a change, most of which are none of
	// ours; while they bring nothing new it grows to mostPause.
	leastPause = 100 * time.Millisecond
	mostPause  = 400 * time.Millisecond
	// askAgain is before the store is read again for those whom what it has does not tell enough.
	askAgain = 100 * time.Millisecond
	// firstPause is before something is tried again that the store refused; it doubles up to
	// Config.Poll.
	firstPause = 50 * time.Millisecond
	// goodbyeTimeout bounds what is done when Run ends.
	goodbyeTimeout = 2 * time.Second
	// watchedPoll is how much rarer a store is looked at that tells of changes.
	watchedPoll = 10
)

// Run reads the circuit and keeps up with it until ctx ends: it watches the store
// (processor.Watcher) or polls it, writes this instance's count at most four times a second (and
// only if it changed or grows old), decides, and removes the counts of instances that have not
// changed for long. It returns nil when ctx has ended, and removes this instance's count then. A
// store that fails is waited for; while the state is unknown (before the first read) nothing
// passes. One Run at a time.
func (m *Member) Run(ctx context.Context) error {
	m.running.Store(true)
	l := &loop{m: m, reported: make(chan struct{}, 1), watches: make(chan struct{}, 1), seen: map[string]*sighting{}, decided: map[string]decision{}}
	var watching sync.WaitGroup
	defer watching.Wait()
	if !l.subscribe(ctx) {
		watching.Go(func() { l.watch(ctx) })
	}
	l.run(ctx)
	m.queue.end()
	m.running.Store(false)
	l.goodbye(context.WithoutCancel(ctx))
	return nil
}

// loop is what Run alone touches, but for the channels, watched and turns.
type loop struct {
	m *Member
	// reported: something in the group has changed. watches: the store can be watched from now on,
	// or no longer, as watched tells; turns is how often that was so.
	reported, watches chan struct{}
	watched           atomic.Bool
	turns             atomic.Int64

	// reportedAt is when the store told of what has not been read yet; zero: nothing.
	reportedAt time.Time
	// tried is when the last read began, good or not; readAt when the last good one did. nextRead
	// is when one is due.
	tried, readAt, nextRead time.Time
	triedTurns, readTurns   int64 // turns at these times
	pause                   time.Duration

	seen    map[string]*sighting // by key
	decided map[string]decision  // by instance: what the tallies of others do not show yet
	swept   time.Time
	own     ownTally
	asked   bool // somebody wants to put events away

	trouble trouble
}

func (l *loop) run(ctx context.Context) {
	for {
		if !time.Now().Before(l.trouble.until) || !l.m.queue.empty() { // who asks takes its time itself
			err := l.work(ctx)
			switch {
			case ctx.Err() != nil: // it says nothing of the store
			case err != nil:
				l.trouble.met(l.m.cfg, err)
			default:
				l.trouble.over(l.m.cfg)
			}
		}
		timer := time.NewTimer(l.idle(time.Now()))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-l.m.wake:
		case <-l.watches:
			l.nextRead = time.Now()
		case <-l.reported: // the entries are to be read soon
			if l.reportedAt.IsZero() {
				l.reportedAt = time.Now()
			}
			if due := l.tried.Add(max(l.pause, leastPause)); due.Before(l.nextRead) {
				l.nextRead = due
			}
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// work does what is due; what could not be done is due again a little later. It needs the record;
// without the tallies there is just less to decide by.
func (l *loop) work(ctx context.Context) error {
	var uncounted error
	var version processor.Version
	asked := l.m.queue.take() // what they are told is read after they asked
	l.asked = len(asked) > 0
	if began := time.Now(); len(asked) > 0 || !began.Before(l.nextRead) {
		l.tried, l.triedTurns = began, l.turns.Load()
		_, before := l.m.present()
		if err := l.m.look(ctx); err != nil {
			answer(asked, permission{err: err})
			return err
		}
		_, version = l.m.present()
		uncounted = l.count(ctx, version != before)
	}
	l.m.endUnwanted()
	err := errors.Join(uncounted, l.m.settle(ctx), l.m.decide(ctx), l.m.prove(ctx), l.writeTally(ctx))
	switch {
	case len(asked) == 0:
	case uncounted != nil:
		answer(asked, permission{err: uncounted})
	default:
		err = errors.Join(err, l.permit(ctx, asked, version))
	}
	l.sweep(ctx)
	return err
}

// count reads the tallies; with that a read is done, in which the record was news or not.
func (l *loop) count(ctx context.Context, news bool) error {
	found, err := l.readTallies(ctx)
	if err != nil {
		return err
	}
	if l.observe(found, time.Now()) || news {
		l.pause = leastPause
	} else {
		l.pause = min(max(2*l.pause, leastPause), mostPause)
	}
	l.readAt, l.readTurns, l.reportedAt, l.nextRead = l.tried, l.triedTurns, time.Time{}, l.tried.Add(l.m.cfg.Poll)
	if l.watched.Load() && !l.m.doubts() {
		l.nextRead = l.tried.Add(watchedPoll * l.m.cfg.Poll)
		if part := time.Duration(l.nextRead.Nanosecond()); part > 0 && watchedPoll*l.m.cfg.Poll > time.Second {
			l.nextRead = l.nextRead.Add(time.Second - part) // idle circuits in one process wake it together
		}
	}
	return nil
}

// idle is how long there is nothing to do. It is never nothing, so that a mistake in what is due
// would not take the machine.
func (l *loop) idle(now time.Time) time.Duration {
	due, asked := l.nextRead, !l.m.queue.empty()
	if again := l.tried.Add(askAgain); asked && again.Before(due) { // they were put off
		due = again
	}
	for _, at := range []time.Time{l.tallyDue(now), l.m.decisionDue(now)} {
		if at.Before(due) {
			due = at
		}
	}
	if due.Before(l.trouble.until) && !asked {
		due = l.trouble.until
	}
	return max(due.Sub(now), time.Millisecond)
}

// goodbye stores what is left to store: the end of a probe, and that this instance counts no more.
func (l *loop) goodbye(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, goodbyeTimeout)
	defer cancel()
	l.m.endUnwanted()
	if err := errors.Join(l.m.settle(ctx), l.removeTally(ctx)); err != nil {
		l.m.cfg.Log.Debug("a member of the circuit has left without a word", "error", err)
	}
}
