package box

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/functions/poison"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/setaside"
	"github.com/eventyard/eventyard/internal/setaside/ranges"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// F4: redriven events are the originals, where they came from, oldest first, for their function
// alone.
func TestRedrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("bad", 2)
		y.hub("Orders", 4)
		keyed := poisonEvent("a", 100)
		keyed.Event.Key, keyed.Event.Properties = "customer-42", map[string]any{"x": int32(1)}
		for n := range 4 {
			y.die("bad", strconv.Itoa(n%2), poisonEvent("a", n))
			time.Sleep(time.Second)
		}
		y.die("bad", "0", keyed)
		reported, done, failed := y.redrive("bad", RedriveConfig{})
		if done != 5 || failed != 0 || len(reported) != 5 || reported[0].Sequence != 0 || reported[4].Sequence != 100 || reported[0].Err != nil || !reported[0].WasRedriven {
			t.Fatalf("done %d, failed %d: %+v", done, failed, reported)
		}
		orders := y.events("orders")
		testkit.Equal(t, bodies(orders["1"]), "0 1 2 3", "partition 1")
		ev := orders[strconv.Itoa(broker.PartitionForKey("customer-42", 4))]
		if len(ev) != 1 || ev[0].Key != "customer-42" || ev[0].Properties["x"] != int32(1) || poison.For(ev[0]) != "a" || ev[0].Properties[poison.PropertyRedriven] != int32(1) {
			t.Errorf("the event with a key is %+v", ev)
		}
	})
}

// R4: a redrive waits for the quota of the hub that it goes to: nothing is lost, or comes out of
// order.
func TestARedriveWaitsForAQuota(t *testing.T) {
	bubble(t, 1, func(t *testing.T, y *yard) {
		y.die("bad", "0", poisonEvent("a", 1), poisonEvent("a", 2), poisonEvent("a", 3))
		y.wantRedriven(RedriveConfig{Query: Query{Limit: 10}}, 3, 0)
		one := int64(1)
		testkit.Must(t, testkit.Err(y.broker.UpdateHub(t.Context(), "orders", broker.HubChange{QuotaEvents: &one})))
		for n := range 20 {
			y.die("bad", "0", poisonEvent("a", 10+n))
		}
		y.wantRedriven(RedriveConfig{}, 20, 0)
		y.die("bad", "0", poisonEvent("a", 30))
		y.wantRedriven(RedriveConfig{}, 1, 0)
		got := bodies(y.events("orders")["1"])
		testkit.Equal(t, strings.HasSuffix(got, " 28 29 30"), true, "the events are %s", got)
		testkit.Equal(t, len(strings.Fields(got)), 24, "events")
	})
}

// R4: a raised quota holds at once also for who has been waiting for the old one.
func TestARedriveDoesNotWaitForAQuotaThatWasRaised(t *testing.T) {
	bubble(t, 1, func(t *testing.T, y *yard) {
		limit := func(events int64) {
			testkit.Must(t, testkit.Err(y.broker.UpdateHub(t.Context(), "orders", broker.HubChange{QuotaEvents: &events})))
		}
		limit(1)
		many := make([]eventlog.Event, 5_000)
		for i := range many {
			many[i] = eventlog.Event{Key: []byte("k"), Message: testkit.Value(message.Append(nil, event.Event{}))(t)}
		}
		testkit.Must(t, testkit.Err(y.broker.Publish(t.Context(), "orders", broker.Target{}, many)))
		y.die("bad", "0", poisonEvent("a", 1))
		began := time.Now()
		time.AfterFunc(10*time.Minute, func() { limit(0) })
		y.wantRedriven(RedriveConfig{}, 1, 0)
		took := time.Since(began)
		testkit.That(t, took >= 10*time.Minute && took <= 10*time.Minute+10*time.Second, "it took %v", took)
	})
}

