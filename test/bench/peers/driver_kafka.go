package main

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/test/bench/measure"
)

// franz is franz-go with its defaults, except that nothing is compressed: idempotent, acks=all.
type franz struct {
	secure *tls.Config // nil: plain text
}

func (f franz) client(p peer, more ...kgo.Opt) (*kgo.Client, error) {
	options := []kgo.Opt{kgo.DisableClientMetrics()}
	if f.secure != nil {
		options = append(options, kgo.SeedBrokers(p.address("kafkas")), kgo.DialTLSConfig(f.secure))
	} else {
		options = append(options, kgo.SeedBrokers(p.address("kafka")))
	}
	return kgo.NewClient(append(options, more...)...)
}

func (f franz) create(ctx context.Context, p peer, topic string, partitions int) error {
	client, err := f.client(p)
	if err != nil {
		return err
	}
	defer client.Close()
	request := kmsg.NewPtrCreateTopicsRequest()
	request.TimeoutMillis = 30_000
	one := kmsg.NewCreateTopicsRequestTopic()
	one.Topic, one.NumPartitions, one.ReplicationFactor = topic, int32(partitions), 1
	request.Topics = append(request.Topics, one)
	answer, err := request.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	for _, t := range answer.Topics {
		if t.ErrorCode != 0 {
			return fmt.Errorf("create topic %s: Kafka's error %d", topic, t.ErrorCode)
		}
	}
	return nil
}

func (f franz) remove(ctx context.Context, p peer, topic string) error {
	client, err := f.client(p)
	if err != nil {
		return err
	}
	defer client.Close()
	request := kmsg.NewPtrDeleteTopicsRequest()
	request.TimeoutMillis = 30_000
	request.TopicNames = []string{topic}
	one := kmsg.NewDeleteTopicsRequestTopic()
	one.Topic = kmsg.StringPtr(topic)
	request.Topics = append(request.Topics, one)
	answer, err := request.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("delete topic %s: %w", topic, err)
	}
	for _, t := range answer.Topics {
		if t.ErrorCode != 0 {
			return fmt.Errorf("delete topic %s: Kafka's error %d", topic, t.ErrorCode)
		}
	}
	return nil
}

// franzProducer sends records of one body.
type franzProducer struct {
	client *kgo.Client
	body   []byte
}

func (f franz) producer(ctx context.Context, p peer, topic string, l load) (producer, error) {
	return f.open(ctx, p, topic, l)
}

func (f franz) open(ctx context.Context, p peer, topic string, l load, more ...kgo.Opt) (*franzProducer, error) {
	if err := f.touch(ctx, p, topic, l); err != nil {
		return nil, err
	}
	client, err := f.client(p, append([]kgo.Opt{kgo.DefaultProduceTopic(topic), kgo.ProducerBatchMaxBytes(int32(l.batchBytes)),
		kgo.ProducerBatchCompression(kgo.NoCompression())}, more...)...)
	if err != nil {
		return nil, err
	}
	one := &franzProducer{client: client, body: l.body()}
	// They wait for metadata, for an id as a producer, and for connections.
	first := make([]*kgo.Record, firstRecords)
	for i := range first {
		first[i] = one.record()
	}
	if err := client.ProduceSync(ctx, first...).FirstErr(); err != nil {
		client.Close()
		return nil, fmt.Errorf("the first records: %w", err)
	}
	return one, nil
}

// firstRecords are what each producer begins with, before anything is measured.
const firstRecords = 2

// touch sends a record to each partition. Kafka makes the files of a partition with its topic, a yard when something comes
// for it: neither is a part of what is measured.
func (f franz) touch(ctx context.Context, p peer, topic string, l load) error {
	client, err := f.client(p, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return err
	}
	defer client.Close()
	partitions, err := partitionsOf(ctx, client, topic)
	if err != nil {
		return err
	}
	records, body := make([]*kgo.Record, partitions), l.body()
	for i := range records {
		records[i] = &kgo.Record{Topic: topic, Partition: int32(i), Value: body}
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("a record for each partition: %w", err)
	}
	return nil
}

