package handler

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K1: records before an offset are deleted, -1 being all; what cannot be is refused by itself.
func TestDeletingRecords(t *testing.T) {
	for version := range int16(3) {
		y := newYard(t)
		hub := y.hub("orders", 2)
		c := y.client()
		testkit.MustEqual(t, c.produce(hub, 0, values("a", "b", "c")).ErrorCode, codeNone)
		testkit.MustEqual(t, c.produce(hub, 1, values("x", "y")).ErrorCode, codeNone)
		type part = kmsg.DeleteRecordsRequestTopicPartition
		remove := func(topic string, parts ...part) []kmsg.DeleteRecordsResponseTopicPartition {
			r := kmsg.NewPtrDeleteRecordsRequest()
			r.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: topic, Partitions: parts}}
			return ask[*kmsg.DeleteRecordsResponse](c, version, r).Topics[0].Partitions
		}
		got := remove("orders", part{Partition: 0, Offset: 2}, part{Partition: 1, Offset: 3}, part{Partition: 2})
		testkit.Equal(t, got[0].ErrorCode, codeNone)
		testkit.Equal(t, got[0].LowWatermark, int64(2))
		testkit.Equal(t, got[1].ErrorCode, codeOffsetOutOfRange, "beyond the end")
		testkit.Equal(t, got[1].LowWatermark, int64(nowhere))
		testkit.Equal(t, got[2].ErrorCode, codeUnknownTopic, "no such partition")
		testkit.Equal(t, remove("nobody", part{})[0].ErrorCode, codeUnknownTopic)
		testkit.Equal(t, remove("orders", part{}, part{})[1].ErrorCode, codeInvalidRequest, "named twice")
		testkit.Equal(t, c.offset(1, "orders", 0, atStart).Offset, int64(2))
		testkit.Equal(t, c.fetch(hub, 0, 0).ErrorCode, codeOffsetOutOfRange, "fetched from before")
		testkit.Equal(t, remove("ORDERS", part{Partition: 1, Offset: -1})[0].LowWatermark, int64(2))
		testkit.Equal(t, c.offset(1, "orders", 1, atStart).Offset, int64(2))
		testkit.MustEqual(t, c.produce(hub, 1, values("z")).ErrorCode, codeNone)
		wantRecords(t, c.fetch(hub, 1, 2), "2:z")
	}
}

// K1, R1: the definition of a hub is stored once, however many of its partitions a request names.
func TestDeletingRecordsOfManyPartitions(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 20)
	c := y.client()
	r := kmsg.NewPtrDeleteRecordsRequest()
	r.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: "orders"}}
	for n := range int32(20) {
		testkit.MustEqual(t, c.produce(hub, n, values("a", "b")).ErrorCode, codeNone)
		r.Topics[0].Partitions = append(r.Topics[0].Partitions, kmsg.DeleteRecordsRequestTopicPartition{Partition: n, Offset: 1})
	}
	r.Topics[0].Partitions[7].Offset = 5
	writes := 0
	y.storage.Meta.Inject(func(op metatest.Op) error {
		if op.Kind == metatest.OpSet && op.Under("hubs/") {
			writes++
		}
		return nil
	})
	got := ask[*kmsg.DeleteRecordsResponse](c, 2, r).Topics[0].Partitions
	y.storage.Meta.Inject(nil)
	testkit.Equal(t, writes, 1, "writes of the definition")
	for n, part := range got {
		want, low := codeNone, int64(1)
		if n == 7 {
			want, low = codeOffsetOutOfRange, nowhere
		}
		testkit.Equal(t, part.ErrorCode, want, "partition %d", n)
		testkit.Equal(t, part.LowWatermark, low, "partition %d", n)
	}
}

// K1: tools hear of the idempotent producers of a partition, each once.
func TestProducersAreDescribed(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 2)
	c := y.client()
	b := values("a", "b")
	b.producer, b.epoch = 42, 3
	testkit.MustEqual(t, c.produce(hub, 0, b).ErrorCode, codeNone)
	r := kmsg.NewPtrDescribeProducersRequest()
	r.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: "orders", Partitions: []int32{0, 0, 1, 9}}, {Topic: "nobody", Partitions: []int32{0}}}
	got := ask[*kmsg.DescribeProducersResponse](c, 0, r).Topics
	testkit.MustEqual(t, len(got[0].Partitions), 3, "partitions")
	first := got[0].Partitions[0]
	testkit.MustEqual(t, len(first.ActiveProducers), 1, "producers")
	one := first.ActiveProducers[0]
	testkit.That(t, one.ProducerID == 42 && one.ProducerEpoch == 3 && one.LastSequence == 1 && one.CurrentTxnStartOffset == -1, "it is %+v", one)
	testkit.That(t, one.LastTimestamp > base/2, "it was used at %d", one.LastTimestamp)
	testkit.Equal(t, len(got[0].Partitions[1].ActiveProducers), 0, "producers of the other partition")
	testkit.Equal(t, got[0].Partitions[2].ErrorCode, codeUnknownTopic)
	testkit.Equal(t, got[1].Partitions[0].ErrorCode, codeUnknownTopic)
}