// F4: who asks what would be redriven hears it, and nothing is.
func TestADryRunChangesNothing(t *testing.T) {
	bubble(t, 1, func(t *testing.T, y *yard) {
		y.die("bad", "0", poisonEvent("a", 1), poisonEvent("a", 2))
		time.Sleep(time.Minute)
		until := time.Now()
		y.die("bad", "0", poisonEvent("a", 3))
		var counted string
		done, failed, err := y.Redrive(t.Context(), "bad", RedriveConfig{DryRun: true, Each: func(one Redriven) {
			counted += " " + one.ID
			testkit.That(t, !one.WasRedriven && one.Err == nil, "of %s it says %+v", one.ID, one)
		}})
		testkit.Must(t, err)
		testkit.That(t, done == 3 && failed == 0, "it counts %d, and %d that fail", done, failed)
		testkit.Equal(t, counted, " a/orders/1/1 a/orders/1/2 a/orders/1/3")
		testkit.Equal(t, ids(y.list("bad", Query{})), "a3 a2 a1", "left")
		testkit.Equal(t, len(y.events("orders")["1"]), 0, "published")
		y.wantRedriven(RedriveConfig{Query: Query{Until: until}}, 2, 0)
		testkit.Equal(t, ids(y.list("bad", Query{})), "a3", "what was put away later is left")
	})
}

// F4: what was redriven is not again, unless it is asked for.
func TestWhatWasRedrivenIsRemembered(t *testing.T) {
	y := withHubs(t, 1)
	y.die("bad", "0", poisonEvent("a", 1), poisonEvent("b", 2), poisonEvent("a", 3))
	y.wantRedriven(RedriveConfig{Query: Query{Function: "a"}}, 2, 0)
	testkit.Equal(t, ids(y.list("bad", Query{})), "b2", "left")
	all := y.list("bad", Query{Redriven: true})
	if ids(all) != "a3 b2 a1" || !all[0].WasRedriven || all[1].WasRedriven || all[0].RedrivenAt.IsZero() {
		t.Errorf("all are %+v", all)
	}
	if e, err := y.Show(t.Context(), "bad", all[0].ID); err != nil || !e.WasRedriven {
		t.Errorf("shown as %+v, %v", e, err)
	}
	y.wantRedriven(RedriveConfig{}, 1, 0)
	y.wantRedriven(RedriveConfig{}, 0, 0)
	y.wantRedriven(RedriveConfig{Query: Query{Redriven: true, IDs: []string{"a/orders/1/1"}}}, 1, 0)
	testkit.Equal(t, bodies(y.events("orders")["1"]), "1 3 2 1", "orders")
}

// F4: an event that comes back again and again is not sent round for ever.
func TestTheLoopGuard(t *testing.T) {
	y := withHubs(t, 1)
	for n := range 5 {
		l := poisonEvent("a", n)
		l.Redriven = n
		y.die("bad", "0", l)
	}
	testkit.ErrorIs(t, y.wantRedriven(RedriveConfig{}, 3, 2)[0].Err, ErrLoop)
	testkit.Equal(t, ids(y.list("bad", Query{})), "a4 a3", "left")
	y.wantRedriven(RedriveConfig{Force: true}, 2, 0)
	testkit.Equal[any](t, y.events("orders")["1"][4].Properties[poison.PropertyRedriven], int32(5), "the last")
}

// F4: one that cannot be redriven does not keep the others.
func TestAPoisonEventWhosePartitionIsGone(t *testing.T) {
	y := withHubs(t, 1)
	nowhere := poisonEvent("a", 3)
	nowhere.ID, nowhere.Partition = "a/orders/9/3", "9"
	y.die("bad", "0", poisonEvent("a", 1), nowhere, poisonEvent("a", 4))
	for _, r := range y.wantRedriven(RedriveConfig{}, 2, 1) {
		var missing *broker.NotFoundError
		testkit.Equal(t, (r.Sequence == 3), errors.As(r.Err, &missing), "%s: %v", r.ID, r.Err)
	}
	testkit.Equal(t, ids(y.list("bad", Query{})), "a3", "left")
}

