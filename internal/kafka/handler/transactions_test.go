package handler

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/kafka/transactions"
	"github.com/eventyard/eventyard/internal/kafka/transactions/txn"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// producing is a transactional producer on a connection.
type producing struct {
	*client
	id    string
	hub   broker.Hub
	given *kmsg.InitProducerIDResponse
	next  int32
}

func (c *client) producer(id string, hub broker.Hub) *producing {
	c.t.Helper()
	p := &producing{client: c, id: id, hub: hub, given: initTransactional(c, id)}
	testkit.MustEqual(c.t, p.given.ErrorCode, codeNone, "code of InitProducerId")
	return p
}

func initTransactional(c *client, id string) *kmsg.InitProducerIDResponse {
	c.t.Helper()
	r := kmsg.NewPtrInitProducerIDRequest()
	r.TransactionalID, r.TransactionTimeoutMillis, r.ProducerID, r.ProducerEpoch = &id, 60_000, -1, -1
	return ask[*kmsg.InitProducerIDResponse](c, 5, r)
}

func (p *producing) add(partitions ...int32) int16 {
	p.t.Helper()
	r := kmsg.NewPtrAddPartitionsToTxnRequest()
	r.TransactionalID, r.ProducerID, r.ProducerEpoch = p.id, p.given.ProducerID, p.given.ProducerEpoch
	topic := kmsg.NewAddPartitionsToTxnRequestTopic()
	topic.Topic, topic.Partitions = p.hub.Name, partitions
	r.Topics = append(r.Topics, topic)
	return ask[*kmsg.AddPartitionsToTxnResponse](p.client, 3, r).Topics[0].Partitions[0].ErrorCode
}

func (p *producing) put(values ...string) int16 {
	p.t.Helper()
	r := produceRequest(p.t, p.hub, 0, batch{
		values: values, producer: p.given.ProducerID, epoch: p.given.ProducerEpoch, first: p.next, transactional: true,
	})
	r.TransactionID = &p.id
	code := p.produceBy(11, r).ErrorCode
	if code == codeNone {
		p.next += int32(len(values))
	}
	return code
}

func (p *producing) end(commit bool) int16 {
	p.t.Helper()
	r := kmsg.NewPtrEndTxnRequest()
	r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Commit = p.id, p.given.ProducerID, p.given.ProducerEpoch, commit
	return ask[*kmsg.EndTxnResponse](p.client, 4, r).ErrorCode
}

// fetchAs gives what a reader of an isolation level is answered of partition 0.
func (c *client) fetchAs(level int8, version int16, hub broker.Hub, offset int64) kmsg.FetchResponseTopicPartition {
	c.t.Helper()
	r := fetchRequest(at{hub, 0, offset})
	r.IsolationLevel = level
	return ask[*kmsg.FetchResponse](c, version, r).Topics[0].Partitions[0]
}

// heads gives the offsets of the batches in an answer.
func heads(t testing.TB, raw []byte) (offsets []int64) {
	t.Helper()
	for len(raw) > 0 {
		size := int(uint32(raw[8])<<24|uint32(raw[9])<<16|uint32(raw[10])<<8|uint32(raw[11])) + 12
		offsets = append(offsets, testkit.Value(record.ReadHead(raw[:size]))(t).BaseOffset)
		raw = raw[size:]
	}
	return offsets
}

