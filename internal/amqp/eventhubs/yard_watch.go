package eventhubs

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/amqp"
	"github.com/eventyard/eventyard/internal/hubs/groupwire"
	"github.com/eventyard/eventyard/processor"
)

const (
	// pollWait is how long a request waits for something to change.
	pollWait = 20 * time.Second
	// pollGap is how long a watch goes on when nobody asks: a client asks again at once.
	pollGap = 2 * pollWait
	// maxPolls is how many requests of a connection may wait at once: the rest of maxCalls is
	// for those that do something. maxWatches is how many groups a connection may watch.
	maxPolls   = maxCalls / 2
	maxWatches = 32
	// pollLeast is how long a request waits at least before it makes room for another. The
	// longest one is often one whose client has lost interest, of which we hear nothing.
	pollLeast = time.Second
)

var errTooManyPolls = &amqp.Error{
	Condition:   condTooMany,
	Description: fmt.Sprintf("At most %d requests of a connection may wait for changes at once, of %d groups.", maxPolls, maxWatches),
}

// watches are the groups that one connection watches.
//
// A request says what it knows by a token: the watch that gave it, and how many changes that
// had seen. So nothing is missed between one request and the next, as long as the watch goes on
// in between; and where it did not, the token is not known, and counts as a change.
type watches struct {
	peer   *peer
	groups Groups

	mu sync.Mutex
	// byGroup, polls and all of a watch are guarded by mu. Groups go by where their records are,
	// since another of the same name has others. polls are in the order in which they came.
	byGroup map[string]*watch
	polls   []*poll
}

// poll is a request that waits.
type poll struct {
	watch *watch
	began time.Time
	// cut is closed to make room for another.
	cut chan struct{}
}

// watch is one group that is watched.
type watch struct {
	group string // by which it is found
	id    string
	count uint64
	// news is closed, and replaced, at each change.
	news chan struct{}
	// ready is closed when no change will be missed, ended when the watch is over; err is set
	// before.
	ready, ended chan struct{}
	err          error
	stop         context.CancelFunc
	// polls are the requests that wait. While there are none idle is going to stop it.
	polls int
	idle  *time.Timer
}

// poll waits until the group has changed since a token was given, or for a while.
func (a *watches) poll(ctx context.Context, g processor.Group, since string) (any, error) {
	records, err := a.peer.handler.cfg.Broker.GroupRecords(ctx, g.Hub, g.Group)
	if err != nil {
		return nil, err
	}
	p, err := a.enter(g, records.Prefix)
	if err != nil {
		return nil, err
	}
	defer a.leave(p)
	w := p.watch
	select {
	case <-w.ready:
	case <-w.ended:
		return nil, w.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	timeout := time.NewTimer(pollWait)
	defer timeout.Stop()
	for {
		a.mu.Lock()
		token, news := fmt.Sprintf("%s-%d", w.id, w.count), w.news
		a.mu.Unlock()
		if token != since {
			return groupwire.WatchReply{Token: token, Changed: since != ""}, nil
		}
		select {
		case <-news:
		case <-timeout.C:
			return groupwire.WatchReply{Token: token}, nil
		case <-p.cut:
			return groupwire.WatchReply{Token: token}, nil
		case <-w.ended:
			return nil, w.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// enter counts a request that waits, and begins to watch the group if nobody does.
func (a *watches) enter(g processor.Group, key string) (*poll, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := a.byGroup[key]
	if w == nil && len(a.byGroup) >= maxWatches {
		return nil, errTooManyPolls
	}
	if len(a.polls) >= maxPolls { // the oldest makes room
		if time.Since(a.polls[0].began) < pollLeast {
			return nil, errTooManyPolls
		}
		close(a.polls[0].cut)
		a.polls = slices.Delete(a.polls, 0, 1)
	}
	if w == nil {
		var ctx context.Context
		w = &watch{
			group: key, id: rand.Text(),
			news: make(chan struct{}), ready: make(chan struct{}), ended: make(chan struct{}),
		}
		ctx, w.stop = context.WithCancel(a.peer.conn.Context())
		a.byGroup[key] = w
		changed, done := make(chan struct{}, 1), make(chan error, 1)
		a.peer.work.Go(func() { done <- a.groups.Watch(ctx, g, sync.OnceFunc(func() { close(w.ready) }), changed) })
		a.peer.work.Go(func() { a.follow(w, changed, done) })
	}
	if w.polls == 0 && w.idle != nil {
		w.idle.Stop()
	}
	w.polls++
	p := &poll{watch: w, began: time.Now(), cut: make(chan struct{})}
	a.polls = append(a.polls, p)
	return p, nil
}

func (a *watches) leave(p *poll) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.polls = slices.DeleteFunc(a.polls, func(other *poll) bool { return other == p })
	w := p.watch
	if w.polls--; w.polls > 0 || a.byGroup[w.group] != w {
		return
	}
	// A request that comes before the watch has ended begins another one.
	w.idle = time.AfterFunc(pollGap, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if w.polls == 0 && a.byGroup[w.group] == w {
			delete(a.byGroup, w.group)
			w.stop()
		}
	})
}

// follow counts the changes until the watch ends.
func (a *watches) follow(w *watch, changed <-chan struct{}, done <-chan error) {
	for {
		select {
		case <-changed:
			a.mu.Lock()
			w.count++
			close(w.news)
			w.news = make(chan struct{})
			a.mu.Unlock()
		case err := <-done:
			a.end(w, cmp.Or(err, context.Canceled))
			return
		}
	}
}

// end forgets a watch: the next request begins another.
func (a *watches) end(w *watch, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.err = err
	w.stop()
	if w.idle != nil {
		w.idle.Stop()
	}
	if a.byGroup[w.group] == w {
		delete(a.byGroup, w.group)
	}
	close(w.ended)
}
