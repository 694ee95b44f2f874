package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/testkit"
)

// F1: a function needs a name, a hub and a URL; the rest is filled in, and shown.
func TestCreateFillsInDefaults(t *testing.T) {
	y := newYard(t)
	k := y.open()
	f, err := k.Create(t.Context(), Definition{Name: "Resize", Hub: "ORDERS", Endpoint: "http://program.test/"})
	testkit.Must(t, err)
	want := Definition{
		Name: "Resize", Hub: "orders", Group: "Resize", Endpoint: "http://program.test/", Format: "cloudevents", Batch: 100, MinBatch: 1, MaxWait: time.Second,
		Lanes: 1, Start: "earliest", Timeout: time.Minute, Retries: new(5), RetryDelay: 250 * time.Millisecond, RetryMax: time.Minute,
		Exponential: true, Poison: "Resize-poison",
		Breaker: breaker.Policy{Failures: 100, Within: 30 * time.Second}, Target: 100, Created: f.Created,
	}
	if diff := cmp.Diff(want, f.Definition); diff != "" || f.Created.IsZero() {
		t.Error(diff, f.Created)
	}
	if f.State != StateStarting || f.Circuit.State != breaker.Closed || f.Lag != 0 || f.Partitions != 2 || f.PoisonTarget != "Resize-poison" || f.Poisoned != 0 {
		t.Errorf("it is %+v", f)
	}
	h, err := y.broker.Hub("resize-poison")
	if err != nil || h.Partitions != 1 || h.Retention != (broker.Retention{}) {
		t.Errorf("its poison hub is %+v, %v", h, err)
	}
	again, err := y.open().Show(t.Context(), "Resize") // as after a start
	if diff := cmp.Diff(want, again.Definition); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// F4: poison goes where it is told to; what is there is used, and what is needed is made.
func TestWhatAFunctionNeedsIsMade(t *testing.T) {
	y := newYard(t)
	k := y.open()
	y.hub("Kept-poison", 3)
	y.hub("bin", 1)
	_, err := y.topics.CreateTopic(t.Context(), topicConfig("bad-events"))
	testkit.Must(t, err)
	for i, d := range []Definition{
		resize(func(d *Definition) { d.Name = "kept" }),
		resize(func(d *Definition) { d.Name, d.Poison = "elsewhere", "BIN" }),
		resize(func(d *Definition) { d.Name, d.Poison = "topical", "topic:bad-events" }),
		resize(func(d *Definition) { d.Name, d.Poison = "careless", "NONE" }),
	} {
		d.Group = fmt.Sprintf("group-%d", i)
		f := y.create(k, d)
		want := map[string]string{"kept": "kept-poison", "elsewhere": "bin", "topical": "topic:bad-events", "careless": "none"}[d.Name]
		testkit.Equal(t, f.PoisonTarget, want, "%s: poison goes", d.Name)
		testkit.Check(t, testkit.Err(y.broker.Group(t.Context(), "orders", d.Group)), "%s", d.Name)
	}
	for name, partitions := range map[string]int{"kept-poison": 3, "careless-poison": 0, "elsewhere-poison": 0} {
		if h, _ := y.broker.Hub(name); h.Partitions != partitions {
			t.Errorf("hub %s has %d partitions, want %d", name, h.Partitions, partitions)
		}
	}
}

// F1: what is wrong is told, with what is allowed and what to do.
func TestWhatIsRefused(t *testing.T) {
	y := newYard(t)
	k := y.open()
	y.create(k, resize(func(d *Definition) { d.Name, d.Group = "taken", "taken" }))
	for _, test := range []struct {
		name   string
		change func(*Definition)
		want   string
	}{
		{"no name", func(d *Definition) { d.Name = "" }, "use 1 to 100 letters"},
		{"a long name", func(d *Definition) { d.Name = strings.Repeat("a", 101) }, "use 1 to 100 letters"},
		{"a name with a slash", func(d *Definition) { d.Name = "a/b" }, "use 1 to 100 letters"},
		{"a name that makes no hub", func(d *Definition) { d.Name = "-a" }, "name another target for poison"},
		{"no hub", func(d *Definition) { d.Hub = "" }, "name the one whose events"},
		{"a group that cannot be", func(d *Definition) { d.Group = "a b" }, "consumer group"},
		{"another's group", func(d *Definition) { d.Group = "taken" }, `is function "taken"'s`},
		{"no endpoint", func(d *Definition) { d.Endpoint = "" }, "name the URL"},
		{"an endpoint that cannot be called", func(d *Definition) { d.Endpoint = "ftp://x" }, "localhost:5000"},
		{"an endpoint that may not be called", func(d *Definition) { d.Endpoint = "http://forbidden.test/" }, "it may not be called"},
		{"a long endpoint", func(d *Definition) { d.Endpoint = "http://x/" + strings.Repeat("a", 5000) }, "at most 4096"},
		{"a format", func(d *Definition) { d.Format = "xml" }, "use cloudevents or eventhubs"},
		{"a large batch", func(d *Definition) { d.Batch = 10_001 }, "give 1 to 10000"},
		{"a negative batch", func(d *Definition) { d.Batch = -1 }, "give 1 to 10000"},
		{"more to wait for than fits", func(d *Definition) { d.Batch, d.MinBatch = 5, 6 }, "may have 5 at most (batch, --max-events)"},
		{"lanes", func(d *Definition) { d.Lanes = 1025 }, "give 1 to 1024"},
		{"lanes that wait", func(d *Definition) { d.Lanes, d.MinBatch = 2, 2 }, "leave out one of them"},
		{"a wait", func(d *Definition) { d.MaxWait = -1 }, "maxWait: "},
		{"a timeout", func(d *Definition) { d.Timeout = 25 * time.Hour }, "timeout: 25h: give 1ms to 24h"},
		{"a start", func(d *Definition) { d.Start = "yesterday" }, "use earliest, latest or a time"},
		{"a delay", func(d *Definition) { d.RetryDelay = -time.Second }, "retryDelay: "},
		{"a longest delay", func(d *Definition) { d.RetryDelay, d.RetryMax = time.Minute, time.Second }, "use a longer one"},
		{"a window", func(d *Definition) { d.Breaker.Within = time.Millisecond }, "use 100ms to 24h0m0s"},
		{"a probe", func(d *Definition) { d.Breaker.Probe = -1 }, "probe"},
		{"a longest probe", func(d *Definition) { d.Breaker.Probe, d.Breaker.ProbeMax = time.Minute, time.Second }, "use a longer one"},
		{"a target", func(d *Definition) { d.Target = -1 }, "target: -1: give at least 1"},
		{"who is told", func(d *Definition) { d.Notify = []string{"pigeon:x"} }, "use mailto:"},
		{"too many who are told", func(d *Definition) { d.Notify = make([]string, 51) }, "use at most 50"},
		{"a header's name", func(d *Definition) { d.Headers = map[string]string{"a b": "c"} }, "give a name of letters"},
		{"a header of the yard's", func(d *Definition) { d.Headers = map[string]string{"Content-Type": "c"} }, "choose another name"},
		{"an attribute as a header", func(d *Definition) { d.Headers = map[string]string{"CE-id": "c"} }, "choose another name"},
		{"a header twice", func(d *Definition) { d.Headers = map[string]string{"X-A": "c", "x-a": "d"} }, "leave out one"},
		{"a header's value", func(d *Definition) { d.Headers = map[string]string{"X-A": "secret\n"} }, "a line break or blank"},
		{"poison nowhere", func(d *Definition) { d.Poison = "nowhere" }, "`eventyard hub create nowhere`"},
		{"poison in its own hub", func(d *Definition) { d.Poison = "Orders" }, "feed it with its own failures"},
		{"poison in no topic", func(d *Definition) { d.Poison = "topic:nowhere" }, "`eventyard topic create nowhere`"},
		{"poison in a topic without name", func(d *Definition) { d.Poison = "topic:" }, "name the topic behind the colon"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := resize(test.change)
			_, err := k.Create(t.Context(), d)
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %q", err, test.want)
			}
			testkit.ErrorIs(t, k.Ensure(t.Context(), d), ErrInvalid, "ensured")
		})
	}
	if all, err := k.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("there are %d, %v", len(all), err)
	}
	var missing *broker.NotFoundError
	if _, err := k.Create(t.Context(), resize(func(d *Definition) { d.Hub = "nowhere" })); !errors.As(err, &missing) {
		t.Errorf("a hub that is not there: %v", err)
	}
}

