package hub

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// capabilityProducer asks a hub to look at the numbers of events.
const capabilityProducer = "com.microsoft:idempotent-producer"

// ProducerConfig names a producer of one partition. ID and Epoch are the caller's to keep: a program
// that continues with the same ones after a crash stores nothing twice.
type ProducerConfig struct {
	Partition string
	// ID is not negative. A random one is nobody else's.
	ID int64
	// Epoch is not negative, and 0 will do. A higher one ends all lower ones of the same producer:
	// its numbers go on behind theirs, but theirs can no longer be sent again.
	Epoch int16
}

// Producer publishes to one partition under numbers of the caller's, so that what is sent again, by
// whomever, is stored once. A yard keeps that state as durably as the events, for a week after the
// last; Event Hubs knows it too. All methods may be called by many goroutines at once, and by any
// number of producers with the same ID and Epoch.
//
// A hub reports 0 to a link where nothing was stored, and counts from 1; a yard does as Event Hubs.
// So a hub is shown each number one higher: otherwise nothing stored and number 0 would look alike.
type Producer struct {
	hub  *Hub
	cfg  ProducerConfig
	to   *sender
	life life // until Close
}

// Producer gives one; nothing is opened before it is needed.
func (h *Hub) Producer(cfg ProducerConfig) *Producer {
	p := &Producer{hub: h, cfg: cfg, to: newSender(h.client, h.target(cfg.Partition)), life: newLife()}
	p.to.capability, p.to.check = capabilityProducer, p.recognized
	p.to.properties = map[string]any{
		wire.AnnotationProducerID: cfg.ID, wire.AnnotationProducerEpoch: cfg.Epoch, wire.AnnotationProducerSequence: nil,
	}
	return p
}

// Send publishes one event under a number; the first ever is 0, and each the one behind the last (0
// follows the largest). nil: it is durable, now or since an earlier sending. Several programs may
// send under the same number at once: one is stored. The event keeps its key, though that does not
// choose the partition.
//
// When an answer does not come the event is sent again under the same number, as often as
// Config.Retry says. After an error other than ErrOutOfOrder and ErrProducerFenced it may be
// stored, or may still be: send it again, and nothing else, under that number.
func (p *Producer) Send(ctx context.Context, number int32, ev event.Event) error {
	b := newBatch(ev.Key, p.cfg.Partition)
	b.producer, b.number = &p.cfg, onWire(number)
	err := errNegative
	if number >= 0 {
		err = b.add(&ev)
	}
	if err == nil {
		m := b.message()
		err = p.retry(ctx, func(ctx context.Context) error { return p.to.send(ctx, m, b.bytes) })
	}
	if err != nil {
		return p.error(fmt.Sprintf("send number %d, to the hub %d", number, b.number), err)
	}
	return nil
}

// onWire is how a hub is shown a number.
func onWire(number int32) int32 { return int32((int64(number) + 1) & math.MaxInt32) }

// offWire is the number that a hub means. With none it says 0, as it does when the largest is
// stored; but behind both comes 0.
func offWire(reported int32) int32 { return max(reported, 0) - 1 }

// Last asks the hub for the newest number stored; -1: none. What is in progress when it is asked is
// waited for.
func (p *Producer) Last(ctx context.Context) (last int32, err error) {
	err = p.retry(ctx, func(ctx context.Context) error {
		link, err := p.to.attach(ctx) // a hub reports it to new links
		if err == nil {
			last, _ = link.reported[wire.AnnotationProducerSequence].(int32)
			link.conn.end(link.session)
		}
		return err
	})
	if err != nil {
		return 0, p.error("ask for the last number", err)
	}
	return offWire(last), nil
}

// errNoProducers: what is sent again to such a hub is stored again.
var errNoProducers = errors.New("the hub takes no numbers of producers")

// recognized is an error unless a hub has taken a link for the producer's.
func (p *Producer) recognized(reported map[string]any) error {
	_, ok := reported[wire.AnnotationProducerSequence].(int32)
	if !ok || reported[wire.AnnotationProducerID] != p.cfg.ID || reported[wire.AnnotationProducerEpoch] != p.cfg.Epoch {
		return errNoProducers
	}
	return nil
}

// errNegative: a hub would take it for something else.
var errNegative = errors.New("a producer's id, epoch and numbers begin at 0")

// retry is the client's, and ends when the producer is closed.
func (p *Producer) retry(ctx context.Context, do func(context.Context) error) error {
	switch {
	case p.cfg.Partition == "":
		return errNoPartition
	case p.cfg.ID < 0 || p.cfg.Epoch < 0:
		return errNegative
	case p.life.ended():
		return ErrClosed
	}
	if err := p.hub.named(); err != nil {
		return err
	}
	bound, cancel := p.life.bind(context.WithCancel(ctx))
	defer cancel()
	err := p.hub.client.retry(bound, sending, do)
	if err != nil && ctx.Err() == nil && p.life.ended() {
		return ErrClosed
	}
	return err
}

// Close ends its link; calls in progress end with ErrClosed. Safe twice.
func (p *Producer) Close(ctx context.Context) error {
	p.life.end()
	if err := p.to.close(ctx); err != nil {
		return p.error("close", err)
	}
	return nil
}

func (p *Producer) error(doing string, err error) error {
	return fmt.Errorf("producer %d of %s/%s: %s: %w", p.cfg.ID, p.hub.name, p.cfg.Partition, doing, err)
}
