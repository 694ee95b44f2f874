package handler

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/groups"
	"github.com/eventyard/eventyard/internal/kafka/transactions"
	"github.com/eventyard/eventyard/internal/kafka/transactions/txn"
)

// producers answers those who number what they send, and have it count together.
type producers struct{ *peer }

// answer gives the whole answer of a request about producers; nil to another one.
func (p producers) answer(ctx context.Context, request kmsg.Request) kmsg.Response {
	switch r := request.(type) {
	case *kmsg.InitProducerIDRequest:
		return p.initProducer(ctx, r)
	case *kmsg.AddPartitionsToTxnRequest:
		return p.addPartitions(ctx, r)
	case *kmsg.AddOffsetsToTxnRequest:
		return p.addOffsets(ctx, r)
	case *kmsg.EndTxnRequest:
		return p.endTransaction(ctx, r)
	case *kmsg.DescribeTransactionsRequest:
		return p.describeTransactions(ctx, r)
	case *kmsg.ListTransactionsRequest:
		return p.listTransactions(ctx, r)
	}
	return nil
}

// refuse gives the code by which an error is reported. Older clients know one code only for an epoch that is over.
func (p producers) refuse(ctx context.Context, what string, err error, fenced bool) int16 {
	code := p.fail(ctx, what, err)
	if code == codeProducerFenced && !fenced {
		code = codeProducerEpoch
	}
	return code
}

// addPartitions makes partitions part of a transaction: all that a request names, or none.
//
// AddPartitionsToTxn (24), versions 0 to 3. Later ones are for brokers, and for clients that have partitions added by
// what they send, which is not offered.
func (p producers) addPartitions(ctx context.Context, r *kmsg.AddPartitionsToTxnRequest) kmsg.Response {
	answer := kmsg.NewPtrAddPartitionsToTxnResponse()
	named := 0
	for _, asked := range r.Topics {
		named += len(asked.Partitions)
		t := kmsg.NewAddPartitionsToTxnResponseTopic()
		t.Topic = asked.Topic
		for _, number := range asked.Partitions {
			one := kmsg.NewAddPartitionsToTxnResponseTopicPartition()
			one.Partition = number
			t.Partitions = append(t.Partitions, one)
		}
		answer.Topics = append(answer.Topics, t)
	}
	var all []txn.Partition
	var err error
	refused := false
	if named > txn.MaxPartitions { // before any of them is looked for
		err = txn.ErrTooLarge
	} else if all, refused = p.partitionsOf(ctx, answer); !refused {
		by := txn.Claim{Producer: r.ProducerID, Epoch: r.ProducerEpoch}
		err = p.handler.cfg.Transactions.AddPartitions(transactions.For(ctx, accountOf(p.rights())), r.TransactionalID, by, all, p.may(auth.Send))
	}
	code := codeNone
	switch {
	case refused:
		code = codeNotAttempted
	case err != nil:
		code = p.refuse(ctx, "AddPartitionsToTxn", err, r.Version >= 2)
	}
	for i := range answer.Topics {
		for j := range answer.Topics[i].Partitions {
			if one := &answer.Topics[i].Partitions[j]; one.ErrorCode == codeNone {
				one.ErrorCode = code
			}
		}
	}
	return answer
}

// partitionsOf finds the partitions that an answer is about, and notes there which may not be added.
func (p producers) partitionsOf(ctx context.Context, answer *kmsg.AddPartitionsToTxnResponse) (all []txn.Partition, refused bool) {
	for i := range answer.Topics {
		t := &answer.Topics[i]
		hub, err := p.find(ctx, topic{name: t.Topic}, auth.Send)
		log := ""
		if err == nil {
			log = broker.LogOf(p.handler.cfg.Broker, hub.ID)
		}
		for j := range t.Partitions {
			one := &t.Partitions[j]
			why := err
			if why == nil {
				why = partition(hub, one.Partition)
			}
			if why != nil {
				one.ErrorCode, refused = p.refuse(ctx, "AddPartitionsToTxn", why, true), true
				continue
			}
			all = append(all, txn.Partition{Log: log, Number: one.Partition})
		}
	}
	return all, refused
}

