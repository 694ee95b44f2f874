package broker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	kafka "github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// frame is a batch of Kafka's with these values.
func frame(values ...string) eventlog.Batch {
	b, err := kafka.Check(kafkaBatch(values...))
	if err != nil {
		panic(err)
	}
	return b
}

// frameOf is one with a producer.
func frameOf(id int64, epoch int16, first int32, values ...string) eventlog.Batch {
	b := frame(values...)
	b.Producer = eventlog.Producer{ID: id, Epoch: epoch, First: first, Set: true}
	return b
}

// putFrames submits frames to partition 0 of a hub and waits.
func putFrames(ctx context.Context, b *Broker, hub string, frames ...eventlog.Batch) (Published, error) {
	p, err := b.SubmitFrames(ctx, hub, FrameTarget{}, frames)
	if err != nil {
		return Published{}, err
	}
	return p.Wait(ctx)
}

// mustPut gives where the first frame is.
func mustPut(t *testing.T, b *Broker, frames ...eventlog.Batch) eventlog.Sequence {
	t.Helper()
	return testkit.Value(putFrames(t.Context(), b, "orders", frames...))(t).First
}

// K1, K4: frames are stored in order, as events are, and counted like them.
func TestFramesAreStored(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 2)
	mustPublish(t, b, "orders", Target{Partition: "1"}, "a")
	frames := []eventlog.Batch{frame("b", "c"), frame("d"), frame("e")}
	size := 0
	for _, f := range frames {
		size += f.Bytes()
	}
	bytes := testutil.ToFloat64(b.hubs.find("orders").metrics.bytes)
	p := testkit.Value(b.SubmitFrames(t.Context(), "ORDERS", FrameTarget{Partition: 1}, frames))(t)
	for _, f := range frames {
		clear(f.Raw) // it is the caller's again
	}
	p.Start()
	stored := testkit.Value(p.Wait(t.Context()))(t)
	testkit.That(t, !stored.Time.IsZero(), "it has no time")
	stored.Time = time.Time{}
	testkit.Equal(t, stored, Published{Partition: "1", First: 1, Count: 4})
	testkit.Slices(t, readAll(t, b, "orders")[1], []string{"a", "b", "c", "d", "e"})
	testkit.Equal(t, testutil.ToFloat64(b.hubs.find("orders").metrics.events), 5, "events are counted")
	testkit.Equal(t, testutil.ToFloat64(b.hubs.find("orders").metrics.bytes)-bytes, float64(size), "and their bytes")

	c := testkit.Value(b.RawCursor(t.Context(), "orders", "1", eventlog.At(3)))(t)
	defer c.Close()
	for first := eventlog.Sequence(3); first < 5; first++ {
		run := testkit.Value(c.TryNext(t.Context()))(t)
		testkit.Equal(t, run.Form, eventlog.FormKafka)
		testkit.Equal(t, testkit.Value(kafka.ReadHead(run.Raw))(t).BaseOffset, int64(first))
	}
	wantNotFound(t, testkit.Err(b.RawCursor(t.Context(), "orders", "2", eventlog.Earliest())), KindPartition)
	wantNotFound(t, testkit.Err(b.RawCursor(t.Context(), "nowhere", "0", eventlog.Earliest())), KindHub)
	_, ahead := errors.AsType[*eventlog.PositionError](testkit.Err(b.RawCursor(t.Context(), "orders", "1", eventlog.At(99))))
	testkit.That(t, ahead, "past the end there is a cursor")
}

// K1: what is started is stored although nobody waits for it.
func TestFramesThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newYard(t).open(t)
		mustCreate(t, b, "orders", 1)
		for _, f := range []eventlog.Batch{frame("a"), frameOf(7, 0, 0, "b")} {
			testkit.Value(b.SubmitFrames(t.Context(), "orders", FrameTarget{}, []eventlog.Batch{f}))(t).Start()
			synctest.Wait()
		}
		expect(t, b, "orders", "a", "b")
	})
}

// K1: what cannot be stored is refused before anything of it is.
func TestFramesRefused(t *testing.T) {
	b := newYard(t).open(t)
	h := mustCreate(t, b, "orders", 1)
	large := frame("x")
	large.Raw = make([]byte, eventlog.MaxBatchBytes)
	larger := large
	larger.Raw = make([]byte, eventlog.MaxBatchBytes+1)
	one := []eventlog.Batch{frame("x")}
	for _, tt := range []struct {
		what   string
		frames []eventlog.Batch
		want   error
	}{
		{"none", nil, eventlog.ErrEmptyBatch},
		{"an empty one", append(one, eventlog.Batch{Form: eventlog.FormKafka}), eventlog.ErrEmptyBatch},
		{"one too large", append(one, larger), eventlog.ErrTooLarge},
		{"too many", []eventlog.Batch{large, large, large, large, large, frame("x")}, eventlog.ErrTooLarge},
		{"single events", []eventlog.Batch{{Events: events("x")}}, eventlog.ErrForm},
		{"of two producers", []eventlog.Batch{frameOf(1, 0, 0, "x"), frameOf(2, 0, 0, "x")}, eventlog.ErrForm},
		{"of two epochs", []eventlog.Batch{frameOf(1, 0, 0, "x"), frameOf(1, 1, 0, "x")}, eventlog.ErrForm},
		{"with a producer and without", append(one, frameOf(1, 0, 0, "x")), eventlog.ErrForm},
		{"of the yard's own producer", []eventlog.Batch{frameOf(-8, 0, 0, "x")}, ErrProducerFenced},
		{"of a number that is none", []eventlog.Batch{frameOf(1, 0, -7, "x")}, ErrOutOfOrder},
		{"of an epoch that is none", []eventlog.Batch{frameOf(1, -1, 0, "x")}, ErrProducerFenced},
	} {
		t.Run(tt.what, func(t *testing.T) {
			testkit.ErrorIs(t, testkit.Err(b.SubmitFrames(t.Context(), "orders", FrameTarget{}, tt.frames)), tt.want)
		})
	}
	for what, to := range map[string]FrameTarget{
		KindPartition: {Partition: 1}, KindHub: {Created: h.Created.Add(-time.Second)},
	} {
		wantNotFound(t, testkit.Err(b.SubmitFrames(t.Context(), "orders", to, one)), what)
	}
	wantNotFound(t, testkit.Err(b.SubmitFrames(t.Context(), "orders", FrameTarget{Partition: -1}, one)), KindPartition)
	wantNotFound(t, testkit.Err(b.SubmitFrames(t.Context(), "nowhere", FrameTarget{}, one)), KindHub)
	testkit.Must(t, testkit.Err(b.SubmitFrames(t.Context(), "orders", FrameTarget{Created: h.Created}, one)))
	mustPut(t, b, frame("y"))
	expect(t, b, "orders", "x", "y")
}

