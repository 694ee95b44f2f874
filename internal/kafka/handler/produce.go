package handler

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka"
	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/kafka/transactions/txn"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/tracing"
)

// What producers may want to hear: nothing, or that a batch is stored. One copy and all are alike:
// what is acknowledged is as durable as the engine promises.
const (
	acksNone = 0
	acksOne  = 1
	acksAll  = -1
)

// quotaPatience is how long a batch waits for room in a quota. Meanwhile nothing is read from the
// connection: so clients slow down that know no other way. Who has waited so long in vain sends again.
const quotaPatience = 10 * time.Second

// production is a Produce request under way.
type production struct {
	peer    *peer
	request *kafka.Produce
	version int16
	answer  *kmsg.ProduceResponse
	rights  rights
	// deadline is that of waits for a quota.
	deadline time.Time

	// hub is that of the topic whose partitions are being read, refused why there is none to write to.
	hub     broker.Hub
	refused error
	frame   [1]eventlog.Batch
	pending []pendingPart
	// broken is why the request could not be read to its end.
	broken error
}

// pendingPart is what was submitted to a partition, and where its answer belongs.
type pendingPart struct {
	frames           *broker.PendingFrames
	span             tracing.Span // nil: none
	topic, partition int
	// timed: the records have the time at which they are stored.
	timed bool
}

// produce submits the batches of a request, and has all its partitions commit at once.
//
// Produce (0), versions 3 to 13; from 13 on by id. A request has one batch for each partition.
func (p *peer) produce(ctx context.Context, r *kafka.Request) kafka.Finish {
	b := &production{peer: p, request: r.Produce, version: r.Version, answer: kmsg.NewPtrProduceResponse(), rights: p.rights()}
	r.Produce.Settle = b.settle
	b.deadline = time.Now().Add(min(max(r.Produce.Timeout, time.Second), quotaPatience))
	for n := 0; ; n++ {
		part, ok := r.Produce.Next()
		if !ok {
			b.broken = r.Produce.Err()
			break
		}
		if n == maxProduced {
			b.broken = fmt.Errorf("%w: Produce has more than %d partitions", errInvalid, maxProduced)
			break
		}
		b.add(ctx, part)
	}
	b.start()
	return b.finish
}

// maxProduced is to how many partitions one request may write. Its answer is in memory as a whole.
const maxProduced = 50_000

// add submits what a request has for one partition.
func (b *production) add(ctx context.Context, part kafka.ProducePartition) {
	if part.FirstOfTopic || len(b.answer.Topics) == 0 {
		t := kmsg.NewProduceResponseTopic()
		t.Topic, t.TopicID = part.Topic, part.TopicID
		b.answer.Topics = append(b.answer.Topics, t)
		b.hub, b.refused = b.open(ctx, topic{part.Topic, part.TopicID, b.version >= 13})
	}
	at := len(b.answer.Topics) - 1
	t := &b.answer.Topics[at]
	one := kmsg.NewProduceResponseTopicPartition()
	one.Partition, one.BaseOffset, one.LogAppendTime, one.LogStartOffset = part.Partition, -1, -1, -1
	span := b.span(ctx, part)
	if frames, err := b.submit(ctx, part); err != nil {
		tracing.End(span, err)
		b.fail(ctx, &one, err)
	} else {
		b.pending = append(b.pending, pendingPart{frames, span, at, len(t.Partitions), b.hub.Frames.AppendTime})
	}
	t.Partitions = append(t.Partitions, one)
}

// open finds a hub that the client may write to.
func (b *production) open(ctx context.Context, t topic) (broker.Hub, error) {
	if acks := b.request.Acks; acks != acksNone && acks != acksOne && acks != acksAll {
		return broker.Hub{}, errAcks
	}
	return b.peer.find(ctx, t, auth.Send)
}

// submit hands a batch to the broker, once it was looked at.
func (b *production) submit(ctx context.Context, part kafka.ProducePartition) (*broker.PendingFrames, error) {
	if b.refused != nil {
		return nil, b.refused
	}
	if err := partition(b.hub, part.Partition); err != nil {
		return nil, err
	}
	frame, err := frameOf(part, maxBytesOf(b.hub.Frames))
	if err != nil {
		return nil, err
	}
	if b.hub.Frames.AppendTime {
		frame = record.Timed(frame)
	}
	b.frame[0] = frame
	to := broker.FrameTarget{Partition: int(part.Partition), Account: accountOf(b.rights), Quota: b.peer.quota(b.rights), Created: b.hub.Created}
	if err := b.inTransaction(frame, &to); err != nil {
		return nil, err
	}
	for {
		frames, err := b.peer.handler.cfg.Broker.SubmitFrames(ctx, b.hub.Name, to, b.frame[:])
		full, throttled := errors.AsType[*quota.Error](err)
		if !throttled || time.Now().Add(full.Wait).After(b.deadline) {
			return frames, err
		}
		b.peer.handler.metrics.throttled.Inc()
		waited, ended := b.request.Pause(ctx, full.Wait)
		if ended != nil {
			return nil, ended
		}
		if !waited { // memory is scarce: the client has to wait, and not its batches
			b.deadline = time.Now()
		}
	}
}

