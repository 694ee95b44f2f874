package breaker

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

// machine is a circuit that anything may happen to, and what it has been.
type machine struct {
	policy    Policy
	is        Record
	incidents map[string]bool
	fresh     int
}

// name gives an incident's name that no other had.
func (m *machine) name() string {
	m.fresh++
	return fmt.Sprint("incident-", m.fresh)
}

// became checks what holds for every change, whatever the reason: the next term, a name while it is
// not closed, and a new one for each opening.
func (m *machine) became(t *rapid.T, next Record) {
	was := m.is
	m.is = next
	testkit.MustEqual(t, next.Term, was.Term+1, "term: after %d", was.Term)
	switch {
	case next.Closed() && (next.Incident != "" || next.Prober != "" || next.Trips != 0 || next.Samples != nil || !next.Opened.IsZero()):
		t.Fatalf("a closed circuit has an incident: %+v", next)
	case next.Closed():
	case next.Incident == "":
		t.Fatalf("it is %s for no incident", next.State)
	case was.Closed() && m.incidents[next.Incident]:
		t.Fatalf("incident %s opens it again", next.Incident)
	case !was.Closed() && (next.Incident != was.Incident || !next.Opened.Equal(was.Opened) || next.Failures != was.Failures):
		t.Fatalf("%+v is another incident than %+v", next, was)
	}
	testkit.MustThat(t, (next.Prober != "") == (next.State == HalfOpen), "%s with prober %q", next.State, next.Prober)
	m.incidents[next.Incident] = true
	m.stored(t)
}

// stored: it comes back from a store as it was.
func (m *machine) stored(t *rapid.T) {
	back, err := DecodeRecord(EncodeRecord(m.is))
	if err != nil || fmt.Sprint(back) != fmt.Sprint(m.is) {
		t.Fatalf("%+v comes back as %+v, %v", m.is, back, err)
	}
}

func (m *machine) same(t *rapid.T, next Record) {
	testkit.MustEqual(t, fmt.Sprint(next), fmt.Sprint(m.is), "nothing changed, but %+v is %+v", m.is, next)
}

func (m *machine) decide(t *rapid.T) {
	was := m.is
	v := View{
		Record:    was,
		Unchanged: time.Duration(rapid.Int64Range(0, int64(10*time.Minute)).Draw(t, "unchanged")),
		Failures:  rapid.IntRange(0, 2*m.policy.WithDefaults().Failures+10).Draw(t, "failures"),
		Self:      rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "self"),
		Ready:     rapid.Bool().Draw(t, "ready"),
		Incident:  m.name(), Now: epoch,
	}
	next, changed := Decide(m.policy, v)
	if !changed {
		m.same(t, next)
		return
	}
	m.became(t, next)
	wait, probes := m.policy.ProbeWait(was)
	switch {
	case was.Closed() && next.State == Open && v.Failures > m.policy.WithDefaults().Failures && m.policy.Failures >= 0:
	case was.State == Open && next.State == HalfOpen && v.Ready && probes && v.Unchanged >= wait && next.Prober == v.Self:
	case was.State == HalfOpen && next.State == HalfOpen && v.Ready && v.Unchanged >= ProbeDeadline && next.Prober == v.Self:
	default:
		t.Fatalf("%+v became %s for no reason: %+v", was, next.State, v)
	}
}

func (m *machine) probed(t *rapid.T) {
	was, ok := m.is, rapid.Bool().Draw(t, "ok")
	next := Probed(was, ok, was.Prober, "probed", epoch)
	if was.State != HalfOpen {
		m.same(t, next)
		return
	}
	m.became(t, next)
	if ok != next.Closed() || (!ok && (next.State != Open || next.Trips != was.Trips+1)) {
		t.Fatalf("probed %v: %+v", ok, next)
	}
}

func (m *machine) returned(t *rapid.T) {
	was := m.is
	next := Returned(was, was.Prober, epoch)
	if was.State != HalfOpen {
		m.same(t, next)
		return
	}
	m.became(t, next)
	testkit.MustThat(t, next.State == Open && next.Trips == was.Trips && next.Untried, "returned: %+v", next)
}

func (m *machine) hold(t *rapid.T) {
	was := m.is
	next, changed := Hold(was, m.name(), "ann", "wait", epoch)
	testkit.MustThat(t, changed != (was.State == Held), "hold: %v from %s", changed, was.State)
	if !changed {
		m.same(t, next)
		return
	}
	m.became(t, next)
	testkit.MustEqual(t, next.State, Held, "hold: %+v", next)
}

func (m *machine) resume(t *rapid.T) {
	was := m.is
	next, changed := Resume(was, "ann", "mended", epoch)
	testkit.MustThat(t, changed != was.Closed(), "resume: %v from %s", changed, was.State)
	if !changed {
		m.same(t, next)
		return
	}
	m.became(t, next)
	testkit.MustEqual(t, next.State, Closed, "resume: %+v", next)
}

// F5, F7: whatever happens in whatever order, nothing changes without its reason, held ends by
// Resume alone, each opening is an incident of its own, and terms rise by one.
func TestNothingChangesWithoutAReason(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{incidents: map[string]bool{}, policy: Policy{
			Failures: rapid.IntRange(-1, 5).Draw(t, "failures"),
			Probe:    time.Duration(rapid.IntRange(0, 100).Draw(t, "probe")) * time.Second,
			ProbeMax: time.Duration(rapid.IntRange(0, 300).Draw(t, "most")) * time.Second,
		}}
		t.Repeat(map[string]func(*rapid.T){
			"decide": m.decide, "probed": m.probed, "returned": m.returned, "hold": m.hold, "resume": m.resume,
		})
	})
}
