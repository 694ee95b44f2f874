package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/internal/functions/notify"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// F7: pausing and resuming works whether a host runs or not.
func TestPauseAndResume(t *testing.T) {
	y := newYard(t)
	k := y.open()
	y.create(k, resize())
	f, err := k.Pause(t.Context(), "resize", "ada", "maintenance")
	if err != nil || f.State != StatePaused || f.Circuit.State != breaker.Held || f.Circuit.By != "ada" || f.Circuit.Reason != "maintenance" || f.Circuit.Incident == "" {
		t.Fatalf("paused it is %+v, %v", f, err)
	}
	again, err := k.Pause(t.Context(), "resize", "bob", "too")
	if err != nil || again.Circuit.Term != f.Circuit.Term || again.Circuit.By != "ada" {
		t.Errorf("paused twice it is %+v, %v", again.Circuit, err)
	}
	if f, err = k.ResumeFunction(t.Context(), "resize", "bob"); err != nil || f.State != StateStarting || f.Circuit.State != breaker.Closed || f.Circuit.By != "bob" {
		t.Errorf("resumed it is %+v, %v", f, err)
	}
	y.trip(f.group("yard"), "resize")
	if f, err = k.Show(t.Context(), "resize"); err != nil || f.State != StateOpen || f.Circuit.Failures != 101 {
		t.Errorf("open it is %+v, %v", f, err)
	}
}

// stranger makes a group whose functions run elsewhere.
func (y *yard) stranger(hub, group string) processor.Group {
	y.t.Helper()
	y.hub(hub, 1)
	testkit.Must(y.t, testkit.Err(y.broker.CreateGroup(y.t.Context(), hub, group)))
	return processor.Group{Namespace: "yard", Hub: hub, Group: group}
}

func (y *yard) tally(g processor.Group, function, instance string, total int64) {
	y.t.Helper()
	_, err := y.groups.Put(y.t.Context(), g, processor.Entry{
		Key: circuit.TallyPrefix + function + "/" + instance, Value: breaker.EncodeTally(breaker.Tally{Total: total}),
	})
	testkit.Must(y.t, err)
}

func summary(all []Circuit) string {
	var lines []string
	for _, c := range all {
		lines = append(lines, fmt.Sprintf("%s/%s/%s %s here=%t total=%d lag=%d", c.Hub, c.Group, c.Function, c.Record.State, c.Here, c.Total, c.Lag))
	}
	return strings.Join(lines, "\n")
}

// F5, F7: an operator sees all circuits, whoever runs the functions.
func TestListCircuits(t *testing.T) {
	y := newYard(t)
	k := y.open()
	for i := range 50 {
		y.hub(fmt.Sprintf("other-%d", i), 1)
	}
	y.create(k, resize())
	theirs, more := y.stranger("Images", "Viewers"), y.stranger("zoo", "g")
	y.trip(theirs, "show")
	y.tally(theirs, "show", "i1", 100)
	y.tally(theirs, "show", "i2", 5)
	y.tally(more, "count", "i1", 7)
	y.send("images", "0", "1", "2")
	all, err := k.ListCircuits(t.Context())
	testkit.Must(t, err)
	want := "Images/Viewers/show open here=false total=105 lag=2\n" +
		"orders/resizer/resize closed here=true total=0 lag=0\n" +
		"zoo/g/count closed here=false total=7 lag=0"
	testkit.Diff(t, want, summary(all))
	if len(all[0].Instances) != 2 || all[0].Instances["i2"].Total != 5 {
		t.Errorf("instances are %v", all[0].Instances)
	}
}

// F5: an open circuit tells how many failures opened it, wherever it is looked at: those of the
// window went with its term.
func TestTheFailuresOfAnOpenCircuit(t *testing.T) {
	y := newYard(t)
	k := y.open()
	y.create(k, resize())
	y.trip(processor.Group{Hub: "orders", Group: "resizer"}, "resize")
	all, err := k.ListCircuits(t.Context())
	testkit.Must(t, err)
	c, err := k.ShowCircuit(t.Context(), "", "", "resize")
	testkit.Must(t, err)
	if f := y.show(k, "resize"); len(all) != 1 || all[0].Failures != 101 || c.Failures != 101 || f.Failures != 101 {
		t.Errorf("listed with %d failures, shown with %d, the function with %d", all[0].Failures, c.Failures, f.Failures)
	}
	c, err = k.CloseCircuit(t.Context(), "", "", "resize", "ada", "mended")
	testkit.That(t, err == nil && c.Failures == 0, "closed it has %d, %v", c.Failures, err)
}

