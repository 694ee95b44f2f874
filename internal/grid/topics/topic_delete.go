package topics

import (
	"context"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// DeleteTopic deletes it with its events and subscriptions, for good.
//
// It is decided when the topic is marked in the store: from then on nobody sees it, nor its
// subscriptions, and whatever interrupts the rest, the mark is there for the next who opens a
// registry or creates a topic of that name to finish it. Deleting again finishes it too.
func (k *Registry) DeleteTopic(ctx context.Context, name string) error {
	if auth.Fold(name) == YardEvents {
		return fmt.Errorf("delete topic %q: %w: leave it unused if it is not wanted", name, ErrReserved)
	}
	err := untilUncontested(ctx, func() error { return k.deleteTopic(ctx, name) })
	if err != nil && !errors.Is(err, ErrTopicNotFound) {
		return fmt.Errorf("delete topic %q: %w", name, err)
	}
	return err
}

func (k *Registry) deleteTopic(ctx context.Context, name string) error {
	there, err := k.get(ctx, topicKey(name))
	if errors.Is(err, meta.ErrNotFound) {
		return topicNotFound(name)
	}
	if err != nil {
		return err
	}
	// The decision itself would be in doubt if it depended on the patience of a client.
	ctx, cancel := detached(ctx)
	defer cancel()
	if !there.topic.Deleting {
		there.topic.Deleting = true
		if there, err = k.put(ctx, there.topic, there.revision); err != nil {
			return err
		}
	}
	if err := k.finishDeletion(ctx, there); err != nil {
		return fmt.Errorf("it is deleted but still takes up storage, delete it again to free that: %w", err)
	}
	k.log.Info("topic deleted", "topic", there.topic.Name, "log", LogOf(&there.topic.Topic).Log)
	return nil
}

// finishDeletion does what is left of a deletion that was decided. Each step may be done twice,
// or by two nodes at once: storage names are never used again. The topic's key goes last, as it
// is what says that there is something to finish.
func (k *Registry) finishDeletion(ctx context.Context, marked sighting) error {
	t := &marked.topic.Topic
	if err := k.removeSubscriptions(ctx, t); err != nil {
		return err
	}
	log := LogOf(t).Log
	if err := k.engine.Remove(ctx, log); err != nil {
		return fmt.Errorf("remove log %s: %w", log, err)
	}
	// Another revision means that somebody else finished, and maybe created a topic anew.
	if err := k.remove(ctx, marked); err != nil && !goneOrChanged(err) {
		return fmt.Errorf("delete definition: %w", err)
	}
	return nil
}

// removeSubscriptions deletes those of a topic that is being deleted until none is left: what is
// changed between the list and the deletion is deleted in the next round, and what is gone cannot
// be changed. Who creates one meanwhile notices the deletion and takes it back. Those of another
// topic of that name, made since somebody else finished this deletion, stay.
func (k *Registry) removeSubscriptions(ctx context.Context, t *Topic) error {
	for range maxTries {
		all, err := k.list(ctx, subscriptionKeys(Source{Topic: t.Name}))
		if err != nil {
			return fmt.Errorf("list subscriptions: %w", err)
		}
		var its []sighting
		for _, s := range all {
			if s.sub.SourceID == t.ID {
				its = append(its, s)
			}
		}
		if len(its) == 0 {
			return nil
		}
		if err := k.removeAll(ctx, its); err != nil {
			return err
		}
	}
	return fmt.Errorf("delete subscriptions: others keep changing them: %w", meta.ErrConflict)
}

// resumeDeletions finishes what a crash interrupted. A topic that cannot be removed now is gone
// for users all the same, so the others are not kept waiting for it.
func (k *Registry) resumeDeletions(ctx context.Context, all []sighting) error {
	for _, s := range all {
		if !s.topic.Deleting {
			continue
		}
		if err := k.finishDeletion(ctx, s); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("finish deletion of topic %q: %w", s.topic.Name, err)
			}
			k.log.Warn("deleted topic still takes up storage, the next start tries again", "topic", s.topic.Name, "error", err)
			continue
		}
		k.log.Info("interrupted deletion of topic finished", "topic", s.topic.Name)
	}
	return nil
}

// stillThere tells whether a subscription that was just stored has a topic: one that is deleted
// meanwhile may have missed it.
func (k *Registry) stillThere(ctx context.Context, s sighting) error {
	if s.sub.Source.Hub != "" {
		return nil
	}
	gone := k.standing(ctx, s.sub)
	if !errors.Is(gone, ErrTopicNotFound) {
		return nil // or nobody knows; a leftover does no harm
	}
	if err := k.remove(ctx, s); err != nil && !goneOrChanged(err) {
		k.log.Warn("subscription of a deleted topic is still stored", "subscription", s.sub.Name, "error", err)
	}
	return gone
}

// standing asks the store whether the topic of a subscription is there; ErrTopicNotFound where it
// is gone, being deleted, or was made anew.
func (k *Registry) standing(ctx context.Context, r *record) error {
	there, err := k.get(ctx, topicKey(r.Source.Topic))
	if errors.Is(err, meta.ErrNotFound) || err == nil && (there.topic.ID != r.SourceID || there.topic.Deleting) {
		return topicNotFound(r.Source.Topic)
	}
	return err
}
