package eventgrid

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

// handshakeTime is how long creating a subscription may take: its endpoint is asked, several
// times if it is slow.
const handshakeTime = 5 * time.Minute

// source is what the path names; the zero one where it names neither topic nor hub.
func (c *call) source() topics.Source {
	return topics.Source{Topic: c.names.topic, DomainTopic: c.names.domainTopic, Hub: c.names.hub}
}

// subscription finds the one that the path names.
func (c *call) subscription() (topics.Subscription, error) {
	return c.handler.cfg.Topics.Find(c.source(), c.names.subscription)
}

func (c *call) listSubscriptions() error {
	all, err := c.handler.cfg.Topics.Subscriptions(c.source())
	if err != nil {
		return err
	}
	values := []any{}
	for _, s := range all {
		if c.lists(s) {
			values = append(values, c.showSubscription(s))
		}
	}
	return c.replyList(values)
}

func (c *call) getSubscription() error {
	s, err := c.subscription()
	return c.show(c.showSubscription(s), err)
}

// putSubscription makes a subscription or replaces its settings. The endpoint is asked whether
// it agrees before this is answered.
func (c *call) putSubscription() error {
	text, err := c.document()
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := c.changeSubscription(text, func(s topics.Settings) topics.Settings { return unmentioned(text, s) })
		if !errors.Is(err, topics.ErrNotFound) {
			return err
		}
		err = c.createSubscription(text)
		if !errors.Is(err, topics.ErrExists) || try == maxPuts {
			return err
		}
	}
}

// maxPuts is how often a PUT looks again where others make and delete what it is about.
const maxPuts = 4

// unmentioned makes a PUT replace what is there: of the settings that the JSON has words for, those
// that it leaves out are emptied, so that they are as in a new one. What it has no words for stays
// (signing keys, certificates, limits), and so do secrets, which reads do not show and nobody can
// send back.
func unmentioned(text []byte, s topics.Settings) topics.Settings {
	none := func(members ...string) bool {
		return !slices.ContainsFunc(members, func(m string) bool { return mentions(text, "properties", m) })
	}
	if none("filter", "filtersConfiguration") {
		s.Filter = filter.Config{}
	}
	if none("labels") {
		s.Labels = nil
	}
	if none("expirationTimeUtc") {
		s.Expires = time.Time{}
	}
	if none("eventDeliverySchema") {
		s.Output = ""
	}
	if none("retryPolicy", "deliveryConfiguration") {
		s.Retry.MaxAttempts, s.Retry.TimeToLive = 0, 0
	}
	inMode := func(mode string) bool { // where subscriptions of a namespace's topic have it
		return mentions(text, "properties", "deliveryConfiguration", mode, "deadLetterDestinationWithResourceIdentity")
	}
	if none("deadLetterDestination", "deadLetterWithResourceIdentity") && !inMode("queue") && !inMode("push") {
		s.DeadLetter = topics.Target{}
	}
	return s
}

// updateSubscription changes what a PATCH mentions. The official clients send the properties
// without their frame there.
func (c *call) updateSubscription() error {
	text, err := c.document()
	if err != nil {
		return err
	}
	if !mentions(text, "properties") {
		text = append(append([]byte(`{"properties":`), text...), '}')
	}
	return c.changeSubscription(text, func(s topics.Settings) topics.Settings { return s })
}

// changeSubscription writes a document over what base leaves of the present settings: those that
// are there when it is stored, so that what others change meanwhile stays.
func (c *call) changeSubscription(text []byte, base func(topics.Settings) topics.Settings) error {
	c.takeUntil(time.Now().Add(handshakeTime))
	s, err := c.handler.cfg.Topics.Update(c.R.Context(), c.source(), c.names.subscription, func(s *topics.Settings) error {
		next, err := topics.ParseSubscriptionARM(text, base(*s))
		if err == nil {
			*s = next
		}
		return err
	})
	return c.showChanged(c.showSubscription(s), err)
}

func (c *call) createSubscription(text []byte) error {
	settings, err := topics.ParseSubscriptionARM(text, topics.Settings{})
	if err != nil {
		return err
	}
	c.takeUntil(time.Now().Add(handshakeTime))
	s, err := c.handler.cfg.Topics.Create(c.R.Context(), c.source(), c.names.subscription, settings)
	if err != nil {
		return err
	}
	return c.replyJSON(http.StatusCreated, c.showSubscription(s))
}

func (c *call) deleteSubscription() error {
	err := c.handler.cfg.Topics.Delete(c.R.Context(), c.source(), c.names.subscription)
	if errors.Is(err, topics.ErrTopicNotFound) { // and so its subscriptions are not there, either
		return c.replyDeleted(err, topics.ErrTopicNotFound)
	}
	return c.replyDeleted(err, topics.ErrNotFound)
}

// getFullURL shows the secrets in an endpoint's URL, which nothing else does.
func (c *call) getFullURL() error {
	s, err := c.subscription()
	if err != nil {
		return err
	}
	if s.Webhook == nil {
		return &frame.Refusal{
			Status: http.StatusBadRequest, Code: codeInvalid,
			Detail: "subscription " + s.Name + " has no webhook", Next: "ask this of one whose endpointType is WebHook",
		}
	}
	return c.replyJSON(http.StatusOK, map[string]string{"endpointUrl": s.Webhook.URL})
}

// attribute is a delivery property as the resource manager shows it.
type attribute struct {
	Name       string              `json:"name"`
	Type       string              `json:"type"`
	Properties attributeProperties `json:"properties"`
}

type attributeProperties struct {
	Value       *string `json:"value,omitempty"`
	IsSecret    *bool   `json:"isSecret,omitempty"`
	SourceField string  `json:"sourceField,omitempty"`
}

// getDeliveryAttributes shows the headers with their secrets, which nothing else does.
func (c *call) getDeliveryAttributes() error {
	s, err := c.subscription()
	if err != nil {
		return err
	}
	values := []any{}
	for _, h := range s.Headers {
		if h.Field != "" {
			values = append(values, attribute{h.Name, "Dynamic", attributeProperties{SourceField: h.Field}})
			continue
		}
		values = append(values, attribute{h.Name, "Static", attributeProperties{Value: &h.Value, IsSecret: &h.Secret}})
	}
	return c.replyJSON(http.StatusOK, list{values})
}
