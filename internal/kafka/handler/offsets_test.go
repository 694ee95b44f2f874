package handler

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/testkit"
)

// offset asks for the offset of a time.
func (c *client) offset(version int16, hub string, partition int32, ms int64) kmsg.ListOffsetsResponseTopicPartition {
	c.t.Helper()
	r := kmsg.NewPtrListOffsetsRequest()
	r.ReplicaID = -1
	part := kmsg.NewListOffsetsRequestTopicPartition()
	part.Partition, part.Timestamp, part.CurrentLeaderEpoch = partition, ms, -1
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic, topic.Partitions = hub, []kmsg.ListOffsetsRequestTopicPartition{part}
	r.Topics = append(r.Topics, topic)
	return ask[*kmsg.ListOffsetsResponse](c, version, r).Topics[0].Partitions[0]
}

// K1: offsets are found by their names and by the timestamps of records, also inside packed batches.
func TestOffsetsByTime(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 2)
	c := y.client()
	for _, b := range []batch{
		{values: []string{"a", "b"}, times: []int64{base, base + 10}},
		{values: []string{"c", "d", "e"}, times: []int64{base + 20, base + 90, base + 30}, codec: 4},
		{values: []string{"f"}, times: []int64{base + 40}},
	} {
		testkit.MustEqual(t, c.produce(hub, 0, b).ErrorCode, codeNone)
	}
	tests := []struct {
		what           string
		at             int64
		offset, stamps int64
	}{
		{"the end", atEnd, 6, nowhere},
		{"the start", atStart, 0, nowhere},
		{"the start here", atStartHere, 0, nowhere},
		{"the end of what is elsewhere", atEndRemote, nowhere, nowhere},
		{"the greatest time", atGreatestTime, 3, base + 90},
		{"before all", 1, 0, base},
		{"one of the first batch", base + 1, 1, base + 10},
		{"in a packed batch", base + 21, 3, base + 90},
		{"the first of a packed batch", base + 20, 2, base + 20},
		{"behind all", base + 91, nowhere, nowhere},
	}
	for _, tt := range tests {
		for _, version := range []int16{1, 4, 11} {
			got := c.offset(version, "orders", 0, tt.at)
			testkit.Equal(t, got.ErrorCode, codeNone, "code of %s", tt.what)
			testkit.Equal(t, got.Offset, tt.offset, "offset of %s", tt.what)
			testkit.Equal(t, got.Timestamp, tt.stamps, "timestamp of %s", tt.what)
		}
	}
	for _, at := range []int64{atEnd, atStart} {
		testkit.Equal(t, c.offset(11, "orders", 1, at).Offset, int64(0), "offset in an empty partition")
	}
	for _, at := range []int64{atGreatestTime, 5} {
		testkit.Equal(t, c.offset(11, "orders", 1, at).Offset, int64(nowhere), "offset by time in an empty partition")
	}
	testkit.Equal(t, c.offset(11, "orders", 0, -9).ErrorCode, codeUnsupportedVersion, "code of a time that is none")
	testkit.Equal(t, c.offset(11, "orders", 2, atEnd).ErrorCode, codeUnknownTopic, "code of a partition that is not there")
	testkit.Equal(t, c.offset(11, "nobody", 0, atEnd).ErrorCode, codeUnknownTopic, "code of a hub that is not there")
}

// K6: a partition is looked at once for each request, by whatever spellings it is named: else one request
// could have a packed batch unpacked a hundred thousand times.
func TestAPartitionIsAskedForOnce(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 2)
	c := y.client()
	testkit.MustEqual(t, c.produce(hub, 0, values("a")).ErrorCode, codeNone)
	r := kmsg.NewPtrListOffsetsRequest()
	r.ReplicaID = -1
	for _, name := range []string{"orders", "ORDERS"} {
		for i, numbers := 0, []int32{0, 1}; i < len(numbers); i++ {
			part := kmsg.NewListOffsetsRequestTopicPartition()
			part.Partition, part.Timestamp, part.CurrentLeaderEpoch = numbers[i], base, -1
			topic := kmsg.NewListOffsetsRequestTopic()
			topic.Topic, topic.Partitions = name, []kmsg.ListOffsetsRequestTopicPartition{part}
			r.Topics = append(r.Topics, topic)
		}
	}
	r.Topics = r.Topics[:3] // partition 0 by both names, partition 1 by one
	got := ask[*kmsg.ListOffsetsResponse](c, 11, r).Topics
	testkit.Equal(t, got[0].Partitions[0].ErrorCode, codeInvalidRequest, "code of one that is named twice")
	testkit.Equal(t, got[0].Partitions[0].Offset, int64(nowhere), "its offset")
	testkit.Equal(t, got[2].Partitions[0].ErrorCode, codeInvalidRequest, "code by the other name")
	testkit.Equal(t, got[1].Partitions[0].ErrorCode, codeNone, "code of the partition that is named once")
	testkit.Equal(t, c.offset(11, "orders", 0, base).Offset, int64(0), "offset in a request of its own")
}

// Events of other listeners have the time at which they were stored.
func TestOffsetsOfSingleEvents(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	c := y.client()
	y.publish("orders", "0", "a", "b")
	stored := testkit.Value(y.broker.Partition(t.Context(), "orders", "0"))(t).LastTime.UnixMilli()
	got := c.offset(11, "orders", 0, stored)
	testkit.Equal(t, got.Offset, int64(0), "offset")
	testkit.Equal(t, got.Timestamp, stored, "timestamp")
	testkit.Equal(t, c.offset(11, "orders", 0, stored+1).Offset, int64(nowhere), "offset behind")
	testkit.Equal(t, c.offset(11, "orders", 0, atGreatestTime).Offset, int64(0), "offset of the greatest")
	testkit.That(t, time.Since(time.UnixMilli(stored)) < time.Hour, "it was stored at %d", stored)
}

func TestTheEndOfALeaderEpoch(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 1)
	c := y.client()
	y.publish("orders", "0", "a", "b", "c")
	end := func(hub broker.Hub, current, epoch int32) kmsg.OffsetForLeaderEpochResponseTopicPartition {
		r := kmsg.NewPtrOffsetForLeaderEpochRequest()
		part := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		part.CurrentLeaderEpoch, part.LeaderEpoch = current, epoch
		topic := kmsg.NewOffsetForLeaderEpochRequestTopic()
		topic.Topic, topic.Partitions = hub.Name, []kmsg.OffsetForLeaderEpochRequestTopicPartition{part}
		r.Topics = append(r.Topics, topic)
		return ask[*kmsg.OffsetForLeaderEpochResponse](c, 4, r).Topics[0].Partitions[0]
	}
	testkit.Equal(t, end(hub, 0, 0).EndOffset, int64(3), "the end of the only one")
	testkit.Equal(t, end(hub, -1, 0).LeaderEpoch, int32(0), "its number")
	testkit.Equal(t, end(hub, 0, 1).EndOffset, int64(nowhere), "the end of one that there never was")
	testkit.Equal(t, end(hub, 1, 0).ErrorCode, codeUnknownEpoch, "code for who knows a later one")
	testkit.Equal(t, end(broker.Hub{Name: "nobody"}, 0, 0).ErrorCode, codeUnknownTopic, "code of a hub that is not there")
}
