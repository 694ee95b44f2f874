package broker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R4: a hub takes what its quota allows, says when there is room again, and takes it then. A change
// holds at once, and others are not affected.
func TestTheQuotaOfAHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t).open(t)
		testkit.Must(t, testkit.Err(y.CreateHub(t.Context(), HubConfig{Name: "Orders", Partitions: 2, QuotaEvents: new(int64(10))})))
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

// R4: what is stored is charged once, however often it was handed to the engine, and what is not
// stored is not charged. In doubt it is.
func TestAQuotaIsChargedForWhatIsStored(t *testing.T) {
	const size = 4
	refuse := func(times int, err error) func(logtest.Op) error {
		return func(op logtest.Op) error {
			if op.Kind == logtest.OpSubmit && op.N <= times {
				return logtest.Refused(err)
			}
			return nil
		}
	}
	batch := func() []eventlog.Event { return events("a", "b", "c", "d") }
	publish := func(ctx context.Context, b *Broker, by *quota.Meter) error {
		return testkit.Err(b.Publish(ctx, "orders", Target{Quota: by}, batch()))
	}
	submit := func(ctx context.Context, b *Broker, by *quota.Meter) error {
		pending, err := b.Submit(ctx, "orders", Target{Quota: by}, batch())
		if err != nil {
			return err
		}
		return testkit.Err(pending.Wait(ctx))
	}
	produce := func(ctx context.Context, b *Broker, by *quota.Meter) error {
		p, err := b.Producer(ctx, "orders", "0", ProducerConfig{Last: atZero, Quota: func() *quota.Meter { return by }})
		if err != nil {
			return err
		}
		return testkit.Err(store(ctx, p, 0, "a", "b", "c", "d"))
	}
	repeat := func(ctx context.Context, b *Broker, by *quota.Meter) error {
		p, err := b.Producer(ctx, "orders", "0", ProducerConfig{Last: atZero, Quota: func() *quota.Meter { return by }})
		if err != nil {
			return err
		}
		first, err1 := p.Submit(ctx, 0, batch())
		under, err2 := p.Submit(ctx, 0, batch()) // while the first is under way
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		err = errors.Join(testkit.Err(first.Wait(ctx)), testkit.Err(under.Wait(ctx)))
		return errors.Join(err, testkit.Err(store(ctx, p, 0, "a", "b", "c", "d")))
	}
	for name, c := range map[string]struct {
		do      func(context.Context, *Broker, *quota.Meter) error
		answer  func(logtest.Op) error
		want    error
		charged int
	}{
		"published at the third attempt":    {publish, refuse(2, eventlog.ErrFenced), nil, size},
		"never published":                   {publish, refuse(eventlog.MaxAppends, eventlog.ErrFenced), eventlog.ErrFenced, 0},
		"published to a full disk":          {publish, refuse(1, eventlog.ErrNoSpace), eventlog.ErrNoSpace, 0},
		"published, or not":                 {publish, refuse(1, eventlog.ErrUncertain), eventlog.ErrUncertain, size},
		"submitted":                         {submit, nil, nil, size},
		"submitted to a full disk":          {submit, refuse(1, eventlog.ErrNoSpace), eventlog.ErrNoSpace, 0},
		"submitted, and stored or not":      {submit, refuse(1, eventlog.ErrUncertain), eventlog.ErrUncertain, size},
		"a producer's":                      {produce, nil, nil, size},
		"a producer's to a full disk":       {produce, refuse(1, eventlog.ErrNoSpace), eventlog.ErrNoSpace, 0},
		"a producer's repeats":              {repeat, nil, nil, size},
		"a producer's, and stored or not":   {produce, refuse(1, eventlog.ErrUncertain), eventlog.ErrUncertain, size},
		"a producer's repeats of a refusal": {repeat, refuse(1, eventlog.ErrNoSpace), eventlog.ErrNoSpace, size},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limit := quota.Limit{Events: 100, Bytes: 1 << 20}
				all, by := quota.NewMeter("yard", "events"), quota.NewMeter("policy", "events")
				all.Set(limit, time.Now())
				by.Set(limit, time.Now())
				y := newYard(t)
				b := open(t, Config{Engine: y.Engine, Meta: y.Meta, Quota: all})
				testkit.Must(t, testkit.Err(b.CreateHub(t.Context(), HubConfig{Name: "orders", Partitions: 1, QuotaEvents: &limit.Events, QuotaBytes: &limit.Bytes})))
				y.Engine.Inject(c.answer)
				testkit.ErrorIs(t, c.do(t.Context(), b, by), c.want)
				for what, m := range map[string]*quota.Meter{"hub": b.hubs.find("orders").quota, "policy": by, "yard": all} {
					left := 0
					for quota.Take(1, 0, time.Now(), m) == nil {
						left++
					}
					testkit.Equal(t, 100-left, c.charged, "charged to the %s", what)
				}
			})
		})
	}
}
