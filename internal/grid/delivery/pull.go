package delivery

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/tracing"
)

const (
	// maxHeld is how many events of a subscription pullers may hold at once.
	maxHeld = 10_000
	// attended is how long after a receiver's last call its subscription counts as received from:
	// its events wait in memory so long, and in the log only after that.
	attended = 30 * time.Second
)

// Received is an event that a puller holds.
type Received struct {
	Token    string
	Delivery int // 1 for the first
	Form     schema.Form
	Event    []byte
	Topic    string
	// Trace is what stands beside the event: see pending.Delivery.
	Trace tracing.Context `json:",omitzero"`
}

// ErrLockLost: the lock has expired, or the yard was restarted; the event comes again.
// ErrToken: it is no token of this subscription.
var (
	ErrLockLost = errors.New("lock was lost")
	ErrToken    = errors.New("not a lock token of this subscription")
)

// pullers is who receives from a lane, and what they hold. It is the lane's; guarded by lane.mu.
type pullers struct {
	waiting int       // calls that are under way
	last    time.Time // when one was
	// arrived is closed when there is something to receive; nil: nobody waits for it.
	arrived chan struct{}
	held    map[string]hold
	// nextLapse is not after the first lock's end; zero: none is held.
	nextLapse time.Time
}

// hold is an event in somebody's hands.
type hold struct {
	token string
	item  *item
	until time.Time
}

func (p *pullers) until() time.Time { return p.last.Add(attended) }

func (p *pullers) notify(ready bool) {
	if ready && p.arrived != nil {
		close(p.arrived)
		p.arrived = nil
	}
}

func (p *pullers) hold(h hold) {
	if p.held == nil {
		p.held = make(map[string]hold)
	}
	p.held[h.token] = h
	p.nextLapse = earlier(p.nextLapse, h.until)
}

// lapse takes what was held for too long out of its receivers' hands.
func (p *pullers) lapse(now time.Time) []*item {
	if p.nextLapse.IsZero() || now.Before(p.nextLapse) {
		return nil
	}
	var lapsed []*item
	p.nextLapse = time.Time{}
	for token, h := range p.held {
		if now.Before(h.until) {
			p.nextLapse = earlier(p.nextLapse, h.until)
			continue
		}
		delete(p.held, token)
		lapsed = append(lapsed, h.item)
	}
	return lapsed
}

// unlock takes what tokens of a subscription stand for out of the receivers' hands, or renews it
// there until a time.
func (p *pullers) unlock(id string, tokens []string, renew bool, until time.Time) ([]Settled, []hold) {
	settled := make([]Settled, len(tokens))
	var holds []hold
	for i, token := range tokens {
		settled[i].Token = token
		h, ok := p.held[token]
		switch {
		case !ok && isToken(id, token):
			settled[i].Err = ErrLockLost
		case !ok:
			settled[i].Err = ErrToken
		case renew:
			h.until = until
			p.held[token] = h
		default:
			delete(p.held, token)
			holds = append(holds, h)
		}
	}
	return settled, holds
}

// newToken is a lock's. isToken reports whether one may have been given out for a subscription.
func newToken(id string) string { return id + "." + rand.Text() }

func isToken(id, token string) bool {
	prefix, secret, ok := strings.Cut(token, ".")
	return ok && prefix == id && len(secret) == len(rand.Text())
}

// Receive gives up to max events of a pull subscription: at once where there are any, else when
// one comes, none after wait.
func (s *Service) Receive(ctx context.Context, subscription string, max int, wait time.Duration) ([]Received, error) {
	return s.ReceiveUpTo(ctx, subscription, max, math.MaxInt, wait)
}

// ReceiveUpTo is Receive of events that measure no more than maxBytes all together; a larger one
// comes alone.
func (s *Service) ReceiveUpTo(ctx context.Context, subscription string, max, maxBytes int, wait time.Duration) ([]Received, error) {
	l, err := s.lane(subscription)
	if err != nil {
		return nil, err
	}
	l.attend(1)
	defer l.attend(-1)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		got, arrived, err := l.receive(max, maxBytes)
		if len(got) > 0 || err != nil {
			return got, err
		}
		select {
		case <-arrived:
		case <-timer.C:
			return nil, nil
		case <-s.stopping:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (l *lane) attend(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.pull.waiting += n
	l.pull.last = now
	l.pokeLocked(now)
}

// receive hands out what is there, or says what to wait for.
func (l *lane) receive(most, maxBytes int) ([]Received, <-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.gone:
		return nil, nil, ErrNotFound
	case l.moved:
		return nil, nil, shards.ErrElsewhere
	case !l.terms.pull:
		return nil, nil, ErrNotPull
	}
	now := time.Now()
	var got []Received
	for size := 0; len(got) < max(most, 1) && l.receivableLocked(); {
		if size += len(l.memory.queue.ready.at(0).Event); size > maxBytes && len(got) > 0 {
			break
		}
		it := l.memory.queue.ready.pop()
		l.memory.queue.out(it)
		if l.terms.expired(it, now) {
			l.memory.expired = append(l.memory.expired, it)
			continue
		}
		it.LastAttempt = now
		token := newToken(l.id)
		l.pull.hold(hold{token, it, now.Add(l.terms.lock)})
		got = append(got, Received{
			Token: token, Delivery: it.Attempts + 1, Form: it.Form, Event: it.Event, Topic: l.source.resource, Trace: it.Trace,
		})
	}
	l.pokeLocked(now)
	if len(got) > 0 {
		return got, nil, nil
	}
	if l.pull.arrived == nil {
		l.pull.arrived = make(chan struct{})
	}
	return nil, l.pull.arrived, nil
}

// receivableLocked reports whether there is something to be handed out.
func (l *lane) receivableLocked() bool {
	return l.memory.queue.ready.len() > 0 && l.terms.pull && l.terms.hold == "" && len(l.pull.held) < maxHeld
}