// F1: names are told apart by case, and yet no two differ in case alone.
func TestNames(t *testing.T) {
	y := newYard(t)
	k := y.open()
	y.create(k, resize())
	for name, d := range map[string]Definition{"the same": resize(), "another case": resize(func(d *Definition) { d.Name, d.Group = "Resize", "other" })} {
		testkit.ErrorIs(t, testkit.Err(k.Create(t.Context(), d)), ErrExists, "%s", name)
	}
	if err := k.Ensure(t.Context(), resize(func(d *Definition) { d.Name = "Resize" })); !errors.Is(err, ErrExists) {
		t.Errorf("ensured: %v", err)
	}
	for name, call := range map[string]func(name string) error{
		"show":   func(name string) error { _, err := k.Show(t.Context(), name); return err },
		"pause":  func(name string) error { _, err := k.Pause(t.Context(), name, "me", ""); return err },
		"resume": func(name string) error { _, err := k.ResumeFunction(t.Context(), name, "me"); return err },
		"delete": func(name string) error { return k.Delete(t.Context(), name) },
	} {
		if err := call("RESIZE"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), `there is "resize"`) {
			t.Errorf("%s in another case: %v", name, err)
		}
		for _, nobody := range []string{"nobody", "", "a/b"} {
			testkit.ErrorIs(t, call(nobody), ErrNotFound, "%s %q", name, nobody)
		}
	}
}

