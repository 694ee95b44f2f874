package broker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R4: a hub takes what its quota allows, says when there is room again, and takes it then. A change
// holds at once, and others are not affected.
func TestTheQuotaOfAHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t).open(t)
		testkit.Must(t, testkit.Err(y.CreateHub(t.Context(), HubConfig{Name: "Orders", Partitions: 2, Quota: &quota.Limit{Events: 10}})))
		testkit.Must(t, testkit.Err(y.CreateHub(t.Context(), HubConfig{Name: "others"})))
		publish := func(hub string, events ...string) error {
			return testkit.Err(y.Publish(t.Context(), hub, Target{}, storagetest.Events(events...)))
		}
		for range 10 {
			testkit.Must(t, publish("orders", "one"))
		}
		err := publish("orders", "one too many")
		full, ok := errors.AsType[*quota.Error](err)
		testkit.MustEqual(t, ok, true, "the error is %v", err)
		testkit.Equal(t, full.Seconds(), time.Second, "seconds to wait")
		testkit.Equal(t, failureReason(err), "throttled", "the reason in the metrics")
		testkit.Must(t, publish("others", "one"))
		time.Sleep(full.Wait)
		testkit.Must(t, publish("orders", "one"))

		zero, size := int64(0), int64(100)
		h := testkit.Value(y.UpdateHub(t.Context(), "orders", HubChange{QuotaEvents: &zero, QuotaBytes: &size}))(t)
		testkit.Equal(t, h.Quota, quota.Limit{Bytes: 100}, "the quota")
		testkit.Must(t, publish("orders", "a", "batch", "that", "is", "larger", "than", "what", "a", "second", "is", "worth", "passes", "once"))
		_, ok = errors.AsType[*quota.Error](publish("orders", "another"))
		testkit.Equal(t, ok, true, "refused while the hub makes up for it")
		testkit.Must(t, testkit.Err(y.UpdateHub(t.Context(), "orders", HubChange{QuotaBytes: &zero})))
		testkit.Must(t, publish("orders", "no limit any more"))
		below := int64(-1)
		testkit.ErrorIs(t, testkit.Err(y.UpdateHub(t.Context(), "orders", HubChange{QuotaBytes: &below})), ErrInvalidQuota)
	})
}

// R4: a numbered producer is refused like any other, and goes on under the same number.
func TestAProducerRepeatsWhatAQuotaRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t).open(t)
		testkit.Must(t, testkit.Err(y.CreateHub(t.Context(), HubConfig{Name: "orders", Partitions: 1})))
		p := testkit.Value(y.Producer(t.Context(), "orders", "0", ProducerConfig{}))(t)
		two := int64(2) // also a quota that comes later counts
		testkit.Must(t, testkit.Err(y.UpdateHub(t.Context(), "orders", HubChange{QuotaEvents: &two})))
		refused := 0
		for n := p.Last() + 1; n <= p.Last()+10; {
			sent, err := p.Submit(t.Context(), n, storagetest.Events("one"))
			if full, ok := errors.AsType[*quota.Error](err); ok {
				refused++
				time.Sleep(full.Wait)
				continue
			}
			testkit.Must(t, err)
			testkit.Must(t, testkit.Err(sent.Wait(t.Context())))
			n++
		}
		testkit.Equal(t, refused, 8, "refused")
		info := testkit.Value(y.Partition(t.Context(), "orders", "0"))(t)
		testkit.Equal(t, info.Last-info.First+1, 10, "events")
	})
}
