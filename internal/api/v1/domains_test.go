package v1

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// G1, G12: a domain is a topic that says so; its subscriptions are told apart by their domain topic.
func TestADomainAndItsTopics(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		made := read[admin.Topic](t, y.want(201, "POST", "/api/v1/topics", `{"name":"shop","domain":true,"properties":{"autoDeleteTopicWithLastSubscription":false}}`))
		testkit.That(t, made.Domain && len(made.DomainTopics) == 0 && strings.HasSuffix(made.Resource, "/domains/shop"), "made is %+v", made)
		y.want(201, "POST", "/api/v1/topics", `{"name":"plain"}`)
		y.want(201, "POST", "/api/v1/subscriptions", `{"name":"billing","topic":"shop","endpoint":"https://example.com/all"}`)
		one := y.want(201, "POST", "/api/v1/subscriptions", `{"name":"billing","topic":"shop","domainTopic":"eu-west","endpoint":"https://example.com/eu"}`)
		testkit.Equal(t, one.header.Get("Location"), billingPath+"?domainTopic=eu-west&topic=shop", "it is at")
		got := read[admin.Subscription](t, y.want(200, "GET", billingPath+"?topic=shop&domainTopic=EU-west", nil))
		testkit.Equal(t, got.DomainTopic+" "+got.Endpoint, "eu-west https://example.com/eu", "shown")
		got = read[admin.Subscription](t, y.want(200, "GET", billingPath+"?topic=shop", nil))
		testkit.Equal(t, got.DomainTopic+" "+got.Endpoint, " https://example.com/all", "shown")

		shop := read[admin.Topic](t, y.want(200, "GET", "/api/v1/topics/shop", nil))
		testkit.Equal(t, strings.Join(shop.DomainTopics, " "), "eu-west", "its topics")
		testkit.Equal(t, shop.Subscriptions, 2, "subscriptions")
		for _, listed := range read[struct{ Topics []admin.Topic }](t, y.want(200, "GET", "/api/v1/topics", nil)).Topics {
			testkit.That(t, listed.DomainTopics == nil && listed.Domain == (listed.Name == "shop"), "listed is %+v", listed)
		}
		y.want(204, "DELETE", billingPath+"?topic=shop&domainTopic=eu-west", nil)
		shop = read[admin.Topic](t, y.want(200, "GET", "/api/v1/topics/shop", nil))
		testkit.Equal(t, strings.Join(shop.DomainTopics, " "), "eu-west", "its topics, which stay without subscriptions")

		y.refused(400, "invalid-definition", "POST", "/api/v1/subscriptions", `{"name":"other","topic":"plain","domainTopic":"eu-west","pull":{}}`)
		y.refused(400, "invalid-definition", "PATCH", "/api/v1/topics/plain", `{"domain":true}`)
		y.refused(400, "invalid-definition", "PATCH", "/api/v1/topics/shop", `{"domain":false}`)
		y.refused(400, "bad-request", "GET", billingPath+"?domainTopic=eu-west", nil)
		y.refused(400, "bad-request", "PATCH", billingPath+"?topic=shop", `{"domainTopic":"other"}`)
	})
}
