package config

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestNetworksAreReadFromAList(t *testing.T) {
	for text, want := range map[string][]string{
		"":                              nil,
		" , ":                           nil,
		"10.0.0.0/8":                    {"10.0.0.0/8"},
		"10.1.2.3/8, 192.168.1.7,::1":   {"10.0.0.0/8", "192.168.1.7/32", "::1/128"},
		"fd00::/8 ,169.254.0.0/16,,":    {"fd00::/8", "169.254.0.0/16"},
		"2001:db8::5, 2001:db8:1::1/48": {"2001:db8::5/128", "2001:db8:1::/48"},
	} {
		got, err := Grid{Allow: text}.Networks()
		var prefixes []netip.Prefix
		for _, p := range want {
			prefixes = append(prefixes, netip.MustParsePrefix(p))
		}
		if err != nil || !slices.Equal(got, prefixes) {
			t.Errorf("%q gives %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"10.0.0.0/33", "example.com", "10.0.0", "10.0.0.0-10.0.0.9", "http://10.0.0.1"} {
		if _, err := (Grid{Allow: text}).Networks(); err == nil || !strings.Contains(err.Error(), "write it like 10.0.0.0/8") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// G5, G7, G8, G11: the defaults are the product's.
func TestTheDefaultsOfTheGrid(t *testing.T) {
	want := Grid{
		Timeout: quantity.Duration(30 * time.Second), LateWindow: quantity.Duration(3 * time.Minute), JitterPercent: 10, ProbationAfter: 10,
		ProbationCap: quantity.Duration(3 * time.Hour), ValidationWindow: quantity.Duration(10 * time.Minute), Origin: "eventgrid.azure.net",
		TopicRetention: quantity.Duration(48 * time.Hour), DeadLetterDelay: quantity.Duration(5 * time.Minute), DeadLetterGiveUp: quantity.Duration(4 * time.Hour),
		DeadLetterKeep: quantity.Duration(30 * 24 * time.Hour),
	}
	testkit.Diff(t, want, Default().Grid)
}

// G13: all of it can be set, by file, variable and flag.
func TestTheGridCanBeSet(t *testing.T) {
	write(t, DefaultFile, `
grid:
  allow: 10.0.0.0/8, 192.168.1.7
  timeout: 100ms
  lateWindow: 0s
  jitterPercent: 0
  probationAfter: 0
  probationCap: 1s
  deadFolders: /var/dead, /srv/dead
topics:
  - name: orders
    schema: cloudevents
    key1: a
    key2: b
subscriptions:
  - name: billing
    topic: orders
    endpoint: https://example.com/
    types: [a, b]
    subjectBeginsWith: /x
    subjectEndsWith: .y
    filters: [data.total NumberGreaterThan 100, "data.c StringIn a,b"]
    schema: eventgrid
    maxEvents: 10
    preferredKib: 32
    attempts: 3
    ttl: 1h
    retrySchedule: 1s,2s
    retryFloors: [503=5s]
    deadLetter: folder:dead
    headers: [X-Env=prod]
    signingKeys: [whsec_x]
    orderBy: subject
    concurrency: 4
    skipValidation: true
  - {name: worker, sourceHub: clicks, pull: true}
  - {name: archive, topic: orders, hub: clicks}
`)
	got, err := Load(Sources{Environ: []string{"EVENTYARD_GRID_VALIDATION_WINDOW=1m"}, Flags: map[string]string{"grid-dead-delay": "0s"}})
	testkit.Must(t, err)
	c := got.Config
	if c.Grid.Timeout != quantity.Duration(100*time.Millisecond) || c.Grid.LateWindow != 0 || c.Grid.ValidationWindow != quantity.Duration(time.Minute) || c.Grid.DeadLetterDelay != 0 ||
		!slices.Equal(c.Grid.Folders(), []string{"/var/dead", "/srv/dead"}) || c.Grid.ProbationAfter != 0 || c.Grid.JitterPercent != 0 {
		t.Errorf("the grid is %+v", c.Grid)
	}
	if diff := cmp.Diff([]admin.TopicRequest{{Name: "orders", Schema: "cloudevents", Key1: "a", Key2: "b"}}, c.Topics); diff != "" {
		t.Error(diff)
	}
	want := []admin.SubscriptionRequest{
		{
			Name: "billing", Topic: "orders", Endpoint: new("https://example.com/"), Types: []string{"a", "b"}, SubjectBeginsWith: new("/x"), SubjectEndsWith: new(".y"),
			Filters: []admin.Filter{"data.total NumberGreaterThan 100", "data.c StringIn a,b"}, Schema: new("eventgrid"),
			MaxEvents: new(10), PreferredKiB: new(32), Attempts: new(3), TTL: new("1h"), RetrySchedule: new("1s,2s"), RetryFloors: admin.Floors{"503": "5s"},
			DeadLetter: new("folder:dead"), Headers: admin.Headers{{Name: "X-Env", Value: "prod"}}, SigningKeys: []string{"whsec_x"}, OrderBy: new("subject"),
			Concurrency: new(4), SkipValidation: new(true),
		},
		{Name: "worker", SourceHub: "clicks", Pull: &admin.Pull{}},
		{Name: "archive", Topic: "orders", Hub: new("clicks")},
	}
	testkit.Diff(t, want, c.Subscriptions)
}

func TestErrorsInAGridAreReported(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, tt := range map[string]struct{ text, want string }{
		"a network that is none":        {"grid: {allow: nowhere}", `grid.allow: "nowhere" is no network: write it like 10.0.0.0/8`},
		"a folder that is not absolute": {"grid: {deadFolders: dead}", `grid.deadFolders: "dead" is no absolute path`},
		"too much jitter":               {"grid: {jitterPercent: 51}", "grid.jitterPercent: 51 is not between 0 and 50"},
		"less than no failures":         {"grid: {probationAfter: -1}", "grid.probationAfter: -1 is below 0"},
		"no time for an answer":         {"grid: {timeout: 0s}", "grid.timeout: 0s is not between 100ms and 30m"},
		"a late window of a day":        {"grid: {lateWindow: 1d}", "grid.lateWindow: 1d is not between 0s and 1h"},
		"no probation at all":           {"grid: {probationCap: 0s}", "grid.probationCap: 0s is not between"},
		"a link that is never good":     {"grid: {validationWindow: 0s}", "grid.validationWindow: 0s is not between 1s and 1d"},
		"topics that keep nothing":      {"grid: {topicRetention: 0s}", "grid.topicRetention: 0s is not between 1h"},
		"letters gathered for a day":    {"grid: {deadDelay: 1d}", "grid.deadDelay: 1d is not between 0s and 1h"},
		"giving up at once":             {"grid: {deadGiveUp: 0s}", "grid.deadGiveUp: 0s is not between 1s and 7d"},
		"letters kept for a moment":     {"grid: {deadKeep: 1m}", "grid.deadKeep: 1m is not between 1h"},
		"a topic without a name":        {"topics: [{schema: custom}]", "topics[0]: it needs a name"},
		"a topic that is there twice":   {"topics: [{name: orders}, {name: Orders}]", `topics[1].name: topic "Orders" is already topics[0]; case makes no difference`},
		"a misspelt topic":              {"topics: [{name: orders, shema: custom}]", `unknown key "shema", did you mean "schema"?`},
		"no name":                       {"subscriptions: [{topic: t, pull: true}]", "subscriptions[0]: it needs a name"},
		"no source":                     {"subscriptions: [{name: a, pull: true}]", "subscriptions[0]: a needs a topic or a sourceHub"},
		"two sources":                   {"subscriptions: [{name: a, topic: t, sourceHub: h, pull: true}]", "subscriptions[0]: a needs a topic or a sourceHub"},
		"no target":                     {"subscriptions: [{name: a, topic: t}]", "subscriptions[0]: a needs one of endpoint, hub and pull"},
		"two targets":                   {"subscriptions: [{name: a, topic: t, hub: h, pull: true}]", "subscriptions[0]: a needs one of endpoint, hub and pull"},
		"one that is there twice":       {"subscriptions: [{name: a, topic: t, pull: true}, {name: A, topic: T, hub: h}]", "subscriptions[1].name: A is already subscriptions[0], of the same source"},
		"too short a name":              {"subscriptions: [{name: eu, topic: t, pull: true}]", "c.yaml:1:24: subscriptions[0].name: \"eu\": use 3 to 64 letters, digits and '-'"},
		"a domain topic that is none":   {"subscriptions: [{name: abc, topic: t, domainTopic: a b, pull: true}]", "subscriptions[0].domainTopic: \"a b\": use 3 to 128"},
		"a topic with too short a name": {"topics: [{name: ab}]", "topics[0].name: \"ab\": use 3 to 50 letters, digits and '-'"},
		"a topic of a reserved name":    {"topics: [{name: System-x}]", "topics[0].name: \"System-x\": names do not begin with \"system\""},
		"a public URL with a query":     {"publicUrl: https://x/?y=z", "publicUrl: "},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Load(Sources{File: write(t, "c.yaml", tt.text)}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	both := "subscriptions: [{name: abc, topic: t, pull: true}, {name: abc, sourceHub: t, pull: true}]"
	testkit.Check(t, testkit.Err(Load(Sources{File: write(t, "c.yaml", both)})),
		"the same name of two sources")
}
