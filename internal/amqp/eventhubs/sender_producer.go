package eventhubs

import (
	"context"
	"math"

	"github.com/eventyard/eventyard/internal/amqp"
	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/quota"
)

// capabilityIdempotent is how a client asks to number its events.
const capabilityIdempotent wire.Symbol = "com.microsoft:idempotent-producer"

// openProducer begins the epoch that a link asks for. What the client leaves open the
// broker chooses. A link of an epoch that is over is accepted all the same: one client
// takes a refusal for something to try again, and understands it on what it sends.
func (p *peer) openProducer(l *amqp.Link, a address, account string, by func() *quota.Meter) (*broker.Producer, error) {
	if a.partition == "" {
		return nil, &amqp.Error{Condition: condArgument, Description: "An idempotent producer sends to a partition: " +
			"the link's address has to name one."}
	}
	cfg := broker.ProducerConfig{Account: account, Quota: by}
	var err error
	asked := l.Request().Properties
	if cfg.ID, err = producerNumber[int64](asked, wire.AnnotationProducerID, 0, math.MaxInt64); err != nil {
		return nil, err
	}
	if cfg.Epoch, err = producerNumber[int16](asked, wire.AnnotationProducerEpoch, 0, math.MaxInt16); err != nil {
		return nil, err
	}
	// -1, which Event Hubs does not take, is how a client says that it has sent none and counts
	// from 0.
	if cfg.Last, err = producerNumber[int32](asked, wire.AnnotationProducerSequence, -1, math.MaxInt32); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(p.conn.Context(), attachTimeout)
	defer cancel()
	return p.handler.cfg.Broker.Producer(ctx, a.hub, a.partition, cfg)
}

// producerNumber reads one of the three numbers; nil if it is not there, or null.
func producerNumber[T int16 | int32 | int64](m wire.Map, name wire.Symbol, least, most int64) (*T, error) {
	value := property(m, name)
	if value == nil {
		return nil, nil
	}
	n, ok := integerOf(value)
	switch {
	case !ok || n > most:
		return nil, badProperty(name)
	case n < least:
		return nil, &amqp.Error{Condition: condRange, Description: textProducerState}
	}
	return new(T(n)), nil
}

// integerOf takes a whole number of whatever type a client has chosen for it.
func integerOf(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case int32:
		return int64(v), true
	case int16:
		return int64(v), true
	case int8:
		return int64(v), true
	case uint64:
		return int64(v), v <= math.MaxInt64
	case uint32:
		return int64(v), true
	case uint16:
		return int64(v), true
	case uint8:
		return int64(v), true
	default:
		return 0, false
	}
}
