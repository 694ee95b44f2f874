package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/eventyard/eventyard/hub"
)

// linkRoom is how many readers and writers share a client, far below what a connection may have: what breaks one concerns few functions. A hub
// with more partitions has a client to itself.
const linkRoom = 200

// links are the clients that functions have. A function may need a reader and a writer of poison events for each partition; so many functions share a client as it has
// room for, since each costs memory and goroutines.
type links struct {
	dial func(ctx context.Context) (*hub.Client, error)

	mu   sync.Mutex
	open []*link // guarded by mu: those that have room, or had
}

type link struct {
	client *hub.Client
	used   int // guarded by links.mu
}

// get gives a client that has room, and dials if there is none. Who has got it gives it back.
func (l *links) get(ctx context.Context, need int) (*link, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.open {
		if one.used+need <= linkRoom {
			one.used += need
			return one, nil
		}
	}
	if l.dial == nil {
		return nil, errors.New("this yard cannot be dialled")
	}
	client, err := l.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("dial the yard: %w", err)
	}
	one := &link{client, need}
	l.open = append(l.open, one)
	return one, nil
}

// giveBack is called with what was asked for. One that is broken nobody else gets, and the last closes it.
func (l *links) giveBack(one *link, need int, broken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one.used -= need
	if broken || one.used == 0 {
		l.open = slices.DeleteFunc(l.open, func(other *link) bool { return other == one })
	}
	if one.used == 0 {
		_ = one.client.Close()
	}
}
