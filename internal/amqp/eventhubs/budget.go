package eventhubs

import (
	"context"
	"sync"
)

// maxUnderWay is how many bytes a connection may have sent that are not stored yet.
// Credit alone does not bound them: a thousand messages of the largest size are a
// gigabyte.
const maxUnderWay = 8 << 20

// budget bounds the bytes under way of one connection. One goroutine takes, the
// connection's reading one; any may give back.
type budget struct {
	mu   sync.Mutex
	used int // guarded by mu
	// freed has room for one word that something was given back.
	freed chan struct{}
}

func newBudget() *budget { return &budget{freed: make(chan struct{}, 1)} }

// take waits until there is room. What is larger than all the room goes alone.
func (b *budget) take(ctx context.Context, n int) error {
	for !b.tryTake(n) {
		select {
		case <-b.freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (b *budget) tryTake(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used > 0 && b.used+n > maxUnderWay {
		return false
	}
	b.used += n
	return true
}

func (b *budget) give(n int) {
	b.mu.Lock()
	b.used -= n
	b.mu.Unlock()
	select {
	case b.freed <- struct{}{}:
	default:
	}
}
