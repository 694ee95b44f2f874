package server

import (
	"testing"

	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
)

// G1, G11, G12: a domain and its subscriptions are configured, also again; the webhooks of a domain
// topic get the events that are published for it, and those of the domain get all.
func TestAConfiguredDomain(t *testing.T) {
	all, eu := newReceiver(t), newReceiver(t)
	cfg := quick(t)
	cfg.Topics = []Topic{{Name: "shop", Domain: new(true), Key1: configuredKey}}
	cfg.Subscriptions = []Subscription{
		{Name: "billing", Topic: "shop", Endpoint: new(all.URL)},
		{Name: "billing", Topic: "shop", DomainTopic: "eu-west", Endpoint: new(eu.URL)},
	}
	for range 2 {
		r := start(t, cfg)
		r.awaitState(topics.Source{Topic: "shop"}, "billing", topics.Active)
		r.awaitState(topics.Source{Topic: "shop", DomainTopic: "eu-west"}, "billing", topics.Active)
		for _, topic := range []string{"us-east", "eu-west"} {
			r.publish("shop", "1", `"topic":"`+topic+`",`)
			all.await(all.got, "/domains/shop/topics/"+topic)
		}
		eu.await(eu.got, "/domains/shop/topics/eu-west")
		r.shutdown()
	}
	testkit.Equal(t, len(eu.got)+len(all.got), 0, "more was delivered")
	testkit.Equal(t, all.handshakes.Load()+eu.handshakes.Load(), 2, "endpoints were asked")
}
