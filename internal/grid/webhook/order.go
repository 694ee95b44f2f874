package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// Bounds of batches (G2).
const (
	maxEvents    = 5000
	preferredKiB = 64
)

// Order is a subscription made ready for deliveries: checked, signer and header templates made,
// endpoint's identity known. It is immutable; make a new one when the definition changes.
type Order struct {
	Subscription *topics.Subscription
	// Topic is the resource id of the source, for the events and headers.
	Topic string
	// Identity is the endpoint's, whose health all that send there share: hub/NAME, or
	// egress.Endpoint.Identity with the credentials in headers.
	Identity string
	// Server is what the endpoint is on, as its URL has it: host and port; or hub/NAME. Empty where route is nil.
	Server string
	// MaxEvents and PreferredBytes bound a batch; Batched says which body shape is used.
	MaxEvents      int
	PreferredBytes int
	Batched        bool

	output schema.Kind
	binary bool
	hub    string // empty: a webhook
	// endpoint and route are the webhook's. route is nil where its address is not allowed (any
	// more): then each delivery fails and says so.
	endpoint egress.Endpoint
	route    *egress.Route
	// header and name are what all requests have in common: headers that are shared with other orders unless they are
	// the order's own, and the subscription's name as a header. properties are the same for events of a hub; nil: it
	// goes to a webhook.
	header     http.Header
	own        bool
	name       []string
	properties map[string]any
	dynamic    []dynamic
	// key gives a hub's partition key.
	key     partitionKey
	signer  *signature.Signer // nil: nothing is signed
	timeout time.Duration
	late    time.Duration
}

// Prepare makes an order. It fails where a definition cannot be used (it was checked when made).
func (c *Sender) Prepare(s *topics.Subscription, topic string) (*Order, error) {
	o := &Order{Subscription: s, Topic: topic, output: s.Output, timeout: cmp.Or(s.Timeout, c.cfg.Timeout), late: max(c.cfg.Late, 0)}
	if o.output == "" { // the definition is older than its topic's schema
		o.output = schema.EventGrid
		if s.Source.Hub != "" {
			o.output = schema.CloudEvents
		}
	}
	o.binary = s.Binary && o.output == schema.CloudEvents
	// Either setting turns batching on, but for a maximum of one event, which is what Event Grid's
	// own definitions say where it is off (reference §14).
	o.Batched = !o.binary && s.MaxEvents != 1 && (s.MaxEvents > 1 || s.PreferredKiB > 0)
	o.MaxEvents, o.PreferredBytes = 1, cmp.Or(max(s.PreferredKiB, 0), preferredKiB)<<10
	if o.Batched {
		o.MaxEvents = min(cmp.Or(max(s.MaxEvents, 0), maxEvents), maxEvents)
	}
	err := c.setHeaders(o)
	if err == nil && len(s.Keys) > 0 {
		o.signer, err = signature.NewSigner(s.Keys)
	}
	if err == nil {
		err = c.setEndpoint(o)
	}
	if err != nil {
		return nil, fmt.Errorf("subscription %q cannot be delivered: %w", s.Name, err)
	}
	return o, nil
}

// Check says what is wrong with a subscription's endpoint, headers and keys, as far as Prepare
// would, and where an address is not allowed.
func (c *Sender) Check(s topics.Subscription) error {
	if s.Webhook == nil {
		return nil
	}
	if err := c.cfg.Client.Check(*s.Webhook); err != nil {
		return err
	}
	_, err := c.Prepare(&s, "")
	return err
}

func (c *Sender) setEndpoint(o *Order) (err error) {
	s := o.Subscription
	switch {
	case s.Hub != "":
		o.hub, o.Identity = s.Hub, "hub/"+strings.ToLower(s.Hub)
		o.Server = o.Identity
		return nil
	case s.Webhook == nil:
		return errors.New("it has neither a webhook nor a hub: give one")
	}
	o.endpoint, o.Identity = *s.Webhook, s.Webhook.Identity(credentials(s.Headers)...)
	if o.route, err = c.cfg.Client.Route(o.endpoint); err == nil {
		o.Server = o.route.Server()
	}
	if errors.Is(err, egress.ErrForbidden) {
		return nil // it may be a matter of this yard's settings: deliveries fail, and are retried
	}
	return err
}

// credentials are the headers that let a request in: two subscriptions with different ones are two
// endpoints (G7). Those taken from events differ with each event, and say nothing of it.
func credentials(headers []topics.Header) (all []string) {
	for _, h := range headers {
		if name := textproto.CanonicalMIMEHeaderKey(h.Name); h.Field == "" && (h.Secret || name == "Authorization") {
			all = append(all, name+": "+h.Value)
		}
	}
	slices.Sort(all)
	return all
}

// Size is about how many bytes a pending delivery adds to a body: what is stored, and what is
// written with it for another schema or of Event Grid's own: the topic, versions, a few names.
func (o *Order) Size(p *pending.Delivery) int {
	const names = 64
	if o.output == schema.EventGrid || o.output == schema.CloudEvents && p.Form == schema.EventGridForm {
		return len(p.Event) + len(o.Topic) + names
	}
	return len(p.Event) + 1
}

// Group is equal for pending deliveries that may share a batch: dynamic headers are resolved per
// event, and the count of hops is one for all of a request, or an event would count the hops of
// another. It is "" for an event without either.
func (o *Order) Group(p *pending.Delivery) string {
	passed := ""
	if p.Hops > 0 {
		passed = strconv.Itoa(p.Hops)
	}
	if len(o.dynamic) == 0 && o.key.field == "" {
		return passed
	}
	w := newWriter()
	defer w.free()
	if w.scan(o, p) != nil {
		return "unreadable" // it is not delivered with others
	}
	return passed + w.group(o)
}

// OrderKey is the value of OrderBy for ordered delivery; "" where the event has none.
func (o *Order) OrderKey(p *pending.Delivery) string {
	w := newWriter()
	defer w.free()
	if w.scan(o, p) != nil {
		return ""
	}
	return string(w.envelope.Field(o.Subscription.OrderBy))
}
