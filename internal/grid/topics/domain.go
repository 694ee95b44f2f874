package topics

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// Domain is what a topic has that is a domain: its events say which of the domain's topics they are
// for, and a subscription is of the domain, and gets them all, or of one of its topics. All of it is
// one log and one feed. A domain topic is there if somebody made it, or as long as it has a
// subscription; whether it is there makes no difference to publishers.
type Domain struct {
	// Topics are those that somebody made, at most MaxDomainTopics.
	Topics []string `json:"topics,omitempty"`
	// ManualCreate: only topics that somebody made can have subscriptions
	// (autoCreateTopicWithFirstSubscription is false). ManualDelete: those that a subscription
	// made stay without it, too (autoDeleteTopicWithLastSubscription is false).
	ManualCreate bool `json:"manualCreate,omitempty"`
	ManualDelete bool `json:"manualDelete,omitempty"`
}

// MaxDomainTopics is the most topics of a domain that can be made by themselves. Those that
// subscriptions make have no bound but MaxSubscriptions.
const MaxDomainTopics = 1000

// find gives the index of a topic that was made, -1 if there is none.
func (d *Domain) find(name string) int {
	return slices.IndexFunc(d.Topics, func(t string) bool { return auth.Fold(t) == auth.Fold(name) })
}

// Add makes a topic, if it is not there.
func (d *Domain) Add(name string) {
	if d.find(name) < 0 {
		d.Topics = append(slices.Clone(d.Topics), name)
	}
}

// Remove takes a topic away that was made, if it is there.
func (d *Domain) Remove(name string) {
	if at := d.find(name); at >= 0 {
		d.Topics = slices.Delete(slices.Clone(d.Topics), at, at+1)
	}
}

func (d *Domain) check() error {
	if d == nil {
		return nil
	}
	if n := len(d.Topics); n > MaxDomainTopics {
		return invalid("the domain would have %d topics that were made by themselves, at most %d are allowed: let subscriptions make them, or delete some", n, MaxDomainTopics)
	}
	for _, name := range d.Topics {
		if err := checkDomainTopic(name); err != nil {
			return err
		}
	}
	return nil
}

func checkDomainTopic(name string) error {
	if !schema.IsDomainTopic(name) {
		return invalid("domain topic %.80q: use 3 to %d letters, digits, '-', '_' and single dots within", name, schema.MaxDomainTopic)
	}
	return nil
}

// checkDomain refuses to make a domain of a topic, or the reverse.
func (t *Topic) checkDomain(asked *Domain) error {
	switch {
	case (t.Domain == nil) == (asked == nil):
		return nil
	case asked == nil:
		return invalid("%q is a domain: it stays one, make another topic", t.Name)
	}
	return invalid("%q is a topic, and no domain: it stays one, make another domain", t.Name)
}

// checkDomain: the clients that pull name a topic and a subscription, and no domain topic.
func (s Settings) checkDomain(at origin) error {
	if at.DomainTopic != "" && s.Pull != nil {
		return invalid("events of a domain topic are pushed: pull from the domain, with a filter, or give a webhook or a hub")
	}
	return nil
}

// DomainTopics gives the names of a domain's topics: those that were made, and those that have
// subscriptions. Errors: ErrTopicNotFound, ErrInvalid where it is no domain.
func (k *Registry) DomainTopics(domain string) ([]string, error) {
	at, err := k.sources.find(Source{Topic: domain})
	if err != nil {
		return nil, err
	}
	if at.domain == nil {
		return nil, invalid("topic %q is no domain", at.Topic)
	}
	names := make(map[string]string)
	for _, s := range k.Snapshot().BySource[at.id] {
		if name := s.Source.DomainTopic; name != "" && names[auth.Fold(name)] == "" {
			names[auth.Fold(name)] = name
		}
	}
	for _, name := range at.domain.Topics {
		names[auth.Fold(name)] = name
	}
	return slices.Sorted(maps.Values(names)), nil
}

// domainTopic gives a topic of a domain that is there, made or subscribed to, in its own spelling.
func (k *sources) domainTopic(id string, d *Domain, name string) (string, bool) {
	if i := d.find(name); i >= 0 {
		return d.Topics[i], true
	}
	for _, s := range k.view.live.Load().BySource[id] {
		if strings.EqualFold(s.Source.DomainTopic, name) {
			return s.Source.DomainTopic, true
		}
	}
	return name, false
}

// domainTopicOf decides on the domain topic of a new subscription: one that is there is meant in
// any case, and another is made by the subscription where that is allowed.
func (k *sources) domainTopicOf(at origin) (string, error) {
	if at.DomainTopic == "" {
		return "", nil
	}
	name, there := k.domainTopic(at.id, at.domain, at.DomainTopic)
	if !there && at.domain.ManualCreate {
		return "", fmt.Errorf("%w: domain %q has no topic %.64q, and subscriptions make none there: make it first", ErrTopicNotFound, at.Topic, name)
	}
	return name, nil
}

// openDomainTopic is called before a subscription is made, which makes its topic for good where
// topics stay.
func (k *Registry) openDomainTopic(ctx context.Context, at origin) error {
	if at.DomainTopic == "" || !at.domain.ManualDelete || at.domain.find(at.DomainTopic) >= 0 {
		return nil
	}
	_, err := k.UpdateTopic(ctx, at.Topic, func(t *Topic) error {
		if t.Domain != nil { // else another has its name by now, and the update is refused
			t.Domain.Add(at.DomainTopic)
		}
		return nil
	})
	return err
}
