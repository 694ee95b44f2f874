package handler

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K4: events of every listener come to Kafka's clients, in the order of the partition.
func TestFetchWhatOthersHaveSent(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 1)
	c := y.client()
	var want []string
	for i := range 10 {
		y.publish("orders", "0", fmt.Sprintf("amqp %d", i), "second")
		testkit.MustEqual(t, c.produce(hub, 0, values(fmt.Sprintf("kafka %d", i))).ErrorCode, codeNone)
		want = append(want, fmt.Sprintf("%d:amqp %d", 3*i, i), fmt.Sprintf("%d:second", 3*i+1), fmt.Sprintf("%d:kafka %d", 3*i+2, i))
	}
	for version := int16(4); version <= 18; version++ {
		wantRecords(t, c.fetchBy(version, fetchRequest(at{hub, 0, 0})), want...)
	}
}

// Kafka's batches by themselves come as they are stored, also where other events follow.
func TestFetchALargeStretchBeforeOtherEvents(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 1)
	c := y.client()
	large := strings.Repeat("x", largeBytes)
	testkit.MustEqual(t, c.produce(hub, 0, values(large)).ErrorCode, codeNone)
	y.publish("orders", "0", "behind")
	wantRecords(t, c.fetch(hub, 0, 0), "0:"+large)
	wantRecords(t, c.fetch(hub, 0, 1), "1:behind")
}

// A fetch from the middle of a batch gives all of it; clients drop what is before.
func TestFetchFromTheMiddle(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 1)
	c := y.client()
	testkit.MustEqual(t, c.produce(hub, 0, values("a", "b", "c")).ErrorCode, codeNone)
	y.publish("orders", "0", "d", "e", "f")
	wantRecords(t, c.fetch(hub, 0, 1), "0:a", "1:b", "2:c", "3:d", "4:e", "5:f")
	wantRecords(t, c.fetch(hub, 0, 4), "4:e", "5:f")
}

func TestOffsetsThatThereAreNot(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 1)
	c := y.client()
	y.publish("orders", "0", "a")
	for offset, code := range map[int64]int16{-1: codeOffsetOutOfRange, 0: codeNone, 1: codeNone, 2: codeOffsetOutOfRange} {
		part := c.fetch(hub, 0, offset)
		testkit.Equal(t, part.ErrorCode, code, "code of offset %d", offset)
		if code != codeNone {
			testkit.Equal(t, part.HighWatermark, int64(-1), "end with offset %d", offset)
		}
	}
}

func TestPartitionsThatCannotBeRead(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 1)
	c := y.client()
	testkit.Equal(t, c.fetch(hub, 1, 0).ErrorCode, codeUnknownTopic, "a partition that is not there")
	testkit.Equal(t, c.fetchBy(12, fetchRequest(at{broker.Hub{Name: "nobody"}, 0, 0})).ErrorCode, codeUnknownTopic, "a hub that is not there")
	testkit.Equal(t, c.fetch(broker.Hub{ID: [16]byte{1}}, 0, 0).ErrorCode, codeUnknownID, "an id that nobody has")
	r := fetchRequest(at{hub, 0, 0})
	r.Topics[0].Partitions[0].CurrentLeaderEpoch = 1
	testkit.Equal(t, c.fetchBy(18, r).ErrorCode, codeUnknownEpoch, "an epoch that never was")
}

// Names are found in any case, and answered as they were asked for.
func TestFetchByAnotherSpelling(t *testing.T) {
	y := newYard(t)
	hub := y.hub("Orders", 1)
	y.publish("orders", "0", "a")
	hub.Name = "oRDERS"
	answer := ask[*kmsg.FetchResponse](y.client(), 12, fetchRequest(at{hub, 0, 0}))
	testkit.Equal(t, answer.Topics[0].Topic, "oRDERS", "name")
	wantRecords(t, answer.Topics[0].Partitions[0], "0:a")
}

