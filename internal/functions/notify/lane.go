package notify

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
)

const (
	// claimMargin is how much longer than an attempt may take a claim is respected.
	claimMargin = 15 * time.Second
	// settleTime is what is left to write down how an attempt ended when we are told to stop.
	settleTime = 3 * time.Second
	// unlistedTime is how long a target that nobody has defined is waited for: another node may
	// know of it sooner.
	unlistedTime = 2 * time.Minute
)

// laneID is one receiver of notices about one circuit; an empty target is the grid.
type laneID struct{ key, target string }

// lane sends what one receiver is to be told about one circuit, in order, one after another. A
// receiver that fails holds up nobody else. It lives as long as there is something to be sent.
type lane struct {
	*outbox
	id   laneID
	bell chan struct{} // something may have changed

	// seen is the head as it was looked at last, and since when it has been so on this process's
	// clock. The lane's goroutine only.
	seen  sight
	since time.Time
}

func (l *lane) run(ctx context.Context) {
	for ctx.Err() == nil {
		it, more := l.next(l)
		if !more {
			return
		}
		if wait := l.turn(it, time.Now()); wait > 0 {
			sleep.For(ctx, wait, l.bell)
		} else if err := l.attempt(ctx, it); err != nil && ctx.Err() == nil {
			l.cfg.Log.Warn("a notice cannot be claimed, and that is tried again", "to", it.receiver(), "error", err)
			sleep.For(ctx, troublePause, nil)
		}
	}
	l.endLane(l)
}

// turn is how long the head has to wait, for itself and for what others of its target have got.
func (l *lane) turn(it item, now time.Time) time.Duration {
	if wait := l.wait(it, now); wait > 0 || it.Kind == kindEvent {
		return wait
	}
	there, ok := l.ledgers.Get(l.id.key)
	own := ok && l.cfg.Circuits.Own(there.Value.Group, there.Value.Function)
	wait := l.paces.take(own, it.Target, now)
	if wait > 0 {
		l.paces.waiting.Do(func() {
			l.cfg.Log.Warn("there are more notices than are sent at once, and they wait: look at the circuits with eventyard circuit list", "to", it.receiver())
		})
	}
	return wait
}

// wait is how long the head is to be left alone. What another process left behind is tried at once
// after a start: whoever starts a yard anew may just have set right what was wrong.
func (l *lane) wait(it item, now time.Time) time.Duration {
	if is := sightOf(it); is != l.seen {
		first := l.seen == (sight{})
		l.seen, l.since = is, now
		if first && it.Claim == nil {
			l.since = now.Add(-it.Wait)
		}
	}
	switch {
	case it.waits(now):
		return it.NotBefore.Sub(now)
	case it.Claim == nil:
		return it.Wait - now.Sub(l.since)
	case it.Claim.By == l.node: // we were not told that our claim had been stored
		return 0
	}
	return it.Claim.For - now.Sub(l.since)
}

// attempt claims the head, sends it, and settles it. Its error says that it could not be claimed.
func (l *lane) attempt(ctx context.Context, it item) error {
	s := l.outbox
	release, ok := s.slots.take(ctx, it)
	if !ok {
		return nil
	}
	defer release()
	claim, most := claim{By: s.node, ID: rand.Text()}, attemptTime
	if it.medium() == byMail {
		most = s.cfg.SMTP.Timeout
	}
	claim.For = most + claimMargin
	var claimed *ledger
	err := s.change(ctx, l.id.key, func(led *ledger) bool {
		claimed = nil
		if led.claim(it, claim) {
			claimed = led
		}
		return claimed != nil
	})
	if err != nil {
		return err
	}
	if claimed == nil { // it has changed since, which we shall soon be told
		sleep.For(ctx, troublePause, l.bell)
		return nil
	}
	sending, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	l.settle(ctx, claimed, it, claim.ID, s.deliver(sending, claimed, it))
	return nil
}

// settle writes down what came of it, however long that takes; if we are to stop, once. If it
// cannot be written the notice is sent again.
func (l *lane) settle(ctx context.Context, led *ledger, it item, claimed string, err error) {
	s := l.outbox
	o, wait, cut := failed, s.delay(it.Attempts, err), err != nil && ctx.Err() != nil
	if !cut {
		o = judgeAttempt(it, err)
		s.report(led, it, o, wait, err)
	}
	for {
		writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
		err := s.change(writing, l.id.key, func(led *ledger) bool { return led.settle(it.Number, claimed, o, wait, cut) })
		cancel()
		if err == nil || ctx.Err() != nil {
			return
		}
		s.cfg.Log.Warn("what came of a notice could not be stored, and that is tried again", append(logItem(led, it), "outcome", o, "error", err)...)
		sleep.For(ctx, troublePause, nil)
	}
}

// judgeAttempt says what an attempt's end means.
func judgeAttempt(it item, err error) outcome {
	switch age := time.Since(it.Since); {
	case err == nil:
		return sent
	case errors.Is(err, errUnlisted) && age >= unlistedTime:
		return unlisted
	case age >= giveUp:
		return givenUp
	}
	return failed
}

// delay is how long to wait after so many failures before this one. A receiver that says it is no
// use is asked as seldom as possible, and one that says when is asked then.
func (s *sender) delay(failures int, err error) time.Duration {
	last := len(s.cfg.Retry) - 1
	var r *refusal
	if !errors.As(err, &r) {
		return s.cfg.Retry[min(failures, last)]
	}
	if r.final {
		return s.cfg.Retry[last]
	}
	return max(s.cfg.Retry[min(failures, last)], min(r.after, time.Hour))
}

// report counts and logs. The first failure is worth a look: the settings may be wrong.
func (s *sender) report(led *ledger, it item, o outcome, wait time.Duration, err error) {
	s.metrics.count(it.medium(), o)
	log := s.cfg.Log.With(logItem(led, it)...)
	switch {
	case o == sent:
		log.Debug("a notice was sent")
	case o == givenUp:
		log.Warn("a notice was given up", "attempts", it.Attempts+1, "since", it.Since, "error", err)
	case o == unlisted:
		log.Info("a notice is not sent: its target was taken out", "since", it.Since)
	case it.Attempts == 0:
		log.Warn("a notice could not be sent, and that is tried again", "in", wait, "error", err)
	default:
		log.Debug("a notice could not be sent, and that is tried again", "attempts", it.Attempts+1, "in", wait, "error", err)
	}
}