// from is a poison event that names another hub than orders.
func from(hub string, n int) poison.Record {
	l := poisonEvent("a", n)
	l.Hub, l.ID = hub, poison.ID("a", hub, "1", int64(n))
	return l
}

// F4: whoever may send to a poison hub may write what looks like a poison event from any hub; where
// those of several lie together, who redrives says which is meant.
func TestPoisonEventsOfSeveralHubsAreNotRedrivenTogether(t *testing.T) {
	y := newYard(t)
	y.hub("bad", 2)
	for _, name := range []string{"orders", "payroll"} {
		y.hub(name, 2)
	}
	y.die("bad", "0", poisonEvent("a", 1), from("Orders", 2), poisonEvent("b", 3), from("gone", 4), from("payroll", 5))
	var several *SourcesError
	_, _, err := y.Redrive(t.Context(), "bad", RedriveConfig{Query: Query{Limit: 2}})
	if !errors.As(err, &several) || !slices.Equal(several.Hubs, []string{"gone", "orders", "payroll"}) {
		t.Fatalf("all at once: %v", err)
	}
	if all := ids(y.list("bad", Query{})); len(y.events("orders")["1"]) != 0 || len(y.events("payroll")["1"]) != 0 || all != "a5 a4 b3 a2 a1" {
		t.Errorf("something went out, left are %s", all)
	}
	testkit.Equal(t, ids(y.list("bad", Query{Source: "ORDERS"})), "b3 a2 a1", "listed of orders")
	y.wantRedriven(RedriveConfig{Query: Query{Function: "b"}}, 1, 0)
	y.wantRedriven(RedriveConfig{Query: Query{Source: "ORDERS"}}, 2, 0)
	reported := y.wantRedriven(RedriveConfig{Query: Query{Source: "gone"}}, 0, 1)
	if missing := (*broker.NotFoundError)(nil); !errors.As(reported[0].Err, &missing) {
		t.Errorf("of one that is gone: %v", reported[0].Err)
	}
	if got := bodies(y.events("orders")["1"]); got != "3 1 2" || len(y.events("payroll")["1"]) != 0 {
		t.Errorf("orders got %s, payroll %d", got, len(y.events("payroll")["1"]))
	}
}

func TestAListOfHubsIsShort(t *testing.T) {
	y := withHubs(t, 1)
	for n := range 50 {
		y.die("bad", "0", from("hub"+strconv.Itoa(n), n))
	}
	var several *SourcesError
	if _, _, err := y.Redrive(t.Context(), "bad", RedriveConfig{}); !errors.As(err, &several) || len(several.Hubs) != maxSources || len(err.Error()) > 500 {
		t.Errorf("%v", err)
	}
}

// F4: poison events that may not be redriven, however many, do not keep those behind them.
func TestManyThatFailDoNotKeepTheRest(t *testing.T) {
	y := withHubs(t, 1)
	for n := range 30 {
		l := poisonEvent("a", n)
		if n < 20 {
			l.Redriven = 9
		}
		y.die("bad", "0", l)
	}
	for _, want := range []int{5, 5, 0} {
		y.wantRedriven(RedriveConfig{Query: Query{Limit: 5}}, want, 20)
	}
}

