package box

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/functions/poison"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// F4: what lies in a poison hub is listed, the newest first, also over partitions.
func TestList(t *testing.T) {
	bubble(t, 3, func(t *testing.T, y *yard) {
		for n := range 6 {
			function := "a"
			if n%3 == 2 {
				function = "b"
			}
			y.die("bad", fmt.Sprint(n%2), poisonEvent(function, n))
			time.Sleep(time.Minute)
		}
		y.publish("bad", "2", event.Text("no poison event"))
		began := time.Now()
		for _, test := range []struct {
			name string
			q    Query
			want string
		}{
			{"all", Query{}, "b5 a4 a3 b2 a1 a0"},
			{"no more than asked for", Query{Limit: 2}, "b5 a4"},
			{"of a function", Query{Function: "a"}, "a4 a3 a1 a0"},
			{"by id", Query{IDs: []string{"a/orders/1/1", "b/orders/1/2", "none"}}, "b2 a1"},
			{"since a time", Query{Since: began.Add(-4 * time.Minute)}, "b5 a4 a3 b2"},
			{"until a time", Query{Until: began.Add(-4 * time.Minute)}, "a1 a0"},
			{"between two", Query{Since: began.Add(-4 * time.Minute), Until: began.Add(-2 * time.Minute)}, "a3 b2"},
			{"none", Query{Function: "c"}, ""},
		} {
			testkit.Equal(t, ids(y.list("BAD", test.q)), test.want, "%s", test.name)
		}
		one := y.list("bad", Query{Limit: 1})[0]
		want := Entry{Record: poisonEvent("b", 5), PoisonHub: "bad", PoisonPartition: "1", PoisonSequence: 2}
		want.At = one.At
		testkit.Diff(t, want, one)
	})
}

