package console

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// F4, V4: a circuit's timeline has the failures against the limit, and its states as far as they are known.
func TestATimelineHasFailuresAgainstTheLimit(t *testing.T) {
	h := fixedCircuitHistory()
	line := newTimeline(h, "100/30s", nil, noon)
	testkit.Equal(t, line.LimitText, "opens above 100 within 30 s")
	testkit.Equal(t, line.Label, "failures within 30 s: 0 now, 100 at most; the circuit opens above 100 within 30 s; it is open for 4 min 0 s.")
	testkit.Equal(t, fmt.Sprint(line.Bands), "[{44 676.8 good closed} {720.8 253.2 bad open}]")
	testkit.Equal(t, len(line.Marks), 1)
	testkit.Equal(t, line.Marks[0].Text, "open")
	testkit.Equal(t, newTimeline(h, "off", nil, noon).Limit, -1., "of a breaker that is off")

	h.Changes = append([]admin.CircuitChange{{At: before(6 * time.Minute), State: "closed"}}, h.Changes...)
	h.Heard = new(before(6 * time.Minute))
	line = newTimeline(h, "100/30s", nil, noon)
	testkit.Equal(t, fmt.Sprint(line.Bands), "[{44 676.8 good closed} {720.8 253.2 bad open}]", "of one whose record was made at its first failure")
	testkit.Equal(t, len(line.Marks), 1, "marks of it")

	h.Changes, h.State, h.Heard = nil, "closed", new(before(150*time.Second))
	testkit.Equal(t, fmt.Sprint(newTimeline(h, "100/30s", nil, noon).Bands), "[{813.8 160.2 good closed}]", "of one that was heard of later")
}

// F4: the failures within the breaker's time, at each step of five seconds, as far as the circuit knows them.
func TestFailuresWithinTheBreakersTime(t *testing.T) {
	from := noon.Unix() - 895
	h := admin.CircuitHistory{Seconds: []admin.CircuitSecond{{At: before(time.Minute), Failures: 100}, {At: noon, Failures: 7}}}
	sums := within15(h, from, 10*time.Second, noon)
	testkit.Equal(t, fmt.Sprint(sums[chartPoints-15:]), "[NaN NaN 100 100 0 0 0 0 0 0 0 0 0 0 7]")
	sums = within15(admin.CircuitHistory{}, from, 10*time.Second, noon)
	testkit.Equal(t, fmt.Sprint(sums[chartPoints-5:]), "[NaN NaN 0 0 0]", "of one that never failed")
}

// G5, V4: a ladder has a rung for each wait of the schedule, and one more where events wait otherwise.
func TestALadderHasTheSchedule(t *testing.T) {
	s := admin.Subscription{Retry: admin.RetryPolicy{Attempts: 30, TTL: "24h0m0s"}, Stats: &admin.DeliveryStats{Waiting: []admin.Waiting{{Wait: "30s", Events: 96}, {Wait: "2m0s", Events: 1}}}}
	l := newLadder(s)
	var said []string
	for _, r := range l.Rungs {
		said = append(said, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Of, r.Label, r.Try, r.Age)))
	}
	testkit.Diff(t, strings.Join([]string{
		"10 s  try 2 age 10 s", "30 s 96 try 3 age 40 s", "1 min  try 4 age 2 min", "2 min 1", "5 min  try 5 age 7 min", "10 min  try 6 age 17 min",
		"30 min  try 7 age 47 min", "1 h  try 8 age 2 h", "3 h  try 9 age 5 h", "6 h  try 10 age 11 h", "12 h  try 11 age 23 h",
	}, "\n"), strings.Join(said, "\n"))
	testkit.Equal(t, l.Label, "Events that wait for another try: 96 for 30 s, 1 for 2 min. The schedule ends after 24 h or 30 tries.")
	s.Retry.Schedule = []string{"1s", "1s", "5s"}
	testkit.Equal(t, len(newLadder(s).Rungs), 4, "of a schedule of its own")
	s.OrderBy = "subject"
	testkit.That(t, newLadder(s) == nil, "a ladder of events that wait in order")
}

// The schedule of subscriptions that have none is what the API says.
func TestTheUsualSchedule(t *testing.T) {
	testkit.That(t, strings.Contains(string(testkit.Value(os.ReadFile("../v1/openapi.json"))(t)), usualSchedule), "the API has another schedule")
}

// G7, V4: a probation is a line with each probe that failed and the next one.
func TestProbesOfAProbation(t *testing.T) {
	s := admin.Subscription{Stats: &admin.DeliveryStats{Endpoint: admin.EndpointHealth{State: "probation", Failures: 13, Since: new(before(240 * time.Second)), Until: new(noon.Add(38 * time.Second))}}}
	attempt := func(ago time.Duration, status int, probe bool) admin.Attempt {
		return admin.Attempt{Time: before(ago), Status: status, Probe: probe}
	}
	attempts := []admin.Attempt{attempt(90*time.Second, 0, true), attempt(170*time.Second, 503, true), attempt(174*time.Second, 503, true), attempt(241*time.Second, 503, false)}
	p := newProbes(s, attempts, noon)
	testkit.Equal(t, fmt.Sprint(p.Done), "[{279.9 503} {292.5 } {545.4 none}]")
	testkit.Equal(t, p.Label, "On probation since 11:56:00 UTC. 3 probes failed. The next is at 12:00:38 UTC.")
	testkit.Equal(t, p.Since, "10 failures", "that began it")
	testkit.Equal(t, p.In, "probe in 38 s")
	testkit.That(t, p.Begin < p.Now && p.Now < p.Next, "the line: %+v", p)
	s.Stats.Endpoint.State = "healthy"
	testkit.That(t, newProbes(s, attempts, noon) == nil, "probes of an endpoint that is well")
}