// F1: a configured function is as it is configured.
func TestEnsure(t *testing.T) {
	y := newYard(t)
	k := y.open()
	testkit.Must(t, k.Ensure(t.Context(), resize()))
	made, err := k.Show(t.Context(), "resize")
	testkit.Must(t, err)
	before, err := y.meta.Get(t.Context(), "functions/resize")
	testkit.Must(t, err)
	testkit.Must(t, k.Ensure(t.Context(), resize()))
	if after, err := y.meta.Get(t.Context(), "functions/resize"); err != nil || after.Revision != before.Revision {
		t.Error("what did not differ was written again")
	}
	testkit.Must(t, k.Ensure(t.Context(), resize(func(d *Definition) { d.Batch, d.Retries = 7, new(-5) })))
	changed, err := k.Show(t.Context(), "resize")
	if err != nil || changed.Batch != 7 || *changed.Retries != -1 || !changed.Created.Equal(made.Created) {
		t.Errorf("changed it is %+v, %v", changed.Definition, err)
	}
	// What is shown can be stored again, which is how listeners change a function.
	testkit.Must(t, k.Ensure(t.Context(), changed.Definition))
	y.trip(changed.group("yard"), "resize")
	testkit.Must(t, k.Ensure(t.Context(), resize(func(d *Definition) { d.Group = "other" })))
	moved, err := k.Show(t.Context(), "resize")
	if err != nil || moved.Group != "other" || moved.State != StateStarting || len(y.entries(made.group("yard"))) != 0 {
		t.Errorf("moved it is %+v with entries %v, %v", moved, y.entries(made.group("yard")), err)
	}
}

