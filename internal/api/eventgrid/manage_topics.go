package eventgrid

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// list is the resource manager's frame around a list; there is never a next page.
type list struct {
	Value []any `json:"value"`
}

// replyList answers with a list, framed as the caller's API has it.
func (c *call) replyList(values []any) error {
	if c.route.manager {
		return c.replyJSON(http.StatusOK, list{values})
	}
	return c.replyJSON(http.StatusOK, values)
}

func (c *call) listTopics() error {
	values := []any{}
	for _, t := range c.handler.cfg.Topics.Topics() {
		if c.isListed(t) {
			values = append(values, c.showTopic(t))
		}
	}
	return c.replyList(values)
}

func (c *call) getTopic() error {
	t, err := c.handler.cfg.Topics.Topic(c.names.topic)
	return c.show(c.showTopic(t), err)
}

// showTopic is a topic as management shows it, without its keys, and with where its events are
// published, as this client reaches it.
func (c *call) showTopic(t topics.Topic) any {
	scheme := "http://"
	if c.R.TLS != nil {
		scheme = "https://"
	}
	own := scheme + c.R.Host + "/topics/" + t.Name + "/api/events"
	t.Resource = c.moved(t.Resource, t.Group)
	return topics.RenderTopicARM(t, cmp.Or(c.handler.cfg.Endpoint(c.R, t.Name), own))
}

// putTopic makes a topic, or changes what may be changed of the one that is there.
func (c *call) putTopic() error {
	cfg, err := c.topicConfig()
	if err != nil {
		return err
	}
	// It is looked for first: where there are as many topics as are allowed, those can be changed
	// still.
	t, missing := c.handler.cfg.Topics.Topic(cfg.Name)
	if missing != nil {
		t, err = c.handler.cfg.Topics.CreateTopic(c.R.Context(), cfg)
	}
	switch {
	case missing == nil || errors.Is(err, topics.ErrTopicExists):
		if missing != nil { // somebody else has just made it
			t, _ = c.handler.cfg.Topics.Topic(cfg.Name)
		}
		cfg.Quota = t.Quota // which Event Grid knows nothing of
		t, err = c.handler.cfg.Topics.EnsureTopic(c.R.Context(), cfg)
		return c.showChanged(c.showTopic(t), err)
	case err != nil:
		return err
	}
	return c.replyJSON(http.StatusCreated, c.showTopic(t))
}

// topicConfig reads the body of a PUT. The path has the name; no body at all asks for the defaults.
func (c *call) topicConfig() (topics.TopicConfig, error) {
	text, err := c.document()
	if err != nil {
		return topics.TopicConfig{}, err
	}
	cfg, err := topics.ParseTopicARM(text)
	if err != nil {
		return topics.TopicConfig{}, err
	}
	for _, name := range []string{c.names.account, c.names.group} {
		if part := auth.AmbiguousPart(name); part != "" {
			return topics.TopicConfig{}, fmt.Errorf("%w: resource group or subscription %.64q: it has %q in it, choose a name without", topics.ErrInvalid, name, part)
		}
	}
	cfg.Name, cfg.Group = c.names.topic, c.group()
	if !c.route.domain {
		cfg.Domain = nil
	} else if cfg.Domain == nil {
		cfg.Domain = &topics.Domain{}
	}
	if c.route.namespaced && cfg.Schema == "" {
		cfg.Schema = schema.CloudEvents
	}
	return cfg, nil
}

// updateTopic changes what a PATCH mentions, and leaves the rest.
func (c *call) updateTopic() error {
	text, err := c.document()
	if err != nil {
		return err
	}
	asked, err := topics.ParseTopicARM(text)
	if err != nil {
		return err
	}
	t, err := c.handler.cfg.Topics.UpdateTopic(c.R.Context(), c.names.topic, func(t *topics.Topic) error {
		t.Location = cmp.Or(asked.Location, t.Location)
		if mentions(text, "tags") {
			t.Tags = asked.Tags
		}
		if mentions(text, "properties", "disableLocalAuth") {
			t.DisableKeys = asked.DisableKeys
		}
		if asked.Domain != nil && t.Domain != nil {
			if mentions(text, "properties", "autoCreateTopicWithFirstSubscription") {
				t.Domain.ManualCreate = asked.Domain.ManualCreate
			}
			if mentions(text, "properties", "autoDeleteTopicWithLastSubscription") {
				t.Domain.ManualDelete = asked.Domain.ManualDelete
			}
		}
		return nil
	})
	return c.show(c.showTopic(t), err)
}

func (c *call) deleteTopic() error {
	t, err := c.handler.cfg.Topics.Topic(c.names.topic)
	if err == nil {
		err = c.handler.cfg.Topics.DeleteTopic(c.R.Context(), t.Name)
	}
	if err == nil {
		c.handler.metrics.published.DeletePartialMatch(prometheus.Labels{"topic": t.Name})
	}
	return c.replyDeleted(err, topics.ErrTopicNotFound)
}

// replyDeleted ends a DELETE. For the resource manager what was not there is deleted, too.
func (c *call) replyDeleted(err, notFound error) error {
	switch {
	case c.route.manager && (err == nil || errors.Is(err, notFound)):
		return c.reply(http.StatusNoContent, "", nil)
	case err != nil:
		return err
	}
	return c.reply(http.StatusOK, "", nil)
}

// keys are a topic's, as management shows them.
type keys struct {
	Key1 string `json:"key1"`
	Key2 string `json:"key2"`
}

func (c *call) listKeys() error {
	t, err := c.handler.cfg.Topics.Topic(c.names.topic)
	if err == nil {
		c.handler.cfg.Notes.Note(c.R.Context(), activity.Entry{Kind: activity.KeyRevealed, Object: activity.Path("topics", t.Name)})
	}
	return c.show(keys{t.Key1, t.Key2}, err)
}

func (c *call) regenerateKey() error {
	text, err := c.document()
	if err != nil {
		return err
	}
	var request struct {
		KeyName string `json:"keyName"`
	}
	if err := json.Unmarshal(text, &request); err != nil || request.KeyName != "key1" && request.KeyName != "key2" {
		return &frame.Refusal{
			Status: http.StatusBadRequest, Code: codeInvalid,
			Detail: fmt.Sprintf("the body names no key, but %.32q", request.KeyName), Next: `send {"keyName":"key1"} or {"keyName":"key2"}`,
		}
	}
	t, err := c.handler.cfg.Topics.RegenerateKey(c.R.Context(), c.names.topic, request.KeyName)
	return c.show(keys{t.Key1, t.Key2}, err)
}

// document reads a body that has to be a JSON object; none at all is an empty one.
func (c *call) document() ([]byte, error) {
	text, err := c.body()
	if err != nil {
		return nil, err
	}
	if len(text) == 0 {
		return []byte("{}"), nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		return nil, &frame.Refusal{
			Status: http.StatusBadRequest, Code: "InputJsonInvalid",
			Detail: "the body is no JSON object", Next: "send the resource as GET shows it, with its properties",
		}
	}
	return text, nil
}

// mentions tells whether a document has a member, and in it the next, and so on. Names are found
// in any case, as whoever reads the document finds them: else a setting that was sent is passed
// over in silence.
func mentions(document []byte, path ...string) bool {
	if len(path) == 0 {
		return true
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(document, &object) != nil {
		return false
	}
	for name, value := range object {
		if strings.EqualFold(name, path[0]) && mentions(value, path[1:]...) {
			return true
		}
	}
	return false
}