func TestShowCircuit(t *testing.T) {
	y := newYard(t)
	k := y.open()
	y.create(k, resize())
	one, other := y.stranger("images", "a"), processor.Group{Hub: "images", Group: "b"}
	testkit.Must(t, testkit.Err(y.broker.CreateGroup(t.Context(), "images", "b")))
	y.trip(one, "show")
	y.trip(other, "show")
	y.trip(one, "resize") // whoever may listen there can do that
	for _, test := range []struct {
		name                 string
		hub, group, function string
		want                 string
		err                  error
	}{
		{"by the name alone", "", "", "resize", "orders/resizer", nil},
		{"with hub and group", "ORDERS", "resizer", "resize", "orders/resizer", nil},
		{"the yard's own in another group", "images", "a", "resize", "images/a", nil},
		{"one of two by its group", "", "b", "show", "images/b", nil},
		{"one of two without", "images", "", "show", "", ErrAmbiguous},
		{"a group in another case", "images", "B", "show", "", ErrNoCircuit},
		{"a function nobody knows", "", "", "nobody", "", ErrNoCircuit},
		{"a function elsewhere", "orders", "resizer", "show", "", ErrNoCircuit},
		{"a hub that is not there", "nowhere", "", "show", "", ErrNoCircuit},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := k.ShowCircuit(t.Context(), test.hub, test.group, test.function)
			if !errors.Is(err, test.err) || err == nil && c.Hub+"/"+c.Group != test.want {
				t.Errorf("got %s/%s, %v", c.Hub, c.Group, err)
			}
		})
	}
	if _, err := k.ShowCircuit(t.Context(), "", "", "show"); err == nil || !strings.Contains(err.Error(), `group "a" of hub "images", group "b" of hub "images"`) {
		t.Errorf("which are meant is not told: %v", err)
	}
}

// F7: an operator opens and closes the circuit of any function.
func TestOpenAndCloseCircuit(t *testing.T) {
	y := newYard(t)
	k := y.open()
	y.create(k, resize())
	g := y.stranger("images", "viewers")
	y.trip(g, "show")
	c, err := k.CloseCircuit(t.Context(), "", "", "show", "ada", "mended")
	if err != nil || c.Record.State != breaker.Closed || c.Record.By != "ada" || c.Record.Reason != "mended" || c.Here || c.Lag != 0 {
		t.Errorf("closed it is %+v, %v", c, err)
	}
	c, err = k.OpenCircuit(t.Context(), "orders", "resizer", "resize", "bob", "no")
	testkit.That(t, err == nil && c.Record.State == breaker.Held && c.Here, "opened it is %+v, %v", c, err)
	if f, err := k.Show(t.Context(), "resize"); err != nil || f.State != StatePaused {
		t.Errorf("the function is %s, %v", f.State, err)
	}
	testkit.ErrorIs(t, testkit.Err(k.OpenCircuit(t.Context(), "", "", "nobody", "bob", "no")), ErrNoCircuit, "nobody's circuit")
}

// F5: a record that cannot be read is no closed circuit, and hides no other.
func TestACircuitThatCannotBeRead(t *testing.T) {
	y := newYard(t)
	k := y.open()
	y.create(k, resize())
	g := y.stranger("images", "viewers")
	y.trip(g, "show")
	for _, at := range []processor.Group{g, {Hub: "orders", Group: "resizer"}} {
		function := "broken"
		if at.Hub == "orders" {
			function = "resize"
		}
		_, err := y.groups.Put(t.Context(), at, processor.Entry{Key: circuit.Prefix + function, Value: []byte("{")})
		testkit.Must(t, err)
	}
	all, err := k.ListCircuits(t.Context())
	if err != nil || summary(all) != "images/viewers/show open here=false total=0 lag=0" {
		t.Errorf("listed %s, %v", summary(all), err)
	}
	for _, function := range []string{"broken", "resize"} {
		if c, err := k.ShowCircuit(t.Context(), "", "", function); err == nil || errors.Is(err, ErrNoCircuit) {
			t.Errorf("%s is shown as %+v, %v", function, c, err)
		}
	}
	if f, err := k.Show(t.Context(), "resize"); err != nil || f.State != StateFailing || !strings.Contains(f.Problem, "circuit") {
		t.Errorf("the function is %s: %s, %v", f.State, f.Problem, err)
	}
	if _, found, err := k.Circuit(t.Context(), g, "broken"); found || err == nil {
		t.Errorf("found %t, %v", found, err)
	}
}

