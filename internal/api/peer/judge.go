package peer

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/caller"
)

// Leeway is how long after its end what was shown is still good here: the caller was let in before, may
// have waited for a shard that moved, and the clocks of nodes differ.
const Leeway = 15 * time.Second

// Access knows the policies. All methods may be called by many goroutines at once.
type Access interface {
	// Adopt gives a grant that another node has checked, as it stands here; for errors see
	// access.Registry. It may wait for storage.
	Adopt(ctx context.Context, g auth.Grant) (auth.Grant, error)
}

// Topics knows topics and their subscriptions. All methods may be called by many goroutines at once.
type Topics interface {
	Topic(name string) (topics.Topic, error)
	// LookUpTopic is Topic with a fresh look at the store, unless there were too many of late.
	LookUpTopic(ctx context.Context, name string) (topics.Topic, error)
	Snapshot() *topics.Snapshot
}

var (
	_ Access = (*access.Registry)(nil)
	_ Topics = (*topics.Registry)(nil)
)

// Judge says what other nodes may ask of this one.
type Judge struct {
	Access Access
	Topics Topics
}

// Shown is what the caller of a request has shown, as another node is told it; nil: nobody called. All
// that nodes ask each other on behalf of callers is about the grid, which belongs to the namespace.
func Shown(ctx context.Context) []byte {
	if c, ok := caller.From(ctx); ok {
		return c.Encode(auth.Entity{})
	}
	return nil
}

// Allow says why what was shown does not allow a kind of request about a subscription. Its errors are
// those by which a listener refuses, so that the caller is told the same: caller.ErrNone, those of auth
// and of topickey, delivery.ErrNotFound.
func (j Judge) Allow(ctx context.Context, shown []byte, subject, subscription string) error {
	k, known := kindOf(subject)
	switch {
	case !known:
		return fmt.Errorf("%w: nobody may ask nodes for %.64q", auth.ErrTooFewRights, subject)
	case k.Own != "":
		return nil
	}
	c, err := caller.Decode(shown)
	if err == nil && c.Topic != nil && k.Need.TopicKey {
		return j.allowKey(ctx, *c.Topic, subscription)
	}
	if err != nil {
		return err
	}
	return j.allowGrant(ctx, c, k.Need, auth.Entity{})
}

// AllowNeed is Allow for a kind that any good token may ask for, and whose questions each have a need of
// their own.
func (j Judge) AllowNeed(ctx context.Context, shown []byte, subject string, need frame.Need, at auth.Entity) error {
	if k, known := kindOf(subject); !known || k.Need.Reach != frame.Any {
		return fmt.Errorf("%w: nobody may ask nodes for %.64q", auth.ErrTooFewRights, subject)
	}
	c, err := caller.Decode(shown)
	if err != nil {
		return err
	}
	return j.allowGrant(ctx, c, need, at)
}

// allowGrant judges what was shown that is no key of a topic.
func (j Judge) allowGrant(ctx context.Context, c caller.Caller, need frame.Need, at auth.Entity) error {
	if c.Topic != nil {
		return fmt.Errorf("%w: a topic's key is good for publishing and receiving only", caller.ErrNone)
	}
	g, err := j.Access.Adopt(ctx, c.Grant)
	if err != nil {
		return err
	}
	now := time.Now().Add(-Leeway)
	if g.Expired(now) {
		return &auth.ExpiredError{At: g.Expires}
	}
	return need.Check(g, at, now)
}

// allowKey judges a key of a topic, as the topic has it by now.
func (j Judge) allowKey(ctx context.Context, k caller.TopicKey, subscription string) error {
	topic, err := j.Topics.Topic(k.Topic)
	if err != nil || !isKeyOf(k.Key, topic) {
		topic, err = j.Topics.LookUpTopic(ctx, k.Topic)
	}
	switch {
	case err != nil && !errors.Is(err, topics.ErrTopicNotFound):
		return err
	case err != nil || !isKeyOf(k.Key, topic):
		return fmt.Errorf("%w: it was made anew, or the topic is gone", topickey.ErrSignature)
	case topic.DisableKeys:
		return fmt.Errorf("%w: the topic takes neither access keys nor signatures made with them", topickey.ErrSignature)
	case !k.Expires.IsZero() && !time.Now().Add(-Leeway).Before(k.Expires):
		return fmt.Errorf("%w since %s: make a new one", topickey.ErrExpired, k.Expires.Format(time.RFC3339))
	}
	s := j.Topics.Snapshot().Subscriptions.Get(subscription)
	if s == nil {
		return fmt.Errorf("%w: this node does not know it yet", delivery.ErrNotFound)
	}
	if auth.Fold(s.Source.Topic) != auth.Fold(topic.Name) || auth.Fold(s.Name) != auth.Fold(k.Subscription) {
		return fmt.Errorf("%w: it was shown for subscription %.64q of topic %.64q", topickey.ErrSignature, k.Subscription, k.Topic)
	}
	return nil
}

// isKeyOf tells whether a digest is that of one of a topic's keys.
func isKeyOf(digest [sha256.Size]byte, t topics.Topic) bool {
	found := 0
	for _, key := range []string{t.Key1, t.Key2} {
		if key != "" {
			known := caller.Digest(key)
			found |= subtle.ConstantTimeCompare(digest[:], known[:])
		}
	}
	return found == 1
}
