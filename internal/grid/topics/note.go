package topics

import (
	"context"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// noteTopic notes what this node did to a topic.
func (c Config) noteTopic(ctx context.Context, u mirror.Update[*topicRecord]) {
	t := u.New.Value
	if t == nil {
		t = u.Old.Value
	}
	d := activity.Definition{What: "topic", Object: activity.Path("topics", t.Name), Keys: []string{"key1", "key2"}}
	d.Before, d.After = u.Stored(encode[*topicRecord])
	c.Notes.Define(ctx, d)
}

// ObjectOf is a subscription as activity names it: one of a topic in it, one of a hub by its name, which
// who manages the hub alone need not know.
func ObjectOf(s *Subscription) (object, detail string) {
	if s.Source.Hub != "" {
		return activity.Path("subscriptions", s.Name), "of hub " + s.Source.Hub
	}
	return activity.Path("topics", s.Source.Topic, "subscriptions", s.Name), ""
}

// IsYardsOwn tells whether a source is the yard's own topic. What becomes of its subscriptions is not
// published there: a receiver that fails would feed itself.
func (s Source) IsYardsOwn() bool { return auth.Fold(s.Topic) == YardEvents }

// transitions are changes of state that have a kind of their own.
var transitions = map[State]activity.Kind{
	Disabled: activity.SubscriptionDisabled, Failed: activity.SubscriptionFailed, Expired: activity.SubscriptionExpired,
}

// noteSubscription notes what this node did to a subscription: a change of its state, or of what it was
// asked to be.
func (c Config) noteSubscription(ctx context.Context, u mirror.Update[*record]) {
	if c.Notes == nil {
		return
	}
	s := u.New.Value
	if s == nil {
		s = u.Old.Value
	}
	d := activity.Definition{
		What: "subscription", Silent: s.Source.IsYardsOwn(), Keys: []string{"keys"},
		Leave: []string{"updated", "state", "why", "starts", "validation", "proposal", "retired"},
	}
	d.Object, d.Detail = ObjectOf(&s.Subscription)
	d.Before, d.After = u.Stored(encode[*record])
	c.Notes.Define(ctx, d)
	if !u.New.Exists() || !u.Old.Exists() || u.Old.Value.State == s.State {
		return
	}
	e := activity.Entry{Kind: transitions[s.State], Object: d.Object, Detail: s.Why, Silent: d.Silent}
	if was := u.Old.Value.State; s.State == Active && (was == Pending || was == Failed) {
		e.Kind, e.Detail = activity.SubscriptionValidated, d.Detail
	}
	if e.Kind != "" {
		c.Notes.Note(ctx, e)
	}
}
