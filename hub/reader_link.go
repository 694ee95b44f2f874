package hub

import (
	"context"

	"github.com/Azure/go-amqp"
)

// What a reader tells or asks when it attaches.
const (
	propertyEpoch     = "com.microsoft:epoch"
	propertyName      = "com.microsoft:receiver-name"
	capabilityMetrics = "com.microsoft:enable-receiver-runtime-metric"
)

// readerLink is a link on which events come.
type readerLink struct {
	conn     *connection
	session  *amqp.Session
	receiver *amqp.Receiver
	audience string
}

// attach opens a link behind the last event given.
func (r *reader) attach(ctx context.Context) (*readerLink, error) {
	selector, err := r.from.selector()
	if err != nil {
		return nil, err
	}
	conn, err := r.hub.client.connect(ctx)
	if err != nil {
		return nil, err
	}
	audience := r.hub.client.at.audience(r.address)
	if err := conn.authorize(ctx, audience); err != nil {
		return nil, err
	}
	link := &readerLink{conn: conn, audience: audience}
	if err := link.attach(ctx, r, selector); err != nil {
		conn.release(audience)
		return nil, err
	}
	return link, nil
}

func (l *readerLink) attach(ctx context.Context, r *reader, selector string) (err error) {
	if l.session, err = l.conn.session(ctx); err != nil {
		return err
	}
	l.receiver, err = l.session.NewReceiver(patient{ctx}, r.address, r.options(selector))
	if err == nil {
		err = l.receiver.IssueCredit(uint32(r.cfg.Prefetch))
	}
	if err != nil {
		l.conn.end(l.session)
	}
	return err
}

// options are those of a link. Credit is ours to give: the library would give it back only
// when the next events are taken, and we know how many were taken at once, and may still
// be worked at while the next are under way.
func (r *reader) options(selector string) *amqp.ReceiverOptions {
	properties := map[string]any{propertyName: r.cfg.Name}
	if r.cfg.Epoch != nil {
		properties[propertyEpoch] = *r.cfg.Epoch
	}
	return &amqp.ReceiverOptions{
		Credit:              -1,
		SettlementMode:      amqp.ReceiverSettleModeFirst.Ptr(),
		Filters:             []amqp.LinkFilter{amqp.NewSelectorFilter(selector)},
		Properties:          properties,
		TargetAddress:       r.cfg.Name,
		DesiredCapabilities: []string{capabilityGeo, capabilityMetrics},
	}
}

// close ends the link and waits for the hub to know.
func (l *readerLink) close(ctx context.Context) error {
	l.conn.release(l.audience)
	return l.session.Close(ctx)
}

// abandon ends it without waiting.
func (l *readerLink) abandon() {
	l.conn.release(l.audience)
	l.conn.end(l.session)
}

// adopt makes a link the reader's; false if the reader was closed meanwhile.
func (r *reader) adopt(link *readerLink) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.closing:
		link.abandon()
		return false
	default:
	}
	r.link, r.owed = link, 0
	return true
}

// opened gives the link, opening one if there is none, for as long as ctx allows.
func (r *reader) opened(ctx context.Context) (*readerLink, error) {
	r.mu.Lock()
	link := r.link
	r.mu.Unlock()
	if link != nil {
		return link, nil
	}
	return r.reopen(ctx)
}

// reopen tries to attach once.
func (r *reader) reopen(ctx context.Context) (link *readerLink, err error) {
	bound, cancel := r.bind(ctx)
	defer cancel()
	err = r.hub.client.attempt(bound, func(ctx context.Context) error {
		link, err = r.attach(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if !r.adopt(link) {
		return nil, ErrClosed
	}
	return link, nil
}

// forget gives up a link that has ended, or is of no more use.
func (r *reader) forget(link *readerLink) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.link == link { // else Close has it
		r.link = nil
		link.abandon()
	}
}
