package handler

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/kafka/transactions"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Timestamps by which clients ask for offsets that are none.
const (
	atEnd           = -1
	atStart         = -2
	atGreatestTime  = -3
	atStartHere     = -4 // of what is not in remote storage, which there is none of
	atEndRemote     = -5
	atStartOfUpload = -6
)

// nowhere stands for an offset that there is not, or a timestamp.
const nowhere = -1

// listOffsets finds offsets by time. A partition that is named more than once is refused, as Kafka does:
// looking for a time may take reading and unpacking a batch, and no client needs several in one request.
//
// ListOffsets (2), versions 1 to 11.
func (p *peer) listOffsets(ctx context.Context, r *kmsg.ListOffsetsRequest) kmsg.Response {
	answer := kmsg.NewPtrListOffsetsResponse()
	times := make(map[fetchKey]int)
	for _, asked := range r.Topics {
		for _, part := range asked.Partitions {
			times[fetchKey{topic{name: asked.Topic}.folded(), part.Partition}]++
		}
	}
	// The bounds of all are known before anybody looks for transactions: one that began later has nothing before them.
	ends, spans := stableEnds{peer: p, committed: r.IsolationLevel == readCommitted}, make(map[fetchKey]span)
	hubs, missing := make([]broker.Hub, len(r.Topics)), make([]error, len(r.Topics))
	for i, asked := range r.Topics {
		hubs[i], missing[i] = p.find(ctx, topic{name: asked.Topic}, auth.Listen)
		for _, part := range asked.Partitions {
			key := fetchKey{topic{name: asked.Topic}.folded(), part.Partition}
			switch {
			case missing[i] != nil:
				spans[key] = span{err: missing[i]}
			case times[key] > 1:
				spans[key] = span{err: fmt.Errorf("%w: it names partition %d of %.64q more than once", errInvalid, part.Partition, asked.Topic)}
			default:
				spans[key] = p.span(ctx, hubs[i], part)
			}
		}
	}
	for i, asked := range r.Topics {
		t := kmsg.NewListOffsetsResponseTopic()
		t.Topic = asked.Topic
		for _, part := range asked.Partitions {
			one := kmsg.NewListOffsetsResponseTopicPartition()
			one.Partition, one.Timestamp, one.Offset, one.LeaderEpoch = part.Partition, nowhere, nowhere, nowhere
			of := spans[fetchKey{topic{name: asked.Topic}.folded(), part.Partition}]
			if of.err == nil {
				of.err = p.listOffset(ctx, hubs[i], part, of, &ends, &one)
			}
			if of.err != nil {
				one.ErrorCode = p.fail(ctx, "ListOffsets", of.err)
			}
			t.Partitions = append(t.Partitions, one)
		}
		answer.Topics = append(answer.Topics, t)
	}
	return answer
}

// span is what a partition holds: the number of its first event, and that of the next to come.
type span struct {
	first, next eventlog.Sequence
	err         error
}

func (p *peer) span(ctx context.Context, hub broker.Hub, asked kmsg.ListOffsetsRequestTopicPartition) (s span) {
	if s.err = checkEpoch(hub, asked.Partition, asked.CurrentLeaderEpoch); s.err == nil {
		s.first, s.next, s.err = p.bounds(ctx, hub, int(asked.Partition))
	}
	return s
}

// listOffset finds the offset that is asked for of one partition.
func (p *peer) listOffset(ctx context.Context, hub broker.Hub, asked kmsg.ListOffsetsRequestTopicPartition, of span, ends *stableEnds, to *kmsg.ListOffsetsResponseTopicPartition) error {
	first := of.first
	next, err := ends.of(ctx, hub, asked.Partition, first, of.next)
	if err != nil {
		return err
	}
	switch at := asked.Timestamp; {
	case at == atEnd:
		to.Offset = int64(next)
	case at == atStart || at == atStartHere:
		to.Offset = int64(first)
	case at == atEndRemote || at == atStartOfUpload:
	case at == atGreatestTime:
		to.Offset, to.Timestamp, err = p.greatest(ctx, hub, int(asked.Partition))
	case at >= 0:
		to.Offset, to.Timestamp, err = p.since(ctx, hub, int(asked.Partition), at)
	default:
		to.ErrorCode = codeUnsupportedVersion
	}
	if to.Offset > int64(next) || to.Offset == int64(next) && asked.Timestamp != atEnd && asked.Timestamp != atStart && asked.Timestamp != atStartHere {
		to.Offset, to.Timestamp = nowhere, nowhere // it is not committed
	}
	if to.Offset != nowhere {
		to.LeaderEpoch = leaderEpoch
	}
	return err
}

// stableEnds finds where partitions end for a request, be it of who reads what is committed.
type stableEnds struct {
	peer      *peer
	committed bool
	// open are the partitions with transactions that are not decided; nil: nobody has looked.
	open map[transactions.Place]eventlog.Sequence
}

// of gives where a partition ends that has such bounds.
func (s *stableEnds) of(ctx context.Context, hub broker.Hub, number int32, first, next eventlog.Sequence) (eventlog.Sequence, error) {
	if !s.committed {
		return next, nil
	}
	from, open, err := s.undecided(ctx, hub, number)
	if err != nil || !open {
		return next, err
	}
	return s.peer.handler.cfg.Broker.Stable(ctx, hub.Name, strconv.Itoa(int(number)), max(first, from))
}