// A hub that is deleted is gone at once, and one made under its name is another.
func TestADeletedHub(t *testing.T) {
	y := newYard(t)
	old := y.hub("orders", 1)
	c := y.client()
	y.publish("orders", "0", "old")
	wantRecords(t, c.fetch(old, 0, 0), "0:old")
	wantRecords(t, c.fetchBy(12, fetchRequest(at{old, 0, 0})), "0:old")
	testkit.Must(t, y.broker.DeleteHub(t.Context(), "orders"))
	testkit.Equal(t, c.fetch(old, 0, 1).ErrorCode, codeUnknownID, "by id")
	testkit.Equal(t, c.fetchBy(12, fetchRequest(at{old, 0, 1})).ErrorCode, codeUnknownTopic, "by name")
	fresh := y.hub("orders", 1)
	y.publish("orders", "0", "new")
	testkit.Equal(t, c.fetch(old, 0, 0).ErrorCode, codeUnknownID, "by the old id")
	wantRecords(t, c.fetch(fresh, 0, 0), "0:new")
	wantRecords(t, c.fetchBy(12, fetchRequest(at{fresh, 0, 0})), "0:new")
}

// A fetch waits until there is something, and no longer than its client wants.
func TestLongPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		hub, other := y.hub("orders", 3), y.hub("others", 1)
		c := y.client()
		for _, version := range []int16{12, 18} {
			r := fetchRequest(at{hub, 0, 0}, at{hub, 2, 0}, at{other, 0, 0})
			r.MaxWaitMillis = 5_000
			start := time.Now()
			answer := ask[*kmsg.FetchResponse](c, version, r)
			testkit.Equal(t, time.Since(start), 5*time.Second, "it waited in vain")
			testkit.Equal(t, len(answer.Topics), 2, "topics")
		}
		for i := range int64(3) {
			r := fetchRequest(at{hub, 0, 0}, at{hub, 2, i}, at{other, 0, 0})
			r.MaxWaitMillis = 5_000
			start := time.Now()
			c.send(18, r)
			time.Sleep(time.Second)
			y.publish("orders", "1", "nobody waits for it")
			synctest.Wait()
			time.Sleep(time.Second)
			y.publish("orders", "2", "x")
			answer := c.receive(r).(*kmsg.FetchResponse)
			testkit.Equal(t, time.Since(start), 2*time.Second, "it waited")
			wantRecords(t, answer.Topics[0].Partitions[1], fmt.Sprintf("%d:x", i))
		}
	})
}

// Who wants many bytes waits for them, in whichever partitions they are.
func TestMinBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		hub := y.hub("orders", 2)
		c := y.client()
		r := fetchRequest(at{hub, 0, 0}, at{hub, 1, 0})
		r.MaxWaitMillis, r.MinBytes = 10_000, 5_000
		start := time.Now()
		c.send(18, r)
		testkit.MustEqual(t, y.client().produce(hub, 0, values(strings.Repeat("a", 2_000))).ErrorCode, codeNone)
		time.Sleep(time.Second)
		testkit.MustEqual(t, y.client().produce(hub, 1, values(strings.Repeat("b", 2_000))).ErrorCode, codeNone)
		time.Sleep(time.Second)
		testkit.MustEqual(t, y.client().produce(hub, 0, values(strings.Repeat("c", 2_000))).ErrorCode, codeNone)
		parts := c.receive(r).(*kmsg.FetchResponse).Topics[0].Partitions
		testkit.Equal(t, time.Since(start), 2*time.Second, "it waited")
		testkit.Equal(t, len(recordsOf(t, parts[0].RecordBatches))+len(recordsOf(t, parts[1].RecordBatches)), 3, "records")
	})
}

