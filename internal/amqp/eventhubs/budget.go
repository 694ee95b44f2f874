package eventhubs

import (
	"context"
	"sync"
)

const (
	// maxUnderWay is how many bytes a connection may have sent that are not stored yet. Credit
	// alone does not bound them: a thousand messages of the largest size are a gigabyte.
	maxUnderWay = 8 << 20
	// deliveryOverheadBytes is what each message counts besides its own bytes: the
	// goroutine that waits for it and what else remembers it. Without it a connection with
	// many links could have any number of empty ones under way.
	deliveryOverheadBytes = 1 << 10
)

// budget bounds the bytes of the messages that one connection has under way. Only the
// connection's reading goroutine takes; any goroutine may give back.
type budget struct {
	mu   sync.Mutex
	used int // guarded by mu
	// freed holds one signal that something was given back.
	freed chan struct{}
}

func newBudget() *budget { return &budget{freed: make(chan struct{}, 1)} }

// take waits until there is room for a message. What is larger than all the room goes alone.
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
	n += deliveryOverheadBytes
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used > 0 && b.used+n > maxUnderWay {
		return false
	}
	b.used += n
	return true
}

// give is for each message that was taken, when it is settled.
func (b *budget) give(n int) {
	b.mu.Lock()
	b.used -= n + deliveryOverheadBytes
	b.mu.Unlock()
	select {
	case b.freed <- struct{}{}:
	default:
	}
}