// K3: who reads what is committed is given all batches before the first that is not decided, and which of them do not
// count; who does not is given all of them.
func TestFetchByIsolation(t *testing.T) {
	y := newYard(t)
	c, hub := y.client(), y.hub("orders", 1)
	p, other := c.producer("app", hub), c.producer("other", hub)
	testkit.Equal(t, p.put("early"), codeTransactionState, "in a partition that was not added")
	testkit.Equal(t, p.add(0), codeNone)
	testkit.Equal(t, other.add(0), codeNone)
	testkit.Equal(t, c.produce(hub, 0, values("plain")).ErrorCode, codeNone) // 0
	testkit.Equal(t, other.put("void"), codeNone)                            // 1
	testkit.Equal(t, p.put("a", "b"), codeNone)                              // 2
	testkit.Equal(t, other.end(false), codeNone)                             // 4
	y.publish("orders", "0", "behind")                                       // 5

	for _, version := range []int16{4, 11, 12} {
		part := c.fetchAs(1, version, hub, 0)
		testkit.Slices(t, heads(t, part.RecordBatches), []int64{0, 1}, "version %d", version)
		testkit.Equal(t, part.LastStableOffset, 2)
		testkit.Equal(t, part.HighWatermark, 6)
		testkit.MustEqual(t, len(part.AbortedTransactions), 1)
		testkit.Equal(t, part.AbortedTransactions[0].ProducerID, other.given.ProducerID)
		testkit.Equal(t, part.AbortedTransactions[0].FirstOffset, 1)
		all := c.fetchAs(0, version, hub, 0)
		testkit.Slices(t, heads(t, all.RecordBatches), []int64{0, 1, 2, 4, 5}, "uncommitted, version %d", version)
	}
	testkit.Slices(t, heads(t, c.fetchAs(1, 12, hub, 2).RecordBatches), nil, "what is not decided")
	list := func(level int8) int64 {
		r := kmsg.NewPtrListOffsetsRequest()
		r.ReplicaID, r.IsolationLevel = -1, level
		part, topic := kmsg.NewListOffsetsRequestTopicPartition(), kmsg.NewListOffsetsRequestTopic()
		part.Timestamp, part.CurrentLeaderEpoch = atEnd, -1
		topic.Topic, topic.Partitions = hub.Name, append(topic.Partitions, part)
		r.Topics = append(r.Topics, topic)
		return ask[*kmsg.ListOffsetsResponse](c, 7, r).Topics[0].Partitions[0].Offset
	}
	testkit.Equal(t, list(1), 2, "the end for who reads what is committed")
	testkit.Equal(t, list(0), 6)

	// A long poll is woken by the end of the transaction.
	waiting, reader := fetchRequest(at{hub, 0, 2}), y.client()
	waiting.IsolationLevel, waiting.MaxWaitMillis = 1, 60_000
	reader.send(12, waiting)
	testkit.Equal(t, p.end(true), codeNone) // 6
	part := reader.receive(waiting).(*kmsg.FetchResponse).Topics[0].Partitions[0]
	// It may have looked at what there is just before the end came, and for what decides it just after.
	testkit.Slices(t, heads(t, part.RecordBatches)[:3], []int64{2, 4, 5})
	part = c.fetchAs(1, 12, hub, 2)
	testkit.Slices(t, heads(t, part.RecordBatches), []int64{2, 4, 5, 6})
	testkit.Equal(t, part.LastStableOffset, 7)
	testkit.Equal(t, list(1), 7)
	testkit.Equal(t, p.put("late"), codeTransactionState, "behind the end")
}

// K3: who reads what is committed is told where that ends, also while there is more before it than an answer has room for.
func TestTheLastStableOffsetIsKnownFromAfar(t *testing.T) {
	y := newYard(t)
	c, hub := y.client(), y.hub("orders", 1)
	p := c.producer("app", hub)
	for range 3 {
		testkit.Equal(t, c.produce(hub, 0, values("plain")).ErrorCode, codeNone)
	}
	testkit.Equal(t, p.add(0), codeNone)
	testkit.Equal(t, p.put("a"), codeNone) // 3
	testkit.Equal(t, c.produce(hub, 0, values("behind")).ErrorCode, codeNone)
	r := fetchRequest(at{hub, 0, 0})
	r.IsolationLevel, r.Topics[0].Partitions[0].PartitionMaxBytes = 1, 1
	look := func() (stable, end int64) {
		part := ask[*kmsg.FetchResponse](c, 12, r).Topics[0].Partitions[0]
		testkit.Slices(t, heads(t, part.RecordBatches), []int64{0})
		return part.LastStableOffset, part.HighWatermark
	}
	stable, end := look()
	testkit.Equal(t, stable, 3)
	testkit.Equal(t, end, 5)
	testkit.Equal(t, p.end(true), codeNone)
	stable, end = look()
	testkit.Equal(t, stable, 6)
	testkit.Equal(t, end, 6)
}

