package topics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/looks"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// TopicConfig describes a topic to be made. Empty keys are made.
type TopicConfig struct {
	Topic // Name, Schema (empty: EventGrid), Mapping, Key1, Key2, DisableKeys, Quota, Domain, Tags, Location, Group count
}

// Names of a topic's keys.
const (
	Key1 = "key1"
	Key2 = "key2"
)

// topicRegistry owns the topics: their definitions and their logs. It deletes subscriptions, too,
// with the topic they are of. It is the part of a Registry that topics concern.
type topicRegistry struct {
	engine        eventlog.Engine
	logs          *eventlog.Provider // behind the view, which must not wait
	retention     time.Duration      // of the topics' logs
	quota         *quota.Meter       // of all topics, and of who else shares it
	topics        *mirror.Table[*topicRecord]
	subscriptions *mirror.Table[*record]
	view          *view
	looks         *looks.Looks
	log           *slog.Logger
}

// Topics gives all, by name.
func (k *topicRegistry) Topics() []Topic {
	all := k.view.live.Load().Topics
	list := make([]Topic, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, *all[name])
	}
	return list
}

// Topic gives one by its name, in any case; ErrTopicNotFound.
func (k *topicRegistry) Topic(name string) (Topic, error) {
	if t := k.view.live.Load().Topics[auth.Fold(name)]; t != nil {
		return *t, nil
	}
	return Topic{}, topicNotFound(name)
}

// LookUpTopic is Topic for who is about to refuse a topic's name or key: another node may have made it,
// or the key, a moment ago. It may wait for storage; looks are bounded. Where it cannot be known just now, the error is
// the store's.
func (k *topicRegistry) LookUpTopic(ctx context.Context, name string) (Topic, error) {
	looked, err := k.looks.Fresh(ctx, topicsPrefix)
	if looked {
		err = k.topics.Refresh(ctx, topicKey(name))
	}
	if err != nil && !errors.Is(err, meta.ErrNotFound) {
		return Topic{}, fmt.Errorf("look for topic %.80q: %w", name, err)
	}
	return k.Topic(name)
}

// CreateTopic makes a topic; it is durable and ready for events when the call returns. If the
// name is taken it is ErrTopicExists; if a topic of that name is still being deleted, its
// deletion is finished first. After eventlog.ErrUnavailable the topic may be there all the same, and
// becomes ready by itself once storage can be reached.
func (k *topicRegistry) CreateTopic(ctx context.Context, cfg TopicConfig) (Topic, error) {
	t := &topicRecord{Topic: Topic{
		Name: cfg.Name, ID: newID(), Schema: cmp.Or(cfg.Schema, schema.EventGrid), Mapping: cfg.Mapping,
		Key1: cfg.Key1, Key2: cfg.Key2, Created: now(), DisableKeys: cfg.DisableKeys, Quota: cfg.Quota, Tags: cfg.Tags,
		Location: cfg.Location, Group: cfg.Group, Domain: cfg.Domain,
	}}
	err := checkTopic(t.Topic)
	// Several who create at once may all see room for one more: the bound is there for the memory.
	if n := len(k.view.live.Load().Topics); err == nil && n >= MaxTopics {
		err = invalid("there are %d topics already: delete one first", n)
	}
	if err != nil {
		return Topic{}, fmt.Errorf("create topic: %w", err)
	}
	t.Key1, t.Key2 = cmp.Or(t.Key1, topickey.New()), cmp.Or(t.Key2, topickey.New())
	// The store decides who is first. Only a name that is taken is looked at.
	var made mirror.Item[*topicRecord]
	err = mirror.Uncontested(ctx, func() (err error) {
		if made, err = k.topics.Put(ctx, mirror.Item[*topicRecord]{Key: t.key(), Value: t}); errors.Is(err, meta.ErrConflict) {
			err = cmp.Or(k.clear(ctx, t.Name), err)
		}
		return err
	})
	if err == nil {
		err = k.provide(ctx, &t.Topic)
	}
	if err != nil {
		return Topic{}, fmt.Errorf("create topic %q: %w", cfg.Name, err)
	}
	k.log.Info("topic created", "topic", t.Name, "schema", t.Schema, "log", LogOf(&t.Topic).Log)
	return made.Value.Topic, nil
}

