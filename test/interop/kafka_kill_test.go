//go:build linux

package interop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/eventyard/eventyard/internal/testkit"
)

const (
	kafkaKills = 3
	// kafkaBetween is how many records are acknowledged between one kill and the next.
	kafkaBetween = 2000
)

// TestKafkaKill kills the yard again and again while an idempotent producer sends with acks=all. It sends what was not
// answered once more to the yard that comes back, and in the end each record is there once, in the order in which it
// was sent to its partition. // K3
func TestKafkaKill(t *testing.T) {
	onOneMachine(t, "it kills one process")
	t.Parallel()
	l := layout{kafka: true, build: checkedBuild, hubs: map[string]int{"killed": kafkaPartitions}}
	listeners, data := l.listeners(), "data: "+t.TempDir()
	listeners["kafka"] = "127.0.0.1:" + ownPort(t)
	start := func() *yard {
		y := l.launch(t, data, listeners)
		y.await(t)
		return y
	}
	y := start()
	k := kafkaTask{address: listeners["kafka"], hub: "killed"}
	ctx, cancel := context.WithTimeout(t.Context(), kafkaTime)
	defer cancel()

	s := newKafkaSender(t, k)
	sending, stop := context.WithCancel(ctx)
	var senders sync.WaitGroup
	for p := range int32(kafkaPartitions) {
		senders.Go(func() { s.send(sending, p) })
	}
	for n := range kafkaKills {
		s.await(t, ctx, int64(n+1)*kafkaBetween)
		y.kill()
		y = start()
	}
	s.await(t, ctx, (kafkaKills+1)*kafkaBetween)
	stop()
	senders.Wait()
	testkit.Must(t, s.client.Flush(ctx))
	testkit.Must(t, s.failed(), "a record was given up")

	reader := k.franz(t, k.fromTheBeginning())
	next := make([]int, kafkaPartitions)
	for read := int64(0); read < s.acked.Load(); {
		fetches := reader.PollFetches(ctx)
		testkit.Must(t, fetches.Err(), "%d of %d were read", read, s.acked.Load())
		fetches.EachRecord(func(r *kgo.Record) {
			testkit.MustEqual(t, string(r.Value), fmt.Sprint(next[r.Partition]), "the record at offset %d of partition %d", r.Offset, r.Partition)
			next[r.Partition]++
			read++
		})
	}
	y.stop(t)
	t.Logf("proved: %d records over %d kills, each of them once and in order", s.acked.Load(), kafkaKills)
}

// kafkaSender counts what is acknowledged.
type kafkaSender struct {
	client *kgo.Client
	acked  atomic.Int64
	grown  chan struct{}

	mu  sync.Mutex
	err error // guarded by mu
}

func newKafkaSender(t *testing.T, k kafkaTask) *kafkaSender {
	t.Helper()
	return &kafkaSender{grown: make(chan struct{}, 1), client: k.franz(t,
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.MaxBufferedRecords(500),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
	)}
}

// send sends the numbers from zero on to a partition until ctx ends.
func (s *kafkaSender) send(ctx context.Context, partition int32) {
	for n := 0; ctx.Err() == nil; n++ {
		// Not by ctx: what has begun to be sent is sent.
		s.client.Produce(context.WithoutCancel(ctx), &kgo.Record{Partition: partition, Value: fmt.Append(nil, n)}, s.answered)
	}
}

func (s *kafkaSender) answered(_ *kgo.Record, err error) {
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = errors.Join(s.err, err)
		return
	}
	s.acked.Add(1)
	select {
	case s.grown <- struct{}{}:
	default:
	}
}

func (s *kafkaSender) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// await waits until so many records were acknowledged.
func (s *kafkaSender) await(t *testing.T, ctx context.Context, acked int64) {
	t.Helper()
	for s.acked.Load() < acked {
		testkit.Must(t, s.failed(), "a record was given up")
		select {
		case <-s.grown:
		case <-ctx.Done():
			t.Fatalf("%d records were acknowledged, want %d", s.acked.Load(), acked)
		}
	}
}
