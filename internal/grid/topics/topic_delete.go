package topics

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// DeleteTopic deletes it with its events and subscriptions, for good.
//
// It is decided when the topic is marked in the store: from then on nobody sees it, nor its
// subscriptions, and whatever interrupts the rest, the mark is there for the next who opens a
// registry or creates a topic of that name to finish it. Deleting again finishes it too.
func (k *topicRegistry) DeleteTopic(ctx context.Context, name string) error {
	if auth.Fold(name) == YardEvents {
		return fmt.Errorf("delete topic %q: %w: leave it unused if it is not wanted", name, ErrReserved)
	}
	err := mirror.Uncontested(ctx, func() error {
		there, err := k.topics.Read(ctx, topicKey(name))
		if errors.Is(err, meta.ErrNotFound) {
			return topicNotFound(name)
		}
		if err != nil {
			return err
		}
		// The decision itself would be in doubt if it depended on the patience of a client.
		ctx, cancel := detached(ctx)
		defer cancel()
		if !there.Value.Deleting {
			there.Value.Deleting = true
			if there, err = k.topics.Put(ctx, there); err != nil {
				return err
			}
		}
		if err := k.finishDeletion(ctx, there); err != nil {
			return fmt.Errorf("it is deleted but still takes up storage, delete it again to free that: %w", err)
		}
		k.log.Info("topic deleted", "topic", there.Value.Name, "log", LogOf(&there.Value.Topic).Log)
		return nil
	})
	if err != nil && !errors.Is(err, ErrTopicNotFound) {
		return fmt.Errorf("delete topic %q: %w", name, err)
	}
	return err
}

// finishDeletion does what is left of a deletion that was decided. Each step may be done twice,
// or by two nodes at once: storage names are never used again. The topic's key goes last, as it
// is what says that there is something to finish.
func (k *topicRegistry) finishDeletion(ctx context.Context, marked mirror.Item[*topicRecord]) error {
	t := &marked.Value.Topic
	if err := k.removeSubscriptions(ctx, t); err != nil {
		return err
	}
	log := LogOf(t).Log
	if err := k.engine.Remove(ctx, log); err != nil {
		return fmt.Errorf("remove log %s: %w", log, err)
	}
	// Another revision means that somebody else finished, and maybe created a topic anew.
	if err := k.topics.Delete(ctx, marked); err != nil && !mirror.GoneOrChanged(err) {
		return fmt.Errorf("delete definition: %w", err)
	}
	return nil
}

// removeSubscriptions deletes those of a topic that is being deleted until none is left: what is
// changed between the list and the deletion is deleted in the next round, and what is gone cannot
// be changed. Who creates one meanwhile notices the deletion and takes it back. Those of another
// topic of that name, made since somebody else finished this deletion, stay.
func (k *topicRegistry) removeSubscriptions(ctx context.Context, t *Topic) error {
	keys := subscriptionKeys(Source{Topic: t.Name})
	if err := k.subscriptions.Fresh(ctx, keys); err != nil { // as does who creates one, before standing looks
		return err
	}
	for range mirror.MaxTries {
		its, err := k.subscriptions.List(ctx, keys)
		if err != nil {
			return err
		}
		its = slices.DeleteFunc(its, func(s mirror.Item[*record]) bool { return s.Value.SourceID != t.ID })
		if len(its) == 0 {
			return nil
		}
		if err := k.subscriptions.DeleteAll(ctx, its); err != nil {
			return err
		}
	}
	return fmt.Errorf("delete subscriptions: others keep changing them: %w", meta.ErrConflict)
}

// resumeDeletions finishes what a crash interrupted. A topic that cannot be removed now is gone
// for users all the same, so the others are not kept waiting for it.
func (k *topicRegistry) resumeDeletions(ctx context.Context) error {
	for _, there := range k.topics.Items() {
		if !there.Value.Deleting {
			continue
		}
		if err := k.finishDeletion(ctx, there); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("finish deletion of topic %q: %w", there.Value.Name, err)
			}
			k.log.Warn("deleted topic still takes up storage, the next start tries again", "topic", there.Value.Name, "error", err)
			continue
		}
		k.log.Info("interrupted deletion of topic finished", "topic", there.Value.Name)
	}
	return nil
}

// standing reads from the store, as it is now, whether the topic of a subscription is there:
// ErrTopicNotFound where it is gone, being deleted, or was made anew.
func (k *topicRegistry) standing(ctx context.Context, r *record) error {
	if err := k.topics.Fresh(ctx, topicsPrefix); err != nil {
		return err
	}
	there, err := k.topics.Read(ctx, topicKey(r.Source.Topic))
	if errors.Is(err, meta.ErrNotFound) || err == nil && (there.Value.ID != r.SourceID || there.Value.Deleting) {
		return topicNotFound(r.Source.Topic)
	}
	return err
}