// addOffsets makes offsets of a group part of a transaction.
//
// AddOffsetsToTxn (25), versions 0 to 4.
func (p producers) addOffsets(ctx context.Context, r *kmsg.AddOffsetsToTxnRequest) kmsg.Response {
	answer := kmsg.NewPtrAddOffsetsToTxnResponse()
	err := p.listens()
	if err == nil {
		err = p.handler.cfg.Groups.Stages.Allowed(ctx, r.Group, p.may(auth.Listen))
	}
	if err == nil {
		err = p.handler.cfg.Transactions.AddGroup(transactions.For(ctx, accountOf(p.rights())), r.TransactionalID, txn.Claim{Producer: r.ProducerID, Epoch: r.ProducerEpoch}, r.Group, p.may(auth.Send))
	}
	if err != nil {
		answer.ErrorCode = p.refuse(ctx, "AddOffsetsToTxn", err, r.Version >= 2)
	}
	return answer
}

// endTransaction commits or aborts a transaction.
//
// EndTxn (26), versions 0 to 4. Later ones give another epoch for each transaction, which is not offered.
func (p producers) endTransaction(ctx context.Context, r *kmsg.EndTxnRequest) kmsg.Response {
	answer := kmsg.NewPtrEndTxnResponse()
	err := error(nil)
	if !p.rights().anywhere(auth.Send) {
		err = errClusterRights
	} else {
		by := txn.Claim{Producer: r.ProducerID, Epoch: r.ProducerEpoch}
		err = p.handler.cfg.Transactions.End(transactions.For(ctx, accountOf(p.rights())), r.TransactionalID, by, r.Commit, p.may(auth.Send))
	}
	if err != nil {
		answer.ErrorCode = p.refuse(ctx, "EndTxn", err, r.Version >= 2)
	}
	return answer
}

// commitOffsets stores how far a group has come, when the transaction is committed.
//
// TxnOffsetCommit (28), versions 0 to 4: members of a group from 3 on.
func (p producers) commitOffsets(ctx context.Context, r *kmsg.TxnOffsetCommitRequest) kmsg.Response {
	answer := kmsg.NewPtrTxnOffsetCommitResponse()
	positions := make(map[groups.Partition]groups.Position)
	refused := p.listens()
	for _, asked := range r.Topics {
		t := kmsg.NewTxnOffsetCommitResponseTopic()
		t.Topic = asked.Topic
		hub, log, missing := broker.Hub{}, "", refused
		if missing == nil {
			hub, log, missing = p.hubOf(ctx, topic{name: asked.Topic})
		}
		for _, part := range asked.Partitions {
			one := kmsg.NewTxnOffsetCommitResponseTopicPartition()
			one.Partition = part.Partition
			err := missing
			if err == nil {
				err = partition(hub, part.Partition)
			}
			if err == nil && len(textOf(part.Metadata)) > groups.MaxMetadataBytes {
				err = groups.ErrMetadata
			}
			if err != nil {
				one.ErrorCode = p.refuse(ctx, "TxnOffsetCommit", err, true)
			} else {
				position := groups.Position{Offset: part.Offset, Epoch: nowhere, Metadata: []byte(textOf(part.Metadata))}
				if r.Version >= 2 {
					position.Epoch = part.LeaderEpoch
				}
				positions[groups.Partition{Log: log, Number: part.Partition}] = position
			}
			t.Partitions = append(t.Partitions, one)
		}
		answer.Topics = append(answer.Topics, t)
	}
	if len(positions) == 0 {
		return answer
	}
	who := groups.Committer{Generation: -1, May: p.may(auth.Listen)}
	if r.Version >= 3 {
		who.Member, who.Instance, who.Generation = r.MemberID, textOf(r.InstanceID), r.Generation
	}
	by := txn.Claim{Producer: r.ProducerID, Epoch: r.ProducerEpoch}
	err := p.handler.cfg.Transactions.StageOffsets(ctx, r.TransactionalID, by, r.Group, who, positions)
	if err == nil {
		return answer
	}
	code := p.refuse(ctx, "TxnOffsetCommit", err, false)
	for i := range answer.Topics {
		for j := range answer.Topics[i].Partitions {
			if one := &answer.Topics[i].Partitions[j]; one.ErrorCode == codeNone {
				one.ErrorCode = code
			}
		}
	}
	return answer
}

// stateNames are what Kafka's tools call the states of a transaction.
var stateNames = map[txn.State]string{
	txn.Empty: "Empty", txn.Ongoing: "Ongoing", txn.PrepareCommit: "PrepareCommit", txn.PrepareAbort: "PrepareAbort",
	txn.CompleteCommit: "CompleteCommit", txn.CompleteAbort: "CompleteAbort",
}

