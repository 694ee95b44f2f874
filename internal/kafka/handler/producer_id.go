package handler

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/kafka/transactions"
	"github.com/eventyard/eventyard/internal/kafka/transactions/txn"
)

// initProducer gives a producer its number. One without a transactional id has no epochs before 0: if it has lost its
// numbers it gets another one, which no partition knows. With one, what was begun under it is aborted, and others who
// have it are refused from then on.
//
// InitProducerId (22), versions 0 to 5.
func (p producers) initProducer(ctx context.Context, r *kmsg.InitProducerIDRequest) kmsg.Response {
	answer := kmsg.NewPtrInitProducerIDResponse()
	given, err := p.number(ctx, r)
	if err != nil {
		answer.ErrorCode = p.refuse(ctx, "InitProducerId", err, r.Version >= 4)
		answer.ProducerID, answer.ProducerEpoch = -1, -1
		return answer
	}
	answer.ProducerID, answer.ProducerEpoch = given.Producer, given.Epoch
	return answer
}

func (p producers) number(ctx context.Context, r *kmsg.InitProducerIDRequest) (txn.Claim, error) {
	if !p.rights().anywhere(auth.Send) {
		return txn.None, errClusterRights
	}
	if r.TransactionalID == nil {
		return txn.Claim{Producer: p.handler.cfg.Broker.NewProducerID()}, nil
	}
	by := txn.None
	if r.Version >= 3 && r.ProducerID >= 0 {
		by = txn.Claim{Producer: r.ProducerID, Epoch: r.ProducerEpoch}
	}
	ctx = transactions.For(ctx, accountOf(p.rights()))
	timeout := time.Duration(r.TransactionTimeoutMillis) * time.Millisecond
	return p.handler.cfg.Transactions.Init(ctx, *r.TransactionalID, by, timeout, p.may(auth.Send))
}
