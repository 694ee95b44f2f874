package handler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K1: what producers of every version send, packed in any way, is stored as it came.
func TestProduceAndFetchInEveryVersion(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 2)
	c := y.client()
	var want []string
	for version := int16(3); version <= 13; version++ {
		codec := version % int16(len(codecs))
		value := fmt.Sprintf("%s by %d", codecs[codec], version)
		part := c.produceBy(version, produceRequest(t, hub, 1, batch{codec: codec, values: []string{value}}))
		testkit.Equal(t, part.ErrorCode, codeNone, "code of version %d", version)
		testkit.Equal(t, part.BaseOffset, int64(len(want)), "offset of version %d", version)
		want = append(want, fmt.Sprintf("%d:%s", len(want), value))
	}
	for version := int16(10); version <= 18; version++ {
		part := c.fetchBy(version, fetchRequest(at{hub, 1, 0}))
		wantRecords(t, part, want...)
		testkit.Equal(t, part.HighWatermark, int64(len(want)), "end in version %d", version)
		testkit.Equal(t, part.LastStableOffset, int64(len(want)), "stable end in version %d", version)
		testkit.Equal(t, part.LogStartOffset, int64(0), "start in version %d", version)
	}
}

// K4: what Kafka's producers send comes to all other readers as single events.
func TestWhatIsProducedIsReadAsEvents(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 1)
	c := y.client()
	for codec := range codecs {
		testkit.Equal(t, c.produce(hub, 0, batch{codec: int16(codec), values: []string{"a" + codecs[codec], "b"}}).ErrorCode, codeNone)
	}
	cursor := testkit.Value(y.broker.Cursor(t.Context(), "orders", broker.DefaultGroup, "0", eventlog.Earliest()))(t)
	testkit.Equal(t, len(storagetest.ReadAll(t, cursor)), 2*len(codecs), "events")
}

// K3: an idempotent producer that sends again what is stored hears where, and nothing is stored twice.
func TestIdempotentRepeats(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 1)
	c := y.client()
	id := ask[*kmsg.InitProducerIDResponse](c, 5, kmsg.NewPtrInitProducerIDRequest())
	testkit.MustEqual(t, id.ErrorCode, codeNone)
	testkit.Equal(t, id.ProducerEpoch, int16(0), "epoch")
	send := func(first int32, all ...string) kmsg.ProduceResponseTopicPartition {
		return c.produce(hub, 0, batch{values: all, producer: id.ProducerID, first: first})
	}
	testkit.Equal(t, send(0, "a", "b").BaseOffset, int64(0))
	testkit.Equal(t, send(2, "c").BaseOffset, int64(2))
	testkit.Equal(t, send(0, "a", "b").BaseOffset, int64(0), "the first again")
	testkit.Equal(t, send(2, "c").BaseOffset, int64(2), "the second again")
	testkit.Equal(t, send(7, "z").ErrorCode, codeOutOfOrder, "one that skips")
	for i := range int32(6) {
		testkit.Equal(t, send(3+i, "d").ErrorCode, codeNone)
	}
	testkit.Equal(t, send(0, "a", "b").ErrorCode, codeDuplicate, "what is older than five batches")
	wantRecords(t, c.fetch(hub, 0, 0), "0:a", "1:b", "2:c", "3:d", "4:d", "5:d", "6:d", "7:d", "8:d")
}

// An epoch ends those before it.
func TestAnOlderEpochIsFenced(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 1)
	c := y.client()
	testkit.Equal(t, c.produce(hub, 0, batch{values: []string{"new"}, producer: 77, epoch: 2}).ErrorCode, codeNone)
	testkit.Equal(t, c.produce(hub, 0, batch{values: []string{"old"}, producer: 77, epoch: 1}).ErrorCode, codeProducerEpoch)
}

// Several requests are under way at once, and are answered in their order.
func TestProduceIsPipelined(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 1)
	c := y.client()
	var requests []kmsg.Request
	for i := range 20 {
		r := produceRequest(t, hub, 0, values(fmt.Sprint(i)))
		c.send(13, r)
		requests = append(requests, r)
	}
	for i, r := range requests {
		answer := c.receive(r).(*kmsg.ProduceResponse)
		testkit.Equal(t, answer.Topics[0].Partitions[0].BaseOffset, int64(i), "offset")
	}
}

