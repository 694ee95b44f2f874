package topics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// TopicConfig describes a topic to be made. Empty keys are made.
type TopicConfig struct {
	Topic // Name, Schema (empty: EventGrid), Mapping, Key1, Key2, DisableKeys, Tags count
}

// Names of a topic's keys.
const (
	Key1 = "key1"
	Key2 = "key2"
)

// Topics gives all, by name.
func (k *Registry) Topics() []Topic {
	all := k.Snapshot().Topics
	list := make([]Topic, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, *all[name])
	}
	return list
}

// Topic gives one by its name, in any case; ErrTopicNotFound.
func (k *Registry) Topic(name string) (Topic, error) {
	if t := k.Snapshot().Topics[auth.Fold(name)]; t != nil {
		return *t, nil
	}
	return Topic{}, topicNotFound(name)
}

// CreateTopic makes a topic; it is durable and ready for events when the call returns. If the
// name is taken it is ErrTopicExists; if a topic of that name is still being deleted, its
// deletion is finished first.
func (k *Registry) CreateTopic(ctx context.Context, cfg TopicConfig) (Topic, error) {
	t, err := k.define(cfg)
	if err != nil {
		return Topic{}, fmt.Errorf("create topic: %w", err)
	}
	made, err := k.createTopic(ctx, t)
	if err != nil {
		return Topic{}, fmt.Errorf("create topic %q: %w", cfg.Name, err)
	}
	k.log.Info("topic created", "topic", made.Name, "schema", made.Schema, "log", LogOf(&made).Log)
	return made, nil
}

// define checks what was asked for and fills in the rest. That of several who create at once
// all may see one place left is accepted: the bound is there for the memory.
func (k *Registry) define(cfg TopicConfig) (*topicRecord, error) {
	t := &topicRecord{Topic: Topic{
		Name: cfg.Name, ID: newID(), Schema: cmp.Or(cfg.Schema, schema.EventGrid), Mapping: cfg.Mapping,
		Key1: cfg.Key1, Key2: cfg.Key2, Created: now(), DisableKeys: cfg.DisableKeys, Tags: cfg.Tags,
	}}
	if err := checkTopic(t.Topic); err != nil {
		return nil, err
	}
	if n := len(k.Snapshot().Topics); n >= MaxTopics {
		return nil, invalid("there are %d topics already: delete one first", n)
	}
	t.Key1, t.Key2 = cmp.Or(t.Key1, topickey.New()), cmp.Or(t.Key2, topickey.New())
	return t, nil
}

// createTopic lets the store decide who is first. Only when the name is taken does it look at by
// whom.
func (k *Registry) createTopic(ctx context.Context, t *topicRecord) (made Topic, err error) {
	err = mirror.Uncontested(ctx, func() error {
		stored, conflict := k.topics.Put(ctx, mirror.Item[*topicRecord]{Key: t.key(), Value: t})
		if conflict == nil {
			made = stored.Value.Topic
		}
		if !errors.Is(conflict, meta.ErrConflict) {
			return conflict
		}
		if err := k.clear(ctx, t.Name); err != nil {
			return err
		}
		return conflict
	})
	return made, err
}

// clear looks at what has the name. That it may be gone by now is no error, and a deletion that
// was decided is finished.
func (k *Registry) clear(ctx context.Context, name string) error {
	there, err := k.topics.Read(ctx, topicKey(name))
	switch {
	case errors.Is(err, meta.ErrNotFound):
		return nil
	case err != nil:
		return err
	case !there.Value.Deleting:
		return fmt.Errorf("%w: choose another name, or delete the topic first", ErrTopicExists)
	}
	if err := k.finishDeletion(ctx, there); err != nil {
		return fmt.Errorf("finish deletion of the topic that had this name: %w", err)
	}
	return nil
}

// ensureYardEvents lets the store decide which of several nodes is the first.
func (k *Registry) ensureYardEvents(ctx context.Context) error {
	if _, err := k.Topic(YardEvents); err == nil {
		return nil
	}
	_, err := k.CreateTopic(ctx, TopicConfig{Topic{Name: YardEvents}})
	if errors.Is(err, ErrTopicExists) {
		err = k.topics.Load(ctx)
	}
	return err
}

