package subscribe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

// WordError is a word of a request that cannot be read; Next is how to write it.
type WordError struct{ Detail, Next string }

func (e *WordError) Error() string { return e.Detail + ": " + e.Next }

// ApplyTopic writes a request over a topic: Event Grid's shape first, where it is given, then the
// rest. Its errors are of type *WordError, or wrap topics.ErrInvalid.
func ApplyTopic(r admin.TopicRequest, t *topics.Topic) error {
	switch {
	case r.Domain == nil:
	case !*r.Domain:
		t.Domain = nil
	case t.Domain == nil:
		t.Domain = &topics.Domain{}
	}
	if err := applyTopicProperties(r.Properties, t); err != nil {
		return err
	}
	if r.Schema != "" {
		kind, err := schema.ParseKind(r.Schema)
		if err != nil {
			return &WordError{err.Error(), "write eventgrid, cloudevents or custom"}
		}
		t.Schema = kind
	}
	if r.Mapping != nil {
		mapping, err := readMapping(r.Mapping)
		if err != nil {
			return err
		}
		t.Mapping = mapping
	}
	t.Key1, t.Key2 = cmp.Or(r.Key1, t.Key1), cmp.Or(r.Key2, t.Key2)
	set(r.DisableKeys, &t.DisableKeys)
	if err := spec.CheckQuota(r.Quota); err != nil {
		return fmt.Errorf("%w: %w", topics.ErrInvalid, err)
	}
	spec.ApplyQuota(r.Quota, &t.Quota)
	return nil
}

// applyTopicProperties takes over what the shape mentions.
func applyTopicProperties(properties json.RawMessage, t *topics.Topic) error {
	if properties == nil {
		return nil
	}
	asked, err := topics.ParseTopicARM(fmt.Appendf(nil, `{"properties":%s}`, properties))
	if err != nil {
		return err
	}
	var mentioned map[string]json.RawMessage
	_ = json.Unmarshal(properties, &mentioned) // which has been read as an object already
	if _, ok := mentioned["inputSchema"]; ok {
		t.Schema = asked.Schema
	}
	if _, ok := mentioned["inputSchemaMapping"]; ok {
		t.Mapping = asked.Mapping
	}
	if _, ok := mentioned["disableLocalAuth"]; ok {
		t.DisableKeys = asked.DisableKeys
	}
	if asked.Domain == nil || t.Domain == nil {
		return nil
	}
	domain := *t.Domain // it may be what readers see
	if _, ok := mentioned["autoCreateTopicWithFirstSubscription"]; ok {
		domain.ManualCreate = asked.Domain.ManualCreate
	}
	if _, ok := mentioned["autoDeleteTopicWithLastSubscription"]; ok {
		domain.ManualDelete = asked.Domain.ManualDelete
	}
	t.Domain = &domain
	return nil
}

// readMapping knows every member: one that is misspelt would map nothing. Null is no mapping.
func readMapping(text json.RawMessage) (m schema.Mapping, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return m, &WordError{"mapping: " + strings.TrimPrefix(err.Error(), "json: "),
			`write it like {"eventType":{"sourceField":"kind","defaultValue":"order"},"subject":{"sourceField":"path"}}`}
	}
	return m, nil
}