// H2: frames of a hub that is deleted are refused, also where another has its name by then.
func TestFramesOfADeletedHub(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	for _, f := range []eventlog.Batch{frame("x"), frameOf(7, 0, 0, "x")} {
		mustCreate(t, b, "orders", 1)
		testkit.Must(t, testkit.Err(putFrames(t.Context(), b, "orders", f)))
		testkit.Must(t, b.DeleteHub(t.Context(), "orders"))
		wantNotFound(t, testkit.Err(putFrames(t.Context(), b, "orders", f)), KindHub, "afterwards")
		testkit.Equal(t, len(b.ledgers.all), 0, "ledgers")
	}
	// It is deleted and made anew between finding and using it.
	mustCreate(t, b, "orders", 1)
	y.Engine.Inject(func(op logtest.Op) error {
		if op.Kind == logtest.OpSubmit {
			y.Engine.Inject(nil)
			testkit.Must(t, b.DeleteHub(t.Context(), "orders"))
			mustCreate(t, b, "orders", 1)
		}
		return nil
	})
	testkit.Equal(t, mustPut(t, b, frameOf(7, 0, 40, "a", "b")), 0, "it goes on with the new one")
	expect(t, b, "orders", "a", "b")
}

// R4: what is stored of frames is charged once, and what is not stored is not charged.
func TestAQuotaIsChargedForFrames(t *testing.T) {
	both := func(of ...eventlog.Batch) func(context.Context, *Broker, FrameTarget) error {
		return func(ctx context.Context, b *Broker, to FrameTarget) error {
			p, err := b.SubmitFrames(ctx, "orders", to, of)
			if err != nil {
				return err
			}
			return testkit.Err(p.Wait(ctx))
		}
	}
	plain, once := both(frame("a", "b"), frame("c", "d")), both(frameOf(7, 0, 0, "a", "b", "c", "d"))
	twice := func(ctx context.Context, b *Broker, to FrameTarget) error {
		return errors.Join(once(ctx, b, to), once(ctx, b, to))
	}
	more := func(ctx context.Context, b *Broker, to FrameTarget) error {
		return errors.Join(once(ctx, b, to), both(frameOf(7, 0, 0, "a", "b", "c", "d"), frameOf(7, 0, 4, "e"))(ctx, b, to))
	}
	for name, c := range map[string]struct {
		do      func(context.Context, *Broker, FrameTarget) error
		refusal error // of the first submission
		want    error
		charged int
	}{
		"stored":                                   {plain, nil, nil, 4},
		"to a full disk":                           {plain, eventlog.ErrNoSpace, eventlog.ErrNoSpace, 0},
		"stored or not":                            {plain, eventlog.ErrUncertain, eventlog.ErrUncertain, 4},
		"a producer's":                             {once, nil, nil, 4},
		"a producer's to a full disk":              {once, eventlog.ErrNoSpace, eventlog.ErrNoSpace, 0},
		"a producer's and stored or not":           {once, eventlog.ErrUncertain, eventlog.ErrUncertain, 4},
		"a producer's repeats":                     {twice, nil, nil, 4},
		"a producer's repeats of what was refused": {twice, eventlog.ErrNoSpace, eventlog.ErrNoSpace, 4},
		"a producer's repeats and something more":  {more, nil, nil, 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limit := quota.Limit{Events: 100, Bytes: 1 << 20}
				all, by := quota.NewMeter("yard", "events"), quota.NewMeter("policy", "events")
				all.Set(limit, time.Now())
				by.Set(limit, time.Now())
				y := newYard(t)
				b := open(t, Config{Engine: y.Engine, Meta: y.Meta, Quota: all})
				testkit.Must(t, testkit.Err(b.CreateHub(t.Context(), HubConfig{Name: "orders", Partitions: 1, QuotaEvents: &limit.Events})))
				if c.refusal != nil {
					y.Engine.Inject(nth(logtest.OpSubmit, 1, logtest.Refused(c.refusal)))
				}
				testkit.ErrorIs(t, c.do(t.Context(), b, FrameTarget{Quota: by}), c.want)
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

// K3: ids for producers are those of nobody else.
func TestNewProducerIDs(t *testing.T) {
	b := newYard(t).open(t)
	seen := make(map[int64]bool)
	for range 1000 {
		id := b.NewProducerID()
		testkit.That(t, id >= 0 && !seen[id], "%d", id)
		seen[id] = true
	}
}
