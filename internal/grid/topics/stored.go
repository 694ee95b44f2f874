package topics

import (
	"encoding/json"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// topicRecord is a topic as the store keeps it.
type topicRecord struct {
	Topic
	// Deleting is set from the moment a deletion is decided.
	Deleting bool `json:"deleting,omitempty"`
}

func (t *topicRecord) key() string { return topicKey(t.Name) }

// record is a subscription as the store keeps it.
type record struct {
	Subscription
	// Proposal is what an update asks for while its endpoint has not answered yet; nil: nothing.
	Proposal *proposal `json:"proposal,omitempty"`
	// Retired are prints of signing keys that were rotated out, the newest last: configuration may
	// still name them.
	Retired []string `json:"retired,omitempty"`
}

// proposal is settings with the handshake that they wait for.
type proposal struct {
	Settings   Settings   `json:"settings"`
	Validation Validation `json:"validation"`
}

func (r *record) key() string { return subscriptionKey(r.Source, r.Name) }

// encode cannot fail: settings that cannot be written are refused before (checkSize).
func encode[T interface{ key() string }](v T) []byte {
	value, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %s: %v", v.key(), err))
	}
	return value
}

// decodeTopic and decodeSubscription read what is stored. Errors name the key, never the value,
// which has secrets.
func (k *sources) decodeTopic(e meta.Entry) (*topicRecord, error) {
	t := new(topicRecord)
	if err := json.Unmarshal(e.Value, t); err != nil {
		return nil, fmt.Errorf("read topic %s: %w", e.Key, err)
	}
	if t.key() != e.Key || !isID(t.ID) || t.Key1 == "" || t.Key2 == "" || t.Schema == "" {
		return nil, fmt.Errorf("read topic %s: it names topic %q with id %q, or lacks a key or its schema", e.Key, t.Name, t.ID)
	}
	t.Resource = k.resource(Source{Topic: t.Name, Domain: t.Domain != nil})
	return t, nil
}

func (k *sources) decodeSubscription(e meta.Entry) (*record, error) {
	r := new(record)
	if err := json.Unmarshal(e.Value, r); err != nil {
		return nil, fmt.Errorf("read subscription %s: %w", e.Key, err)
	}
	if r.key() != e.Key || !isID(r.ID) || !isID(r.SourceID) || r.State == "" {
		return nil, fmt.Errorf("read subscription %s: it names subscription %q of %s with id %q, or lacks its state", e.Key, r.Name, r.Source, r.ID)
	}
	r.Resource = k.resource(r.Source)
	r.Retry.Resource = r.Hub != ""
	if r.Proposal != nil {
		r.Proposal.Settings.Retry.Resource = r.Proposal.Settings.Hub != ""
	}
	return r, nil
}

func (k *sources) resource(s Source) string {
	if s.Hub != "" {
		return HubResource(k.namespace, s.Hub)
	}
	if s.Domain {
		return domainResource(k.namespace, s.Topic, s.DomainTopic)
	}
	return TopicResource(k.namespace, s.Topic)
}
