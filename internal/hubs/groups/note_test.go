package groups

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// noted has what the registry notes put down in the list that it gives.
func (s *stage) noted() *[]string {
	var all []string
	s.notes = func(_ context.Context, e activity.Entry) {
		text := string(e.Kind)
		for _, m := range e.Moves {
			text += " " + m.From + ">" + m.To
		}
		all = append(all, text)
	}
	return &all
}

// V5: an instance comes with the first presence of a life and goes with its end; a partition moves when it has
// another owner. Renewals are no news.
func TestWhatIsNotedOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := hangingStage(t)
		noted := s.noted()
		s.beat(`{"nonce":"n","life":"L"}`)
		s.lease = s.claim(s.a, s.lease)
		testkit.Slices(t, *noted, nil, "noted of renewals")
		time.Sleep(leaseTime + time.Second)
		b := s.as("another secret", leaseTime)
		s.presence = testkit.Value(s.PutBy(t.Context(), b, s.g, s.end()))(t)
		taken := s.lease
		taken.Owner, taken.Epoch, taken.Presence = "b", 2, "M"
		s.claim(b, taken)
		s.beat(`{"nonce":"o","life":"M"}`)
		testkit.Must(t, s.RemoveBy(t.Context(), s.as("a's secret", presenceTime), s.g, s.presence))
		_, err := s.Release(t.Context(), s.g.Hub, s.g.Group, s.lease.Partition)
		testkit.Must(t, err)
		testkit.Slices(t, *noted, []string{
			"instance.went", "ownership.moved " + s.lease.Owner + ">b", "instance.came", "instance.went", "partition.released", "ownership.moved b>",
		})
	})
}

// An instance that is dead can be forgotten, with its presence and nothing else; one that lives cannot.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := hangingStage(t)
		noted := s.noted()
		testkit.ErrorIs(t, s.Forget(t.Context(), s.g.Hub, s.g.Group, "nobody"), ErrNoInstance)
		testkit.ErrorIs(t, s.Forget(t.Context(), s.g.Hub, s.g.Group, "../a"), ErrNoInstance)
		_, alive := errors.AsType[*AliveError](s.Forget(t.Context(), s.g.Hub, s.g.Group, "a"))
		testkit.That(t, alive, "one that lives is forgotten")
		time.Sleep(AliveWithin)
		testkit.Must(t, s.Forget(t.Context(), s.g.Hub, s.g.Group, "a"))
		testkit.ErrorIs(t, s.Forget(t.Context(), s.g.Hub, s.g.Group, "a"), ErrNoInstance)
		leases := testkit.Value(s.Leases(t.Context(), s.g))(t)
		testkit.Equal(t, len(leases), 1, "leases")
		entries := testkit.Value(s.Entries(t.Context(), processor.Group{Hub: s.g.Hub, Group: s.g.Group}, presencePrefix))(t)
		testkit.Equal(t, len(entries), 0, "presences")
		testkit.Slices(t, *noted, []string{"instance.forgotten"})
	})
}
