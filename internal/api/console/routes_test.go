package console

import (
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V4: whatever topics, hubs, groups and subscriptions are called, their pages are theirs: a subscription
// may have the name of anything that is done to one.
func TestNoNameCollidesWithAnAction(t *testing.T) {
	c, _, _ := newFixture(nil)
	words := map[string]bool{"a/b": true, "?x=1": true, "%2F": true}
	for _, rt := range c.routes() {
		for _, word := range regexp.MustCompile(`[a-z.-]+`).FindAllString(rt.path, -1) {
			words[word] = true
		}
	}
	for word := range words {
		for path, want := range map[string]*page{
			subscriptionPath(admin.SubscriptionRef{Topic: word, Name: word}):                           &subscriptionPage,
			subscriptionPath(admin.SubscriptionRef{Hub: word, Name: word}):                             &subscriptionPage,
			subscriptionPath(admin.SubscriptionRef{Topic: word, Name: word, DomainTopic: "x"}, "dead"): &deadLettersPage,
			at("topics", word):               &topicPage,
			at("hubs", word):                 &hubPage,
			at("hubs", word, "groups", word): &groupPage,
			at("functions", word):            &functionPage,
		} {
			r := httptest.NewRequest("GET", path, nil)
			testkit.That(t, c.find(httptest.NewRecorder(), r).page == want, "%s is another page", path)
		}
	}
}

// A subscription of a hub is asked for as one.
func TestASubscriptionOfAHub(t *testing.T) {
	_, api, h := newFixture(fixed())
	testkit.Equal(t, get(h, base+"hubs/sensors/subscriptions/company/attempts").Code, 200)
	testkit.Equal(t, post(h, base+"hubs/sensors/subscriptions/company/pause", nil).Header().Get("Location"), base+"hubs/sensors/subscriptions/company?done=paused")
	testkit.That(t, len(api.calls) > 0, "nothing is asked")
}