// F6, F7: a link is good for one incident, while it lasts, and not against an operator.
func TestResumingByLink(t *testing.T) {
	y := newYard(t)
	k := y.open()
	g := y.stranger("images", "viewers")
	set := func(s breaker.State, incident string) {
		_, err := circuit.Change(t.Context(), y.groups, g, "show", func(r breaker.Record) (breaker.Record, bool) {
			return breaker.Record{State: s, Term: r.Term + 1, Incident: incident}, true
		})
		testkit.Must(t, err)
	}
	if _, done, err := k.Resume(t.Context(), g, "show", "one", "link"); done || err != nil {
		t.Errorf("a circuit that never was open: %t, %v", done, err)
	}
	for _, test := range []struct {
		state    breaker.State
		incident string
		link     string
		want     bool
	}{
		{breaker.Open, "one", "one", true}, {breaker.HalfOpen, "one", "one", true}, {breaker.Held, "one", "one", false},
		{breaker.Open, "two", "one", false}, {breaker.Closed, "", "one", false}, {breaker.Closed, "", "", false}, {breaker.Open, "two", "", false},
	} {
		set(test.state, test.incident)
		c, done, err := k.Resume(t.Context(), g, "show", test.link, "link")
		closed := c.Record.State == breaker.Closed
		if err != nil || done != test.want || closed != (test.want || test.state == breaker.Closed) || c.Function != "show" {
			t.Errorf("%s of %q by the link of %q: %t, %+v, %v", test.state, test.incident, test.link, done, c, err)
		}
		if _, twice, err := k.Resume(t.Context(), g, "show", test.link, "link"); twice || err != nil {
			t.Errorf("%s of %q twice: %v", test.state, test.incident, err)
		}
	}
	gone := processor.Group{Hub: "nowhere", Group: "g"}
	if _, done, err := k.Resume(t.Context(), gone, "show", "one", "link"); done || err != nil {
		t.Errorf("a hub that is gone: %t, %v", done, err)
	}
}

// F6: notices go to who is named in the definition and the configuration, and nowhere else.
func TestTargets(t *testing.T) {
	y := newYard(t)
	k := y.open()
	y.create(k, resize(func(d *Definition) { d.Notify = []string{"mailto:ada@example.test", "mailto:all@example.test"} }))
	for _, test := range []struct {
		group    processor.Group
		function string
		want     string
	}{
		{processor.Group{Hub: "ORDERS", Group: "resizer"}, "resize", "mailto:all@example.test mailto:ada@example.test"},
		{processor.Group{Hub: "orders", Group: "Resizer"}, "resize", "mailto:all@example.test"},
		{processor.Group{Hub: "orders", Group: "resizer"}, "Resize", "mailto:all@example.test"},
		{processor.Group{Hub: "orders", Group: "resizer"}, "other", "mailto:all@example.test"},
	} {
		t.Run(fmt.Sprintf("%s of %s/%s", test.function, test.group.Hub, test.group.Group), func(t *testing.T) {
			testkit.Equal(t, k.Own(test.group, test.function), strings.Contains(test.want, "ada"), "has targets of its own")
			testkit.Equal(t, strings.Join(k.Targets(test.group, test.function), " "), test.want, "targets")
		})
	}
	testkit.Must(t, k.Delete(t.Context(), "resize"))
	if got := k.Targets(processor.Group{Hub: "orders", Group: "resizer"}, "resize"); len(got) != 1 {
		t.Errorf("of a deleted function: %v", got)
	}
	testkit.Equal(t, k.Lag(t.Context(), processor.Group{Hub: "nowhere", Group: "g"}), -1,
		"the lag of nothing")
}

