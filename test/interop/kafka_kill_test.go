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

// TestKafkaKill kills the yard, or its nodes, again and again while an idempotent producer sends with acks=all. It sends
// what was not answered once more to the yard that comes back, and in the end each record is there once, in the order in
// which it was sent to its partition. // K3
func TestKafkaKill(t *testing.T) {
	t.Parallel()
	y := startKafkaYard(t, layout{hubs: map[string]int{"killed": kafkaPartitions}}, nil)
	k := kafkaTask{address: y.address(), hub: "killed"}
	ctx, cancel := context.WithTimeout(t.Context(), y.patience())
	defer cancel()

	s := newKafkaSender(t, k)
	sending, stop := context.WithCancel(ctx)
	var senders sync.WaitGroup
	for p := range int32(kafkaPartitions) {
		senders.Go(func() { s.send(sending, p) })
	}
	for n := range kafkaKills {
		s.await(t, ctx, int64(n+1)*kafkaBetween)
		y.kill(t)
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

// TestKafkaGroupKill kills the yard, or the node that coordinates them, again and again while two members read in a group
// and commit what they have read. In the end everything that was sent has been read, and a member that comes later begins
// exactly behind what was committed: no commit that was acknowledged is lost, and nobody has to be let in anew. // K2
func TestKafkaGroupKill(t *testing.T) {
	t.Parallel()
	y := startKafkaYard(t, layout{hubs: map[string]int{"grouped": kafkaPartitions}}, nil)
	k := kafkaTask{address: y.address(), hub: "grouped"}
	ctx, cancel := context.WithTimeout(t.Context(), y.patience())
	defer cancel()
	r := k.readInGroup(t, ctx)
	sender := k.franz(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), soon)
	sent := int64(0)
	for range kafkaKills + 1 {
		for n := range int64(400) {
			record := &kgo.Record{Partition: int32(n % kafkaPartitions), Value: fmt.Append(nil, sent)}
			testkit.Must(t, sender.ProduceSync(ctx, record).FirstErr())
			sent++
		}
		r.await(t, ctx, sent)
		if sent <= 400*kafkaKills {
			y.killCoordinator(t, ofGroup, k.group())
		}
	}
	r.check(t, ctx, k)
	y.stop(t)
	t.Logf("proved: %d records read in a group over %d kills, and no commit lost", sent, kafkaKills)
}

// kafkaReaders counts what members of a group have committed.
type kafkaReaders struct {
	grown chan struct{}
	stop  func() // has the members leave, and waits for it

	mu        sync.Mutex
	committed map[int32]int64 // by partition: the highest offset that was acknowledged; guarded by mu
}

// soon has a client try again soon.
var soon = kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond })

// inGroup is how a member is set.
func (k kafkaTask) inGroup() []kgo.Opt {
	return []kgo.Opt{kgo.ConsumerGroup(k.group()), kgo.ConsumeTopics(k.hub), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), soon}
}

// readInGroup has two members read a hub, and commit what they have read.
func (k kafkaTask) readInGroup(t *testing.T, ctx context.Context) *kafkaReaders {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	var members sync.WaitGroup
	r := &kafkaReaders{committed: make(map[int32]int64), grown: make(chan struct{}, 1), stop: func() { cancel(); members.Wait() }}
	t.Cleanup(r.stop)
	for range 2 {
		client := k.franz(t, k.inGroup()...)
		members.Go(func() { r.read(ctx, client) })
	}
	return r
}

// check has the members leave. One that comes later then begins behind everything that was acknowledged.
func (r *kafkaReaders) check(t *testing.T, ctx context.Context, k kafkaTask) {
	t.Helper()
	r.stop()
	late := k.franz(t, k.inGroup()...)
	sender := k.franz(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), soon)
	testkit.Must(t, sender.ProduceSync(ctx, &kgo.Record{Partition: 0, Value: []byte("last")}).FirstErr())
	for found := false; !found; {
		fetches := late.PollFetches(ctx)
		testkit.Must(t, fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) {
			testkit.MustThat(t, record.Offset >= r.committed[record.Partition], "offset %d of partition %d comes again, %d was committed", record.Offset, record.Partition, r.committed[record.Partition])
			found = found || string(record.Value) == "last"
		})
	}
	late.Close()
}

// read reads in a group until ctx ends, and commits what it has read. Then it leaves.
func (r *kafkaReaders) read(ctx context.Context, client *kgo.Client) {
	defer client.Close()
	for ctx.Err() == nil {
		read := make(map[int32]int64)
		client.PollFetches(ctx).EachRecord(func(record *kgo.Record) { read[record.Partition] = record.Offset + 1 })
		// What is refused is read again, by whoever has the partition then.
		if len(read) == 0 || client.CommitUncommittedOffsets(ctx) != nil {
			continue
		}
		r.mu.Lock()
		for p, offset := range read {
			r.committed[p] = max(r.committed[p], offset)
		}
		r.mu.Unlock()
		select {
		case r.grown <- struct{}{}:
		default:
		}
	}
}

// await waits until so much is committed.
func (r *kafkaReaders) await(t *testing.T, ctx context.Context, records int64) {
	t.Helper()
	for {
		r.mu.Lock()
		sum := int64(0)
		for _, offset := range r.committed {
			sum += offset
		}
		r.mu.Unlock()
		if sum >= records {
			return
		}
		select {
		case <-r.grown:
		case <-ctx.Done():
			t.Fatalf("%d records were committed, want %d", sum, records)
		}
	}
}
