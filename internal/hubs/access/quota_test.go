package access

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R4: all who show a policy's keys have one quota, which is stored, changes at once, also at other
// nodes, and ends nothing that stands on the policy.
func TestTheQuotaOfAPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storagetest.Entries(t)
		k, other := open(t, Config{Meta: store}), open(t, Config{Meta: store})
		defer testkit.Run(t, k.Run)()
		defer testkit.Run(t, other.Run)()
		made := testkit.Value(k.Create(t.Context(), Policy{Name: "Till", Rights: auth.Send, Quota: quota.Limit{Events: 2}}))(t)
		first, second := testkit.Value(k.Key(t.Context(), "till", made.Primary))(t), testkit.Value(k.Key(t.Context(), "till", made.Secondary))(t)
		m := k.Quota(first.Account())
		testkit.That(t, m != nil && m == k.Quota(second.Account()), "the keys of a policy have different meters, or none")
		room := func() bool { return quota.Take(1, 1, time.Now(), m) == nil }
		testkit.Slices(t, []bool{room(), room(), room()}, []bool{true, true, false}, "room")

		set := func(events int64) error {
			return testkit.Err(k.Limit(t.Context(), "", "till", func(l *quota.Limit) { l.Events = events }))
		}
		testkit.Must(t, set(100))
		testkit.Equal(t, room(), true, "room in a larger quota")
		testkit.Equal(t, first.Stands(), true, "the grant stands")
		testkit.ErrorIs(t, set(-1), ErrInvalid)
		testkit.ErrorIs(t, testkit.Err(k.Limit(t.Context(), "", "nobody", func(*quota.Limit) {})), ErrNotFound)
		synctest.Wait()
		there := testkit.Value(other.Policy("", "till"))(t)
		testkit.Equal(t, there.Quota, quota.Limit{Events: 100}, "the quota at another node")

		testkit.Must(t, k.Delete(t.Context(), "", "till"))
		testkit.Equal(t, k.Quota(first.Account()), nil, "the meter of one that is gone")
		testkit.Must(t, testkit.Err(k.Create(t.Context(), Policy{Name: "till", Rights: auth.Send})))
		testkit.That(t, k.Quota(first.Account()) != m, "one made anew has the meter of the old one")
		testkit.ErrorIs(t, testkit.Err(k.Create(t.Context(), Policy{Name: "x", Rights: auth.Send, Quota: quota.Limit{Bytes: -1}})), ErrInvalid)
	})
}