// K3, K6: what does not count is listed whole, also where there is more of it than a reader remembers at a time.
func TestManyAbortedTransactions(t *testing.T) {
	const aborts = 5000
	y := newYard(t)
	c, hub := y.client(), y.hub("orders", 1)
	log := broker.LogOf(y.broker, hub.ID)
	allowed := func(context.Context) error { return nil }
	b := record.Begin(nil, 0, 0)
	b.Add(&record.Record{Value: []byte("void")})
	frame := testkit.Value(record.Check(b.End()))(t)
	frame.Form = eventlog.FormTransaction
	for n := range int32(aborts) {
		frame.Producer = eventlog.Producer{ID: 7, First: n, Set: true}
		put := testkit.Value(y.broker.SubmitFrames(t.Context(), "orders", broker.FrameTarget{Verify: allowed}, []eventlog.Batch{frame}))(t)
		testkit.Must(t, testkit.Err(put.Wait(t.Context())))
		testkit.Must(t, y.broker.EndTransaction(t.Context(), log, 0, record.Marker(7, 0, false, time.Now()), allowed))
	}
	listed := make(map[int64]bool)
	for next := int64(0); next < 2*aborts; {
		part := c.fetchAs(1, 12, hub, next)
		testkit.MustEqual(t, part.ErrorCode, codeNone)
		offsets := heads(t, part.RecordBatches)
		testkit.That(t, len(offsets) > 0, "nothing is given at %d", next)
		next = offsets[len(offsets)-1] + 1
		for _, a := range part.AbortedTransactions {
			listed[a.FirstOffset] = true
		}
	}
	testkit.Equal(t, len(listed), aborts)
}

// K3: a session hears of what was decided although nothing has come since.
func TestSessionsByIsolation(t *testing.T) {
	y := newYard(t)
	c, hub := y.client(), y.hub("orders", 1)
	p := c.producer("app", hub)
	testkit.Equal(t, p.add(0), codeNone)
	testkit.Equal(t, p.put("a"), codeNone)
	reader := y.client()
	first := fetchRequest(at{hub, 0, 0})
	first.IsolationLevel, first.SessionEpoch = 1, 0
	answer := ask[*kmsg.FetchResponse](reader, 12, first)
	testkit.Equal(t, answer.Topics[0].Partitions[0].LastStableOffset, 0)
	testkit.Equal(t, len(answer.Topics[0].Partitions[0].RecordBatches), 0)
	next := fetchRequest()
	next.IsolationLevel, next.SessionID, next.SessionEpoch = 1, answer.SessionID, 1
	testkit.Equal(t, len(ask[*kmsg.FetchResponse](reader, 12, next).Topics), 0, "while it goes on")
	testkit.Equal(t, p.end(true), codeNone)
	next.SessionEpoch = 2
	answer = ask[*kmsg.FetchResponse](reader, 12, next)
	testkit.MustEqual(t, len(answer.Topics), 1, "when it is committed")
	testkit.Slices(t, heads(t, answer.Topics[0].Partitions[0].RecordBatches), []int64{0, 1})
}

// K3: who takes a transactional id over ends the producer before, which hears of it in the code that its version knows.
func TestFencedProducers(t *testing.T) {
	y := newYard(t)
	c, hub := y.client(), y.hub("orders", 1)
	old := c.producer("app", hub)
	testkit.Equal(t, old.add(0), codeNone)
	testkit.Equal(t, old.put("lost"), codeNone)
	c.producer("app", hub)
	testkit.Equal(t, old.put("zombie"), codeProducerEpoch)
	testkit.Equal(t, old.add(0), codeProducerFenced)
	testkit.Equal(t, old.end(true), codeProducerFenced)
	r := kmsg.NewPtrEndTxnRequest()
	r.TransactionalID, r.ProducerID, r.ProducerEpoch = "app", old.given.ProducerID, old.given.ProducerEpoch
	testkit.Equal(t, ask[*kmsg.EndTxnResponse](c, 1, r).ErrorCode, codeProducerEpoch, "of an older client")
	r.TransactionalID = "nobody"
	testkit.Equal(t, ask[*kmsg.EndTxnResponse](c, 4, r).ErrorCode, codeProducerMapping)
	long := kmsg.NewPtrInitProducerIDRequest()
	long.TransactionalID, long.TransactionTimeoutMillis, long.ProducerID, long.ProducerEpoch = kmsg.StringPtr("app"), int32(time.Hour.Milliseconds()), -1, -1
	testkit.Equal(t, ask[*kmsg.InitProducerIDResponse](c, 5, long).ErrorCode, codeTransactionTimeout)
}