// F4: a poison event that had no room for its event brings it back all the same, if its hub still
// has it.
func TestAPoisonEventWithoutItsEvent(t *testing.T) {
	bubble(t, 1, func(t *testing.T, y *yard) {
		large := event.Event{Body: append(bytes.Repeat([]byte("x"), 1<<20), " 7"...), Key: "home-1", Properties: map[string]any{"p": int32(1)}}
		refer := func(n int, enqueued time.Time) {
			l := poisonEvent("a", n)
			l.Event, l.Enqueued = large, enqueued
			y.die("bad", "0", l)
		}
		y.publish("orders", "1", event.Text("small"))
		time.Sleep(time.Hour)
		at := time.Now().UTC()
		y.publish("orders", "1", large)
		time.Sleep(time.Hour)
		refer(1, at)                 // is there
		refer(0, at.Add(-time.Hour)) // too, and in the place of another
		refer(1, at.Add(-time.Hour)) // another is there in its place
		refer(9, at)                 // is not there
		if list := y.list("bad", Query{}); len(list) != 4 || !list[0].Reference || string(list[0].Event.Body) != `{"hub":"orders","partition":"1","sequence":9}` {
			t.Fatalf("listed are %+v", list)
		}
		reported := y.wantRedriven(RedriveConfig{}, 2, 2)
		testkit.ErrorIs(t, reported[2].Err, ErrNotKept)
		testkit.ErrorIs(t, reported[3].Err, ErrNotKept)
		of := y.events("orders")[strconv.Itoa(broker.PartitionForKey("home-1", 2))]
		back := of[slices.IndexFunc(of, func(ev event.Event) bool { return ev.Properties["p"] != nil && poison.For(ev) == "a" })]
		testkit.Slices(t, []any{bytes.Equal(back.Body, large.Body), back.Key}, []any{true, "home-1"}, "it came back with")
	})
}

// refusing is a broker that refuses publications of several events, and of one body.
type refusing struct {
	counting
	body string
}

func (r refusing) Publish(ctx context.Context, hub string, to broker.Target, events []eventlog.Event) (broker.Published, error) {
	for _, e := range events {
		if string(e.Message[len(e.Message)-len(r.body):]) == r.body {
			return broker.Published{}, errBroken
		}
	}
	return r.counting.Publish(ctx, hub, to, events)
}

func TestAPoisonEventThatIsRefusedDoesNotKeepThoseBesideIt(t *testing.T) {
	y := withHubs(t, 1)
	y.cfg.Broker = refusing{counting{y.broker, y.read}, "body 2"}
	y.die("bad", "0", poisonEvent("a", 1), poisonEvent("a", 2), poisonEvent("a", 3))
	testkit.ErrorIs(t, y.wantRedriven(RedriveConfig{}, 2, 1)[1].Err, errBroken)
	testkit.Equal(t, bodies(y.events("orders")["1"]), "1 3", "orders")
}

// F4: after a crash between publishing and marking an event is redriven twice, never not at all.
func TestACrashBetweenPublishingAndMarking(t *testing.T) {
	y := withHubs(t, 1)
	y.die("bad", "0", poisonEvent("a", 1), poisonEvent("a", 2))
	y.meta.Inject(func(op metatest.Op) error {
		if op.Kind == metatest.OpSet {
			return errBroken
		}
		return nil
	})
	reported := 0
	done, failed, err := y.Redrive(t.Context(), "bad", RedriveConfig{Each: func(Redriven) { reported++ }})
	if !errors.Is(err, errBroken) || done != 2 || failed != 0 || reported != 2 {
		t.Fatalf("done %d, failed %d, counted %d, %v", done, failed, reported, err)
	}
	y.meta.Inject(nil)
	after := New(y.cfg) // as after a start
	if done, _, err := after.Redrive(t.Context(), "bad", RedriveConfig{}); done != 2 || err != nil {
		t.Errorf("then done %d, %v", done, err)
	}
	testkit.Equal(t, bodies(y.events("orders")["1"]), "1 2 1 2", "orders")
	if done, _, err := after.Redrive(t.Context(), "bad", RedriveConfig{}); done != 0 || err != nil {
		t.Errorf("at last done %d, %v", done, err)
	}
}

