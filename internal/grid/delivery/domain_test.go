package delivery

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
)

// publishFor stores events for a topic of a domain.
func (y *yard) publishFor(domain, topic string, ids ...string) {
	y.t.Helper()
	var events [][]byte
	for _, id := range ids {
		events = append(events, []byte(strings.Replace(string(eventOf(id)), `"data"`, `"topic":"`+topic+`","data"`, 1)))
	}
	testkit.Must(y.t, y.topics.Publish(y.t.Context(), domain, events, nil))
}

// G1, G12: a domain's subscriptions get every event, those of its topics the events of theirs, at
// once and when they catch up; an event of a topic that nobody subscribes to is nobody else's.
func TestADomainsEventsGoToItsTopics(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		var metrics *prometheus.Registry
		y.reconfigure(func(c *Config) {
			metrics = prometheus.NewPedanticRegistry()
			c.Metrics = metrics
		})
		testkit.Must(t, testkit.Err(y.topics.CreateTopic(t.Context(), topics.TopicConfig{Topic: topics.Topic{Name: "shop", Domain: &topics.Domain{}}})))
		for name, source := range map[string]topics.Source{
			"all-of-it": {Topic: "shop"}, "only-eu": {Topic: "shop", DomainTopic: "eu-west"}, "only-us": {Topic: "shop", DomainTopic: "US-east"},
		} {
			y.subscribeTo(source, name)
		}
		paid := topics.Source{Topic: "shop", DomainTopic: "eu-west"}
		y.subscribeTo(paid, "paid-eu", func(s *topics.Settings) { s.Filter = filter.Config{EventTypes: []string{"paid"}}; s.Paused = true })
		y.subscribeTo(topics.Source{Topic: "shop", DomainTopic: "us-east"}, "paid-eu") // another of that name
		wait()
		y.publishFor("shop", "EU-west", "paid/1", "open/2")
		y.publishFor("shop", "us-east", "paid/3")
		y.publishFor("shop", "nobodys", "paid/4")
		wait()
		wantIDs(t, "the domain", y.sender.delivered("all-of-it"), []string{"paid/1", "open/2", "paid/3", "paid/4"})
		wantIDs(t, "one topic", y.sender.delivered("only-eu"), []string{"paid/1", "open/2"})
		wantIDs(t, "the other", y.sender.delivered("only-us"), []string{"paid/3"})
		wantIDs(t, "before it goes on", y.sender.delivered("paid-eu"), []string{"paid/3"})
		y.restart()
		y.changeOf(paid, "paid-eu", func(s *topics.Settings) { s.Paused = false })
		wait()
		wantIDs(t, "who was late", y.sender.delivered("paid-eu"), []string{"paid/3", "paid/1"})
		_, err := metrics.Gather()
		testkit.Must(t, err, "metrics of two subscriptions of one name")
	})
}
