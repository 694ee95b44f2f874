package subscribe

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
)

// G13: what is given is written over the topic, and beside Event Grid's shape it wins.
func TestARequestIsWrittenOverATopic(t *testing.T) {
	for name, tt := range map[string]struct {
		body string
		want topics.Topic
	}{
		"nothing":     {`{}`, topics.Topic{Key1: "old", DisableKeys: true}},
		"each field":  {`{"schema":"custom","mapping":{"id":{"sourceField":"nr"}},"key1":"a","key2":"b","disableKeys":false}`, topics.Topic{Schema: schema.Custom, Mapping: mappingOf(t, `{"id":{"sourceField":"nr"}}`), Key1: "a", Key2: "b"}},
		"their shape": {`{"properties":{"inputSchema":"CloudEventSchemaV1_0","disableLocalAuth":true},"disableKeys":false}`, topics.Topic{Schema: schema.CloudEvents, Key1: "old"}},
		"a mapping in their shape": {`{"properties":{"inputSchemaMapping":{"inputSchemaMappingType":"Json","properties":{"id":{"sourceField":"nr"}}}}}`,
			topics.Topic{Mapping: mappingOf(t, `{"id":{"sourceField":"nr"}}`), Key1: "old", DisableKeys: true}},
	} {
		t.Run(name, func(t *testing.T) {
			var r admin.TopicRequest
			testkit.Must(t, json.Unmarshal([]byte(tt.body), &r))
			got := topics.Topic{Key1: "old", DisableKeys: true}
			testkit.Must(t, ApplyTopic(r, &got))
			testkit.Diff(t, tt.want, got)
		})
	}
	for _, r := range []admin.TopicRequest{{Schema: "xml"}, {Mapping: json.RawMessage(`{"idd":{}}`)}} {
		word := new(WordError)
		if err := ApplyTopic(r, new(topics.Topic)); !errors.As(err, &word) || word.Next == "" || word.Error() != word.Detail+": "+word.Next {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if err := ApplyTopic(admin.TopicRequest{Properties: json.RawMessage(`5`)}, new(topics.Topic)); !errors.Is(err, topics.ErrInvalid) {
		t.Errorf("no shape: %v", err)
	}
}

func mappingOf(t *testing.T, text string) (m schema.Mapping) {
	t.Helper()
	testkit.Must(t, json.Unmarshal([]byte(text), &m))
	return m
}

func TestKeysThatSignAlike(t *testing.T) {
	hmac, private := []signature.Key{{Text: hmacKey}}, []signature.Key{{Text: privateKey}}
	for name, tt := range map[string]struct {
		keys, others []signature.Key
		same         bool
	}{
		"HMAC and HMAC":       {hmac, hmac, true},
		"private and private": {private, private, true},
		"HMAC and private":    {hmac, private, false},
		"none and HMAC":       {nil, hmac, false},
		"HMAC and none":       {hmac, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Equal(t, SameAlgorithm(tt.keys, tt.others), tt.same)
		})
	}
}
