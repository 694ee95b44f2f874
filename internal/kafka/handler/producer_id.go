package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// initProducer gives an idempotent producer its number. It has no epochs before 0: a producer that
// lost its numbers gets another one, which no partition knows.
//
// InitProducerId (22), versions 0 to 5. Transactional ids are refused.
func (p *peer) initProducer(ctx context.Context, r *kmsg.InitProducerIDRequest) kmsg.Response {
	answer := kmsg.NewPtrInitProducerIDResponse()
	var err error
	switch {
	case r.TransactionalID != nil:
		err = errTransactions
	case !p.rights().anywhere(auth.Send):
		err = errClusterRights
	}
	if err != nil {
		answer.ErrorCode = p.fail(ctx, "InitProducerId", err)
		answer.ProducerID, answer.ProducerEpoch = -1, -1
		return answer
	}
	answer.ProducerID = p.handler.cfg.Broker.NewProducerID()
	return answer
}