// K3, K5: who manages ends the transaction of another as Kafka's tools do, by InitProducerId with its transactional id. What
// was begun is aborted, and readers of what is committed go on; who may only send to another hub cannot do that.
func TestOperatorsEndTransactions(t *testing.T) {
	y := newClosedYard(t)
	hub := y.hub("orders", 1)
	y.hub("others", 1)
	y.policy("orders", "sends", auth.Send)
	y.policy("others", "elsewhere", auth.Manage)
	y.policy("", "operates", auth.Manage)
	p := y.login("sends").producer("app", hub)
	testkit.Equal(t, p.add(0), codeNone)
	testkit.Equal(t, p.put("never ended"), codeNone)
	reader := y.login(auth.RootPolicy)
	testkit.Equal(t, reader.fetchAs(1, 12, hub, 0).LastStableOffset, 0)
	fence := func(by string) int16 { // as Admin.fenceProducers
		r := kmsg.NewPtrInitProducerIDRequest()
		r.TransactionalID, r.TransactionTimeoutMillis, r.ProducerID, r.ProducerEpoch = kmsg.StringPtr("app"), 1, -1, -1
		return ask[*kmsg.InitProducerIDResponse](y.login(by), 4, r).ErrorCode
	}
	testkit.Equal(t, fence("elsewhere"), codeTransactionRights)
	testkit.Equal(t, reader.fetchAs(1, 12, hub, 0).LastStableOffset, 0)
	testkit.Equal(t, fence("operates"), codeNone)
	part := reader.fetchAs(1, 12, hub, 0)
	testkit.Equal(t, part.LastStableOffset, 2, "readers go on behind what ends it")
	testkit.Equal(t, len(part.AbortedTransactions), 1)
	testkit.Equal(t, p.end(true), codeProducerFenced)
}

// K3: offsets in a transaction count with it; who wants stable ones waits.
func TestOffsetsInTransactions(t *testing.T) {
	y := newYard(t)
	c, hub := y.client(), y.hub("orders", 1)
	p := c.producer("app", hub)
	commit := func(offset int64) int16 {
		part, topic, r := kmsg.NewTxnOffsetCommitRequestTopicPartition(), kmsg.NewTxnOffsetCommitRequestTopic(), kmsg.NewPtrTxnOffsetCommitRequest()
		part.Offset, part.LeaderEpoch = offset, -1
		topic.Topic, topic.Partitions = hub.Name, append(topic.Partitions, part)
		r.TransactionalID, r.Group, r.ProducerID, r.ProducerEpoch, r.Generation = "app", "readers", p.given.ProducerID, p.given.ProducerEpoch, -1
		r.Topics = append(r.Topics, topic)
		return ask[*kmsg.TxnOffsetCommitResponse](c, 3, r).Topics[0].Partitions[0].ErrorCode
	}
	add := func() int16 {
		r := kmsg.NewPtrAddOffsetsToTxnRequest()
		r.TransactionalID, r.Group, r.ProducerID, r.ProducerEpoch = "app", "readers", p.given.ProducerID, p.given.ProducerEpoch
		return ask[*kmsg.AddOffsetsToTxnResponse](c, 3, r).ErrorCode
	}
	fetch := func(stable bool) (int64, int16) {
		r := kmsg.NewPtrOffsetFetchRequest()
		topic := kmsg.NewOffsetFetchRequestTopic()
		topic.Topic, topic.Partitions = hub.Name, []int32{0}
		r.Group, r.RequireStable, r.Topics = "readers", stable, append(r.Topics, topic)
		got := ask[*kmsg.OffsetFetchResponse](c, 7, r).Topics[0].Partitions[0]
		return got.Offset, got.ErrorCode
	}
	testkit.Equal(t, commit(5), codeTransactionState, "of a group that was not added")
	testkit.Equal(t, add(), codeNone)
	testkit.Equal(t, commit(5), codeNone)
	offset, code := fetch(true)
	testkit.Equal(t, code, codeUnstable)
	offset, code = fetch(false)
	testkit.Equal(t, offset, -1)
	testkit.Equal(t, code, codeNone)
	testkit.Equal(t, p.end(true), codeNone)
	offset, code = fetch(true)
	testkit.Equal(t, offset, 5)
	testkit.Equal(t, code, codeNone)
	testkit.Equal(t, commit(6), codeTransactionState, "behind the end")
}

