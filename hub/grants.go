package hub

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/Azure/go-amqp"
)

const nodeClaims = "$cbs"

// renewPause is the least time between two attempts to renew a token.
const renewPause = 5 * time.Second

// grants are the audiences that a connection has put tokens for. A token has to be renewed
// for as long as a link stands on it.
type grants struct {
	// wake is sent on when a grant was added that falls due before the others.
	wake chan struct{}

	mu   sync.Mutex
	held map[string]*grant // guarded by mu
}

// grant is that of one audience.
type grant struct {
	// users is how many links stand on it. One that nobody uses is not renewed.
	users int
	// renew is when; zero: never.
	renew time.Time
	// expires is when the hub takes the right away; zero: not known.
	expires time.Time
}

// authorize puts a token for an audience, unless a good one is there, and keeps it good
// until release.
func (c *connection) authorize(ctx context.Context, audience string) error {
	if c.grants.use(audience, time.Now(), 1) {
		return nil
	}
	t, err := c.put(ctx, audience)
	if err != nil {
		return err
	}
	c.grants.note(audience, t, time.Now(), 1)
	return nil
}

// keep is authorize for those who need the audience as long as the connection lives, and call it
// again and again.
func (c *connection) keep(ctx context.Context, audience string) error {
	if c.grants.use(audience, time.Now(), 0) {
		return nil
	}
	return c.authorize(ctx, audience)
}

// release gives an audience up that authorize has given.
func (c *connection) release(audience string) {
	g := &c.grants
	g.mu.Lock()
	defer g.mu.Unlock()
	if held := g.held[audience]; held != nil {
		if held.users--; held.users <= 0 {
			delete(g.held, audience)
		}
	}
}

// use counts another user, if there is a grant that is not soon at its end.
func (g *grants) use(audience string, now time.Time, users int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := g.held[audience]
	if held == nil || reached(held.renew, now) || reached(held.expires, now) {
		return false
	}
	held.users += users
	return true
}

// reached reports whether a time, if there is one, has come.
func reached(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// note enters a token that was put, for so many more users. One that is at its end already is
// not replaced at once: the next may be no better.
func (g *grants) note(audience string, t token, now time.Time, users int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := g.held[audience]
	if held == nil {
		if users == 0 {
			return // nobody needs it any more
		}
		held = &grant{}
		g.held[audience] = held
	}
	held.users += users
	held.renew, held.expires = t.renew, t.expires
	if soonest := now.Add(renewPause); !t.renew.IsZero() && t.renew.Before(soonest) {
		held.renew = soonest
	}
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// due gives the audiences to renew now, and how long it is until the next; negative: none
// is to come.
func (g *grants) due(now time.Time) (audiences []string, next time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	next = -1
	for audience, held := range g.held {
		if held.renew.IsZero() {
			continue
		}
		if wait := held.renew.Sub(now); wait <= 0 {
			audiences = append(audiences, audience)
		} else if next < 0 || wait < next {
			next = wait
		}
	}
	return audiences, next
}

// postpone is for a renewal that did not succeed: there is another try while the old token
// is good, and after that the hub ends the links that stand on it.
func (g *grants) postpone(audience string, now time.Time, passing bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := g.held[audience]
	if held == nil {
		return
	}
	left := held.expires.Sub(now)
	if held.expires.IsZero() {
		left = unknownLife / 4
	}
	if passing && left > 0 {
		held.renew = now.Add(max(left/4, renewPause))
		return
	}
	held.renew = time.Time{}
	if held.expires.IsZero() {
		held.expires = now // who opens a link asks for another
	}
}

// renew puts new tokens before the old ones expire, for as long as the connection lives.
func (c *connection) renew() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-c.amqp.Done():
			return
		case <-c.grants.wake:
		case <-timer.C:
		}
		audiences, next := c.grants.due(time.Now())
		for _, audience := range audiences {
			ctx, cancel := c.client.bind(context.Background())
			t, err := c.put(ctx, audience)
			cancel()
			switch {
			case err == nil:
				c.grants.note(audience, t, time.Now(), 0)
			case c.alive(): // else all links have ended with it
				v := judge(err, asking)
				c.client.cfg.Log.Warn("a token was not renewed", "audience", audience, "again", v.passing, "error", v.err)
				c.grants.postpone(audience, time.Now(), v.passing)
			}
		}
		if len(audiences) > 0 {
			_, next = c.grants.due(time.Now())
		}
		timer.Stop()
		if next >= 0 {
			timer.Reset(next)
		}
	}
}

// put sends a token for an audience to the hub.
func (c *connection) put(ctx context.Context, audience string) (token, error) {
	t, err := c.client.tokens.get(ctx, audience)
	if err != nil {
		return token{}, err
	}
	expiration := "0" // the official client's word for a token that it did not make
	if !t.renew.IsZero() && !t.expires.IsZero() {
		expiration = strconv.FormatInt(t.expires.Unix(), 10)
	}
	_, err = c.ask(ctx, nodeClaims, &amqp.Message{
		Value: t.text,
		ApplicationProperties: map[string]any{
			"operation": "put-token", "type": t.kind, "name": audience, "expiration": expiration,
		},
	})
	_, unsent := errors.AsType[*unsentError](err)
	if said, ok := errors.AsType[*amqp.Error](err); ok && unsent && said.Condition == amqp.ErrCondNotAllowed {
		// A connection has one pair of links to the node for tokens, and one that was given up is
		// not gone yet.
		err = fmt.Errorf("put a token: %v", err) // not %w: it passes
	}
	return t, err
}