// What a batch has before its length, and after which there are that many bytes.
const (
	lengthAt    = 8
	beforeBytes = 12
)

// frameOf checks the one batch that a request has for a partition, which may measure so much.
func frameOf(part kafka.ProducePartition, maxBytes int) (eventlog.Batch, error) {
	raw := part.Records
	if part.TooLarge || len(raw) > maxBytes {
		return eventlog.Batch{}, fmt.Errorf("%w: it may have %d bytes", record.ErrTooLarge, maxBytes)
	}
	if len(raw) == 0 {
		return eventlog.Batch{}, fmt.Errorf("%w: there is none for partition %d", record.ErrInvalid, part.Partition)
	}
	if len(raw) > beforeBytes {
		if size := int(binary.BigEndian.Uint32(raw[lengthAt:])) + beforeBytes; size < len(raw) {
			return eventlog.Batch{}, fmt.Errorf("%w: there is more than one for partition %d, or bytes behind it", record.ErrInvalid, part.Partition)
		}
	}
	return record.Check(raw)
}

// inTransaction sees to it that a batch of a transaction is stored in one that goes on, and no other in any.
func (b *production) inTransaction(frame eventlog.Batch, to *broker.FrameTarget) error {
	id := b.request.Transactional
	if (frame.Form == eventlog.FormTransaction) != (id != nil) {
		return fmt.Errorf("%w: a batch has to say that it is of a transaction where the request does, and not elsewhere", record.ErrInvalid)
	}
	if id != nil {
		name, by := strings.Clone(*id), txn.Claim{Producer: frame.Producer.ID, Epoch: frame.Producer.Epoch}
		log, number := broker.LogOf(b.peer.handler.cfg.Broker, b.hub.ID), int32(to.Partition)
		to.Verify = func(ctx context.Context) error {
			err := b.peer.handler.cfg.Transactions.Verify(ctx, name, by, log, number)
			if errors.Is(err, txn.ErrFenced) {
				err = fmt.Errorf("%w: %w", broker.ErrProducerFenced, err)
			}
			return err
		}
	}
	return nil
}

// start has what was submitted committed, without waiting for it.
func (b *production) start() {
	for _, p := range b.pending {
		p.frames.Start()
	}
}

// settle waits until what was submitted is stored, also when the connection has ended, and notes where.
func (b *production) settle() {
	b.start()
	b.wait()
}

func (b *production) wait() {
	ctx := b.peer.conn.Context()
	for _, p := range b.pending {
		to := &b.answer.Topics[p.topic].Partitions[p.partition]
		stored, err := p.frames.Wait(context.WithoutCancel(ctx))
		tracing.End(p.span, err)
		if err != nil {
			b.fail(ctx, to, err)
			continue
		}
		to.BaseOffset = int64(stored.First)
		if p.timed && !stored.Time.IsZero() { // of a repeat nobody remembers it
			to.LogAppendTime = stored.Time.UnixMilli()
		}
	}
	clear(b.pending) // they lead to what was stored
	b.pending = b.pending[:0]
}

// fail reports that a batch was not stored, or may not have been.
func (b *production) fail(ctx context.Context, to *kmsg.ProduceResponseTopicPartition, err error) {
	to.ErrorCode, to.ErrorMessage = b.peer.explain(ctx, "Produce", err)
	if full, ok := errors.AsType[*quota.Error](err); ok {
		b.answer.ThrottleMillis = max(b.answer.ThrottleMillis, int32(full.Pause().Milliseconds()))
	}
}

// finish answers when all is stored, and says so to who wants to hear it.
func (b *production) finish(_ context.Context, w *kafka.Writer) error {
	b.wait()
	if b.broken != nil {
		return fmt.Errorf("read Produce: %w", b.broken)
	}
	err := b.failure(w)
	switch {
	case b.request.Acks != acksNone:
		return w.Respond(b.answer)
	case err != nil:
		return err // the only way to say so: there is no answer
	}
	w.Nothing()
	return nil
}

// failure counts the errors of the answer, and gives one of them.
func (b *production) failure(w *kafka.Writer) (err error) {
	for _, t := range b.answer.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != codeNone {
				w.Failed(p.ErrorCode)
				err = fmt.Errorf("a batch for %.64q/%d was not stored, and its producer wants no answer: code %d", t.Topic, p.Partition, p.ErrorCode)
			}
		}
	}
	return err
}
