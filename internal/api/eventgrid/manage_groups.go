package eventgrid

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// A yard is one account, one group, one namespace and one location of the resource manager, so that
// any stand for them. Whatever is shown is in those that the client named, so that a tool that
// compares what it asked for with what it got finds no difference.

// group is the one that the path names, as resource ids begin with it; empty if it names none.
func (c *call) group() string {
	if c.names.group == "" {
		return ""
	}
	return "/subscriptions/" + c.names.account + "/resourceGroups/" + c.names.group
}

// moved is a resource id in the group and the namespace of the path or else, where it has none, in
// the group that it was made in.
func (c *call) moved(resource, made string) string {
	return topics.MoveResource(resource, cmp.Or(c.group(), made), c.names.namespace)
}

// showSubscription is a subscription as management shows it.
func (c *call) showSubscription(s topics.Subscription) any {
	s.Resource = c.moved(s.Resource, c.topicOf(s).Group)
	return topics.RenderSubscriptionARM(s)
}

// topicOf is the topic that a subscription's events come from; an empty one where that is a hub.
func (c *call) topicOf(s topics.Subscription) topics.Topic {
	t, _ := c.handler.cfg.Topics.Topic(s.Source.Topic) // one that is gone has taken it along
	return t
}

// lists tells whether a subscription is of the type and at the location that a list is for. What
// was given no location is at any.
func (c *call) lists(s topics.Subscription) bool {
	if c.names.topicType != "" {
		if t, ok := findTopicType(c.names.topicType); !ok || !t.has(s.Source) {
			return false
		}
	}
	if c.names.topic != "" && c.names.domainTopic == "" && s.Source.DomainTopic != "" {
		return false // a domain's own are listed apart from those of its topics
	}
	at := c.topicOf(s).Location
	return c.names.location == "" || at == "" || sameLocation(at, c.names.location)
}

// sameLocation: tools write West Europe and westeurope for the same.
func sameLocation(a, b string) bool {
	fold := func(text string) string { return auth.Fold(strings.ReplaceAll(text, " ", "")) }
	return fold(a) == fold(b)
}

type object map[string]any

// getNamespace shows the yard as a namespace, whatever it is called.
func (c *call) getNamespace() error {
	return c.replyJSON(http.StatusOK, object{
		"id":   c.group() + "/providers/Microsoft.EventGrid/namespaces/" + c.names.namespace,
		"name": c.names.namespace, "type": "Microsoft.EventGrid/namespaces", "location": topics.DefaultLocation, "tags": object{},
		"sku": object{"name": "Standard", "capacity": 1},
		"properties": object{
			"provisioningState": "Succeeded", "publicNetworkAccess": "Enabled",
			"topicsConfiguration": object{"hostname": c.R.Host},
		},
	})
}

// topicType is a kind of source.
type topicType struct {
	name, provider, display string
	has                     func(topics.Source) bool
}

var topicTypes = []topicType{
	{"Microsoft.EventGrid.Topics", "Microsoft.EventGrid", "Event Grid Topics", func(s topics.Source) bool { return s.Topic != "" && !s.Domain }},
	{"Microsoft.EventGrid.Domains", "Microsoft.EventGrid", "Event Grid Domains", func(s topics.Source) bool { return s.Domain }},
	{"Microsoft.EventHub.Namespaces", "Microsoft.EventHub", "Event Hubs Namespaces", func(s topics.Source) bool { return s.Hub != "" }},
}

func findTopicType(name string) (topicType, bool) {
	at := slices.IndexFunc(topicTypes, func(t topicType) bool { return strings.EqualFold(t.name, name) })
	if at < 0 {
		return topicType{}, false
	}
	return topicTypes[at], true
}

func (t topicType) show() any {
	return object{
		"id": "providers/Microsoft.EventGrid/topicTypes/" + t.name, "name": t.name, "type": "Microsoft.EventGrid/topicTypes",
		"properties": object{
			"provider": t.provider, "displayName": t.display, "description": t.display + " of this yard", "resourceRegionType": "RegionalResource",
			"provisioningState": "Succeeded", "supportedLocations": []string{topics.DefaultLocation},
		},
	}
}

func (c *call) listTopicTypes() error {
	values := []any{}
	for _, t := range topicTypes {
		values = append(values, t.show())
	}
	return c.replyList(values)
}

func (c *call) getTopicType() error {
	t, err := c.topicType()
	return c.show(t.show(), err)
}

// listEventTypes is empty: users name the types of their events.
func (c *call) listEventTypes() error {
	if _, err := c.topicType(); err != nil {
		return err
	}
	return c.replyList([]any{})
}

// topicType is the one that the path names.
func (c *call) topicType() (topicType, error) {
	if t, ok := findTopicType(c.names.topicType); ok {
		return t, nil
	}
	return topicType{}, &frame.Refusal{
		Status: http.StatusNotFound, Code: codeNotFound,
		Detail: "there is no topic type " + shorten(c.names.topicType), Next: "GET " + ofProvider + "/topicTypes lists them",
	}
}