// Each partition of a request fares by itself.
func TestWhatIsRefused(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 2)
	c := y.client()
	broken := values("x").raw(t)
	broken[len(broken)-1]++
	twice := append(values("x").raw(t), values("y").raw(t)...)
	tests := []struct {
		what   string
		change func(*kmsg.ProduceRequest, *kmsg.ProduceRequestTopicPartition)
		code   int16
	}{
		{"another checksum", func(_ *kmsg.ProduceRequest, p *kmsg.ProduceRequestTopicPartition) { p.Records = broken }, codeCorrupt},
		{"two batches", func(_ *kmsg.ProduceRequest, p *kmsg.ProduceRequestTopicPartition) { p.Records = twice }, codeInvalidRecord},
		{"no batch", func(_ *kmsg.ProduceRequest, p *kmsg.ProduceRequestTopicPartition) { p.Records = nil }, codeInvalidRecord},
		{"a batch too large", func(_ *kmsg.ProduceRequest, p *kmsg.ProduceRequestTopicPartition) {
			p.Records = make([]byte, record.MaxBatchBytes+1)
		}, codeTooLarge},
		{"no such partition", func(_ *kmsg.ProduceRequest, p *kmsg.ProduceRequestTopicPartition) { p.Partition = 9 }, codeUnknownTopic},
		{"a partition below zero", func(_ *kmsg.ProduceRequest, p *kmsg.ProduceRequestTopicPartition) { p.Partition = -1 }, codeUnknownTopic},
		{"acks of two", func(r *kmsg.ProduceRequest, _ *kmsg.ProduceRequestTopicPartition) { r.Acks = 2 }, codeAcks},
		{"a transaction", func(r *kmsg.ProduceRequest, _ *kmsg.ProduceRequestTopicPartition) {
			r.TransactionID = kmsg.StringPtr("t")
		}, codeInvalidRecord},
		{"no such id", func(r *kmsg.ProduceRequest, _ *kmsg.ProduceRequestTopicPartition) { r.Topics[0].TopicID[0]++ }, codeUnknownID},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			r := produceRequest(t, hub, 0, values("refused"))
			good := r.Topics[0].Partitions[0]
			good.Partition = 1
			tt.change(r, &r.Topics[0].Partitions[0])
			whole := r.Acks != acksAll || r.TransactionID != nil || r.Topics[0].TopicID != hub.ID
			r.Topics[0].Partitions = append(r.Topics[0].Partitions, good)
			parts := ask[*kmsg.ProduceResponse](c, 13, r).Topics[0].Partitions
			testkit.Equal(t, parts[0].ErrorCode, tt.code, "code")
			testkit.Equal(t, parts[0].BaseOffset, int64(-1), "offset")
			testkit.That(t, parts[0].ErrorMessage != nil && *parts[0].ErrorMessage != "", "there is no text")
			testkit.Equal(t, parts[1].ErrorCode == codeNone, !whole, "the other partition was stored")
		})
	}
	r := produceRequest(t, hub, 0, values("x"))
	r.Topics[0].Topic = "nobody"
	testkit.Equal(t, c.produceBy(12, r).ErrorCode, codeUnknownTopic, "code of a hub that is not there")
	wantRecords(t, c.fetch(hub, 0, 0))
}

// The partitions of a request commit at once: none is waited for before all have started.
func TestPartitionsOfARequestCommitAtOnce(t *testing.T) {
	y := newYard(t)
	const partitions = 3
	orders, bills := y.hub("orders", partitions), y.hub("bills", 1)
	r := produceRequest(t, orders, 0, values("x"))
	for partition := int32(1); partition < partitions; partition++ {
		r.Topics[0].Partitions = append(r.Topics[0].Partitions, produceRequest(t, orders, partition, values("x")).Topics[0].Partitions...)
	}
	r.Topics = append(r.Topics, produceRequest(t, bills, 0, values("x")).Topics...)
	var mu sync.Mutex
	started := map[eventlog.PartitionID]bool{} // guarded by mu
	y.storage.Engine.Inject(func(op logtest.Op) error {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case op.Kind == logtest.OpStart:
			started[op.ID] = true
		case op.Kind == logtest.OpWait && len(started) <= partitions:
			return fmt.Errorf("%v is waited for, and only %v have started: %w", op.ID, started, eventlog.ErrUnavailable)
		}
		return nil
	})
	for _, topic := range ask[*kmsg.ProduceResponse](y.client(), 13, r).Topics {
		for _, p := range topic.Partitions {
			testkit.Equal(t, p.ErrorCode, codeNone, "%v/%d: %v", topic.TopicID, p.Partition, p.ErrorMessage)
		}
	}
	y.storage.Engine.Inject(nil)
	testkit.Equal(t, y.storage.Engine.Count(logtest.OpWait), partitions+1, "waits")
}

// Storage that fails is reported so that clients send again.
func TestStorageFailures(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 1)
	c := y.client()
	for err, code := range map[error]int16{
		eventlog.ErrNoSpace: codeStorage, eventlog.ErrUnavailable: codeStorage, eventlog.ErrUncertain: codeTimedOut,
	} {
		y.storage.Engine.Fail(err, logtest.OpWait)
		testkit.Equal(t, c.produce(hub, 0, values("x")).ErrorCode, code, "code of %v", err)
	}
	y.storage.Engine.Inject(nil)
	testkit.Equal(t, c.produce(hub, 0, values("y")).ErrorCode, codeNone, "code once it is well")
}

// acks 0: there is no answer, and what could not be stored ends the connection.
func TestProducersThatWantNoAnswer(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 1)
	c := y.client()
	r := produceRequest(t, hub, 0, values("a"))
	r.Acks = acksNone
	c.send(13, r)
	testkit.Equal(t, c.produce(hub, 0, values("b")).BaseOffset, int64(1), "the next offset")
	wantRecords(t, c.fetch(hub, 0, 0), "0:a", "1:b")

	r.Topics[0].Partitions[0].Partition = 5
	c.send(13, r)
	c.ended()
}

