//go:build linux

package reliable

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// TestOperator is a day with functions on the command line: one is created, cannot handle an event,
// is held and let go, and the event is tried again once the program is mended. // F1, F4, F5, F6,
// F7
func TestOperator(t *testing.T) {
	t.Parallel()
	y := startYard(t, true, "")
	o := &operator{t: t, yard: y, trial: newTrial(t, y, "billing", 2)}
	o.hook = startWebhook(t, o.trial)
	o.notices = startNotices(t)
	o.create()
	o.lookAtPoison()
	o.hold()
	o.redrive()
	o.trip()
	o.pauseAndDelete()
}

type operator struct {
	t       *testing.T
	yard    *yard
	trial   *trial
	hook    *webhook
	notices *notices
}

// shown is what programs read of a function; pointers tell whether it is there at all.
type shown struct {
	Name     string
	State    *string
	Lag      *int64
	Failures *int
	Circuit  *struct{ State string }
	Poison   string
	Poisoned *int
	Breaker  string
	Probe    string
	Retries  int
	Batch    int
	Notify   []string
}

func (s shown) String() string {
	if s.State == nil || s.Circuit == nil || s.Failures == nil {
		return "without state, failures or circuit"
	}
	lag, away := int64(-1), -1
	if s.Lag != nil {
		lag = *s.Lag
	}
	if s.Poisoned != nil {
		away = *s.Poisoned
	}
	return fmt.Sprintf("%s, circuit %s, lag %d, %d put away", *s.State, s.Circuit.State, lag, away)
}

func (o *operator) show() (s shown) {
	o.t.Helper()
	o.yard.ask(o.t, &s, "function", "show", "billing")
	return s
}

func (o *operator) waitFor(state string) {
	o.t.Helper()
	until(o.t, "the function to be "+state, func() (bool, string) {
		now := o.show().String()
		return now == state, now
	})
}

func (o *operator) create() {
	o.t.Helper()
	out := o.yard.cli(o.t, "function", "create", "billing", "--hub", "billing", "--group", groupName, "--endpoint", o.hook.server.URL, "--batch", "100", "--retries", "3",
		"--retry-delay", "100ms", "--exponential", "--poison", "billing-poison", "--breaker", "2/30s", "--probe", "10m", "--notify", o.notices.server.URL)
	if !strings.Contains(out, "billing") {
		o.t.Errorf("creating said %q", out)
	}
	s := o.show()
	if s.Retries != 3 || s.Batch != 100 || s.Breaker != "2/30s" || s.Probe != "10m" || !strings.HasSuffix(s.Poison, "billing-poison") || len(s.Notify) != 1 {
		o.t.Errorf("the function is not as it was asked for: %v: %d retries, batch %d, breaker %s, probe %s, poison %s, notify %s",
			s, s.Retries, s.Batch, s.Breaker, s.Probe, s.Poison, s.Notify)
	}
	if out, err := o.yard.try(o.t, "function", "create", "billing", "--hub", "billing", "--endpoint", o.hook.server.URL); err == nil {
		o.t.Errorf("creating it again said %q", out)
	}
	if list := o.yard.cli(o.t, "function", "list"); !strings.Contains(list, "billing") {
		o.t.Errorf("the list has no function: %s", list)
	}
	o.trial.fill(40, breaking(map[int][]int{1: {17}}))
	o.waitFor("running, circuit closed, lag 0, 1 put away")
}

const billed = "billing/billing/1/17"

func (o *operator) lookAtPoison() {
	o.t.Helper()
	if list := o.yard.cli(o.t, "poison", "list", "billing-poison"); !strings.Contains(list, billed) || !strings.Contains(list, "500") {
		o.t.Errorf("the list of poison events is\n%s", list)
	}
	one := o.yard.cli(o.t, "poison", "show", "billing-poison", billed)
	for _, want := range []string{"1/17 broken", "500", billed} {
		if !strings.Contains(one, want) {
			o.t.Errorf("the poison event is shown without %q:\n%s", want, one)
		}
	}
}

