package v1

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/subscribe"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

func (d *Handler) listTopics(w http.ResponseWriter, r *http.Request) error {
	list := struct {
		Topics []admin.Topic `json:"topics"`
	}{[]admin.Topic{}}
	for _, t := range d.cfg.Grid.Topics.Topics() {
		shown, err := d.showTopic(r, t)
		if errors.Is(err, topics.ErrTopicNotFound) || errors.Is(err, eventlog.ErrRemoved) {
			continue // deleted since the list was made
		}
		if err != nil {
			return err
		}
		shown.Keys = nil // who wants a key asks for one topic
		list.Topics = append(list.Topics, shown)
	}
	return writeJSON(w, http.StatusOK, list)
}

func (d *Handler) createTopic(w http.ResponseWriter, r *http.Request) error {
	var q admin.TopicRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	cfg := topics.Topic{Name: q.Name}
	if err := applyTopic(q, &cfg); err != nil {
		return err
	}
	t, err := d.cfg.Grid.Topics.CreateTopic(r.Context(), topics.TopicConfig{Topic: cfg})
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/v1/topics/"+url.PathEscape(t.Name))
	return d.answerTopic(w, r, http.StatusCreated, t)
}

// applyTopic writes a request over a topic.
func applyTopic(q admin.TopicRequest, t *topics.Topic) error {
	err := subscribe.ApplyTopic(q, t)
	if word, ok := errors.AsType[*subscribe.WordError](err); ok {
		return badRequest(word.Next, "%s", word.Detail)
	}
	return err
}

func (d *Handler) getTopic(w http.ResponseWriter, r *http.Request) error {
	t, err := d.cfg.Grid.Topics.Topic(r.PathValue("topic"))
	if err != nil {
		return err
	}
	return d.answerTopic(w, r, http.StatusOK, t)
}

func (d *Handler) updateTopic(w http.ResponseWriter, r *http.Request) error {
	var q admin.TopicRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	t, err := d.cfg.Grid.Topics.UpdateTopic(r.Context(), r.PathValue("topic"), func(t *topics.Topic) error {
		if q.Name != "" && !strings.EqualFold(q.Name, t.Name) {
			return badRequest("leave the name out, or create another topic", "topic %q cannot be renamed", t.Name)
		}
		return applyTopic(q, t)
	})
	if err != nil {
		return err
	}
	return d.answerTopic(w, r, http.StatusOK, t)
}

func (d *Handler) deleteTopic(w http.ResponseWriter, r *http.Request) error {
	if err := d.cfg.Grid.Topics.DeleteTopic(r.Context(), r.PathValue("topic")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (d *Handler) regenerateTopicKey(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		Key string `json:"key"`
	}
	if err := readJSON(r, &q); err != nil {
		return err
	}
	t, err := d.cfg.Grid.Topics.RegenerateKey(r.Context(), r.PathValue("topic"), q.Key)
	if err != nil {
		return err
	}
	return d.answerTopic(w, r, http.StatusOK, t)
}

func (d *Handler) answerTopic(w http.ResponseWriter, r *http.Request, status int, t topics.Topic) error {
	shown, err := d.showTopic(r, t)
	if err != nil {
		return err
	}
	return writeJSON(w, status, shown)
}

func (d *Handler) showTopic(r *http.Request, t topics.Topic) (admin.Topic, error) {
	plain, secure := d.cfg.Grid.Endpoint(r, t.Name, false), d.cfg.Grid.Endpoint(r, t.Name, true)
	shown := admin.Topic{
		Name: t.Name, Schema: string(t.Schema), Endpoint: cmp.Or(plain, secure), Keys: &admin.TopicKeys{Key1: t.Key1, Key2: t.Key2},
		Resource: t.Resource, DisableKeys: t.DisableKeys, Created: t.Created,
	}
	if plain != "" {
		shown.SecureEndpoint = secure
	}
	if t.Mapping != (schema.Mapping{}) {
		shown.Mapping, _ = json.Marshal(t.Mapping)
	}
	err := d.countTopic(r.Context(), t, &shown)
	return shown, err
}

// countTopic adds what a topic holds at present.
func (d *Handler) countTopic(ctx context.Context, t topics.Topic, shown *admin.Topic) error {
	subscriptions, err := d.cfg.Grid.Topics.Subscriptions(topics.Source{Topic: t.Name})
	if err != nil {
		return err
	}
	log, err := d.cfg.Grid.Topics.Log(&t)
	if err != nil {
		return err
	}
	bounds, err := log.Bounds(ctx)
	if err != nil {
		return err
	}
	shown.Subscriptions, shown.Events, shown.Bytes = len(subscriptions), int64(bounds.Next-bounds.First), bounds.Bytes
	return nil
}
