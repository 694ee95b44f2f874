//go:build linux

package interop

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/testkit"
)

// historyReaders read what is committed while producers are at work, by Kafka, through what is in front of the yard, and over AMQP.
type historyReaders struct {
	// at is where AMQP is spoken, after each start of the yard somewhere else.
	at   atomic.Pointer[string]
	both sync.WaitGroup

	// By partition, what they were given. Read after both is done.
	byKafka, byAMQP [][]string
	failed          error // that of Kafka's, which goes on trying until its time is up
}

func startHistoryReaders(t *testing.T, ctx context.Context, k kafkaTask, at string) *historyReaders {
	t.Helper()
	r := &historyReaders{byAMQP: make([][]string, kafkaPartitions)}
	r.lead(at)
	ctx, cancel := context.WithCancel(ctx)
	t.Cleanup(func() { cancel(); r.both.Wait() })
	reader := k.historyReader(t)
	r.both.Go(func() { r.byKafka, r.failed = readUntilLast(ctx, reader) })
	for partition := range kafkaPartitions {
		r.both.Go(func() { r.follow(ctx, partition) })
	}
	return r
}

// lead says where AMQP is spoken now.
func (r *historyReaders) lead(at string) { r.at.Store(&at) }

// wait returns when they have everything.
func (r *historyReaders) wait(t *testing.T) {
	t.Helper()
	r.both.Wait()
	testkit.Must(t, r.failed, "the reader that was there all the time")
}

// follow reads a partition over AMQP to its end. When a connection ends it goes on by another, behind what it has.
func (r *historyReaders) follow(ctx context.Context, partition int) {
	behind := any("-1")
	for !r.readOn(ctx, partition, &behind) {
		select {
		case <-time.After(50 * time.Millisecond): // as Kafka's do, see soon
		case <-ctx.Done():
			return
		}
	}
}

// readOn reads a partition behind an offset until the end, or until the connection has ended.
func (r *historyReaders) readOn(ctx context.Context, partition int, behind *any) (ended bool) {
	p, err := dialPeer(ctx, *r.at.Load())
	if err != nil {
		return false
	}
	defer p.close()
	receiver, err := p.session.NewReceiver(ctx, fmt.Sprintf("%s/ConsumerGroups/$Default/Partitions/%d", historyHub, partition), &amqp.ReceiverOptions{
		Credit: 100, Filters: []amqp.LinkFilter{amqp.NewSelectorFilter(fmt.Sprintf("amqp.annotation.x-opt-offset > '%v'", *behind))},
	})
	if err != nil {
		return false
	}
	for {
		m, err := receiver.Receive(ctx, nil)
		if err != nil {
			return false
		}
		if string(m.GetData()) == historyLast {
			return true
		}
		r.byAMQP[partition] = append(r.byAMQP[partition], string(m.GetData()))
		*behind = m.Annotations["x-opt-offset"]
		if receiver.AcceptMessage(ctx, m) != nil {
			return false
		}
	}
}
