package processor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/sleep"
)

// coordinator makes the rounds: renew, read, decide, write. It alone writes leases and the
// presence, and starts pumps and waits for them. All its fields are its goroutine's.
type coordinator struct {
	*instance
	observer *observer
	held     map[string]*holding
	presence *heartbeat
	// unsure: the answer to a write of leases was lost; read before writing again.
	unsure bool
	// hang: leases hang on our presence. All who are there know such leases, and the store keeps it.
	hang    bool
	barred  map[string]*bar
	floor   map[string]int64
	wishes  *wishes
	foreign bool
	said    bool // what others hold, at the start

	renewAt  time.Time // when presence and leases are to be renewed
	looked   time.Time // when the records were last read
	lastEnd  time.Time // of the round before
	lastTook time.Duration
	load     int64 // what one round of every instance reads, in records
	failures int   // rounds in a row that failed

	// subscribed: the store reports changes. settled: all partitions are ours and nobody else is
	// there, so that until this time nothing is to be read or decided unless a change is reported.
	subscribed bool
	settled    time.Time
}

// holding is a lease of ours, as we last wrote or read it, and who works under it.
type holding struct {
	lease Lease
	pump  *pump
}

// bar keeps a partition that has just failed here from being taken again at once.
type bar struct {
	failures int
	until    time.Time
	left     time.Time // when it was left to others, where there are any
}

