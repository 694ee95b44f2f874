package topics

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Keys of the store. A hub's name is one segment: its slashes are escaped.
const (
	topicsPrefix             = "grid/topics/"
	subscriptionsPrefix      = "grid/subscriptions/"
	topicSubscriptionsPrefix = subscriptionsPrefix + "t/"
	hubSubscriptionsPrefix   = subscriptionsPrefix + "h/"
)

func topicKey(name string) string { return topicsPrefix + auth.Fold(name) }

// domainTopicSegment begins the segment of a domain topic, so that none is a subscription's name.
const domainTopicSegment = "@"

// subscriptionKeys are those of one source; of a domain also those of its topics.
func subscriptionKeys(s Source) string {
	if s.Hub != "" {
		return hubSubscriptionsPrefix + url.PathEscape(auth.Fold(s.Hub)) + "/"
	}
	keys := topicSubscriptionsPrefix + url.PathEscape(auth.Fold(s.Topic)) + "/"
	if s.DomainTopic != "" {
		keys += domainTopicSegment + auth.Fold(s.DomainTopic) + "/"
	}
	return keys
}

func subscriptionKey(s Source, name string) string { return subscriptionKeys(s) + auth.Fold(name) }

// idCharacters is how many a topic's or subscription's ID has: 65 random bits.
const idCharacters = 13

func newID() string { return strings.ToLower(rand.Text()[:idCharacters]) }

func isID(id string) bool {
	return len(id) == idCharacters && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '2' || r > '7')
	})
}

// HubID is the SourceID of subscriptions of a hub. One that is made anew under the same name has
// another. It is of the same form as a topic's ID, so that it can be part of any name or key.
func HubID(h broker.Hub) string {
	sum := sha256.Sum256([]byte(auth.Fold(h.Name) + "\n" + strconv.FormatInt(h.Created.UnixMilli(), 10)))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))[:idCharacters]
}

// LogOf names the log of a topic's events.
func LogOf(t *Topic) eventlog.PartitionID {
	return eventlog.PartitionID{Log: "topic-" + t.ID, Number: 0}
}

// subscriptionGUID stands where Azure has the id of a paying customer's subscription.
const subscriptionGUID = "00000000-0000-0000-0000-000000000000"

// TopicResource is the id of a topic as deliveries and management calls write it.
func TopicResource(namespace, topic string) string {
	return resourceGroup(namespace) + "/providers/Microsoft.EventGrid/topics/" + topic
}

// domainResource is that of a domain, or of one of its topics.
func domainResource(namespace, domain, topic string) string {
	id := resourceGroup(namespace) + "/providers/Microsoft.EventGrid/domains/" + domain
	if topic != "" {
		id += "/topics/" + topic
	}
	return id
}

// HubResource is that of a hub.
func HubResource(namespace, hub string) string {
	return resourceGroup(namespace) + "/providers/Microsoft.EventHub/namespaces/" + namespace + "/eventhubs/" + hub
}

func resourceGroup(namespace string) string {
	return "/subscriptions/" + subscriptionGUID + "/resourceGroups/" + namespace
}

// String names a source as people do.
func (s Source) String() string {
	if s.Hub != "" {
		return fmt.Sprintf("hub %.80q", s.Hub)
	}
	if s.DomainTopic != "" {
		return fmt.Sprintf("topic %.80q of domain %.80q", s.DomainTopic, s.Topic)
	}
	return fmt.Sprintf("topic %.80q", s.Topic)
}
