package eventhubs

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/amqp"
	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// What a receiver may ask for when it attaches.
const (
	propertyEpoch        wire.Symbol = "com.microsoft:epoch"
	propertyReceiverName wire.Symbol = "com.microsoft:receiver-name"
	capabilityMetrics    wire.Symbol = "com.microsoft:enable-receiver-runtime-metric"
)

// receiver gives the events of a partition to a client, on one link (H4).
type receiver struct {
	peer *peer
	link *amqp.Link
	at   entity
	// hub is what the link's address found: one of the same name made later is another.
	hub broker.Hub
	// metrics: the client wants to hear of the partition's newest event, too (H10).
	metrics   bool
	delivered prometheus.Counter
	unwatch   func()
	// giveBack ends its part of the quota of receivers.
	giveBack func()

	// seat is the broker's receiver, feed what moves its events. Set before the link is accepted.
	seat *broker.Receiver
	feed *feed

	mu sync.Mutex
	// begun: Run has been called. running: it is, and the cursor is its own. closed: the link has
	// ended. evicted: another receiver has replaced it. stop ends the last wait for events. All are
	// guarded by mu.
	begun, running, closed bool
	evicted                *broker.EvictedError
	stop                   func()
}

// attachReceiver accepts a link from a partition. Its position is fixed when it returns,
// before the client hears of it: what is stored from then on is new to it.
func (p *peer) attachReceiver(l *amqp.Link, a address) (amqp.Terminus, error) {
	at := p.entity(a)
	if err := p.authorize(at, auth.Listen); err != nil {
		return amqp.Terminus{}, err
	}
	if a.group == "" || a.partition == "" || a.publisher != "" {
		return amqp.Terminus{}, &amqp.Error{Condition: condArgument, Description: "A receiver's address has the form " +
			"HUB/ConsumerGroups/GROUP/Partitions/ID."}
	}
	hub, err := p.handler.cfg.Broker.LookUp(p.conn.Context(), a.hub)
	if err != nil {
		return amqp.Terminus{}, err
	}
	by, _ := p.rights.granted(at.scope(), auth.Listen)
	giveBack, err := p.handler.cfg.Receivers.Take(by.Account(), 1)
	if err != nil {
		return amqp.Terminus{}, err
	}
	r := &receiver{peer: p, link: l, at: at, hub: hub, giveBack: giveBack}
	accepted := false
	defer func() {
		if !accepted {
			giveBack()
		}
	}()
	err = r.sit(l.Request())
	if refused, ok := errors.AsType[*broker.EpochError](err); ok {
		// As if robbed at once: one client that is refused outright makes a new connection
		// and tries again, and disturbs what else it reads.
		return amqp.Terminus{Source: refusal{p.explain(at, refused)}, Settled: true}, nil
	}
	if err != nil {
		return amqp.Terminus{}, err
	}
	r.metrics = slices.Contains(l.Request().DesiredCapabilities, capabilityMetrics)
	r.delivered = p.handler.metrics.delivered.WithLabelValues(hub.Name)
	if r.unwatch, err = p.watch(l, at, auth.Listen); err != nil {
		r.seat.Close()
		_ = r.seat.Cursor.Close()
		return amqp.Terminus{}, err
	}
	r.feed = newFeed(r, p.handler.cfg.Memory.Share(by.Account(), r.press))
	accepted = true
	return amqp.Terminus{Source: r, Settled: true, OnDemand: true}, nil
}

// sit becomes a receiver of the partition.
func (r *receiver) sit(request *wire.Attach) error {
	from, err := selectorOf(request.Source.Filter)
	if err != nil {
		return err
	}
	cfg := broker.ReceiverConfig{
		Hub: r.at.hub, Group: r.at.group, Partition: r.at.partition,
		At: from.at, Evict: r.evict,
	}
	if value := property(request.Properties, propertyEpoch); value != nil {
		epoch, ok := integerOf(value)
		if !ok {
			return badProperty(propertyEpoch)
		}
		cfg.Epoch = &epoch
	}
	if name, ok := textOf(property(request.Properties, propertyReceiverName)); ok {
		cfg.Name = shown(name)
	}
	ctx, cancel := context.WithTimeout(r.peer.conn.Context(), attachTimeout)
	defer cancel()
	seat, err := r.peer.handler.cfg.Broker.Receive(ctx, cfg)
	if ahead, ok := errors.AsType[*eventlog.PositionError](err); ok {
		return &amqp.Error{Condition: condArgument, Description: from.textPastEnd(ahead)}
	}
	r.seat = seat
	return err
}

// evict ends the link of a receiver that another has replaced. Where it has not begun
// to run it finds out by itself, before it sends anything.
func (r *receiver) evict(err *broker.EvictedError) {
	r.mu.Lock()
	r.evicted = err
	begun := r.begun
	r.mu.Unlock()
	if begun {
		r.link.Detach(r.peer.explain(r.at, err))
	}
}

// Closed gives the partition up at once.
func (r *receiver) Closed() {
	r.unwatch()
	defer r.giveBack()
	r.mu.Lock()
	r.closed = true
	running, stop := r.running, r.stop
	r.mu.Unlock()
	r.seat.Close()
	if stop != nil {
		stop()
	}
	if !running {
		r.feed.close()
	}
}

// begin makes the cursor the caller's, unless there is nothing to begin any more.
func (r *receiver) begin() (ok bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false, nil
	}
	r.begun = true
	if r.evicted != nil {
		return false, r.evicted
	}
	r.running = true
	return true, nil
}

// end gives the cursor back, or closes it where the link has ended meanwhile.
func (r *receiver) end() {
	r.mu.Lock()
	r.running = false
	closed := r.closed
	r.mu.Unlock()
	if closed {
		r.feed.close()
	}
}

// press is called while others wait for memory, and this one has kept its own for long. A client that
// wants nothing now loses nothing: what it has not got is read again. One that does not take what it
// is being sent is cut off.
func (r *receiver) press() {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.running:
		r.link.Conn().CutOff()
	case !r.closed:
		r.feed.drop()
	}
}

// await has the link woken when there are events behind those that it has.
func (r *receiver) await(wake func()) {
	stop := r.feed.cursor.Await(wake)
	r.mu.Lock()
	closed := r.closed
	r.stop = stop
	r.mu.Unlock()
	if closed {
		stop()
	}
}

// Run sends the events that there are, as long as the client wants any.
func (r *receiver) Run(ctx context.Context, _ *amqp.Link) error {
	ok, err := r.begin()
	if ok {
		defer r.end()
		err = r.feed.run(ctx)
	}
	if err == nil || ctx.Err() != nil {
		return nil
	}
	if errors.Is(err, eventlog.ErrRemoved) {
		r.peer.handler.metrics.delivered.DeleteLabelValues(r.hub.Name)
	}
	reported := r.peer.explain(r.at, err)
	switch reported.Condition {
	case condBusy, condTimeout, condCancelled: // would be tried again on the same link, but another is needed
		reported.Condition = condDetachForced
	}
	return reported
}

// refusal is a source that ends as soon as it has begun.
type refusal struct{ err *amqp.Error }

func (s refusal) Run(context.Context, *amqp.Link) error { return s.err }
func (s refusal) Closed()                               {}