// EnsureTopic makes it, or changes what may be changed (all but the schema) and differs. Keys
// that are not given stay, and so does the mapping where not even a schema is given.
func (k *Registry) EnsureTopic(ctx context.Context, cfg TopicConfig) (Topic, error) {
	for try := 1; ; try++ {
		t, err := k.changeTopic(ctx, cfg.Name, func(t *Topic) error { return t.follow(cfg) })
		if err == nil {
			return t, nil
		}
		if !errors.Is(err, ErrTopicNotFound) {
			return Topic{}, fmt.Errorf("change topic %q: %w", cfg.Name, err)
		}
		t, err = k.CreateTopic(ctx, cfg)
		if !errors.Is(err, ErrTopicExists) || try == mirror.MaxTries {
			return t, err
		}
	}
}

// follow makes a topic that exists as a configuration wants it.
func (t *Topic) follow(cfg TopicConfig) error {
	if cfg.Schema != "" && cfg.Schema != t.Schema {
		return schemaIsFixed(t.Schema, cfg.Schema)
	}
	if cfg.Schema != "" || cfg.Mapping != (schema.Mapping{}) {
		t.Mapping = cfg.Mapping
	}
	t.Key1, t.Key2 = cmp.Or(cfg.Key1, t.Key1), cmp.Or(cfg.Key2, t.Key2)
	t.DisableKeys, t.Tags = cfg.DisableKeys, cfg.Tags
	return checkTopic(*t)
}

// UpdateTopic changes a topic that is there, and makes none. change is given it as it is, and again
// if somebody else was faster; its name, id and schema stay.
//
// Errors: ErrTopicNotFound, ErrInvalid, change's own, the store's.
func (k *Registry) UpdateTopic(ctx context.Context, name string, change func(*Topic) error) (Topic, error) {
	t, err := k.changeTopic(ctx, name, func(t *Topic) error {
		was := *t
		if err := change(t); err != nil {
			return err
		}
		t.Name, t.ID, t.Created, t.Resource = was.Name, was.ID, was.Created, was.Resource
		if t.Schema != was.Schema {
			return schemaIsFixed(was.Schema, t.Schema)
		}
		t.Key1, t.Key2 = cmp.Or(t.Key1, was.Key1), cmp.Or(t.Key2, was.Key2)
		return checkTopic(*t)
	})
	if err != nil {
		return Topic{}, fmt.Errorf("change topic %q: %w", name, err)
	}
	return t, nil
}

func schemaIsFixed(is, asked schema.Kind) error {
	return invalid("it has schema %s, not %s: the schema is fixed when a topic is created, make another topic", is, asked)
}

// changeTopic reads a topic and lets it be changed, again if somebody else was faster.
func (k *Registry) changeTopic(ctx context.Context, name string, how func(*Topic) error) (Topic, error) {
	unchanged := false
	changed, err := k.topics.Change(ctx, topicKey(name), func(t **topicRecord) error {
		if (*t).Deleting {
			return meta.ErrNotFound
		}
		before := encode(*t)
		if err := how(&(*t).Topic); err != nil {
			return err
		}
		if unchanged = string(before) == string(encode(*t)); unchanged {
			return mirror.ErrUnchanged
		}
		return nil
	})
	if errors.Is(err, meta.ErrNotFound) {
		return Topic{}, topicNotFound(name)
	}
	if err != nil {
		return Topic{}, err
	}
	if !unchanged {
		k.log.Info("topic changed", "topic", changed.Value.Name)
	}
	return changed.Value.Topic, nil
}

// RegenerateKey makes key1 or key2 anew. The old one is good for nothing when it returns.
func (k *Registry) RegenerateKey(ctx context.Context, topic, key string) (Topic, error) {
	renew := map[string]func(*Topic){
		Key1: func(t *Topic) { t.Key1 = topickey.New() },
		Key2: func(t *Topic) { t.Key2 = topickey.New() },
	}[auth.Fold(key)]
	if renew == nil {
		return Topic{}, invalid("key %.32q: a topic has %s and %s", key, Key1, Key2)
	}
	t, err := k.changeTopic(ctx, topic, func(t *Topic) error {
		renew(t)
		return nil
	})
	if err != nil {
		return Topic{}, fmt.Errorf("regenerate %s: %w", key, err)
	}
	return t, nil
}
