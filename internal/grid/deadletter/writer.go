package deadletter

import (
	"context"
	"errors"
	"time"

	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// pauses are how long a target that is out of reach is left alone, the last again and again.
var pauses = []time.Duration{time.Second, 10 * time.Second, time.Minute, 5 * time.Minute}

// writeTime is how long one write may take, and noteTime how long it may take to note it: that is
// done also when the yard stops, or what was written would be written again.
const (
	writeTime = 5 * time.Minute
	noteTime  = 10 * time.Second
)

// writer writes a subscription's letters until none is left, then ends.
type writer struct {
	s    *Service
	desk *desk
	id   string
	// bell rings for new letters, news when definitions were changed.
	bell, news chan struct{}

	failures int           // in a row; the writer's own
	target   topics.Target // where they were; the writer's own
}

func (w *writer) run(ctx context.Context) {
	for ctx.Err() == nil {
		b, sub := w.desk.box(w.id), w.subscription()
		if b == nil || sub == nil {
			if w.desk.endWriter(w) {
				return
			}
			continue
		}
		if sub.DeadLetter != w.target {
			w.target, w.failures = sub.DeadLetter, 0
		}
		done, err := w.step(ctx, b, sub)
		if errors.Is(err, eventlog.ErrRemoved) && !errors.As(err, new(targetError)) {
			done, err = true, nil // the letters themselves are gone, and not a hub that they go to
		}
		if errors.Is(err, shards.ErrLost) { // the next holder writes them
			w.desk.lose()
			break
		}
		if full, ok := errors.AsType[*quota.Error](err); ok { // of the hub that they go to, which is none of its troubles
			w.wait(ctx, full.Pause())
			continue
		}
		if err != nil {
			w.s.troubled(ctx, b, sub, err)
			w.wait(ctx, pauses[min(w.failures, len(pauses)-1)])
			w.failures++
		}
		if done && w.desk.endWriter(w) {
			w.s.retain(ctx, b, false)
			return
		}
	}
	// What is left is found by the next Run.
	w.desk.mu.Lock()
	delete(w.desk.writers, w.id)
	w.desk.mu.Unlock()
}

func (w *writer) subscription() *topics.Subscription {
	return w.s.cfg.Topics.Snapshot().Subscriptions.Get(w.id)
}

// step does what is next: it notes what was written, waits for letters to be due, or writes some.
// done says that there is nothing left to do.
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
	w.s.retain(ctx, b, time.Since(died) > w.s.cfg.Keep/2)
	if left := time.Until(died.Add(w.s.cfg.Delay)); left > 0 {
		w.wait(ctx, left)
		return false, nil
	}
	turn := w.s.turns
	if w.failures > 0 {
		turn = w.s.turnsOfFailed
	}
	give, err := turn.Take(ctx)
	if err != nil {
		return false, nil
	}
	defer give()
	if now := w.subscription(); now == nil || now.DeadLetter != sub.DeadLetter {
		return false, nil // it took a while
	}
	err = w.s.writeSome(ctx, b, sub)
	if err == nil {
		w.failures = 0
	}
	return false, err
}

// wait waits, but not longer than until ctx ends or the subscription has another target, or is
// gone.
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

// targetError is that of a target, in contrast to those of the yard's own storage.
type targetError struct{ error }

func (e targetError) Unwrap() error { return e.error }

// writeSome writes the letters that have waited longest, announces and notes it. After a crash in
// between they are written and announced again, under the same name, with the same ids.
func (s *Service) writeSome(ctx context.Context, b *box, sub *topics.Subscription) error {
	topic := "/hubs/" + sub.Source.Hub // the id that events of Event Grid's schema carry
	for _, t := range s.cfg.Topics.Snapshot().Topics {
		if t.ID == sub.SourceID {
			topic = t.Resource
		}
	}
	l, err := b.gather(ctx, sub, topic)
	if err != nil {
		return err
	}
	var at put
	if len(l.letters) > 0 {
		if at, err = s.writeTo(ctx, sub, l); err != nil {
			return targetError{err}
		}
		l = l.without(at.left)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	if len(l.letters) > 0 {
		s.announce(ctx, sub, l, at)
	}
	unwritable := append(l.unreadable, at.without...)
	if n := len(unwritable); n > 0 {
		b.drop(int64(n))
		s.metrics.unwritable.WithLabelValues(sub.DeadLetter.Kind).Add(float64(n))
		s.cfg.Log.Error("dead letters cannot be written: they are unreadable, too large for their target, or would go round a loop of subscriptions again; the yard keeps them",
			"subscription", sub.Name, "letters", n, "first", unwritable[0])
	}
	b.wrote(write{First: l.first, Next: l.next, Where: at.show, Without: unwritable})
	return b.note(ctx)
}

func (s *Service) writeTo(ctx context.Context, sub *topics.Subscription, l load) (put, error) {
	target, err := s.cfg.targetOf(sub.DeadLetter)
	if err != nil {
		return put{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	at, err := target.write(ctx, name(sub, l), l)
	if err != nil {
		s.metrics.writes.WithLabelValues(sub.DeadLetter.Kind, "failed").Inc()
		return at, err
	}
	s.metrics.writes.WithLabelValues(sub.DeadLetter.Kind, "written").Inc()
	s.metrics.letters.WithLabelValues(sub.DeadLetter.Kind).Add(float64(len(l.letters) - at.left - len(at.without)))
	return at, nil
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

// wellAgain forgets the trouble with a target that the subscription has no longer.
func (b *box) wellAgain(ctx context.Context) error {
	if st := b.present(); !st.Value.Since.IsZero() {
		if err := b.changeState(ctx, func(st *state) { st.Since, st.Target = time.Time{}, "" }); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trouble = ""
	return nil
}