// F4: who stops in the middle goes on there.
func TestACallerWhoLeavesInTheMiddle(t *testing.T) {
	y := withHubs(t, 1)
	y.dieMany(250)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done, _, err := y.Redrive(ctx, "bad", RedriveConfig{Each: func(Redriven) { cancel() }})
	if !errors.Is(err, context.Canceled) || done != 100 {
		t.Errorf("done %d, %v", done, err)
	}
	if _, rest, _ := y.redrive("bad", RedriveConfig{}); rest != 250-done || len(y.events("orders")["1"]) != 250 {
		t.Errorf("then %d, and %d have come", rest, len(y.events("orders")["1"]))
	}
}

func TestTheRate(t *testing.T) {
	bubble(t, 1, func(t *testing.T, y *yard) {
		y.dieMany(50)
		began := time.Now()
		y.wantRedriven(RedriveConfig{PerSecond: 10}, 50, 0)
		if took := time.Since(began); took < 4*time.Second || took > 5*time.Second {
			t.Errorf("50 of 10 a second took %v", took)
		}
	})
}

// F4: marks are of one hub, not of all that ever have its name.
func TestAHubMadeAnewHasNoMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("orders", 2)
		for range 2 {
			y.hub("Bad", 1)
			y.die("bad", "0", poisonEvent("a", 1))
			testkit.Equal(t, ids(y.list("bad", Query{})), "a1", "listed")
			y.wantRedriven(RedriveConfig{}, 1, 0)
			testkit.Equal(t, len(testkit.Value(y.meta.List(t.Context(), marksPrefix))(t)), 1, "entries")
			testkit.Must(t, y.broker.DeleteHub(t.Context(), "bad"))
			time.Sleep(time.Second)
		}
	})
}

// A log that lost its end numbers other poison events as those that were redriven.
func TestAMarkThatIsOlderThanItsPoisonEvent(t *testing.T) {
	bubble(t, 1, func(t *testing.T, y *yard) {
		h := testkit.Value(y.broker.Hub("bad"))(t)
		var numbers []int64
		for n := range int64(300) {
			numbers = append(numbers, n)
		}
		m := testkit.Value(y.marks(t.Context(), h))(t)
		testkit.Must(t, m.of("0").Redriven(t.Context(), numbers, time.Now().UnixMilli()))
		time.Sleep(time.Second)
		y.dieMany(300)
		testkit.Equal(t, len(y.list("bad", Query{Limit: 1000})), 300, "listed")
		y.wantRedriven(RedriveConfig{}, 300, 0)
	})
}

// F4: to redrive some at a time costs no more than to redrive all at once.
func TestPoisonEventsThatWereRedrivenArePassedOver(t *testing.T) {
	y := withHubs(t, 1)
	for n := range 100 {
		var some []event.Event
		for m := range 100 {
			some = append(some, poisonEvent("a", 100*n+m).Message())
		}
		y.publish("bad", "0", some...)
	}
	y.wantRedriven(RedriveConfig{Query: Query{Limit: 9990}}, 9990, 0)
	y.read.Store(0)
	if _, done, _ := y.redrive("bad", RedriveConfig{}); done != 10 || y.read.Load() > 500 {
		t.Errorf("%d redriven, %d read", done, y.read.Load())
	}
	y.die("bad", "0", poisonEvent("a", 1))
	y.read.Store(0)
	if n, _, err := y.Count(t.Context(), "bad", "a", 1000); n != 1 || err != nil || y.read.Load() > 1000 {
		t.Errorf("counted %d, %v, %d read", n, err, y.read.Load())
	}
	testkit.Equal(t, len(testkit.Value(y.meta.List(t.Context(), marksPrefix))(t)), 3, "entries")
}

// F4: two operators who press the button at once.
func TestRedrivesAtOnce(t *testing.T) {
	y := withHubs(t, 2)
	for n := range 200 {
		y.die("bad", strconv.Itoa(n%2), poisonEvent("a", n))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			testkit.Check(t, testkit.Err3(y.Redrive(t.Context(), "bad", RedriveConfig{})))
		})
	}
	wg.Wait()
	testkit.Equal(t, len(y.events("orders")["1"]), 200, "have come")
}

