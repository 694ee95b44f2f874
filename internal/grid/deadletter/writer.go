package deadletter

import (
	"context"
	"errors"
	"time"

	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// pauses are how long a place that is out of reach is left alone, the last again and again.
var pauses = []time.Duration{time.Second, 10 * time.Second, time.Minute, 5 * time.Minute}

// writeTime is how long one write may take, and noteTime how long it may take to note it: that is done
// also when the yard stops, or what was written would be written again.
const (
	writeTime = 5 * time.Minute
	noteTime  = 10 * time.Second
)

// writer writes a subscription's letters until none is left, then ends.
type writer struct {
	s  *Service
	id string
	// bell rings for new letters, news when definitions were changed.
	bell, news chan struct{}

	failures int           // in a row; the writer's own
	target   topics.Target // where they were; the writer's own
}

func (w *writer) run(ctx context.Context) {
	defer w.s.stopWriter(w)
	for ctx.Err() == nil {
		b, sub := w.s.box(w.id), w.subscription()
		if b == nil || sub == nil {
			if w.s.endWriter(w) {
				return
			}
			continue
		}
		if sub.DeadLetter != w.target {
			w.target, w.failures = sub.DeadLetter, 0
		}
		done, err := w.step(ctx, b, sub)
		if isRemoved(err) {
			done, err = true, nil
		}
		if err != nil {
			w.s.troubled(ctx, b, sub, err)
			w.wait(ctx, pauses[min(w.failures, len(pauses)-1)])
			w.failures++
		}
		if done && w.s.endWriter(w) {
			w.s.retain(b, false)
			return
		}
	}
}

func (w *writer) subscription() *topics.Subscription {
	return w.s.cfg.Topics.Snapshot().Subscriptions[w.id]
}

// step does what is next: it notes what was written, waits for letters to be due, or writes some. It
// tells when there is nothing left to do.
func (w *writer) step(ctx context.Context, b *box, sub *topics.Subscription) (done bool, err error) {
	if err := b.note(ctx); err != nil {
		return false, err
	}
	if !written(sub.DeadLetter) {
		err := b.wellAgain(ctx)
		return err == nil, err
	}
	died, found, err := b.oldest(ctx)
	if err != nil || !found {
		return err == nil, err
	}
	// While the oldest are young the log may lose what is far older; else they are held.
	w.s.retain(b, time.Since(died) > w.s.cfg.Keep/2)
	if left := time.Until(died.Add(w.s.cfg.Delay)); left > 0 {
		w.wait(ctx, left)
		return false, nil
	}
	if !w.s.turns.take(ctx, w.failures > 0) {
		return false, nil
	}
	defer w.s.turns.give(w.failures > 0)
	if now := w.subscription(); now == nil || now.DeadLetter != sub.DeadLetter {
		return false, nil // it took a while
	}
	err = w.s.writeSome(ctx, b, sub)
	if err == nil {
		w.failures = 0
	}
	return false, err
}

// wait waits, but not longer than until ctx ends or the subscription has another place, or is gone.
func (w *writer) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-w.news:
			if sub := w.subscription(); sub == nil || sub.DeadLetter != w.target {
				return
			}
		}
	}
}

// targetError is that of a place, in contrast to those of the yard's own storage.
type targetError struct{ error }

func (e targetError) Unwrap() error { return e.error }

// isRemoved tells that the letters themselves are gone, and not a hub that they go to.
func isRemoved(err error) bool {
	return errors.Is(err, eventlog.ErrRemoved) && !errors.As(err, new(targetError))
}

// writeSome writes the letters that have waited longest, tells of it and notes it. After a crash in
// between they are written and told of again, under the same name, with the same ids.
func (s *Service) writeSome(ctx context.Context, b *box, sub *topics.Subscription) error {
	l, err := b.gather(ctx, sub, s.topicOf(sub))
	if err != nil {
		return err
	}
	var at put
	if len(l.letters) > 0 {
		if at, err = s.writeTo(ctx, sub, l); err != nil {
			return targetError{err}
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	if len(l.letters) > 0 {
		s.announce(ctx, sub, l, at)
	}
	unwritable := append(l.unreadable, at.without...)
	s.countUnwritable(b, sub, unwritable)
	b.wrote(write{First: l.first, Next: l.next, Where: at.show, Without: unwritable})
	return b.note(ctx)
}

func (s *Service) writeTo(ctx context.Context, sub *topics.Subscription, l load) (put, error) {
	p, err := s.cfg.targetOf(sub.DeadLetter)
	if err != nil {
		return put{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	at, err := p.write(ctx, name(sub, l), l)
	outcome := "written"
	if err != nil {
		outcome = "failed"
	}
	s.metrics.writes.WithLabelValues(sub.DeadLetter.Kind, outcome).Inc()
	if err == nil {
		s.metrics.letters.WithLabelValues(sub.DeadLetter.Kind).Add(float64(len(l.letters) - len(at.without)))
	}
	return at, err
}

// wrote remembers a write that is still to be noted.
func (b *box) wrote(w write) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unnoted = &w
}

// note notes what was written, if that is still to be done.
func (b *box) note(ctx context.Context) error {
	b.mu.Lock()
	w := b.unnoted
	b.mu.Unlock()
	if w == nil {
		return nil
	}
	if err := b.changeState(ctx, func(st *state) {
		st.add(*w)
		if w.Where != "" {
			st.Since, st.Target = time.Time{}, ""
		}
	}); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unnoted = nil
	if w.Where != "" {
		b.trouble = ""
	}
	return nil
}

// wellAgain forgets the troubles with a place that is none any more.
func (b *box) wellAgain(ctx context.Context) error {
	if st := b.present(); !st.Since.IsZero() {
		if err := b.changeState(ctx, func(st *state) { st.Since, st.Target = time.Time{}, "" }); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trouble = ""
	return nil
}

// topicOf is the id that events of Event Grid's schema carry.
func (s *Service) topicOf(sub *topics.Subscription) string {
	for _, t := range s.cfg.Topics.Snapshot().Topics {
		if t.ID == sub.SourceID {
			return t.Resource
		}
	}
	return "/hubs/" + sub.Source.Hub
}

// turns bound how many writes are under way, each of which has its letters in memory. Places that
// failed before have turns of their own: those that hang do not stand in the way of others.
type turns struct{ well, ill chan struct{} }

func newTurns() turns {
	return turns{well: make(chan struct{}, 8), ill: make(chan struct{}, 8)}
}

func (t turns) of(ill bool) chan struct{} {
	if ill {
		return t.ill
	}
	return t.well
}

// take waits for a turn; false: ctx ended.
func (t turns) take(ctx context.Context, ill bool) bool {
	select {
	case t.of(ill) <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (t turns) give(ill bool) { <-t.of(ill) }
