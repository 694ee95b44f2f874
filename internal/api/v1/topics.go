package v1

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/api/subscribe"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

func (d *Handler) listTopics(w http.ResponseWriter, r *http.Request) error {
	list := []admin.Topic{}
	for _, t := range d.cfg.Grid.Topics.Topics() {
		shown, err := d.showTopic(r, t)
		if errors.Is(err, topics.ErrTopicNotFound) || errors.Is(err, eventlog.ErrRemoved) {
			continue // deleted since the list was made
		}
		if err != nil {
			return err
		}
		shown.Keys, shown.DomainTopics = nil, nil // who wants them asks for one topic
		list = append(list, shown)
	}
	if stats, err := d.wantsStats(r); err != nil || stats {
		if err == nil {
			err = d.addTopicStats(r.Context(), list)
		}
		if err != nil {
			return err
		}
	}
	return writeJSON(w, http.StatusOK, map[string][]admin.Topic{"topics": list})
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
	shown, err := d.showTopic(r, t)
	if err != nil {
		return err
	}
	return created(w, "topics/"+url.PathEscape(t.Name), shown)
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
	if err == nil {
		d.reveal(r, activity.Path("topics", t.Name))
	}
	return d.answerTopic(w, r, t, err)
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
	return d.answerTopic(w, r, t, err)
}

func (d *Handler) deleteTopic(w http.ResponseWriter, r *http.Request) error {
	return done(w, d.cfg.Grid.Topics.DeleteTopic(r.Context(), r.PathValue("topic")))
}

func (d *Handler) regenerateTopicKey(w http.ResponseWriter, r *http.Request) error {
	var q admin.KeyChoice
	if err := readJSON(r, &q); err != nil {
		return err
	}
	t, err := d.cfg.Grid.Topics.RegenerateKey(r.Context(), r.PathValue("topic"), q.Key)
	return d.answerTopic(w, r, t, err)
}

func (d *Handler) answerTopic(w http.ResponseWriter, r *http.Request, t topics.Topic, err error) error {
	if err != nil {
		return err
	}
	shown, err := d.showTopic(r, t)
	return answer(w, shown, err)
}

// showTopic shows a topic with what it holds at present.
func (d *Handler) showTopic(r *http.Request, t topics.Topic) (admin.Topic, error) {
	plain, secure := d.cfg.Grid.Endpoint(r, t.Name, false), d.cfg.Grid.Endpoint(r, t.Name, true)
	shown := admin.Topic{
		Name: t.Name, Schema: string(t.Schema), Endpoint: cmp.Or(plain, secure), Keys: &admin.TopicKeys{Key1: t.Key1, Key2: t.Key2},
		Resource: t.Resource, DisableKeys: t.DisableKeys, Quota: spec.ShowQuota(t.Quota), Created: t.Created,
	}
	if plain != "" {
		shown.SecureEndpoint = secure
	}
	if t.Mapping != (schema.Mapping{}) {
		shown.Mapping, _ = json.Marshal(t.Mapping)
	}
	if shown.Domain = t.Domain != nil; shown.Domain {
		var err error
		if shown.DomainTopics, err = d.cfg.Grid.Topics.DomainTopics(t.Name); err != nil {
			return shown, err
		}
	}
	subscriptions, err := d.cfg.Grid.Topics.Subscriptions(topics.Source{Topic: t.Name})
	if err != nil {
		return shown, err
	}
	log, err := d.cfg.Grid.Topics.Log(&t)
	if err != nil {
		return shown, err
	}
	bounds, err := log.Bounds(r.Context())
	shown.Subscriptions, shown.Events, shown.Bytes = len(subscriptions), int64(bounds.Next-bounds.First), bounds.Bytes
	return shown, err
}
