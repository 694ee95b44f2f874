package breaker

import (
	"fmt"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

var probing30 = Policy{Failures: 10, Within: 30 * time.Second, Probe: 30 * time.Second, ProbeMax: 2 * time.Minute}

func TestDecide(t *testing.T) { // F5, F7
	open := Record{State: Open, Term: 5, Incident: "i", Opened: at(-time.Hour), Failures: 11}
	half := Record{State: HalfOpen, Term: 6, Incident: "i", Prober: "b", Opened: at(-time.Hour)}
	tripped := func(n int) Record { r := open; r.Trips = n; return r }
	untried := open
	untried.Untried = true
	for _, tt := range []struct {
		name   string
		policy Policy
		view   View
		want   State // empty: nothing is to change
	}{
		{"as many as allowed leave it closed", Policy{Failures: 10}, View{Failures: 10}, ""},
		{"one more than allowed opens it", Policy{Failures: 10}, View{Failures: 11}, Open},
		{"the default is a hundred", Policy{}, View{Failures: 100}, ""},
		{"more than the default opens it", Policy{}, View{Failures: 101}, Open},
		{"a negative number never does", Policy{Failures: -1}, View{Failures: 1 << 20}, ""},
		{"closed by name is closed, too", Policy{Failures: 10}, View{Record: Record{State: Closed, Term: 8}, Failures: 11}, Open},
		{"nothing but what is down opens it, however few they are", Policy{Failures: 10}, View{Down: true, Failures: 2}, Open},
		{"also of none", Policy{Failures: 10}, View{Down: true}, Open},
		{"not one that never opens by itself", Policy{Failures: -1}, View{Down: true}, ""},
		{"nor one that is held", Policy{}, View{Down: true, Record: Record{State: Held, Term: 7}}, ""},
		{"whether it is ready has nothing to do with opening", Policy{Failures: 10}, View{Failures: 11, Ready: true}, Open},

		{"without a probe it stays open", Policy{}, View{Record: open, Ready: true, Unchanged: 1000 * time.Hour}, ""},
		{"before its time it stays open", probing30, View{Record: open, Ready: true, Unchanged: 30*time.Second - 1}, ""},
		{"in time it is tried", probing30, View{Record: open, Ready: true, Unchanged: 30 * time.Second}, HalfOpen},
		{"not by one who has nothing to try", probing30, View{Record: open, Unchanged: time.Hour}, ""},
		{"a failed probe doubles the wait", probing30, View{Record: tripped(1), Ready: true, Unchanged: time.Minute - 1}, ""},
		{"and is over then", probing30, View{Record: tripped(1), Ready: true, Unchanged: time.Minute}, HalfOpen},
		{"up to the most", probing30, View{Record: tripped(50), Ready: true, Unchanged: 2*time.Minute - 1}, ""},
		{"and no longer", probing30, View{Record: tripped(1 << 50), Ready: true, Unchanged: 2 * time.Minute}, HalfOpen},
		{"a probe that was not made is made soon", probing30, View{Record: untried, Ready: true, Unchanged: time.Second}, HalfOpen},
		{"but not at once", probing30, View{Record: untried, Ready: true, Unchanged: time.Second - 1}, ""},
		{"more failures do not matter any more", probing30, View{Record: open, Failures: 1000}, ""},

		{"a prober is left alone", probing30, View{Record: half, Self: "a", Ready: true, Unchanged: ProbeDeadline - 1}, ""},
		{"until it is taken for dead", probing30, View{Record: half, Self: "a", Ready: true, Unchanged: ProbeDeadline}, HalfOpen},
		{"by one who can try", probing30, View{Record: half, Self: "a", Unchanged: time.Hour}, ""},
		{"held stays", probing30, View{Record: Record{State: Held, Term: 7}, Ready: true, Failures: 1 << 20, Unchanged: 1000 * time.Hour}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.view.Incident, tt.view.Now = "fresh", epoch
			if tt.view.Self == "" {
				tt.view.Self = "me"
			}
			got, changed := Decide(tt.policy, tt.view)
			if changed != (tt.want != "") {
				t.Errorf("%s: %v", tt.name, changed)
			} else if changed && (got.State != tt.want || got.Term != tt.view.Record.Term+1 || got.By != tt.view.Self) {
				t.Errorf("%s: %+v", tt.name, got)
			}
		})
	}
}

func TestAnOpeningIsAnIncidentWithWhatItBeganWith(t *testing.T) { // F5, F6
	var samples []Sample
	for i := range 9 {
		samples = append(samples, Sample{Sequence: int64(i), Error: fmt.Sprint("no ", i)})
	}
	was := Record{State: Closed, Term: 4, By: "ann", Reason: "mended"}
	got, _ := Decide(probing30, View{Record: was, Failures: 11, Samples: samples, Self: "a", Incident: "x", Now: epoch})
	if got.Incident != "x" || got.Failures != 11 || !got.Opened.Equal(epoch) || !got.Since.Equal(epoch) || got.Policy != probing30 {
		t.Errorf("%+v", got)
	}
	testkit.Equal(t, got.Reason, "11 failures within 30s, more than 10", "the reason")
	testkit.That(t, len(got.Samples) == 5 && got.Samples[4].Error == "no 8", "samples %+v", got.Samples)
}