// What is marked is stored as it always was, and has room. Poison events whose retention is over
// take their marks along, and so do earlier hubs of the name; a later one's are left alone.
func TestMarksAsTheyAreStored(t *testing.T) {
	y := withHubs(t, 2)
	h := testkit.Value(y.broker.Hub("bad"))(t)
	created := h.Created.UnixMilli()
	key := func(created int64, rest string) string { return fmt.Sprintf("poison/bad/%d/%s", created, rest) }
	keys := map[string]bool{ // whether they stay
		key(created, "0/0"): false, key(created, "0/1"): false, key(created, "0/2"): true, key(created, "1/0"): true,
		key(created-1, "0/7"): false, key(created+1, "0/0"): true, "poison/bad/x/0/0": true, "poison/bad-2/0/0/0": true,
	}
	const stored = `{"redriven":[{"first":3,"last":4,"at":1769860800000},{"first":9,"last":9,"at":0}]}`
	for key := range keys {
		testkit.Must(t, testkit.Err(y.meta.CompareAndSet(t.Context(), key, 0, []byte(stored))))
	}
	m := testkit.Value(y.marks(t.Context(), h))(t)
	leaf := m.of("0").Marks()[0].Value
	testkit.Equal(t, string(testkit.Value(leafCodec.Encode(leaf))(t)), stored, "read %v, and stored", leaf)
	m.tidy(t.Context(), map[string]int64{"0": 2 * setaside.LeafSize, "1": setaside.LeafSize - 1})
	for key, stays := range keys {
		if _, err := y.meta.Get(t.Context(), key); (err == nil) != stays {
			t.Errorf("%s: %v", key, err)
		}
	}
	for n := range int64(setaside.LeafSize) {
		leaf.Redriven = append(leaf.Redriven, ranges.Span{Range: ranges.Range{First: 1<<53 + n, Last: 1<<53 + n}, At: 1769860800000 + n})
	}
	if value, err := leafCodec.Encode(leaf); err != nil || len(value) > meta.MaxValueBytes {
		t.Errorf("the largest has %d bytes, %v", len(value), err)
	}
	testkit.Must(t, testkit.Err(y.meta.CompareAndSet(t.Context(), key(created, "0"), 0, []byte(stored))))
	if _, err := y.List(t.Context(), "bad", Query{}); err == nil {
		t.Error("an entry that is none is taken for one")
	}
}

// F4: whatever is put away and redriven in whatever order, each poison event is listed until it was
// redriven, and published once for each time.
func TestAnyCourseOfRedrives(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		y := withHubs(t, 2)
		left, sent := map[string]bool{}, 0
		next := 0
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			if rapid.Bool().Draw(rt, "die") {
				for range rapid.IntRange(1, 30).Draw(rt, "poison events") {
					l := poisonEvent(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "function"), next)
					y.die("bad", strconv.Itoa(rapid.IntRange(0, 1).Draw(rt, "partition")), l)
					left[l.ID] = true
					next++
				}
				continue
			}
			q := Query{Function: rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "of"), Limit: rapid.IntRange(0, 20).Draw(rt, "limit")}
			reported, done, failed := y.redrive("bad", RedriveConfig{Query: q})
			if failed != 0 || q.Limit > 0 && done > q.Limit {
				rt.Fatalf("done %d, failed %d of %d", done, failed, q.Limit)
			}
			for _, r := range reported {
				if !left[r.ID] {
					rt.Fatalf("%s was redriven twice", r.ID)
				}
				delete(left, r.ID)
			}
			sent += done
		}
		list := y.list("bad", Query{Limit: 10_000})
		testkit.MustSlices(rt, []any{len(list), len(y.events("orders")["1"])}, []any{len(left), sent}, "listed")
		for _, e := range list {
			if !left[e.ID] {
				rt.Fatalf("%s is listed", e.ID)
			}
		}
	})
}