// A definition is not this version's alone: one that was here before, or will be, knows more.
func TestWhatALaterVersionStoredStays(t *testing.T) {
	y := newYard(t)
	k := y.open()
	y.create(k, resize())
	e, err := y.meta.Get(t.Context(), "functions/resize")
	testkit.Must(t, err)
	text := strings.Replace(string(e.Value), `"breaker":{`, `"breaker":{"mood":"good",`, 1)
	text = strings.TrimSuffix(text, "}") + `,"color":{"of":["blue"]}}`
	_, err = y.meta.CompareAndSet(t.Context(), e.Key, e.Revision, []byte(text))
	testkit.Must(t, err)
	testkit.Must(t, y.open().Ensure(t.Context(), resize(func(d *Definition) { d.Batch = 7 })))
	e, err = y.meta.Get(t.Context(), "functions/resize")
	testkit.Must(t, err)
	var got struct {
		Batch   int
		Color   json.RawMessage
		Breaker struct {
			Mood     string
			Failures int
		}
	}
	testkit.Must(t, json.Unmarshal(e.Value, &got))
	if got.Batch != 7 || string(got.Color) != `{"of":["blue"]}` || got.Breaker.Mood != "good" || got.Breaker.Failures != 100 {
		t.Errorf("stored is %s", e.Value)
	}
}

// A definition that cannot be read is shown as what it is, left alone, and does not keep the
// others.
func TestADefinitionThatCannotBeRead(t *testing.T) {
	for name, value := range map[string]string{
		"no JSON": `{`, "another's name": `{"name":"other"}`, "a setting of a later version": `{"name":"odd","hub":"orders","endpoint":"http://x","format":"telepathy"}`,
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			_, err := y.meta.CompareAndSet(t.Context(), "functions/odd", 0, []byte(value))
			testkit.Must(t, err)
			k := y.open()
			y.create(k, resize())
			all, err := k.List(t.Context())
			if err != nil || len(all) != 2 || all[0].Name != "odd" || all[0].State != StateFailing || !strings.Contains(all[0].Problem, "functions/odd") || all[1].State != StateStarting {
				t.Errorf("listed %+v, %v", all, err)
			}
			if err := k.Ensure(t.Context(), resize(func(d *Definition) { d.Name, d.Group = "odd", "odd" })); err == nil || !strings.Contains(err.Error(), "delete the function") {
				t.Errorf("it was overwritten: %v", err)
			}
			_, paused := k.Pause(t.Context(), "odd", "me", "")
			_, changed := k.Update(t.Context(), "odd", func(*Definition) error { return nil })
			for _, err := range []error{paused, changed, errors.New(all[0].Problem)} {
				if err == nil || strings.Count(err.Error(), "delete the function, or run the version that wrote it") != 1 {
					t.Errorf("what to do is not told once: %v", err)
				}
			}
			if e, err := y.meta.Get(t.Context(), "functions/odd"); err != nil || string(e.Value) != value {
				t.Errorf("stored is %s, %v", e.Value, err)
			}
			testkit.Must(t, k.Delete(t.Context(), "odd"))
			if all, err := k.List(t.Context()); err != nil || len(all) != 1 {
				t.Errorf("then there are %d, %v", len(all), err)
			}
		})
	}
}

// F1: settings reach the host as they are meant.
func TestBindings(t *testing.T) {
	d := resize(func(d *Definition) { d.Retries, d.Breaker.Failures, d.Start = new(0), -1, "2026-11-15T12:00:00Z" }).tidy()
	b := d.binding(nil)
	if !b.Breaker.Off || b.Poison != "resize-poison" || b.Retry.Retries != 0 || b.Retry == (resize().tidy().binding(nil).Retry) {
		t.Errorf("bound as %+v", b)
	}
	sink := topicSink{topic: "bad"}
	d.Poison = "topic:bad"
	if b := d.binding(sink); b.Poison != "" || b.PoisonTo != sink || sink.String() != "topic:bad" {
		t.Errorf("bound as %+v", b)
	}
	forever := resize(func(d *Definition) { d.Retries, d.Exponential = new(-7), true }).tidy().binding(nil)
	if forever.Retry.Retries >= 0 || !forever.Retry.Exponential || forever.Retry.Max != time.Minute || forever.Breaker.Failures != 100 {
		t.Errorf("bound as %+v", forever)
	}
}

func TestInstances(t *testing.T) {
	one, other := NewInstance("höst/1 "+strings.Repeat("x", 100)), NewInstance("")
	if one == NewInstance("h") || !strings.HasPrefix(one, "h-st-1-xxx") || len(one) > 60 || !strings.HasPrefix(other, "yard-") {
		t.Errorf("%q and %q", one, other)
	}
}