func TestAnIncidentKeepsItsNameUntilItIsClosed(t *testing.T) { // F6, F7
	r, _ := Decide(probing30, View{Failures: 11, Samples: []Sample{{Error: "no"}}, Self: "a", Incident: "x", Now: epoch})
	steps := []struct {
		name string
		do   func(Record) Record
		want Record
	}{
		{"b tries", func(r Record) Record {
			r, _ = Decide(probing30, View{Record: r, Unchanged: time.Hour, Ready: true, Self: "b", Incident: "y", Now: epoch})
			return r
		}, Record{State: HalfOpen, Prober: "b", By: "b"}},
		{"and fails", func(r Record) Record { return Probed(r, false, "b", "no", epoch) }, Record{State: Open, Trips: 1, By: "b"}},
		{"c tries", func(r Record) Record {
			r, _ = Decide(probing30, View{Record: r, Unchanged: time.Hour, Ready: true, Self: "c", Incident: "z", Now: epoch})
			return r
		}, Record{State: HalfOpen, Prober: "c", Trips: 1, By: "c"}},
		{"and gives it back", func(r Record) Record { return Returned(r, "c", epoch) }, Record{State: Open, Trips: 1, Untried: true, By: "c"}},
		{"an operator holds it", func(r Record) Record { r, _ = Hold(r, "w", "ann", "let me look", epoch); return r }, Record{State: Held, Trips: 1, By: "ann"}},
	}
	for i, s := range steps {
		t.Run(s.name, func(t *testing.T) {
			r = s.do(r)
			got := Record{State: r.State, Prober: r.Prober, Trips: r.Trips, Untried: r.Untried, By: r.By}
			testkit.Equal(t, fmt.Sprint(got), fmt.Sprint(s.want), "%s: %+v", s.name, r)
			if r.Incident != "x" || r.Term != int64(i+2) || r.Failures != 11 || len(r.Samples) != 1 || !r.Opened.Equal(epoch) {
				t.Errorf("%s: the incident is %+v", s.name, r)
			}
		})
	}
	r, _ = Resume(r, "ann", "mended", epoch)
	want := Record{State: Closed, Term: 7, By: "ann", Reason: "mended", Since: epoch, Policy: probing30}
	testkit.Equal(t, fmt.Sprint(r), fmt.Sprint(want), "closed it is %+v", r)
}

func TestWhatThereIsNothingToChange(t *testing.T) { // F7
	held, _ := Hold(Record{}, "x", "ann", "", epoch)
	if again, changed := Hold(held, "y", "bob", "", epoch); changed || again.Incident != "x" || again.By != "ann" {
		t.Errorf("held twice: %+v", again)
	}
	if r, changed := Resume(Record{}, "ann", "", epoch); changed || r.Term != 0 {
		t.Errorf("a closed circuit was closed: %+v", r)
	}
	// A prober that comes late undoes nothing.
	for _, r := range []Record{held, {State: Closed, Term: 3}, {State: Open, Term: 3, Trips: 2}} {
		for _, after := range []Record{Probed(r, true, "a", "", epoch), Probed(r, false, "a", "", epoch), Returned(r, "a", epoch)} {
			testkit.Equal(t, fmt.Sprint(after), fmt.Sprint(r), "a late probe made %+v of %+v", after, r)
		}
	}
}

func TestDefaults(t *testing.T) {
	for _, tt := range []struct{ is, want Policy }{
		{Policy{}, Policy{Failures: 100, Within: 30 * time.Second}},
		{Policy{Failures: -1, Within: -1, ProbeMax: time.Hour}, Policy{Failures: -1, Within: 30 * time.Second}},
		{Policy{Failures: 3, Within: time.Second, Probe: time.Second, Attempts: true},
			Policy{Failures: 3, Within: time.Second, Probe: time.Second, ProbeMax: 5 * time.Minute, Attempts: true}},
		{Policy{Probe: time.Hour}, Policy{Failures: 100, Within: 30 * time.Second, Probe: time.Hour, ProbeMax: time.Hour}},
		{Policy{Probe: time.Hour, ProbeMax: time.Minute}, Policy{Failures: 100, Within: 30 * time.Second, Probe: time.Hour, ProbeMax: time.Hour}},
	} {
		t.Run(fmt.Sprintf("%+v", tt.is), func(t *testing.T) {
			testkit.Equal(t, tt.is.WithDefaults(), tt.want)
		})
	}
	longest := Policy{Probe: 1<<63 - 1}
	if wait, ok := longest.ProbeWait(Record{Trips: 100}); !ok || wait != 1<<63-1 {
		t.Errorf("the longest wait is %v", wait)
	}
	if wait, ok := (Policy{Probe: 1 << 61, ProbeMax: 1<<63 - 1}).ProbeWait(Record{Trips: 100}); !ok || wait != 1<<63-1 {
		t.Errorf("a long wait, doubled, is %v", wait)
	}
}