// A hub that is deleted, and rights that end, are no reason to wait on.
func TestWhatEndsALongPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newClosedYard(t)
		hub := y.hub("orders", 1)
		y.policy("", "listener", auth.Listen)
		c, other := y.login(auth.RootPolicy), y.login("listener")
		r := fetchRequest(at{hub, 0, 0})
		r.MaxWaitMillis = 60_000
		start := time.Now()
		other.send(18, r)
		synctest.Wait()
		testkit.Must(t, y.policies.Delete(t.Context(), "", "listener"))
		other.ended()
		c.send(18, r)
		synctest.Wait()
		testkit.Must(t, y.broker.DeleteHub(t.Context(), "orders"))
		testkit.Equal(t, c.receive(r).(*kmsg.FetchResponse).Topics[0].Partitions[0].ErrorCode, codeUnknownID)
		testkit.That(t, time.Since(start) < time.Second, "it took %v", time.Since(start))
	})
}

// A server that stops answers who waits, with what there is.
func TestStoppingEndsALongPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		hub := y.hub("orders", 1)
		c := y.client()
		r := fetchRequest(at{hub, 0, 0})
		r.MaxWaitMillis = 60_000
		start := time.Now()
		c.send(18, r)
		synctest.Wait()
		y.stop()
		testkit.Equal(t, c.receive(r).(*kmsg.FetchResponse).Topics[0].Partitions[0].ErrorCode, codeNone)
		testkit.That(t, time.Since(start) < time.Second, "it took %v", time.Since(start))
	})
}

// An answer is no larger than its client allows, but has a batch at least; in a session all partitions
// get their turn.
func TestLimitsAndTurns(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 3)
	c := y.client()
	body := strings.Repeat("x", 10_000)
	for range 3 {
		for p := range int32(2) {
			testkit.MustEqual(t, c.produce(hub, p, values(body)).ErrorCode, codeNone)
		}
		y.publish("orders", "2", body)
	}
	r := fetchRequest(at{hub, 0, 0}, at{hub, 1, 0}, at{hub, 2, 0})
	r.MaxBytes, r.SessionEpoch = 1, epochInitial
	given, next := map[int32]int{}, map[int32]int64{}
	for i := range 9 {
		answer := ask[*kmsg.FetchResponse](c, 18, r)
		got := 0
		for _, topic := range answer.Topics {
			for _, part := range topic.Partitions {
				n := len(recordsOf(t, part.RecordBatches))
				got, given[part.Partition], next[part.Partition] = got+n, given[part.Partition]+n, next[part.Partition]+int64(n)
			}
		}
		testkit.Equal(t, got, 1, "records of an answer")
		if i == 2 {
			testkit.Equal(t, len(given), 3, "partitions that had their turn")
			for p, n := range given {
				testkit.Equal(t, n, 1, "records of partition %d", p)
			}
		}
		r = fetchRequest(at{hub, 0, next[0]}, at{hub, 1, next[1]}, at{hub, 2, next[2]})
		r.MaxBytes, r.SessionID, r.SessionEpoch = 1, answer.SessionID, int32(i)+1
	}

	r = fetchRequest(at{hub, 0, 0}, at{hub, 1, 0}, at{hub, 2, 0})
	r.MaxBytes = 45_000
	total := 0
	for _, topic := range ask[*kmsg.FetchResponse](c, 18, r).Topics {
		for _, part := range topic.Partitions {
			total += len(part.RecordBatches)
		}
	}
	testkit.That(t, total > 30_000 && total <= 45_000, "the answer has %d bytes of records", total)
}

// Large answers are read and sent in pieces.
func TestALargeAnswer(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 1)
	c := y.client()
	body := strings.Repeat("x", 600_000)
	for range 6 {
		testkit.MustEqual(t, c.produce(hub, 0, values(body)).ErrorCode, codeNone)
	}
	r := fetchRequest(at{hub, 0, 0})
	r.Topics[0].Partitions[0].PartitionMaxBytes = 10 << 20
	testkit.Equal(t, len(recordsOf(t, c.fetchBy(18, r).RecordBatches)), 6, "records")
	testkit.Eventually(t, "6 events are delivered", func() bool {
		return y.metric("eventyard_kafka_delivered_events_total") == 6
	})
}