func TestAHubThatIsNotThere(t *testing.T) {
	y := newYard(t)
	_, _, counted := y.Count(t.Context(), "bad", "a", 10)
	_, _, redriven := y.Redrive(t.Context(), "bad", RedriveConfig{})
	for what, err := range map[string]error{
		"list": testkit.Err(y.List(t.Context(), "bad", Query{})), "count": counted,
		"show": testkit.Err(y.Show(t.Context(), "bad", "a/orders/1/1")), "redrive": redriven,
	} {
		if missing := (*broker.NotFoundError)(nil); !errors.As(err, &missing) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// F4: a hub may be of any size, and only its end is asked for.
func TestAListReadsNoMoreThanItNeeds(t *testing.T) {
	y := withHubs(t, 2)
	for n := range 50 {
		var some []event.Event
		for m := range 100 {
			some = append(some, poisonEvent("a", 100*n+m).Message())
		}
		y.publish("bad", "0", some...)
	}
	testkit.Equal(t, ids(y.list("bad", Query{Limit: 3})), "a4999 a4998 a4997")
	if n := y.read.Load(); n > 200 {
		t.Errorf("it read %d events", n)
	}
	if got := y.list("bad", Query{Limit: 10_000}); len(got) != 5000 || got[4999].Sequence != 0 {
		t.Errorf("got %d of all", len(got))
	}
}

func TestAListHasRoomForSoManyBodies(t *testing.T) {
	y := withHubs(t, 1)
	for n := range 20 {
		l := poisonEvent("a", n)
		l.Event.Body = bytes.Repeat([]byte("x"), 1<<20-100_000)
		y.die("bad", "0", l)
	}
	list := y.list("bad", Query{})
	if len(list) != 20 || list[0].Bodiless || len(list[0].Event.Body) == 0 || !list[19].Bodiless || list[19].Event.Body != nil || list[19].Reason != "no" {
		t.Errorf("got %d, the last without body: %t", len(list), list[len(list)-1].Bodiless)
	}
	testkit.Equal(t, len(testkit.Value(y.Show(t.Context(), "bad", list[19].ID))(t).Event.Body), 1<<20-100_000, "shown with")
}

func TestShow(t *testing.T) {
	y := withHubs(t, 4)
	y.die("bad", "1", poisonEvent("a", 7)) // where hosts put those of partition 1
	y.die("bad", "3", poisonEvent("a", 8)) // somewhere else
	for range 300 {
		y.die("bad", "1", poisonEvent("b", 1))
	}
	again := poisonEvent("a", 7)
	again.Reason = "again"
	y.die("bad", "1", again)
	for id, want := range map[string]struct{ reference, reason string }{
		"a/orders/1/7": {"1/301", "again"},
		"a/orders/1/8": {"3/0", "no"},
	} {
		t.Run(id, func(t *testing.T) {
			e, err := y.Show(t.Context(), "bad", id)
			if at := fmt.Sprintf("%s/%d", e.PoisonPartition, e.PoisonSequence); err != nil || at != want.reference || e.Reason != want.reason || e.ID != id {
				t.Errorf("got %s %s, %v", at, e.Reason, err)
			}
		})
	}
	for _, id := range []string{"a/orders/1/9", "", "x", "a/orders/x/9", "a/orders/-1/9"} {
		testkit.ErrorIs(t, testkit.Err(y.Show(t.Context(), "bad", id)), ErrNoPoisonEvent, "%q", id)
	}
}

func TestCount(t *testing.T) {
	y := withHubs(t, 2)
	for n := range 30 {
		y.die("bad", "0", poisonEvent("a", n))
		y.die("bad", "1", poisonEvent("b", n))
	}
	count := func(function string, limit int) string {
		t.Helper()
		n, more, err := y.Count(t.Context(), "bad", function, limit)
		testkit.Must(t, err)
		return fmt.Sprint(n, more)
	}
	for _, test := range []struct {
		function string
		limit    int
		want     string
	}{{"a", 100, "30 false"}, {"a", 7, "7 true"}, {"", 100, "60 false"}, {"", 60, "60 false"}, {"c", 100, "0 false"}} {
		testkit.Equal(t, count(test.function, test.limit), test.want, "%q up to %d", test.function, test.limit)
	}
	if _, done, _ := y.redrive("bad", RedriveConfig{Query: Query{Function: "a", Limit: 10}}); done != 10 || count("a", 100) != "20 false" || count("b", 100) != "30 false" {
		t.Errorf("%d redriven, %s and %s left", done, count("a", 100), count("b", 100))
	}
}

// F4: functions are listed while somebody waits, so large poison events are not all read to count
// them.
func TestACountReadsNoMoreThanItMay(t *testing.T) {
	y := withHubs(t, 1)
	for n := range 50 {
		l := poisonEvent("a", n)
		l.Event.Body = bytes.Repeat([]byte("x"), 1<<19)
		y.die("bad", "0", l)
	}
	n, more, err := y.Count(t.Context(), "bad", "a", 1000)
	if err != nil || !more || n < 5 || n > 10 || y.read.Load() > 20 {
		t.Errorf("counted %d, more: %t, and read %d, %v", n, more, y.read.Load(), err)
	}
}

// overtaken is a broker whose retention removes what is below a number while it is read.
type overtaken struct {
	counting
	first int64
}

func (o overtaken) Cursor(ctx context.Context, hub, group, partition string, at eventlog.Position) (eventlog.Cursor, error) {
	kept, err := o.counting.Cursor(ctx, hub, group, partition, eventlog.At(eventlog.Sequence(o.first)))
	if err != nil {
		return nil, err
	}
	asked, err := o.counting.Cursor(ctx, hub, group, partition, at)
	if err != nil || asked.At() >= kept.At() {
		return asked, errors.Join(err, kept.Close())
	}
	return kept, asked.Close()
}

// F4: retention removes the oldest while they are listed, or redriven.
func TestPoisonEventsThatAreRemovedMeanwhile(t *testing.T) {
	y := withHubs(t, 1)
	y.dieMany(500)
	if _, done, _ := y.redrive("bad", RedriveConfig{Query: Query{Limit: 150}}); done != 150 {
		t.Fatalf("%d redriven", done)
	}
	for _, first := range []int64{1, 100, 149, 150, 430, 499} {
		y.cfg.Broker = overtaken{counting{y.broker, y.read}, first}
		want := 500 - max(int(first), 150)
		if list := y.list("bad", Query{Limit: 1000}); len(list) != want || list[want-1].Sequence != max(first, 150) {
			t.Errorf("from %d on there are %d, want %d", first, len(list), want)
		}
		testkit.Equal(t, len(y.list("bad", Query{Limit: 1000, Redriven: true})), 500-int(first), "from %d on there", first)
	}
	y.cfg.Broker = overtaken{counting{y.broker, y.read}, 430}
	if _, done, failed := y.redrive("bad", RedriveConfig{}); done != 70 || failed != 0 {
		t.Errorf("redriven %d, failed %d", done, failed)
	}
}

func TestACallerWhoLeavesIsNotKept(t *testing.T) {
	y := withHubs(t, 1)
	y.die("bad", "0", poisonEvent("a", 1))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errBroken)
	if _, err := y.List(ctx, "bad", Query{}); err == nil {
		t.Error("list went on")
	}
	if _, _, err := y.Redrive(ctx, "bad", RedriveConfig{}); err == nil {
		t.Error("redrive went on")
	}
}

// F4: what others write into the hub hides nothing.
func TestStrangersInAPoisonHub(t *testing.T) {
	y := newYard(t)
	y.hub("bad", 1)
	y.publish("bad", "0", event.Event{Properties: map[string]any{poison.PropertyID: "x"}}, event.Text("hello"))
	y.die("bad", "0", poisonEvent("a", 1))
	y.publish("bad", "0", event.Event{Value: []any{nil}})
	testkit.Equal(t, ids(y.list("bad", Query{})), "a1")
	y.wantRedriven(RedriveConfig{}, 0, 1) // to a hub that is not there
}