// hold opens the circuit by hand: events wait until it is closed.
func (o *operator) hold() {
	o.t.Helper()
	if list := o.yard.cli(o.t, "circuit", "list"); !strings.Contains(list, "billing") || !strings.Contains(list, "closed") {
		o.t.Errorf("the list of circuits is\n%s", list)
	}
	o.yard.cli(o.t, "circuit", "open", "billing", "--reason", "moving the database")
	before := -1
	until(o.t, "all instances to have heard of it", func() (bool, string) {
		// The state is the stored one, and an instance may hear of it later: it has when what was
		// sent the last time was not even called.
		calls := len(o.hook.notes())
		quiet := calls == before
		before = calls
		o.trial.fill(1, fine)
		s := o.show()
		return quiet && *s.State == "paused" && s.Circuit.State == "held" && *s.Lag > int64(len(o.trial.sent)), s.String()
	})
	calls, lag := len(o.hook.notes()), *o.show().Lag
	o.trial.fill(3, fine)
	o.waitFor(fmt.Sprintf("paused, circuit held, lag %d, 1 put away", lag+6))
	if shown := o.yard.cli(o.t, "circuit", "show", "billing"); !strings.Contains(shown, "held") || !strings.Contains(shown, "moving the database") {
		o.t.Errorf("the circuit is shown as\n%s", shown)
	}
	if more := len(o.hook.notes()); more != calls {
		o.t.Errorf("%d calls were made while the circuit was held", more-calls)
	}
	o.yard.cli(o.t, "circuit", "close", "billing")
	o.waitFor("running, circuit closed, lag 0, 1 put away")
}

// redrive sends the event to a program that was mended.
func (o *operator) redrive() {
	o.t.Helper()
	o.hook.mend(true)
	if out := o.yard.cli(o.t, "poison", "redrive", "billing-poison", billed); !strings.Contains(out, "1") {
		o.t.Errorf("redriving said %q", out)
	}
	o.waitFor("running, circuit closed, lag 0, 0 put away")
	o.hook.waitFor("the event that was broken", func(e entry) bool { return e.what == "ok" && strings.Contains(e.rest, "broken") })
	o.hook.mend(false)
}

// trip has the program fail so often that the circuit opens, which somebody is told.
func (o *operator) trip() {
	o.t.Helper()
	o.trial.fill(6, breaking(map[int][]int{0: {0, 1, 2, 3, 4, 5}}))
	until(o.t, "an open circuit", func() (bool, string) {
		s := o.show()
		return *s.State == "open" && s.Circuit.State == "open", s.String()
	})
	link := ""
	until(o.t, "a notice with a link", func() (bool, string) {
		var all []string
		link, all = o.notices.link()
		return link != "", strings.Join(all, "\n")
	})
	o.hook.mend(true)
	o.trial.resume(link)
	until(o.t, "everything to be done", func() (bool, string) {
		s := o.show()
		return *s.State == "running" && s.Lag != nil && *s.Lag == 0, s.String()
	})
}

// pauseAndDelete ends it: group and poison stay.
func (o *operator) pauseAndDelete() {
	o.t.Helper()
	o.yard.cli(o.t, "function", "pause", "billing")
	if s := o.show(); *s.State != "paused" {
		o.t.Errorf("after a pause it is %v", s)
	}
	o.yard.cli(o.t, "function", "resume", "billing")
	o.yard.cli(o.t, "function", "delete", "billing", "--yes")
	if out, err := o.yard.try(o.t, "function", "show", "billing"); err == nil {
		o.t.Errorf("after it was deleted it is shown as %s", out)
	}
	o.yard.cli(o.t, "poison", "list", "billing-poison", "--redriven")
	o.trial.extra = o.hook.notes
}

// notices is a webhook for notices.
type notices struct {
	server *httptest.Server

	mu  sync.Mutex
	all []string // guarded by mu
}

func startNotices(t *testing.T) *notices {
	n := &notices{}
	n.server = httptest.NewServer(n)
	t.Cleanup(n.server.Close)
	return n
}

func (n *notices) ServeHTTP(_ http.ResponseWriter, in *http.Request) {
	text, err := io.ReadAll(in.Body)
	if err != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, string(text))
}

// link is that of the newest notice that has one.
func (n *notices) link() (link string, all []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, text := range n.all {
		if found := resumeLink.FindString(text); found != "" {
			link = found
		}
	}
	return link, append(all, n.all...)
}
