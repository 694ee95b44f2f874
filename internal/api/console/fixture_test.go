package console

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/sessions"
	"github.com/eventyard/eventyard/internal/testkit"
)

// noon is when everything happens.
var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) time.Time { return noon.Add(-d) }

func apiTime(d time.Duration) *admin.Time { return &admin.Time{Time: before(d)} }

// fakeAPI answers as the API would, and takes note of what it is asked to change.
type fakeAPI struct {
	answers map[string]any // by method and path
	refuse  *admin.Problem

	mu    sync.Mutex
	calls []string // guarded by mu
	body  string   // of the last call that changes something; guarded by mu
}

func (f *fakeAPI) serve(w http.ResponseWriter, r *http.Request, _ auth.Grant) {
	f.mu.Lock()
	f.calls = append(f.calls, r.Method+" "+r.URL.EscapedPath())
	if r.Method != http.MethodGet {
		body, _ := io.ReadAll(r.Body) // what is read counts
		f.body = string(body)
	}
	f.mu.Unlock()
	if f.refuse != nil && r.URL.Path != "/api/v1" {
		w.WriteHeader(f.refuse.Status)
		_ = json.NewEncoder(w).Encode(f.refuse)
		return
	}
	for pattern, answer := range f.answers {
		method, path, _ := strings.Cut(pattern, " ")
		if method == r.Method && pathLike(path).MatchString(r.URL.EscapedPath()) {
			if lines, ok := answer.([]json.RawMessage); ok {
				for _, line := range lines {
					fmt.Fprintf(w, "%s\n", line)
				}
				return
			}
			_ = json.NewEncoder(w).Encode(answer)
			return
		}
	}
	w.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(w).Encode(admin.Problem{Type: "urn:eventyard:problem:not-found", Title: "It does not exist", Status: 404, Detail: r.Method + " " + r.URL.Path})
}

// pathLike matches the paths of a pattern of a route's table.
func pathLike(pattern string) *regexp.Regexp {
	return regexp.MustCompile("^" + regexp.MustCompile(`\\\{[^/]*\\\}`).ReplaceAllString(regexp.QuoteMeta(pattern), "[^/]+") + "$")
}

type openAccess struct{ development bool }

func (o openAccess) Token(context.Context, string, string) (auth.Grant, error) {
	return auth.Grant{}, auth.ErrSignature
}

func (o openAccess) Key(_ context.Context, name, key string) (auth.Grant, error) {
	if key != auth.DevelopmentKey {
		return auth.Grant{}, auth.ErrSignature
	}
	return auth.Grant{Holder: name, Scopes: []auth.Scope{{Rights: auth.Manage}}}.While(func(auth.Scope) bool { return true }), nil
}
func (o openAccess) Development() bool                      { return o.development }
func (o openAccess) OnChange(func()) func()                 { return func() {} }
func (o openAccess) Refused(context.Context, string, error) {}

type noSessions struct{}

func (noSessions) Begin(context.Context, auth.Grant) (string, error) { return "token", nil }
func (noSessions) Find(context.Context, string) (sessions.Session, error) {
	return sessions.Session{}, sessions.ErrEnded
}
func (noSessions) End(context.Context, string) error { return nil }

