package eventgrid

import (
	"context"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// meddler is definitions that somebody else changes once, after they were read and before what
// was made of them is stored.
type meddler struct {
	*topics.Registry
	meddle func()
}

func (y *realYard) meddle(f func()) {
	m := &meddler{Registry: y.topicRegistry}
	m.meddle = func() { m.meddle = func() {}; f() }
	y.handler.cfg.Topics = m
}

func (m *meddler) Find(source topics.Source, name string) (topics.Subscription, error) {
	s, err := m.Registry.Find(source, name)
	m.meddle()
	return s, err
}

func (m *meddler) Update(ctx context.Context, source topics.Source, name string, change func(*topics.Settings) error) (topics.Subscription, error) {
	s, err := m.Registry.Update(ctx, source, name, func(s *topics.Settings) error {
		defer func() { m.meddle() }()
		return change(s)
	})
	m.meddle() // also where there was none
	return s, err
}

func (m *meddler) Topic(name string) (topics.Topic, error) {
	t, err := m.Registry.Topic(name)
	m.meddle()
	return t, err
}

func (m *meddler) UpdateTopic(ctx context.Context, name string, change func(*topics.Topic) error) (topics.Topic, error) {
	return m.Registry.UpdateTopic(ctx, name, func(t *topics.Topic) error {
		defer func() { m.meddle() }()
		return change(t)
	})
}

// What two change at once of a subscription is changed by both.
func TestSubscriptionsAreChangedByTwo(t *testing.T) {
	for method, body := range map[string]string{
		"PATCH": `{"labels":["mine"]}`,
		"PUT":   `{"properties":{"labels":["mine"],"destination":{"endpointType":"WebHook","properties":{"endpointUrl":"https://mail.example/hook"}}}}`,
	} {
		t.Run(method, func(t *testing.T) {
			y := newRealYard(t)
			y.topic("orders", schema.EventGrid)
			source := topics.Source{Topic: "orders"}
			_, err := y.topicRegistry.Create(t.Context(), source, "mailer", topics.Settings{Webhook: &egress.Endpoint{URL: "https://mail.example/hook"}})
			testkit.Must(t, err)
			y.meddle(func() {
				_, err := y.topicRegistry.Update(t.Context(), source, "mailer", func(s *topics.Settings) error { s.Concurrency = 3; return nil })
				testkit.Must(t, err)
			})
			y.ask(method, grid+"/topics/orders/eventSubscriptions/mailer", body, asRoot).want(201)
			s, err := y.topicRegistry.Find(source, "mailer")
			if err != nil || s.Concurrency != 3 || len(s.Labels) != 1 {
				t.Errorf("it has a concurrency of %d and labels %v, %v", s.Concurrency, s.Labels, err)
			}
		})
	}
}

// A PUT finds what somebody else has made meanwhile, and makes what somebody else has deleted.
func TestSubscriptionsAreMadeByTwo(t *testing.T) {
	const path = grid + "/topics/orders/eventSubscriptions/mailer"
	source := topics.Source{Topic: "orders"}
	y := newRealYard(t)
	y.topic("orders", schema.EventGrid)
	y.meddle(func() {
		_, err := y.topicRegistry.Create(t.Context(), source, "mailer", topics.Settings{Webhook: &egress.Endpoint{URL: "https://mail.example/hook"}, Concurrency: 3})
		testkit.Must(t, err)
	})
	y.ask("PUT", path, hook, asRoot).want(201)
	if s, err := y.topicRegistry.Find(source, "mailer"); err != nil || s.Concurrency != 3 || len(s.Labels) != 1 {
		t.Errorf("it has a concurrency of %d and labels %v, %v", s.Concurrency, s.Labels, err)
	}
	y.meddle(func() { testkit.Must(t, y.topicRegistry.Delete(t.Context(), source, "mailer")) })
	y.ask("PUT", path, strings.Replace(hook, `"l"`, `"m"`, 1), asRoot).want(201)
	y.meddle(func() { testkit.Must(t, y.topicRegistry.Delete(t.Context(), source, "mailer")) })
	y.ask("PATCH", path, `{"labels":["mine"]}`, asRoot).refused(404, "ResourceNotFound")
}

// A PATCH takes back nothing that somebody else changes of a topic, and makes none that was
// deleted.
func TestTopicsAreChangedByTwo(t *testing.T) {
	y := newRealYard(t)
	y.topic("orders", schema.EventGrid)
	y.meddle(func() {
		_, err := y.topicRegistry.UpdateTopic(t.Context(), "orders", func(t *topics.Topic) error { t.DisableKeys = true; return nil })
		testkit.Must(t, err)
	})
	y.ask("PATCH", grid+"/topics/orders", `{"tags":{"a":"1"}}`, asRoot).want(200)
	if now, err := y.topicRegistry.Topic("orders"); err != nil || !now.DisableKeys || now.Tags["a"] != "1" {
		t.Errorf("it is %+v, %v", now, err)
	}
	y.meddle(func() { testkit.Must(t, y.topicRegistry.DeleteTopic(t.Context(), "orders")) })
	y.ask("PATCH", grid+"/topics/orders", `{"tags":{"a":"2"}}`, asRoot).refused(404, "ResourceNotFound")
	y.listed("/topics", "yard-events")
}