// undecided says where in a partition to look for transactions that are not decided; open: there are some.
func (s *stableEnds) undecided(ctx context.Context, hub broker.Hub, number int32) (from eventlog.Sequence, open bool, err error) {
	if s.open == nil {
		if s.open, err = s.peer.handler.cfg.Transactions.Open(ctx); err != nil {
			return 0, false, err
		}
	}
	from, open = s.open[transactions.Place{Log: broker.LogOf(s.peer.handler.cfg.Broker, hub.ID), Number: number}]
	return from, open, nil
}

// checkEpoch checks a partition's number, and that its client knows of no later leader than there is.
func checkEpoch(hub broker.Hub, number, epoch int32) error {
	if err := partition(hub, number); err != nil {
		return err
	}
	if epoch > leaderEpoch {
		return errLeaderEpoch
	}
	return nil
}

// bounds gives the number of the first event that a partition holds, and that of the next to come.
func (p *peer) bounds(ctx context.Context, hub broker.Hub, number int) (first, next eventlog.Sequence, err error) {
	return p.handler.cfg.Broker.Span(ctx, hub.Name, strconv.Itoa(number))
}

// since finds the first event of that time or later, by the timestamps of records. It may unpack a batch.
func (p *peer) since(ctx context.Context, hub broker.Hub, number int, ms int64) (offset, timestamp int64, err error) {
	offset, timestamp = nowhere, nowhere
	err = p.eachRun(ctx, hub, number, eventlog.SinceCreated(time.UnixMilli(ms)), func(run eventlog.Run) (more bool, err error) {
		err = eachTime(run, func(o, t int64) bool {
			if t >= ms {
				offset, timestamp = o, t
			}
			return offset == nowhere
		})
		return offset == nowhere, err
	})
	return offset, timestamp, err
}

// greatest finds the first event with the greatest timestamp of all.
func (p *peer) greatest(ctx context.Context, hub broker.Hub, number int) (offset, timestamp int64, err error) {
	offset, timestamp = nowhere, nowhere
	err = p.eachRun(ctx, hub, number, eventlog.GreatestCreated(), func(run eventlog.Run) (more bool, err error) {
		return false, eachTime(run, func(o, t int64) bool {
			if offset == nowhere || t > timestamp {
				offset, timestamp = o, t
			}
			return true
		})
	})
	return offset, timestamp, err
}

// eachRun reads a partition from a position on, until each wants no more. Damage is passed over.
func (p *peer) eachRun(ctx context.Context, hub broker.Hub, number int, at eventlog.Position, each func(eventlog.Run) (more bool, err error)) error {
	for {
		cursor, err := p.handler.cfg.Broker.RawCursor(ctx, hub.Name, strconv.Itoa(number), at)
		if err != nil {
			return err
		}
		err = eachOf(ctx, cursor, each)
		passed := cursor.At()
		_ = cursor.Close() // it has nothing to lose
		damage, ok := errors.AsType[*eventlog.CorruptError](err)
		if !ok || damage.Next <= passed {
			return err
		}
		at = eventlog.At(damage.Next)
	}
}

func eachOf(ctx context.Context, cursor eventlog.Cursor, each func(eventlog.Run) (more bool, err error)) error {
	for {
		run, err := cursor.TryNext(ctx)
		if err != nil || run.Len() == 0 {
			return err
		}
		if more, err := each(run); err != nil || !more {
			return err
		}
	}
}

// eachTime gives offset and timestamp of each event of a run, until each wants no more.
func eachTime(run eventlog.Run, each func(offset, ms int64) bool) error {
	if run.Form == eventlog.FormEvents {
		each(int64(run.First), run.Time.UnixMilli()) // all of them have the same
		return nil
	}
	head, err := record.ReadHead(run.Raw)
	if err != nil {
		return err
	}
	return head.Each(run.Raw, func(i int, r *record.Record) bool {
		return i < run.Skip || each(int64(run.First)+int64(i-run.Skip), r.Timestamp)
	})
}

// offsetsOfEpochs says where leader epochs end. There is one, which ends where the partition does.
//
// OffsetForLeaderEpoch (23), versions 2 to 4.
func (p *peer) offsetsOfEpochs(ctx context.Context, r *kmsg.OffsetForLeaderEpochRequest) kmsg.Response {
	answer := kmsg.NewPtrOffsetForLeaderEpochResponse()
	for _, asked := range r.Topics {
		t := kmsg.NewOffsetForLeaderEpochResponseTopic()
		t.Topic = asked.Topic
		hub, missing := p.find(ctx, topic{name: asked.Topic}, auth.Listen)
		for _, part := range asked.Partitions {
			one := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			one.Partition, one.LeaderEpoch, one.EndOffset = part.Partition, nowhere, nowhere
			err := missing
			if err == nil {
				err = checkEpoch(hub, part.Partition, part.CurrentLeaderEpoch)
			}
			if err == nil && part.LeaderEpoch == leaderEpoch {
				var next eventlog.Sequence
				_, next, err = p.bounds(ctx, hub, int(part.Partition))
				one.LeaderEpoch, one.EndOffset = leaderEpoch, int64(next)
			}
			if err != nil {
				one.ErrorCode, one.LeaderEpoch, one.EndOffset = p.fail(ctx, "OffsetForLeaderEpoch", err), nowhere, nowhere
			}
			t.Partitions = append(t.Partitions, one)
		}
		answer.Topics = append(answer.Topics, t)
	}
	return answer
}