// F6: every change of a circuit is told, also over a watch that was lost.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		k := y.open()
		g, other := y.stranger("images", "viewers"), y.stranger("late", "g")
		y.trip(g, "show")
		ctx, stop := context.WithCancel(t.Context())
		reported, ended := make(chan string, 100), make(chan error, 1)
		go func() {
			ended <- k.Watch(ctx, func(c notify.Circuit) {
				reported <- fmt.Sprintf("%s/%s/%s %s %d", c.Group.Hub, c.Group.Group, c.Function, c.Record.State, c.Record.Term)
			})
		}()
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for len(reported) > 0 {
				got = append(got, <-reported)
			}
			testkit.Diff(t, want, got)
		}
		expect("images/viewers/show open 1")
		_, err := k.CloseCircuit(t.Context(), "images", "viewers", "show", "ada", "")
		testkit.Must(t, err)
		expect("images/viewers/show closed 2")
		y.tally(g, "show", "i", 7)
		expect()
		y.trip(other, "f")
		expect("late/g/f open 1")
		y.loseWatches()
		_, err = k.CloseCircuit(t.Context(), "late", "g", "f", "ada", "")
		testkit.Must(t, err)
		time.Sleep(time.Second)
		expect("late/g/f closed 2") // and not what is as it was
		y.trip(other, "f")
		expect("late/g/f open 3")
		y.loseWatches()
		testkit.Must(t, y.broker.DeleteGroup(t.Context(), "late", "g"))
		time.Sleep(time.Second)
		expect("late/g/f closed 0")
		y.trip(g, "show")
		expect("images/viewers/show open 3")
		entries, err := y.groups.Entries(t.Context(), g, circuit.Prefix)
		testkit.Must(t, err)
		_, err = y.groups.Put(t.Context(), g, processor.Entry{Key: entries[0].Key, Value: []byte("{"), Version: entries[0].Version})
		testkit.Must(t, err)
		expect() // it is not closed, for all we know
		entries, err = y.groups.Entries(t.Context(), g, circuit.Prefix)
		testkit.Must(t, err)
		testkit.Must(t, y.groups.Remove(t.Context(), g, entries[0]))
		expect("images/viewers/show closed 0")
		stop()
		testkit.Must(t, <-ended)
	})
}

func TestMetrics(t *testing.T) {
	y := newYard(t)
	registry := prometheus.NewRegistry()
	k := y.open(func(c *Config) { c.Metrics = registry })
	y.create(k, resize(func(d *Definition) { d.Target = 3 }))
	y.create(k, resize(func(d *Definition) { d.Name, d.Group = "gone", "gone" }))
	testkit.Must(t, y.broker.DeleteGroup(t.Context(), "orders", "gone"))
	y.send("orders", "0", "1", "2")
	y.send("orders", "1", "3", "4")
	y.trip(y.stranger("images", "viewers"), "show")
	_, err := k.Pause(t.Context(), "resize", "ada", "")
	testkit.Must(t, err)
	want := `
# HELP eventyard_circuit_state State of a function's circuit: 0 closed, 1 half-open, 2 open, 3 held by an operator.
# TYPE eventyard_circuit_state gauge
eventyard_circuit_state{function="gone",group="gone",hub="orders"} 0
eventyard_circuit_state{function="resize",group="resizer",hub="orders"} 3
eventyard_circuit_state{function="show",group="viewers",hub="images"} 2
# HELP eventyard_function_lag_events Events that wait for a function.
# TYPE eventyard_function_lag_events gauge
eventyard_function_lag_events{function="resize"} 4
# HELP eventyard_function_recommended_instances How many instances the events that wait for a function are worth.
# TYPE eventyard_function_recommended_instances gauge
eventyard_function_recommended_instances{function="resize"} 2
`
	testkit.Check(t, testutil.GatherAndCompare(registry, strings.NewReader(want),
		"eventyard_circuit_state", "eventyard_function_lag_events", "eventyard_function_recommended_instances"))
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	f, err := k.Show(t.Context(), "gone")
	if err != nil || f.State != StateFailing || !strings.Contains(f.Problem, "delete the function") || f.Lag != -1 {
		t.Errorf("a function whose group is gone is %+v, %v", f, err)
	}
	for _, name := range []string{"resize", "gone"} {
		testkit.Must(t, k.Delete(t.Context(), name))
	}
	if n, err := testutil.GatherAndCount(registry); n != 1 || err != nil { // the stranger's circuit
		t.Errorf("when they are deleted there are %d series, %v", n, err)
	}
}
