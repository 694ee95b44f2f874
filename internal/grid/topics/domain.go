package topics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// Domain is what a topic has that is a domain: its events say which of the domain's topics they are
// for, and a subscription is of the domain, and gets them all, or of one of its topics. All of it is
// one log and one feed. A domain topic is there if it is in Topics, or as long as it has a
// subscription; whether it is there makes no difference to publishers.
type Domain struct {
	// Topics are those that are there without a subscription, at most MaxDomainTopics; some of
	// those that have one are among them.
	Topics []string `json:"topics,omitempty"`
	// ManualCreate: subscriptions make no topics (autoCreateTopicWithFirstSubscription is false).
	// ManualDelete: topics stay when their last subscription goes
	// (autoDeleteTopicWithLastSubscription is false); else they go with it, however they were made.
	ManualCreate bool `json:"manualCreate,omitempty"`
	ManualDelete bool `json:"manualDelete,omitempty"`
}

// MaxDomainTopics is the most topics of a domain that can be there without a subscription. Those
// that go with their last one have no bound but MaxSubscriptions.
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

// release is for a subscription of a topic that is about to be deleted. It need not be the last one:
// as long as there are others it makes no difference whether the topic is in Topics, and who deletes
// two at once need not know which of them is the last.
func (d *Domain) release(name string) {
	if d.ManualDelete {
		d.Add(name)
	} else {
		d.Remove(name)
	}
}

func (d *Domain) check() error {
	if d == nil {
		return nil
	}
	if err := checkTopicsThatStay(len(d.Topics)); err != nil {
		return err
	}
	for _, name := range d.Topics {
		if err := checkDomainTopic(name); err != nil {
			return err
		}
	}
	return nil
}

func checkDomainTopic(name string) error {
	return invalidIf("domain topic", spec.CheckDomainTopic(name))
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
func (s Settings) checkDomain(at Source) error {
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
	return slices.Sorted(maps.Values(k.view.domainTopics(at.id, at.domain))), nil
}

// MakeDomainTopic has a topic of a domain be there without a subscription, and gives its name as it
// is spelt: that of one that is there stays. It is durable when the call returns.
//
// Errors: ErrTopicNotFound, ErrInvalid, the store's.
func (k *topicRegistry) MakeDomainTopic(ctx context.Context, domain, name string) (string, error) {
	_, err := k.UpdateTopic(ctx, domain, func(t *Topic) error {
		if t.Domain == nil {
			return invalid("topic %q is no domain", t.Name)
		}
		name, _ = k.view.domainTopic(t.ID, t.Domain, name)
		t.Domain.Add(name)
		return nil
	})
	return name, err
}

// domainTopics gives a domain's topics by folded name.
func (v *view) domainTopics(id string, d *Domain) map[string]string {
	names := make(map[string]string)
	for _, s := range v.live.Load().BySource[id] {
		if name := s.Source.DomainTopic; name != "" && names[auth.Fold(name)] == "" {
			names[auth.Fold(name)] = name
		}
	}
	for _, name := range d.Topics {
		names[auth.Fold(name)] = name
	}
	return names
}

// domainTopic gives a topic of a domain that is there, made or subscribed to, in its own spelling.
func (v *view) domainTopic(id string, d *Domain, name string) (string, bool) {
	if i := d.find(name); i >= 0 {
		return d.Topics[i], true
	}
	for _, s := range v.live.Load().BySource[id] {
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
	name, there := k.view.domainTopic(at.id, at.domain, at.DomainTopic)
	switch {
	case there || !at.domain.ManualCreate && !at.domain.ManualDelete:
		return name, nil
	case at.domain.ManualCreate:
		return "", fmt.Errorf("%w: domain %q has no topic %.64q, and subscriptions make none there: make it first", ErrTopicNotFound, at.Topic, name)
	}
	return name, checkTopicsThatStay(1 + len(k.view.domainTopics(at.id, at.domain)))
}

// checkDomainSize refuses a change by which too many topics would stay without subscriptions. Several
// who create at once may all see room for one more: the bound is there for the memory.
func (k *topicRegistry) checkDomainSize(t *Topic) error {
	if t.Domain == nil || !t.Domain.ManualDelete {
		return nil
	}
	return checkTopicsThatStay(len(k.view.domainTopics(t.ID, t.Domain)))
}

func checkTopicsThatStay(n int) error {
	if n > MaxDomainTopics {
		return invalid("the domain would have %d topics that stay without subscriptions, at most %d are allowed: delete some, or let them go with their last subscription", n, MaxDomainTopics)
	}
	return nil
}

// releaseDomainTopic has a topic stay, or go with its last subscription, before one of its
// subscriptions is deleted: a crash in between leaves a topic that is there by its subscription. A
// domain that is gone has no topics to keep.
func (k *topicRegistry) releaseDomainTopic(ctx context.Context, r *record) error {
	if r.Source.DomainTopic == "" {
		return nil
	}
	_, err := k.changeTopic(ctx, r.Source.Topic, func(t *Topic) error {
		if t.ID == r.SourceID && t.Domain != nil {
			t.Domain.release(r.Source.DomainTopic)
		}
		return nil
	})
	if errors.Is(err, ErrTopicNotFound) {
		return nil
	}
	return err
}
