package hub

import (
	"context"

	"github.com/Azure/go-amqp"
)

// readerLink is a link on which events come.
type readerLink struct {
	conn     *connection
	session  *amqp.Session
	receiver *amqp.Receiver
	audience string
}

// opened gives the link, trying once to open one if there is none, for as long as ctx allows.
func (r *reader) opened(ctx context.Context) (link *readerLink, err error) {
	r.mu.Lock()
	link = r.link
	r.mu.Unlock()
	if link != nil {
		return link, nil
	}
	bound, cancel := r.life.bind(context.WithCancel(ctx))
	defer cancel()
	err = r.hub.client.attempt(bound, func(ctx context.Context) error {
		link, err = r.attach(ctx)
		return err
	})
	if err == nil && !r.adopt(link) {
		err = ErrClosed
	}
	return link, err
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
	link := &readerLink{conn: conn, audience: r.hub.client.at.audience(r.address)}
	if err := conn.authorize(ctx, link.audience); err != nil {
		return nil, err
	}
	if link.session, err = conn.session(ctx); err != nil {
		conn.release(link.audience)
		return nil, err
	}
	properties := map[string]any{"com.microsoft:receiver-name": r.cfg.Name}
	if epoch, ok := r.cfg.Epoch.Number(); ok {
		properties["com.microsoft:epoch"] = epoch
	}
	link.receiver, err = link.session.NewReceiver(patient{ctx}, r.address, &amqp.ReceiverOptions{
		// Credit is ours to give: the library would give it back only when the next events are
		// taken. We know how many were taken at once, and may still be worked at while the next are
		// under way.
		Credit:              -1,
		SettlementMode:      amqp.ReceiverSettleModeFirst.Ptr(),
		Filters:             []amqp.LinkFilter{amqp.NewSelectorFilter(selector)},
		Properties:          properties,
		TargetAddress:       r.cfg.Name,
		DesiredCapabilities: []string{capabilityGeo, "com.microsoft:enable-receiver-runtime-metric"},
	})
	if err == nil {
		err = link.receiver.IssueCredit(uint32(r.cfg.Prefetch))
	}
	if err != nil {
		link.abandon()
		return nil, err
	}
	return link, nil
}

// adopt makes a link the reader's; false if the reader was closed meanwhile.
func (r *reader) adopt(link *readerLink) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life.ended() {
		link.abandon()
		return false
	}
	r.link, r.owed = link, 0
	return true
}

// abandon ends it without waiting.
func (l *readerLink) abandon() {
	l.conn.release(l.audience)
	l.conn.end(l.session)
}
