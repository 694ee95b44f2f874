package handshake

import (
	"net/http"
	"testing"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/hubstest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// Endpoints are notified of a deletion, of their subscription or of its topic; who deletes waits
// for none of them, and what fails is notified to nobody.
func TestEndpointsGetDeletionNotices(t *testing.T) {
	y := hubstest.Open(t, storagetest.Config{})
	definitions, err := topics.Open(t.Context(), topics.Config{Engine: y.Engine, Meta: y.Meta, Broker: y.Broker, Log: testkit.Quiet()})
	testkit.Must(t, err)
	came := make(chan struct{}, 2)
	e := newEndpoint(t, func(http.ResponseWriter, *http.Request) { came <- struct{}{} })
	r := NewRegistry(definitions, newAsker(t, egress.Config{Loopback: true}), testkit.Quiet())
	testkit.Must(t, testkit.Err(r.CreateTopic(t.Context(), topics.TopicConfig{Topic: topics.Topic{Name: "orders"}})))
	source := topics.Source{Topic: "orders"}
	for _, name := range []string{"first", "second"} {
		testkit.Must(t, testkit.Err(r.Create(t.Context(), source, name, subscription(e.url, schema.EventGrid).Settings)))
	}
	testkit.Must(t, testkit.Err(r.Create(t.Context(), source, "pulled", topics.Settings{Pull: &topics.Pull{}})))
	testkit.Must(t, r.Delete(t.Context(), source, "first"))
	testkit.ErrorIs(t, r.Delete(t.Context(), source, "first"), topics.ErrNotFound)
	testkit.Must(t, r.DeleteTopic(t.Context(), "orders"))
	testkit.ErrorIs(t, r.DeleteTopic(t.Context(), "orders"), topics.ErrTopicNotFound)
	testkit.Equal(t, len(r.gone), 2, "notices wait")
	testkit.Run(t, r.Run)
	<-came
	<-came
}

func TestTooManyNoticesAreDropped(t *testing.T) {
	r := NewRegistry(nil, nil, testkit.Quiet())
	for range maxNotices + 1 {
		r.notify(subscription("https://example.com", schema.EventGrid))
	}
	testkit.Equal(t, len(r.gone), maxNotices, "notices wait")
}
