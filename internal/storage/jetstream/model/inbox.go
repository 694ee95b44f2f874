package model

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go"
)

// inbox keeps messages until somebody asks for them.
type inbox struct {
	filled chan struct{} // has a token when there may be something

	mu  sync.Mutex
	all []*nats.Msg // guarded by mu
}

func newInbox() *inbox { return &inbox{filled: make(chan struct{}, 1)} }

func (in *inbox) put(m *nats.Msg) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.all = append(in.all, m)
	select {
	case in.filled <- struct{}{}:
	default:
	}
}

// next waits for a message, until ctx ends.
func (in *inbox) next(ctx context.Context) (*nats.Msg, error) {
	for {
		if m := in.take(); m != nil {
			return m, nil
		}
		select {
		case <-in.filled:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (in *inbox) take() *nats.Msg {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.all) == 0 {
		return nil
	}
	m := in.all[0]
	in.all = in.all[1:]
	return m
}
