package delivery

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// postman is a sender that delivers to nobody, and answers as the test says.
type postman struct {
	t    testing.TB
	real *webhook.Sender

	mu sync.Mutex
	// answer decides; nil: everything is delivered at once. Guarded by mu.
	answer func(ctx context.Context, d drop) webhook.Result
	drops  []drop // guarded by mu
	now    int    // requests under way; guarded by mu
	most   int    // guarded by mu
	// preparing is how long Prepare takes; guarded by mu.
	preparing time.Duration
}

// drop is one request.
type drop struct {
	at       time.Time
	sub      string // name
	ids      []string
	attempts []int // made before
	result   webhook.Result
}

func newPostman(t testing.TB) *postman {
	client, err := egress.New(egress.Config{Transport: http.DefaultTransport})
	testkit.Must(t, err)
	t.Cleanup(client.Close)
	return &postman{t: t, real: webhook.New(webhook.Config{Client: client})}
}

// Prepare is the real one's.
func (p *postman) Prepare(s *topics.Subscription, topic string) (*webhook.Order, error) {
	if strings.HasPrefix(s.Name, "unusable") {
		return nil, errors.New("the test wants it so")
	}
	p.mu.Lock()
	preparing := p.preparing
	p.mu.Unlock()
	time.Sleep(preparing)
	return p.real.Prepare(s, topic)
}

func (p *postman) Deliver(ctx context.Context, o *webhook.Order, batch []*pending.Delivery) webhook.Result {
	d := drop{at: time.Now(), sub: o.Subscription.Name}
	for _, x := range batch {
		d.ids = append(d.ids, eventID(&item{Delivery: *x}))
		d.attempts = append(d.attempts, x.Attempts)
	}
	p.mu.Lock()
	answer := p.answer
	p.now++
	p.most = max(p.most, p.now)
	p.mu.Unlock()
	result := ok()
	if answer != nil {
		result = answer(ctx, d)
	}
	result.Began, result.Took = d.at, time.Since(d.at)
	d.result = result
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now--
	p.drops = append(p.drops, d)
	return result
}

// says sets the answer.
func (p *postman) says(answer func(ctx context.Context, d drop) webhook.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

// prepares has Prepare take so long.
func (p *postman) prepares(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.preparing = d
}

// always answers the same.
func (p *postman) always(r webhook.Result) {
	p.says(func(context.Context, drop) webhook.Result { return r })
}

// after answers the same, after a while.
func (p *postman) after(d time.Duration, r webhook.Result) {
	p.says(func(context.Context, drop) webhook.Result {
		time.Sleep(d)
		return r
	})
}

// fails answers one subscription so, and delivers to the others.
func (p *postman) fails(sub string, r webhook.Result) {
	p.says(func(_ context.Context, d drop) webhook.Result {
		if d.sub == sub {
			return r
		}
		return ok()
	})
}

// all gives the requests that have ended, of a subscription or (empty) of all.
func (p *postman) all(sub string) []drop {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.drops), func(d drop) bool { return sub != "" && d.sub != sub })
}

// delivered are the ids that were taken, repeats included.
func (p *postman) delivered(sub string) (ids []string) {
	for _, d := range p.all(sub) {
		if d.result.Outcome == retry.Delivered {
			ids = append(ids, d.ids...)
		}
	}
	return ids
}

// underWay is how many requests are, and the most that ever were at once.
func (p *postman) underWay() (now, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now, p.most
}

func (p *postman) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drops = nil
}

func ok() webhook.Result { return status(200) }

func status(code int) webhook.Result {
	return webhook.Result{Status: code, Outcome: retry.Classify(code)}
}

func outcome(o retry.Outcome) webhook.Result { return webhook.Result{Outcome: o} }

// plugSender reaches nobody when the process is dead.
type plugSender struct {
	*postman
	plug *plug
}

func (c plugSender) Deliver(ctx context.Context, o *webhook.Order, batch []*pending.Delivery) webhook.Result {
	if c.plug.check() != nil {
		return outcome(retry.Canceled)
	}
	r := c.postman.Deliver(ctx, o, batch)
	if c.plug.check() != nil {
		return outcome(retry.Canceled)
	}
	return r
}

// graveyard keeps dead letters.
type graveyard struct {
	mu      sync.Mutex
	letters []pending.Delivery // guarded by mu
	refuse  error              // guarded by mu
	puts    int                // guarded by mu
}

func (g *graveyard) Put(_ context.Context, _ *topics.Subscription, deliveries []pending.Delivery) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.puts++
	if g.refuse != nil {
		return g.refuse
	}
	g.letters = append(g.letters, deliveries...)
	return nil
}

func (g *graveyard) refuses(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuse = err
}

func (g *graveyard) all() []pending.Delivery {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.letters)
}

// ids of those that died for a reason, or (empty) any.
func (g *graveyard) ids(reason string) (ids []string) {
	for _, p := range g.all() {
		if reason == "" || p.Reason == reason {
			ids = append(ids, eventID(&item{Delivery: p}))
		}
	}
	return ids
}

// of are the ids of a subscription's.
func (g *graveyard) of(subscription string) (ids []string) {
	for _, p := range g.all() {
		if p.Subscription == subscription {
			ids = append(ids, eventID(&item{Delivery: p}))
		}
	}
	return ids
}

type plugDead struct {
	*graveyard
	plug *plug
}

func (d plugDead) Put(ctx context.Context, sub *topics.Subscription, deliveries []pending.Delivery) error {
	if err := d.plug.check(); err != nil {
		return err
	}
	return d.graveyard.Put(ctx, sub, deliveries)
}
