package topics

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R4: a topic takes what its quota allows and says when there is room again; a change holds at once,
// and what the yard itself announces is not counted.
func TestTheQuotaOfATopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newYard(t).open(t, Config{})
		testkit.Must(t, testkit.Err(k.CreateTopic(t.Context(), TopicConfig{Topic{Name: "orders", Quota: quota.Limit{Events: 2}}})))
		publish := func() error { return k.Publish(t.Context(), "Orders", [][]byte{[]byte(`{"id":"1"}`)}, nil) }
		testkit.Must(t, publish())
		testkit.Must(t, publish())
		full, ok := errors.AsType[*quota.Error](publish())
		testkit.MustEqual(t, ok, true, "the third is refused")
		time.Sleep(full.Wait)
		testkit.Must(t, publish())

		limit := func(l quota.Limit) error {
			return testkit.Err(k.UpdateTopic(t.Context(), "orders", func(to *Topic) error { to.Quota = l; return nil }))
		}
		testkit.Must(t, limit(quota.Limit{Bytes: 1}))
		testkit.Must(t, publish())
		_, ok = errors.AsType[*quota.Error](publish())
		testkit.Equal(t, ok, true, "too many bytes are refused")
		testkit.Must(t, limit(quota.Limit{}))
		testkit.Must(t, publish())
		testkit.ErrorIs(t, limit(quota.Limit{Events: -1}), ErrInvalid)

		testkit.Must(t, testkit.Err(k.UpdateTopic(t.Context(), YardEvents, func(to *Topic) error { to.Quota.Events = 1; return nil })))
		for range 3 {
			testkit.Must(t, k.Announce(t.Context(), [][]byte{[]byte(`{"id":"1"}`)}))
		}
		testkit.Equal(t, len(stored(t, k, "orders")), 5, "stored")
	})
}

// R4: events that were certainly not stored are not charged; those in doubt are.
func TestATopicsQuotaIsChargedForWhatIsStored(t *testing.T) {
	for name, c := range map[string]struct {
		answer error
		left   int // of ten
	}{
		"stored": {nil, 7}, "refused": {logtest.Refused(eventlog.ErrNoSpace), 10}, "in doubt": {logtest.Refused(eventlog.ErrUncertain), 7},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard(t)
				engine := logtest.NewFaulty(y.Engine)
				k := y.open(t, Config{Engine: engine})
				made := testkit.Value(k.CreateTopic(t.Context(), TopicConfig{Topic{Name: "orders", Quota: quota.Limit{Events: 10}}}))(t)
				engine.Inject(func(op logtest.Op) error {
					if op.Kind == logtest.OpSubmit {
						return c.answer
					}
					return nil
				})
				one := []byte(`{"id":"1"}`)
				testkit.Equal(t, k.Publish(t.Context(), "orders", [][]byte{one, one, one}, nil) == nil, c.answer == nil, "it is stored")
				left, meter := 0, k.view.live.Load().logs[made.ID].quota
				for quota.Take(1, 0, time.Now(), meter) == nil {
					left++
				}
				testkit.Equal(t, left, c.left, "events that are left")
			})
		})
	}
}