// K5: a transactional id is not disturbed by who may not send to its hubs, nor seen.
func TestRightsToTransactions(t *testing.T) {
	y := newClosedYard(t)
	hub := y.hub("orders", 1)
	y.hub("other", 1)
	y.policy("orders", "own", auth.Send)
	y.policy("other", "stranger", auth.Send)
	p := y.login("own").producer("app", hub)
	testkit.Equal(t, p.add(0), codeNone)
	stranger := y.login("stranger")
	testkit.Equal(t, initTransactional(stranger, "app").ErrorCode, codeTransactionRights)
	theirs := &producing{client: stranger, id: "app", hub: hub, given: p.given}
	testkit.Equal(t, theirs.add(0), codeTopicRights)
	testkit.Equal(t, theirs.end(true), codeTransactionRights)
	testkit.Equal(t, len(ask[*kmsg.ListTransactionsResponse](stranger, 1, kmsg.NewPtrListTransactionsRequest()).TransactionStates), 0)
	describe := kmsg.NewPtrDescribeTransactionsRequest()
	describe.TransactionalIDs = []string{"app", "nobody"}
	states := ask[*kmsg.DescribeTransactionsResponse](stranger, 0, describe).TransactionStates
	testkit.Equal(t, states[0].ErrorCode, codeTransactionRights)
	testkit.Equal(t, states[1].ErrorCode, codeTransactionID)
	states = ask[*kmsg.DescribeTransactionsResponse](p.client, 0, describe).TransactionStates
	testkit.Equal(t, states[0].State, "Ongoing")
	testkit.Equal(t, states[0].Topics[0].Topic, "orders")
	all := ask[*kmsg.ListTransactionsResponse](p.client, 1, kmsg.NewPtrListTransactionsRequest()).TransactionStates
	testkit.MustEqual(t, len(all), 1)
	testkit.Equal(t, all[0].TransactionState, "Ongoing")
	testkit.Equal(t, p.end(true), codeNone)
	testkit.Equal(t, initTransactional(stranger, "app").ErrorCode, codeTransactionRights, "afterwards")
}

// K3: tools are told where a transaction begins that goes on, which is what holds readers up.
func TestProducersAreDescribedWithTheirTransactions(t *testing.T) {
	y := newYard(t)
	c, hub := y.client(), y.hub("orders", 2)
	p, other := c.producer("app", hub), c.producer("other", hub)
	wantStarts := func(what string, one, another int64) {
		t.Helper()
		r := kmsg.NewPtrDescribeProducersRequest()
		r.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: "orders", Partitions: []int32{0}}}
		starts := map[int64]int64{}
		for _, of := range ask[*kmsg.DescribeProducersResponse](c, 0, r).Topics[0].Partitions[0].ActiveProducers {
			starts[of.ProducerID] = of.CurrentTxnStartOffset
		}
		testkit.Equal(t, len(starts), 2, "%s: producers", what)
		testkit.Equal(t, starts[p.given.ProducerID], one, "%s: where the one's begins", what)
		testkit.Equal(t, starts[other.given.ProducerID], another, "%s: where the other's begins", what)
	}
	testkit.MustEqual(t, p.add(0), codeNone)
	testkit.MustEqual(t, other.add(0), codeNone)
	testkit.MustEqual(t, c.produce(hub, 0, values("plain")).ErrorCode, codeNone) // 0
	testkit.MustEqual(t, other.put("void"), codeNone)                            // 1
	testkit.MustEqual(t, p.put("a", "b"), codeNone)                              // 2
	testkit.MustEqual(t, p.put("c"), codeNone)                                   // 4
	wantStarts("while both go on", 2, 1)
	testkit.MustEqual(t, other.end(false), codeNone) // 5
	wantStarts("when one is aborted", 2, -1)
	testkit.MustEqual(t, p.end(true), codeNone) // 6
	wantStarts("when all is decided", -1, -1)
	testkit.MustEqual(t, p.add(0), codeNone)
	testkit.MustEqual(t, p.put("d"), codeNone) // 7
	wantStarts("in the next one", 7, -1)
}

// K3, R1: a request that names too many partitions is refused before any of them is looked for, and one that is named again
// counts once.
func TestPartitionsOfATransactionAreBounded(t *testing.T) {
	y := newYard(t)
	c, hub := y.client(), y.hub("orders", 1)
	p := c.producer("app", hub)
	testkit.Equal(t, p.add(make([]int32, txn.MaxPartitions+1)...), codeInvalidRequest)
	testkit.Equal(t, p.end(true), codeTransactionState, "when nothing was begun")
	testkit.Equal(t, p.add(0, 0, 0), codeNone)
	testkit.Equal(t, p.put("a"), codeNone)
	testkit.Equal(t, p.end(true), codeNone)
	_, next, err := y.broker.Span(t.Context(), "orders", "0")
	testkit.Must(t, err)
	testkit.Equal(t, next, 2, "numbers: an event, and one word that ends the transaction")
}