// clear frees a name that is taken where its topic is being deleted: it finishes that. A topic that
// has gone meanwhile is no error.
func (k *topicRegistry) clear(ctx context.Context, name string) error {
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

// Check says what is wrong with a topic by itself, before there is a yard that it could be made in.
// Errors wrap ErrInvalid. Where no schema is given but a mapping, that may be of a custom topic that is
// there.
func (cfg TopicConfig) Check() error {
	if cfg.Schema == "" {
		cfg.Schema = schema.EventGrid
		if cfg.Mapping != (schema.Mapping{}) {
			cfg.Schema = schema.Custom
		}
	}
	return checkTopic(cfg.Topic)
}

// EnsureTopic makes it, or changes what may be changed (all but the schema, and whether it is a
// domain) and differs. Keys that are not given stay, and so do location and group, the topics of a
// domain, and the mapping where not even a schema is given.
func (k *topicRegistry) EnsureTopic(ctx context.Context, cfg TopicConfig) (Topic, error) {
	for try := 1; ; try++ {
		t, err := k.changeTopic(ctx, cfg.Name, func(t *Topic) error {
			if cfg.Schema != "" && cfg.Schema != t.Schema {
				return schemaIsFixed(t.Schema, cfg.Schema)
			}
			if cfg.Schema != "" || cfg.Mapping != (schema.Mapping{}) {
				t.Mapping = cfg.Mapping
			}
			if err := t.checkDomain(cfg.Domain); err != nil {
				return err
			}
			if cfg.Domain != nil {
				t.Domain.ManualCreate, t.Domain.ManualDelete = cfg.Domain.ManualCreate, cfg.Domain.ManualDelete
			}
			t.Key1, t.Key2 = cmp.Or(cfg.Key1, t.Key1), cmp.Or(cfg.Key2, t.Key2)
			t.DisableKeys, t.Quota, t.Tags = cfg.DisableKeys, cfg.Quota, cfg.Tags
			t.Location, t.Group = cmp.Or(cfg.Location, t.Location), cmp.Or(cfg.Group, t.Group)
			return cmp.Or(checkTopic(*t), k.checkDomainSize(t))
		})
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

// UpdateTopic changes a topic that is there, and makes none. change is given it as it is, and again
// if somebody else was faster; its name, id and schema stay, and whether it is a domain.
//
// Errors: ErrTopicNotFound, ErrInvalid, change's own, the store's.
func (k *topicRegistry) UpdateTopic(ctx context.Context, name string, change func(*Topic) error) (Topic, error) {
	t, err := k.changeTopic(ctx, name, func(t *Topic) error {
		was := *t
		if err := change(t); err != nil {
			return err
		}
		if err := was.checkDomain(t.Domain); err != nil {
			return err
		}
		t.Name, t.ID, t.Created, t.Resource = was.Name, was.ID, was.Created, was.Resource
		if t.Schema != was.Schema {
			return schemaIsFixed(was.Schema, t.Schema)
		}
		t.Key1, t.Key2 = cmp.Or(t.Key1, was.Key1), cmp.Or(t.Key2, was.Key2)
		return cmp.Or(checkTopic(*t), k.checkDomainSize(t))
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
func (k *topicRegistry) changeTopic(ctx context.Context, name string, how func(*Topic) error) (Topic, error) {
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
func (k *topicRegistry) RegenerateKey(ctx context.Context, topic, key string) (Topic, error) {
	folded := auth.Fold(key)
	if folded != Key1 && folded != Key2 {
		return Topic{}, invalid("key %.32q: a topic has %s and %s", key, Key1, Key2)
	}
	t, err := k.changeTopic(ctx, topic, func(t *Topic) error {
		if folded == Key1 {
			t.Key1 = topickey.New()
		} else {
			t.Key2 = topickey.New()
		}
		return nil
	})
	if err != nil {
		return Topic{}, fmt.Errorf("regenerate %s: %w", key, err)
	}
	return t, nil
}
