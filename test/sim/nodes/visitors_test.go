package nodes

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// visitor is a receiver with an epoch, for a while.
type visitor struct {
	name string
	n    *node
	*broker.Receiver

	mu      sync.Mutex
	evicted bool // guarded by mu
}

// may reports whether something would go to the visitor's client now; reckless: it does not ask.
func (v *visitor) may(reckless bool) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return !v.evicted && v.n.serving.Load() && !v.n.frozen() && (reckless || v.Ready(func() {}))
}

// visit sends receivers to a partition, one after the other or at once, until ctx ends.
func (y *yard) visit(ctx context.Context, partition int) {
	r := luck(y.plan.seed, fmt.Sprint("visits ", partition))
	var visits sync.WaitGroup
	defer visits.Wait()
	for number := 0; rests(ctx, between(r, time.Second, 20*time.Second)); number++ {
		n, epoch, stays := y.node(r), r.Int64N(3), between(r, time.Second, 40*time.Second)
		name := fmt.Sprintf("v%d.%d", partition, number)
		visits.Go(func() { y.visitOnce(n, partition, name, epoch, stays) })
	}
}

func (y *yard) visitOnce(n *node, partition int, name string, epoch int64, stays time.Duration) {
	asking, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	v := &visitor{name: name, n: n}
	var err error
	v.Receiver, err = call(asking, n, func(ctx context.Context) (*broker.Receiver, error) {
		return n.broker.Receive(ctx, broker.ReceiverConfig{
			Hub: hubName, Group: visitors, Partition: strconv.Itoa(partition), At: eventlog.Latest(), Epoch: &epoch, Name: name,
			Evict: func(*broker.EvictedError) {
				v.mu.Lock()
				defer v.mu.Unlock()
				v.evicted = true
			},
		})
	}, leave)
	if err != nil {
		return
	}
	y.judge.enters(partition, v)
	until, cancel := context.WithTimeout(n.life, stays)
	defer cancel()
	for rests(until, 250*time.Millisecond) {
		y.judge.look(partition)
	}
	y.judge.goes(partition, v)
	leave(v.Receiver)
}

func leave(r *broker.Receiver) {
	r.Close()
	r.Cursor.Close()
}