// Requests before version 10 cannot be given zstd.
func TestZstdToAnOldClient(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 1)
	c := y.client()
	testkit.MustEqual(t, c.produce(hub, 0, values("plain")).ErrorCode, codeNone)
	testkit.MustEqual(t, c.produce(hub, 0, batch{codec: 4, values: []string{"zstd"}}).ErrorCode, codeNone)
	wantRecords(t, c.fetchBy(9, fetchRequest(at{hub, 0, 0})), "0:plain")
	testkit.Equal(t, c.fetchBy(9, fetchRequest(at{hub, 0, 1})).ErrorCode, codeCompression)
	wantRecords(t, c.fetchBy(10, fetchRequest(at{hub, 0, 1})), "1:zstd")
}

// damage makes the events from first up to next unreadable: all of it, or only what is not told by
// headers, which are read first.
func (y *yard) damage(first, next eventlog.Sequence, behindHeaders bool) {
	looked := false
	y.storage.Engine.Inject(func(op logtest.Op) error {
		if op.Kind != logtest.OpNext || op.At < first || next != eventlog.NoSequence && op.At >= next {
			return nil
		}
		if behindHeaders && !looked {
			looked = true
			return nil
		}
		return &eventlog.CorruptError{Where: "segment 0", Reason: "checksum", First: first, Next: next}
	})
}

// Damage hides nothing but itself, and clients go on behind it.
func TestFetchGoesOnBehindDamage(t *testing.T) {
	for name, tt := range map[string]struct {
		next          eventlog.Sequence
		behindHeaders bool
		kafka         bool
		want          []string
	}{
		"found by headers":                      {3, false, true, []string{"gap to 3", "3:d", "4:e"}},
		"found when it is sent":                 {3, true, true, []string{"gap to 3"}},
		"single events, found by headers":       {3, false, false, []string{"gap to 3", "3:d", "4:e"}},
		"single events, found when they are":    {3, true, false, []string{"gap to 3", "3:d", "4:e"}},
		"all that follows, when it is sent":     {eventlog.NoSequence, true, true, []string{"gap to 5"}},
		"all that follows, of single events":    {eventlog.NoSequence, true, false, []string{"gap to 5"}},
		"the end, behind which nothing follows": {5, false, true, []string{"gap to 5"}},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			hub := y.hub("orders", 1)
			c := y.client()
			for _, value := range []string{"a", "b", "c", "d", "e"} {
				if tt.kafka {
					testkit.MustEqual(t, c.produce(hub, 0, values(value)).ErrorCode, codeNone)
				} else {
					y.publish("orders", "0", value)
				}
			}
			y.log.Want(1)
			y.damage(1, tt.next, tt.behindHeaders)
			wantRecords(t, c.fetch(hub, 0, 1), tt.want...)
			testkit.Equal(t, y.metric("eventyard_kafka_damage_passed_total"), 1, "damage was passed")
			y.storage.Engine.Inject(nil)
			wantRecords(t, c.fetch(hub, 0, 5))
		})
	}
}

// Where nothing readable follows yet the client hears of it, and asks again.
func TestDamageWithNothingBehindIt(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 1)
	y.publish("orders", "0", "a")
	y.log.Want(1)
	y.damage(0, eventlog.NoSequence, false)
	testkit.Equal(t, y.client().fetch(hub, 0, 0).ErrorCode, codeStorage)
}

// An event whose bytes are no AMQP message keeps its offset.
func TestAnEventThatCannotBeRead(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 1)
	_, err := y.broker.Publish(t.Context(), "orders", broker.Target{Partition: "0"}, []eventlog.Event{{Message: []byte("no message")}})
	testkit.Must(t, err)
	y.log.Want(1)
	wantRecords(t, y.client().fetch(hub, 0, 0), "0:")
}