// partitionsOf is how many partitions a topic has.
func partitionsOf(ctx context.Context, client *kgo.Client, topic string) (int, error) {
	request := kmsg.NewPtrMetadataRequest()
	one := kmsg.NewMetadataRequestTopic()
	one.Topic = kmsg.StringPtr(topic)
	request.Topics = append(request.Topics, one)
	answer, err := request.RequestWith(ctx, client)
	if err != nil {
		return 0, fmt.Errorf("partitions of topic %s: %w", topic, err)
	}
	for _, t := range answer.Topics {
		if t.ErrorCode == 0 && len(t.Partitions) > 0 {
			return len(t.Partitions), nil
		}
	}
	return 0, fmt.Errorf("there is no topic %s", topic)
}

func (p *franzProducer) record() *kgo.Record { return &kgo.Record{Value: p.body} }

func (p *franzProducer) close() { p.client.Close() }

func (p *franzProducer) send(ctx context.Context, lim limit) (int64, error) {
	var acknowledged atomic.Int64
	var failed onceError
	done := func(_ *kgo.Record, err error) {
		if err != nil {
			failed.set(err)
			return
		}
		acknowledged.Add(1)
	}
	for c := lim.begin(); c.next(1) && failed.get() == nil; {
		p.client.Produce(ctx, p.record(), done)
	}
	err := p.client.Flush(ctx)
	return acknowledged.Load(), errors.Join(err, failed.get())
}

func (f franz) consume(ctx context.Context, p peer, topic string, _ load, events int64) error {
	client, err := f.client(p, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer client.Close()
	for n := int64(0); n < events; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("after %d of %d events: %w", n, events, err)
		}
		n += int64(fetches.NumRecords())
	}
	return nil
}

func (franz) drains() bool { return false }

// latencies sends events one by one at a steady rate, and gives how long each took until it was read. The time counts
// from when an event was due, so that a sender who is held up does not hide it. A tenth more is sent before, to warm
// up.
func (f franz) latencies(ctx context.Context, p peer, topic string, l load, perSecond, count int) (_ []time.Duration, err error) {
	// The sender sleeps in the kernel, and is not to take a processor from the client meanwhile.
	before := runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	defer runtime.GOMAXPROCS(before)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reader, err := f.client(p, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	// The records with which this sender begins have no time in them, and are read first.
	sender, err := f.open(ctx, p, topic, load{eventBytes: l.eventBytes, batchBytes: l.batchBytes}, kgo.ProducerLinger(0))
	if err != nil {
		return nil, err
	}
	defer sender.close()
	partitions, err := partitionsOf(ctx, reader, topic)
	if err != nil {
		return nil, err
	}
	for n := 0; n < partitions+firstRecords; {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		n += fetches.NumRecords()
	}
	warm := count/10 + 1
	began := time.Now()
	sent := make(chan error, 1)
	go func() {
		sent <- sender.pace(ctx, began, perSecond, warm+count, nil)
	}()
	all := make([]time.Duration, 0, warm+count)
	for len(all) < warm+count {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			cancel()
			return nil, errors.Join(err, <-sent)
		}
		now := time.Since(began)
		fetches.EachRecord(func(r *kgo.Record) {
			all = append(all, now-time.Duration(binary.LittleEndian.Uint64(r.Value)))
		})
	}
	return all[warm:], <-sent
}

// pace sends events when they are due; each carries that time. A sender that was held up catches up. took, if any, is
// called for each acknowledgement. Without a count it goes on until the context ends, which is no error then.
func (p *franzProducer) pace(ctx context.Context, began time.Time, perSecond, count int, took func(time.Duration)) error {
	var failed onceError
	for i := 0; (i < count || count == 0) && ctx.Err() == nil && failed.get() == nil; i++ {
		due := time.Duration(i) * time.Second / time.Duration(perSecond)
		measure.SleepUntil(began.Add(due))
		body := slices.Clone(p.body)
		binary.LittleEndian.PutUint64(body, uint64(due))
		p.client.Produce(context.WithoutCancel(ctx), &kgo.Record{Value: body}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.set(err)
			} else if took != nil {
				took(time.Since(began) - due)
			}
		})
	}
	err := p.client.Flush(context.WithoutCancel(ctx))
	return errors.Join(err, failed.get())
}

// onceError keeps the first error of many callbacks.
type onceError struct{ first atomic.Pointer[error] }

func (e *onceError) set(err error) { e.first.CompareAndSwap(nil, &err) }

func (e *onceError) get() error {
	if err := e.first.Load(); err != nil {
		return *err
	}
	return nil
}