// newFixture is a console in front of an API that answers what it is told.
func newFixture(answers map[string]any) (*Console, *fakeAPI, http.Handler) {
	api := &fakeAPI{answers: answers}
	c := New(Config{API: api.serve, Access: openAccess{development: true}, Sessions: noSessions{}, Log: testkit.Quiet()})
	c.now, c.figuresTime = func() time.Time { return noon }, time.Hour
	return c, api, frame.New(frame.Config{Log: testkit.Quiet()}, c.API())
}

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func post(h http.Handler, path string, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// names stand in the paths of pages.
var names = strings.NewReplacer("{source}", "topics/alarms", "{page...}", "guides/first", "{hub}", "sensors", "{group}", "aggregator", "{partition}", "0", "{instance}", "consumer-3", "{sequence}", "41", "{topic}", "alarms",
	"{subscription}", "company", "{number}", "7", "{function}", "score", "{policy}", "gateway")

// fixed is a yard of which everything is known.
func fixed() map[string]any {
	hub := admin.Hub{Name: "sensors", Partitions: 3, PartitionIDs: []string{"0", "1", "2"}, Created: *apiTime(72 * time.Hour), Retention: admin.Retention{Age: "168h0m0s", Bytes: 50 << 30}, Groups: []string{"$Default", "aggregator"}}
	hub.Stats = &admin.HubStats{Events: 7228, Bytes: 5 << 20, Published: new(6667.), Read: new(19998.), LagEvents: new(12668.), LagSeconds: new(1.9)}
	sub := admin.Subscription{
		Name: "company", ID: "1", Topic: "alarms", State: "active", Created: before(time.Hour), Updated: before(time.Hour), Endpoint: "https://hooks.example/alerts?...", Schema: "eventgrid",
		Retry: admin.RetryPolicy{Attempts: 30, TTL: "24h0m0s"}, Signing: []admin.SigningKey{{Algorithm: "hmac"}}, Filter: json.RawMessage(`{"includedEventTypes":["alarm.co"]}`),
		Stats: &admin.DeliveryStats{Matched: 18402, Delivered: 17171, Requests: 17200, Failed: map[string]int64{"503": 29}, Behind: 796, Parked: 214,
			Waiting: []admin.Waiting{{Wait: "30s", Events: 96}, {Wait: "1m0s", Events: 61}}, Endpoint: admin.EndpointHealth{State: "probation", Failures: 10, Last: "503", Since: new(before(5 * time.Minute)), Until: new(noon.Add(38 * time.Second))}},
		DeadLetters: &admin.DeadLetterCounts{Kept: 7},
	}
	sub.Stats.Recent, sub.Stats.Rate = []int{41, 7, 1200, -212, -30_000}, new(54.)
	state := admin.CircuitState{State: "open", Term: 3, Incident: "k7q2m", Since: new(before(4 * time.Minute)), By: "yard-7f2a", Reason: "101 failures within 30 s", Opened: new(before(4 * time.Minute)),
		Errors: []admin.Failure{{At: before(5 * time.Minute), Partition: "0", Sequence: 4, Error: "503: refused"}, {At: before(4 * time.Minute), Partition: "1", Sequence: 9, Error: "503: refused"}, {At: before(4 * time.Minute), Sequence: 9, Error: "400: unknown"}}}
	function := admin.Function{Name: "score", Hub: "sensors", Group: "score", Endpoint: "http://127.0.0.1:9400/score", State: "open", Lag: new(int64(48211)), OldestSeconds: new(243.), Failures: 101, Circuit: state,
		Instances: 3, Poison: "score-poison", Poisoned: new(101), Counts: admin.FunctionCounts{Calls: 22604, Failed: 612, Done: 2200000}, Batch: 100, Timeout: "30s", Retries: 5, RetryDelay: "1s", Breaker: "100/30s", Notify: []string{"mailto:ops@example.com"}}
	circuit := admin.Circuit{Function: "elsewhere", Hub: "sensors", Group: "other", CircuitState: admin.CircuitState{State: "closed"}, Instances: map[string]int64{"a": 48, "b": 24}}
	policy := admin.Policy{Name: "gateway", Rights: []string{"Send"}, Created: *apiTime(time.Hour), PrimaryKey: "first-key", SecondaryKey: "second-key", ConnectionStrings: &admin.ConnectionStrings{Primary: "Endpoint=sb://a/;first", Secondary: "Endpoint=sb://a/;second"}}
	letter := admin.DeadLetter{Number: 7, EventID: "0d11-3c", EventType: "alarm.co", Subject: "/homes/7", Reason: "MaxDeliveryAttemptsExceeded", Attempts: 30, Outcome: "Busy", Status: 503, Published: before(25 * time.Hour), Died: before(time.Hour), Event: json.RawMessage(`{"id":"0d11-3c"}`)}
	topic := admin.Topic{Name: "alarms", Schema: "eventgrid", Endpoint: "http://127.0.0.1:8080/topics/alarms/api/events", Keys: &admin.TopicKeys{Key1: "one", Key2: "two"}, Created: before(time.Hour), Subscriptions: 1, Events: 140211, Bytes: 9 << 20}
	return map[string]any{
		"GET /api/v1":      admin.Info{Name: "eventyard", Version: "v1", Namespace: "home-yard", Engine: "disk", Listeners: map[string]string{"amqp": "amqp://127.0.0.1:5672"}},
		"GET /api/v1/hubs": map[string]any{"hubs": []admin.Hub{hub}}, "POST /api/v1/hubs": hub, "GET /api/v1/hubs/{hub}": hub, "PATCH /api/v1/hubs/{hub}": hub, "DELETE /api/v1/hubs/{hub}": nil,
		"GET /api/v1/hubs/{hub}/partitions": map[string]any{"partitions": []admin.Partition{
			{ID: "0", First: 0, Last: 6227, LastOffset: "6227", LastEnqueued: apiTime(time.Second), Bytes: 4 << 20, Published: new(611.)},
			{ID: "1", First: 100, Last: 1099, LastOffset: "1099", LastEnqueued: apiTime(time.Minute), Bytes: 1 << 20, Published: new(.4)},
			{ID: "2", First: -1, Last: -1, LastOffset: "-1", Empty: true, Published: new(0.)}}},
		"GET /api/v1/hubs/{hub}/partitions/{partition}":                  admin.Partition{ID: "0", First: 0, Last: 6227},
		"GET /api/v1/hubs/{hub}/groups/{group}/ownership":                fixedOwnership(),
		"GET /api/v1/hubs/{hub}/kafka-groups":                            map[string]any{"groups": []admin.KafkaGroup{fixedKafkaGroup()}},
		"GET /api/v1/hubs/{hub}/kafka-groups/{group}":                    fixedKafkaTable(),
		"POST /api/v1/hubs/{hub}/groups":                                 admin.Group{Name: "aggregator"},
		"DELETE /api/v1/hubs/{hub}/groups/{group}":                       nil,
		"DELETE /api/v1/hubs/{hub}/groups/{group}/ownership/{partition}": admin.Released{Partition: "0"},
		"DELETE /api/v1/hubs/{hub}/groups/{group}/instances/{instance}":  nil,
		"GET /api/v1/hubs/{hub}/groups/{group}/checkpoints":              admin.Checkpoints{Checkpoints: []admin.Checkpoint{{Partition: "0", Sequence: new(int64(6000))}}},
		"PUT /api/v1/hubs/{hub}/groups/{group}/checkpoints/{partition}":  admin.Moved{From: &admin.Checkpoint{Sequence: new(int64(6000))}, To: admin.Checkpoint{Partition: "0", Sequence: new(int64(-1))}},
		"GET /api/v1/hubs/{hub}/events":                                  fixedEvents(),
		"GET /api/v1/hubs/{hub}/partitions/{partition}/events":           admin.FoundPage{Events: fixedEvents(), Next: 42, Looked: 6228, End: true},
		"POST /api/v1/hubs/{hub}/events":                                 admin.Sent{Partition: "0", First: 42, Count: 1},
		"GET /api/v1/policies":                                           map[string]any{"policies": []admin.Policy{policy}}, "GET /api/v1/hubs/{hub}/policies": map[string]any{"policies": []admin.Policy{policy}},
		"GET /api/v1/connections": fixedConnections(), "GET /api/v1/certificate": fixedCertificates(), "PATCH /api/v1/policies/{policy}": policy,
		"POST /api/v1/policies": policy, "GET /api/v1/policies/{policy}": policy, "DELETE /api/v1/policies/{policy}": nil, "POST /api/v1/policies/{policy}/regenerate": policy,
		"GET /api/v1/topics": map[string]any{"topics": []admin.Topic{topic}}, "POST /api/v1/topics": topic, "GET /api/v1/topics/{topic}": topic, "PATCH /api/v1/topics/{topic}": topic, "DELETE /api/v1/topics/{topic}": nil, "POST /api/v1/topics/{topic}/regenerate": topic,
		"GET /api/v1/subscriptions": map[string]any{"subscriptions": []admin.Subscription{sub}}, "POST /api/v1/subscriptions": sub, "GET /api/v1/subscriptions/{subscription}": sub,
		"PATCH /api/v1/subscriptions/{subscription}": sub, "DELETE /api/v1/subscriptions/{subscription}": nil, "POST /api/v1/subscriptions/{subscription}/resume": nil,
		"POST /api/v1/subscriptions/{subscription}/probe": nil, "POST /api/v1/subscriptions/{subscription}/rotate-key": sub,
		"GET /api/v1/subscriptions/{subscription}/attempts": map[string]any{"attempts": []admin.Attempt{
			{Time: before(2 * time.Minute), Events: 1, EventID: "7c1d-e0", Attempt: 4, Outcome: "Busy", Status: 503, Took: "212ms", Answer: "upstream connect error", NextTry: new(noon.Add(time.Minute))},
			{Time: before(9 * time.Minute), Events: 3, EventID: "51aa-09", Attempt: 1, Outcome: "Success", Status: 200, Took: "41ms"}}},
		"GET /api/v1/subscriptions/{subscription}/dead":          admin.DeadLetterPage{Letters: []admin.DeadLetter{letter}, Total: 7},
		"GET /api/v1/subscriptions/{subscription}/dead/{number}": letter,
		"POST /api/v1/subscriptions/{subscription}/redrive":      admin.Redriven{Redriven: 5, Skipped: 2, DryRun: true},
		"POST /api/v1/subscriptions/{subscription}/purge":        admin.Purged{Purged: 7},
		"GET /api/v1/functions":                                  map[string]any{"functions": []admin.Function{function}}, "POST /api/v1/functions": function, "GET /api/v1/functions/{function}": function,
		"PATCH /api/v1/functions/{function}": function, "POST /api/v1/notices/test": nil,
		"POST /api/v1/subscriptions/{subscription}/explain": admin.Explanation{Subscription: "company", Summary: "it does not match: the type is alarm.glass", Conditions: []admin.Finding{
			{Key: "type", Operator: "StringIn", Values: json.RawMessage(`["alarm.co"]`), Met: json.RawMessage(`"alarm.glass"`)}, {Key: "subject", Operator: "StringBeginsWith", Values: json.RawMessage(`["/homes/"]`), Met: json.RawMessage(`"/homes/7"`), Passes: true}}},
		"DELETE /api/v1/functions/{function}": nil, "POST /api/v1/functions/{function}/pause": function, "POST /api/v1/functions/{function}/resume": function,
		"GET /api/v1/circuits": map[string]any{"circuits": []admin.Circuit{circuit}}, "GET /api/v1/circuits/{function}": circuit, "POST /api/v1/circuits/{function}/open": circuit, "POST /api/v1/circuits/{function}/close": circuit,
		"GET /api/v1/hubs/{hub}/poison":                 map[string]any{"poison": []admin.PoisonEvent{{ID: "p", Function: "score", Hub: "sensors", Group: "score", Partition: "1", Sequence: 564118, Reason: "503: refused", Attempts: 6, Poisoned: new(before(time.Minute))}}},
		"POST /api/v1/hubs/{hub}/poison/redrive":        admin.PoisonRedriven{Redriven: 101, Hub: "sensors"},
		"GET /api/v1/series":                            admin.SeriesList{Series: []admin.Series{fixedSeries("published", "events/s", 6667), fixedSeries("read", "events/s", 19998), fixedSeries("lag-seconds", "s", 1.9), fixedSeries("waiting", "events", 1224), fixedSeries("lag", "events", 12668), fixedSeries("delivered", "events/s", 54)}},
		"GET /api/v1/hubs/{hub}/groups/{group}/history": fixedHistory(),
		"GET /api/v1/hubs/{hub}/density":                fixedDensity(),
		"GET /api/v1/hubs/{hub}/keys":                   fixedKeys(),
		"GET /api/v1/circuits/{function}/history":       fixedCircuitHistory(),
		"GET /api/v1/overview":                          fixedOverview(),
		"GET /api/v1/activity":                          fixedActivity(), "GET /api/v1/hubs/{hub}/activity": fixedActivity(),
		"GET /api/v1/cluster": admin.Cluster{Node: "yard-1", Engine: "disk", Nodes: []admin.ClusterNode{{Name: "yard-1", Version: "v1", State: admin.NodeLive, Started: *apiTime(time.Hour), Seen: *apiTime(0)}}},
		"GET /api/v1/storage": fixedStorage(), "POST /api/v1/storage/check": admin.StorageCheck{Began: *apiTime(0)},
		"GET /api/v1/topics/{topic}/events":              admin.TopicEvents{Next: 42, Events: []admin.TopicEvent{{Sequence: 41, Enqueued: *apiTime(time.Minute), Event: json.RawMessage(`{"id":"7c1d-e0","eventType":"alarm.glass","subject":"/homes/7","data":{"kind":"glass"}}`)}}},
		publishCall:                                      nil,
		"GET /api/v1/topics/{topic}/events/{id}/journey": admin.Journeys{Events: []admin.Journey{fixedJourney()}},
		"GET /api/v1/hubs/{hub}/partitions/{partition}/events/{sequence}/journey": fixedHubJourney(),
	}
}

// fixedOwnership has one of everything: an owner, a handoff, a dead one and a partition of nobody.
func fixedOwnership() admin.Ownership {
	at := func(n int64) *admin.Checkpoint {
		return &admin.Checkpoint{Sequence: &n, Offset: fmt.Sprint(n), Updated: apiTime(time.Second)}
	}
	return admin.Ownership{
		Namespace: "home-yard", Hub: "sensors", Group: "aggregator", At: *apiTime(0), LagEvents: 1200, Recommended: admin.Recommended{Instances: 2},
		Partitions: []admin.OwnedPartition{
			{Partition: "0", Owner: "consumer-1", Alive: true, Epoch: 11, Acquired: apiTime(time.Hour), Renewed: apiTime(3 * time.Second), Next: "consumer-2", Checkpoint: at(6000), Last: 6227, LagEvents: new(int64(227)), LagSeconds: new(1.9)},
			{Partition: "1", Owner: "consumer-2", Alive: true, Epoch: 6, Acquired: apiTime(time.Minute), Renewed: apiTime(2 * time.Second), Checkpoint: at(1099), Last: 1099, LagEvents: new(int64(0)), LagSeconds: new(0.), Readers: []admin.Reader{{Name: "plain"}}},
			{Partition: "2", First: -1, Last: -1},
		},
		Instances: []admin.Instance{
			{ID: "consumer-1", Alive: true, Present: true, Partitions: 1, Seen: apiTime(time.Second), Started: apiTime(time.Hour)},
			{ID: "consumer-2", Alive: true, Present: true, Partitions: 1, Seen: apiTime(time.Second), Started: apiTime(time.Minute)},
			{ID: "consumer-3", Present: true, Seen: apiTime(5 * time.Minute)},
			{ID: "foreign", Seen: apiTime(6 * time.Minute)},
		},
	}
}

// fixedSeries is a figure over the last 15 minutes that has a gap and a dip.
func fixedSeries(of, unit string, value float64) admin.Series {
	s := admin.Series{Of: of, Unit: unit, From: *apiTime(15 * time.Minute), Step: 1}
	for i := range 900 {
		v := value
		if i >= 600 && i < 660 {
			v = value / 2
		}
		s.Values = append(s.Values, &v)
		if i >= 60 && i < 120 {
			s.Values[i] = nil
		}
	}
	return s
}

func fixedOverview() admin.Overview {
	return admin.Overview{
		Namespace: "home-yard", At: *apiTime(0), Whole: true, Totals: admin.OverviewTotals{Hubs: 1, Partitions: 3, Topics: 1, Subscriptions: 1, Functions: 1, Nodes: 1},
		Rates:    admin.OverviewRates{Published: new(6877.), Bytes: new(1.4 * (1 << 20)), Read: new(19998.), Delivered: new(54.), Waiting: new(1224.)},
		WorstLag: &admin.GroupLag{Hub: "sensors", Group: "aggregator", Events: 12668, Seconds: 1.9, Instances: 2},
		Needs: []admin.Need{
			{Kind: "circuit-open", Severity: admin.SeverityBroken, Object: admin.NeedObject{Kind: "function", Name: "score", Hub: "sensors", Group: "score"}, Sentence: "The circuit of score is open: 101 failures within 30 s.", Since: apiTime(4 * time.Minute), Action: "resume", Command: "eventyard circuit close score"},
			{Kind: "probation", Severity: admin.SeverityWarning, Object: admin.NeedObject{Kind: "subscription", Name: "company", Topic: "alarms"}, Sentence: "company is on probation.", Action: "probe", Command: "eventyard subscription probe company"},
			{Kind: "group-behind", Severity: admin.SeverityWarning, Object: admin.NeedObject{Kind: "group", Name: "aggregator", Hub: "sensors", Group: "aggregator"}, Sentence: "aggregator is behind.", Action: "look"},
			{Kind: "disk-low", Severity: admin.SeverityWarning, Object: admin.NeedObject{Kind: "node", Name: "yard-1"}, Sentence: "The disk is nearly full.", Action: "look"},
		},
	}
}

func fixedStorage() admin.Storage {
	return admin.Storage{Nodes: []admin.NodeStorage{{
		Node: "yard-1", Engine: "disk", Folder: "/var/lib/eventyard", FreeBytes: new(int64(46 << 30)), TotalBytes: new(int64(64 << 30)), DaysLeft: new(21.4), Syncs: 1000, SyncSeconds: 1.8,
		Check: &admin.StorageCheck{Began: *apiTime(2 * time.Hour), Ended: apiTime(time.Hour), Partitions: 3, TotalPartitions: 3, Events: 7227},
	}}}
}

// fixedConnections has one of the policy, by its primary key, and one of somebody else.
func fixedConnections() admin.Connections {
	return admin.Connections{
		Total: 2, Since: *apiTime(24 * time.Hour), Keys: []admin.KeyUse{{Policy: "policies/gateway", Primary: apiTime(2 * time.Minute), Secondary: apiTime(20 * time.Second)}},
		Connections: []admin.Connection{
			{ID: "1", Node: "yard-1", Protocol: admin.ProtocolAMQP, Holder: "policies/Gateway", Address: "10.2.0.14:50122", Since: *apiTime(time.Hour), Links: 3},
			{ID: "2", Node: "yard-1", Protocol: admin.ProtocolHTTP, Holder: "hubs/sensors/policies/other", Address: "10.2.0.31:40001", Since: *apiTime(time.Minute)},
		},
	}
}

func fixedCertificates() admin.Certificates {
	return admin.Certificates{Nodes: []admin.NodeCertificate{{
		Node: "yard-1", Certificate: &admin.Certificate{Subject: "yard.example", Names: []string{"yard.example", "127.0.0.1"}, Until: admin.Time{Time: noon.Add(300 * 24 * time.Hour)}, SHA256: "4f2a910ce7"},
		Authority: &admin.Certificate{Subject: "Eventyard CA", Until: admin.Time{Time: noon.Add(3000 * 24 * time.Hour)}, SHA256: "aa"},
	}}}
}

// fixedHistory has a partition that was nobody's for a while.
func fixedHistory() admin.GroupHistory {
	owned := func(partition, owner string, from, to time.Duration) admin.OwnershipSpan {
		return admin.OwnershipSpan{Partition: partition, Owner: owner, From: *apiTime(from), To: *apiTime(to)}
	}
	return admin.GroupHistory{Hub: "sensors", Group: "aggregator", From: *apiTime(15 * time.Minute), To: *apiTime(0), Spans: []admin.OwnershipSpan{
		owned("0", "consumer-1", 15*time.Minute, 0), owned("1", "consumer-3", 15*time.Minute, 7*time.Minute), owned("1", "consumer-2", 6*time.Minute, 0),
	}, Changes: fixedChanges()}
}

// fixedDensity is an hour of events, of which there were none in its first half.
func fixedDensity() admin.Density {
	d := admin.Density{Hub: "sensors", From: before(time.Hour), To: noon}
	for i := range stripSlots {
		n := int64(max(i-stripSlots/2, 0))
		d.Buckets, d.Total = append(d.Buckets, admin.DensityBucket{From: d.From.Add(time.Duration(i) * time.Hour / stripSlots), Events: n}), d.Total+n
	}
	return d
}

// fixedKeys has one that stands out.
func fixedKeys() admin.BusyKeys {
	return admin.BusyKeys{Hub: "sensors", Since: *apiTime(2 * time.Minute), Events: 800, Keyed: 800, Keys: []admin.BusyKey{{Partition: "0", Key: "h-048213", Events: 256, Share: .32}}}
}

// fixedCircuitHistory opened four minutes ago.
func fixedCircuitHistory() admin.CircuitHistory {
	h := admin.CircuitHistory{Heard: new(before(time.Hour)), Changes: []admin.CircuitChange{{At: before(4 * time.Minute), State: "open", Term: 3, By: "yard-7f2a", Reason: "101 failures within 30 s", Failures: 101}}}
	h.Function, h.State, h.Since = "score", "open", new(before(4*time.Minute))
	for i := range 10 {
		h.Seconds = append(h.Seconds, admin.CircuitSecond{At: before(4*time.Minute + time.Duration(10-i)*time.Second), Failures: 10})
	}
	return h
}

func fixedChanges() []admin.Activity {
	return []admin.Activity{
		{Number: 12, At: *apiTime(4 * time.Minute), Kind: "circuit.opened", Object: "circuits/score", By: "yard-7f2a", Detail: "101 failures within 30 s"},
		{Number: 11, At: *apiTime(7 * time.Minute), Kind: "instance.went", Object: "hubs/sensors/groups/aggregator/instances/consumer-3"},
		{Number: 10, At: *apiTime(20 * time.Minute), Kind: "hub.created", Object: "hubs/sensors", By: "gateway"},
	}
}

func fixedEvents() []json.RawMessage {
	return []json.RawMessage{
		json.RawMessage(`{"partition":"0","sequence":41,"offset":"41","enqueued":"2026-01-31T11:59:59.000Z","key":"h-048213","contentType":"application/json","messageId":"m1","properties":{"firmware":"4.2.1"},"body":{"sensor":"glass","battery":71,"ok":true}}`),
	}
}

// hostile puts a text into every string of an answer.
func hostile(answers map[string]any, text string) map[string]any {
	out := map[string]any{}
	for path, answer := range answers {
		if answer == nil {
			continue
		}
		v := reflect.New(reflect.TypeOf(answer)).Elem()
		v.Set(reflect.ValueOf(answer))
		poison(v, text)
		out[path] = v.Interface()
	}
	out["GET /api/v1"] = admin.Info{Name: "eventyard", Namespace: text, Version: text, Engine: text, Listeners: map[string]string{text: text}}
	encoded, _ := json.Marshal(text)
	event := fmt.Sprintf(`{"partition":"0","sequence":41,"offset":"41","enqueued":"2026-01-31T11:59:59.000Z","key":%[1]s,"contentType":%[1]s,"messageId":%[1]s,"subject":%[1]s,"properties":{%[1]s:%[1]s},"system":{%[1]s:%[1]s},"body":{%[1]s:[%[1]s,-1.5e3]}}`, encoded)
	out["GET /api/v1/hubs/{hub}/events"] = []json.RawMessage{json.RawMessage(event)}
	return out
}

func poison(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(text)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			fresh := reflect.New(v.Type().Elem())
			fresh.Elem().Set(v.Elem())
			poison(fresh.Elem(), text)
			v.Set(fresh)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				poison(v.Field(i), text)
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			encoded, _ := json.Marshal(map[string]string{text: text})
			v.SetBytes(encoded)
			return
		}
		fresh := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(fresh, v)
		for i := range fresh.Len() {
			poison(fresh.Index(i), text)
		}
		v.Set(fresh)
	case reflect.Map:
		poisonMap(v, text)
	case reflect.Interface:
		if !v.IsNil() {
			fresh := reflect.New(v.Elem().Type()).Elem()
			fresh.Set(v.Elem())
			poison(fresh, text)
			v.Set(fresh)
		}
	}
}

// poisonMap leaves the names of lists, which are the API's own.
func poisonMap(v reflect.Value, text string) {
	fresh := reflect.MakeMap(v.Type())
	for _, key := range v.MapKeys() {
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(v.MapIndex(key))
		poison(value, text)
		if value.Kind() != reflect.Interface {
			key = reflect.ValueOf(text).Convert(v.Type().Key())
		}
		fresh.SetMapIndex(key, value)
	}
	v.Set(fresh)
}

// eachPage gives every page and every form, as a path.
func eachPage(t *testing.T, visit func(t *testing.T, path string)) {
	t.Helper()
	for _, path := range sorted(allPages()) {
		t.Run(path, func(t *testing.T) { visit(t, names.Replace(path)) })
	}
	for _, a := range allActions() {
		if a.sheet != nil {
			t.Run(a.path, func(t *testing.T) { visit(t, names.Replace(a.path)) })
		}
	}
	for _, path := range slices.Concat(journeyPaths, activityPaths, findPaths, eventPaths) {
		t.Run(path, func(t *testing.T) { visit(t, path) })
	}
	t.Run("signin", func(t *testing.T) { visit(t, signInPath) })
	t.Run("missing", func(t *testing.T) { visit(t, base+"nothing") })
}