// run is the instance's life. It returns when all that it started has ended.
func (c *coordinator) run(ctx context.Context) error {
	if err := c.insist(ctx, "ask for the hub's partitions", c.learn); err != nil {
		return endOf(ctx, c.noHub(err))
	}
	if err := c.insist(ctx, "announce the instance", c.presence.announce); err != nil {
		c.presence.vanish(c.values) // its answer may have been cut off
		return endOf(ctx, c.noGroup(err))
	}
	c.renewAt = c.presence.began.Add(jitter(c.cfg.Renew))
	changed := make(chan struct{}, 1)
	background, stop := context.WithCancel(c.values)
	var helpers sync.WaitGroup
	if s, ok := c.store.(Subscriber); ok { // it reports changes without a goroutine of ours
		c.subscribed = nil == s.Subscribe(background, c.group, func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	}
	if !c.subscribed {
		helpers.Go(func() { c.watch(background, changed) })
	}
	helpers.Go(func() { c.survey(background) })
	err := c.rounds(ctx, changed)
	left := c.leave()
	stop()
	helpers.Wait()
	return errors.Join(err, left)
}

// endOf takes an error for none when the run was to end anyway.
func endOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// rounds makes rounds until ctx ends or nothing can be done about an error: when the next is due,
// when woken, and when something has changed, but then not at once after the round before, as in a
// large group something always changes.
func (c *coordinator) rounds(ctx context.Context, changed <-chan struct{}) error {
	for {
		next, err := c.round(ctx)
		if err != nil {
			return err
		}
		timer := time.NewTimer(time.Until(next))
		for resting, changed := true, changed; resting; {
			select {
			case <-ctx.Done():
				return nil
			case err := <-c.fatal:
				return err
			case <-c.wakeup:
				resting, c.settled = false, time.Time{}
			case <-timer.C:
				resting = false
			case <-changed:
				changed, c.settled = nil, time.Time{}
				timer.Reset(min(time.Until(next), time.Until(c.lastEnd.Add(c.gap()))))
			}
		}
		timer.Stop()
	}
}

// groupReads is how many records all instances of a group read in a second at most when something
// changes all the time. Small groups do not come near it; of a hundred instances with a thousand
// partitions each makes a round a second.
const groupReads = 100_000

// gap is how long changes are left alone after a round.
func (c *coordinator) gap() time.Duration {
	fair := time.Duration(c.load) * time.Second / groupReads
	return min(max(c.cfg.Renew/50, 4*c.lastTook, fair), c.cfg.Renew)
}

// insist tries until it succeeds or that is hopeless: no such hub, or no right to read it, does not
// pass by waiting.
func (in *instance) insist(ctx context.Context, doing string, try func(context.Context) error) error {
	for failures := 1; ; failures++ {
		err := try(ctx)
		if err == nil || errors.Is(err, ErrDuplicateID) || errors.Is(err, hub.ErrNotFound) || errors.Is(err, hub.ErrUnauthorized) || ctx.Err() != nil {
			return err
		}
		in.report(doing, err)
		if err := sleep.For(ctx, in.cfg.Backoff.delay(failures), nil); err != nil {
			return err
		}
	}
}

// jitter shortens a time by up to a tenth.
func jitter(d time.Duration) time.Duration { return d - rand.N(d/10+1) }

// leave stops gracefully: all partitions are drained at once and released as soon as they are, then
// the presence is removed. It takes Config.Stop at most; what was not handed over by then is an
// error. Where only the release is left, and the store does not answer, it waits no longer than leases
// live.
func (c *coordinator) leave() error {
	ctx, cancel := context.WithTimeout(c.values, c.cfg.Stop)
	defer cancel()
	c.presence.leaving = true
	for _, h := range c.held {
		h.pump.drain(ErrShutdown, c.cfg.Stop*3/4)
		h.pump.ownership.hurry(c.cfg.Stop * 3 / 4)
	}
	if len(c.held) > 0 { // else the presence goes away at once
		if err := c.presence.write(ctx); err != nil {
			c.report("announce that the instance stops", err)
		}
	}
	answered := time.Now()
	for (len(c.held) > 0 || c.unsure) && ctx.Err() == nil {
		c.gatherEnded(ctx)
		err := c.keepOn(ctx)
		if err == nil {
			answered = time.Now()
			continue
		}
		c.report("renew and release leases", err)
		if time.Since(answered) > c.cfg.Lease && c.allEnded() {
			break // what is left has run out by itself
		}
		sleep.For(ctx, jitter(c.cfg.Renew/10), nil)
	}
	err := c.abandon()
	if len(c.held) > 0 || c.unsure {
		return err // the presence stays to show that the leases are not foreign; others remove it
	}
	c.wishes.withdraw(ctx)
	c.presence.vanish(ctx)
	return nil
}

// keepOn renews what still drains, and releases the rest.
func (c *coordinator) keepOn(ctx context.Context) error {
	hanging := c.hang && c.due(time.Now())
	if err := c.beat(ctx); err != nil {
		return err
	}
	if c.unsure || hanging {
		if err := c.settle(ctx); err != nil {
			return err
		}
	}
	return c.renew(ctx)
}

// allEnded: no pump runs any more; leases may be left.
func (c *coordinator) allEnded() bool {
	for _, h := range c.held {
		if !h.pump.hasEnded() {
			return false
		}
	}
	return true
}

// gatherEnded waits for the next pump to end, and a moment for others, so that their leases
// are released together.
func (c *coordinator) gatherEnded(ctx context.Context) {
	timer := time.NewTimer(time.Until(c.renewAt))
	defer timer.Stop()
	for {
		if c.allEnded() {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-c.wakeup:
			timer.Reset(min(time.Until(c.renewAt), 20*time.Millisecond))
		}
	}
}

// settle finds out what is ours, also where the stop, or the store, has cut off an answer, and
// releases what was claimed without our knowing.
func (c *coordinator) settle(ctx context.Context) error {
	w, err := c.look(ctx)
	if err != nil {
		return err
	}
	c.reconcile(w)
	var strays []Lease
	for id, l := range w.leases {
		if l.Owner == c.id && c.held[id] == nil {
			strays = append(strays, l.released())
		}
	}
	if len(strays) == 0 || c.presence.duplicated(w) != nil {
		return nil
	}
	return c.write(ctx, time.Now(), strays)
}

// What keeps a partition from being handed over when the processor stops.
var (
	errNotReturned = errors.New("the handler has not returned")
	errNotEnded    = errors.New("hub or store has not answered")
)

// abandon leaves behind what does not end: the contexts of its calls have ended, and its
// lease will. It gives what that is.
func (c *coordinator) abandon() error {
	left := map[error][]string{}
	for id, h := range c.held {
		// Of a pump that has ended only the release of its lease may be missing, which was reported
		// when it was tried.
		if !h.pump.hasEnded() {
			why := errNotEnded
			if h.pump.calls.underWay() {
				why = errNotReturned
			}
			c.reportError(&Error{id, "stop", why})
			left[why] = append(left[why], id)
		}
		h.pump.ownership.lose(ErrLeaseLost)
	}
	var parts []string
	for _, why := range []error{errNotReturned, errNotEnded} {
		if ids := left[why]; len(ids) > 0 {
			sortByPartition(ids, func(id string) string { return id })
			parts = append(parts, "partition "+strings.Join(ids, ", ")+": "+why.Error())
		}
	}
	if parts == nil {
		return nil
	}
	return fmt.Errorf("stop processor: %w: %s", ErrNotHandedOver, strings.Join(parts, "; "))
}

// watch lets the store report changes, where it can, until ctx ends. When it cannot go on it is
// started again; whatever was missed meanwhile the round after that sees.
func (in *instance) watch(ctx context.Context, changed chan<- struct{}) {
	w, ok := in.store.(Watcher)
	if !ok {
		return
	}
	for failures := 1; ; failures++ {
		began := time.Now()
		err := w.Watch(ctx, in.group, in.wake, changed)
		if ctx.Err() != nil || errors.Is(err, errors.ErrUnsupported) {
			return
		}
		if err != nil {
			in.report("watch the store", err)
		}
		if time.Since(began) > in.cfg.Lease {
			failures = 1
		}
		if sleep.For(ctx, in.cfg.Backoff.delay(failures), nil) != nil {
			return
		}
	}
}