// R4: a producer beyond its quota is slowed down, and hears of it when that takes too long.
func TestQuotasSlowProducersDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newClosedYard(t)
		hub := y.hub("orders", 1)
		y.policy("", "sender", auth.Send)
		c := y.login("sender")
		limit := func(events int64) {
			_, err := y.policies.Limit(t.Context(), "", "sender", func(l *quota.Limit) { l.Events = events })
			testkit.Must(t, err)
		}
		limit(1)
		start := time.Now()
		for range 3 {
			testkit.Equal(t, c.produce(hub, 0, values("x")).ErrorCode, codeNone)
		}
		testkit.That(t, time.Since(start) >= time.Second, "three events at one a second took %v", time.Since(start))

		r := produceRequest(t, hub, 0, values(make([]string, 100)...))
		testkit.Equal(t, c.produceBy(13, r).ErrorCode, codeNone, "code of a batch of a hundred")
		answer := ask[*kmsg.ProduceResponse](c, 13, produceRequest(t, hub, 0, values("y")))
		testkit.Equal(t, answer.Topics[0].Partitions[0].ErrorCode, codeTimedOut, "code of the one behind")
		testkit.That(t, answer.ThrottleMillis > 0, "it does not say for how long")
	})
}

// What was submitted is stored although its client has left.
func TestAClientThatLeaves(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 1)
	c := y.client()
	c.send(13, produceRequest(t, hub, 0, values("a")))
	testkit.Must(t, c.conn.Close())
	testkit.Eventually(t, "the event is stored", func() bool {
		info, err := y.broker.Partition(context.WithoutCancel(t.Context()), hub.Name, "0")
		return err == nil && info.Last == 0
	})
}

var errSurprise = errors.New("surprise")

// What nobody expected is our fault: it is logged, and the client hears no details.
func TestSurprises(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 1)
	y.log.Want(1)
	y.storage.Engine.Inject(func(op logtest.Op) error {
		if op.Kind == logtest.OpWait {
			return errSurprise
		}
		return nil
	})
	part := y.client().produce(hub, 0, values("x"))
	testkit.Equal(t, part.ErrorCode, codeUnknown)
	testkit.Equal(t, *part.ErrorMessage, "the yard could not do it; its log has more")
}

// K1: where the topic says so records have the time at which they are stored, for all readers and in the answer. A
// repeat of an idempotent producer is stored as little as ever.
func TestRecordsOfTheTimeOfStoringThem(t *testing.T) {
	y := newYard(t)
	c := y.client()
	testkit.MustEqual(t, ask[*kmsg.CreateTopicsResponse](c, 7, creation("orders", 1, "message.timestamp.type", "LogAppendTime")).Topics[0].ErrorCode, codeNone)
	hub := testkit.Value(y.broker.Hub("orders"))(t)
	_, all := c.shown(kmsg.ConfigResourceTypeTopic, "orders", "message.timestamp.type")
	testkit.Equal(t, all["message.timestamp.type"], "LogAppendTime", "what is shown")
	var times []int64
	for codec := range codecs {
		before := time.Now().UnixMilli()
		part := c.produce(hub, 0, batch{codec: int16(codec), values: []string{"a", "b"}, producer: 77, first: int32(2 * codec)})
		testkit.MustEqual(t, part.ErrorCode, codeNone)
		testkit.That(t, part.LogAppendTime >= before && part.LogAppendTime <= time.Now().UnixMilli(), "stored at %d, not before %d", part.LogAppendTime, before)
		times = append(times, part.LogAppendTime)
	}
	again := c.produce(hub, 0, batch{codec: int16(len(codecs) - 1), values: []string{"a", "b"}, producer: 77, first: int32(2 * (len(codecs) - 1))})
	testkit.Equal(t, again.BaseOffset, int64(2*(len(codecs)-1)), "where the repeat is")
	raw := testkit.Value(y.broker.RawCursor(t.Context(), "orders", "0", eventlog.Earliest()))(t)
	defer func() { testkit.Must(t, raw.Close()) }()
	for i, at := range times {
		run := testkit.Value(raw.Next(t.Context()))(t)
		testkit.Equal(t, run.Time.UnixMilli(), at, "time of storing batch %d", i)
		h := testkit.Value(record.ReadHead(run.Raw))(t)
		testkit.Must(t, h.Each(run.Raw, func(_ int, r *record.Record) bool {
			testkit.Equal(t, r.Timestamp, at, "timestamp in batch %d", i)
			return true
		}))
		_, err := record.Check(run.Raw)
		testkit.ErrorIs(t, err, record.ErrInvalid, "the checksum is right, and only the attribute is not for clients")
	}
	testkit.Equal(t, c.offset(11, "orders", 0, base+1).Offset, int64(0), "the first record after a time that is later than its producer said")
	bounds := testkit.Value(y.broker.Partition(t.Context(), "orders", "0"))(t)
	testkit.Equal(t, bounds.Last, eventlog.Sequence(2*len(codecs)-1), "the last offset")
}