// describeTransactions tells what transactional ids are doing, to who may send to all their hubs.
//
// DescribeTransactions (65), version 0.
func (p producers) describeTransactions(ctx context.Context, r *kmsg.DescribeTransactionsRequest) kmsg.Response {
	answer := kmsg.NewPtrDescribeTransactionsResponse()
	room := allowance(maxGroupAnswerBytes)
	for _, id := range distinct(r.TransactionalIDs, maxAskedGroups) {
		var one kmsg.DescribeTransactionsResponseTransactionState
		var t transactions.Described
		err := error(errClusterRights)
		if p.rights().anywhere(auth.Send) {
			t, err = p.handler.cfg.Transactions.Describe(ctx, id, p.may(auth.Send))
		}
		if err == nil {
			one, err = describeTransaction(p.handler.cfg.Broker, t, &room)
		}
		if err != nil {
			one = kmsg.NewDescribeTransactionsResponseTransactionState()
			one.ErrorCode = p.refuse(ctx, "DescribeTransactions", err, true)
			one.TransactionalID, one.StartTimestamp, one.ProducerID, one.ProducerEpoch = id, nowhere, -1, -1
		}
		answer.TransactionStates = append(answer.TransactionStates, one)
	}
	return answer
}

// describeTransaction is the row of one transactional id, if there is room for it.
func describeTransaction(b *broker.Broker, t transactions.Described, room *allowance) (one kmsg.DescribeTransactionsResponseTransactionState, err error) {
	one = kmsg.NewDescribeTransactionsResponseTransactionState()
	one.TransactionalID, one.StartTimestamp = t.ID, nowhere
	one.State, one.TimeoutMillis, one.ProducerID, one.ProducerEpoch = stateNames[t.State], int32(t.Timeout), t.Producer, t.Epoch
	if t.State.Open() {
		one.StartTimestamp = t.Began.UnixMilli()
	}
	byLog := make(map[string]int)
	if !room.take(256 + len(t.ID) + 4*len(t.Partitions)) {
		return one, errAskedTooMuch
	}
	for _, part := range t.Partitions {
		at, known := byLog[part.Log]
		if !known {
			at = len(one.Topics)
			byLog[part.Log] = at
			named := kmsg.NewDescribeTransactionsResponseTransactionStateTopic()
			named.Topic = broker.HubOf(b, part.Log)
			if !room.take(64 + len(named.Topic)) {
				return one, errAskedTooMuch
			}
			one.Topics = append(one.Topics, named)
		}
		one.Topics[at].Partitions = append(one.Topics[at].Partitions, part.Number)
	}
	return one, nil
}

// listTransactions tells of all transactional ids whose hubs one may send to.
//
// ListTransactions (66), versions 0 to 1: by how long they take from 1 on.
func (p producers) listTransactions(ctx context.Context, r *kmsg.ListTransactionsRequest) kmsg.Response {
	answer := kmsg.NewPtrListTransactionsResponse()
	var all []transactions.Described
	err := error(errClusterRights)
	if p.rights().anywhere(auth.Send) {
		all, err = p.handler.cfg.Transactions.List(ctx, p.may(auth.Send))
	}
	if err != nil {
		answer.ErrorCode = p.refuse(ctx, "ListTransactions", err, true)
		return answer
	}
	for _, asked := range r.StateFilters {
		known := false
		for _, name := range stateNames {
			known = known || name == asked
		}
		if !known {
			answer.UnknownStateFilters = append(answer.UnknownStateFilters, asked)
		}
	}
	for _, t := range all {
		long := r.Version < 1 || r.DurationFilterMillis < 0 || t.State.Open() && time.Since(t.Began).Milliseconds() > r.DurationFilterMillis
		if !long || len(r.StateFilters) > 0 && !slices.Contains(r.StateFilters, stateNames[t.State]) ||
			len(r.ProducerIDFilters) > 0 && !slices.Contains(r.ProducerIDFilters, t.Producer) {
			continue
		}
		one := kmsg.NewListTransactionsResponseTransactionState()
		one.TransactionalID, one.ProducerID, one.TransactionState = t.ID, t.Producer, stateNames[t.State]
		answer.TransactionStates = append(answer.TransactionStates, one)
	}
	return answer
}