// K5: who may not listen to all hubs of a group does not have its offsets be part of a transaction.
func TestRightsToGroupsInTransactions(t *testing.T) {
	y := newClosedYard(t)
	hub := y.hub("orders", 1)
	other := y.hub("other", 1)
	y.policy("other", "stranger", auth.Send|auth.Listen)
	root, stranger := y.login(auth.RootPolicy), y.login("stranger")
	testkit.Equal(t, root.commitAlone("readers", hub, 5), codeNone)
	testkit.Equal(t, stranger.commitAlone("theirs", other, 5), codeNone)
	p := stranger.producer("app", other)
	add := func(group string) int16 {
		r := kmsg.NewPtrAddOffsetsToTxnRequest()
		r.TransactionalID, r.Group, r.ProducerID, r.ProducerEpoch = "app", group, p.given.ProducerID, p.given.ProducerEpoch
		return ask[*kmsg.AddOffsetsToTxnResponse](stranger, 3, r).ErrorCode
	}
	testkit.Equal(t, add("readers"), codeGroupRights)
	testkit.Equal(t, add("theirs"), codeNone)
	testkit.Equal(t, add("new"), codeNone, "one that there is not yet")
}

// commitAlone commits an offset of partition 0 for a group without members.
func (c *client) commitAlone(group string, hub broker.Hub, offset int64) int16 {
	c.t.Helper()
	part, topic, r := kmsg.NewOffsetCommitRequestTopicPartition(), kmsg.NewOffsetCommitRequestTopic(), kmsg.NewPtrOffsetCommitRequest()
	part.Offset, part.LeaderEpoch = offset, -1
	topic.Topic, topic.Partitions = hub.Name, append(topic.Partitions, part)
	r.Group, r.Generation, r.Topics = group, -1, append(r.Topics, topic)
	return ask[*kmsg.OffsetCommitResponse](c, 8, r).Topics[0].Partitions[0].ErrorCode
}

// K6: what describes transactions measures only so much, however many are asked for.
func TestDescriptionsOfTransactionsAreBounded(t *testing.T) {
	y := newYard(t)
	one := transactions.Described{ID: "app", Transaction: txn.Transaction{State: txn.Ongoing}}
	for n := range txn.MaxPartitions {
		one.Partitions = append(one.Partitions, txn.Partition{Log: fmt.Sprint(n)})
	}
	answered, room := 0, allowance(maxGroupAnswerBytes)
	for range maxAskedGroups {
		state, err := describeTransaction(y.broker, one, &room)
		if err == nil {
			testkit.Equal(t, len(state.Topics), txn.MaxPartitions)
			answered++
		} else {
			testkit.ErrorIs(t, err, errAskedTooMuch)
		}
	}
	testkit.That(t, answered > 100 && answered < maxAskedGroups, "it tells of %d transactions with %d hubs each", answered, txn.MaxPartitions)
}

// K3: a transaction that begins while ends of partitions are looked for is behind all ends that are answered.
func TestATransactionBeginsWhileEndsAreLookedFor(t *testing.T) {
	y := newYard(t)
	c, hub := y.client(), y.hub("orders", 2)
	early, late := y.client().producer("early", hub), y.client().producer("late", hub)
	testkit.Equal(t, early.add(1), codeNone)
	var begins sync.Once
	y.storage.Engine.Inject(func(op logtest.Op) error {
		if op.Kind == logtest.OpNext {
			begins.Do(func() {
				testkit.Equal(t, late.add(0), codeNone)
				testkit.Equal(t, late.put("a"), codeNone)
			})
		}
		return nil
	})
	r := kmsg.NewPtrListOffsetsRequest()
	r.ReplicaID, r.IsolationLevel = -1, readCommitted
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = hub.Name
	for _, number := range []int32{1, 0} {
		part := kmsg.NewListOffsetsRequestTopicPartition()
		part.Partition, part.Timestamp, part.CurrentLeaderEpoch = number, atEnd, -1
		topic.Partitions = append(topic.Partitions, part)
	}
	r.Topics = append(r.Topics, topic)
	testkit.Equal(t, ask[*kmsg.ListOffsetsResponse](c, 7, r).Topics[0].Partitions[1].Offset, 0)
	testkit.Equal(t, c.offset(7, hub.Name, 0, atEnd).Offset, 1, "the transaction had begun")
}
