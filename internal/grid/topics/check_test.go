package topics

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// checked is a yard with a source of each kind.
func checked(t *testing.T) *Registry {
	y := newYard(t)
	y.Hub(t, "sensors", 1)
	y.Hub(t, "elsewhere", 1)
	k := y.open(t, Config{
		CheckTarget: func(p Target) error {
			if p.Where == "/etc" {
				return errors.New("not that folder")
			}
			if p.Where == "/usr" {
				return fmt.Errorf("%w: not that folder, either", ErrInvalid)
			}
			return nil
		},
		CheckEndpoint: func(s Subscription) error {
			if strings.Contains(s.Webhook.URL, "internal") {
				return errors.New("not that address")
			}
			return nil
		},
	})
	for name, kind := range map[string]schema.Kind{"orders": schema.EventGrid, "clouds": schema.CloudEvents, "customs": schema.Custom} {
		testkit.Must(t, testkit.Err(k.CreateTopic(t.Context(), TopicConfig{Topic{Name: name, Schema: kind}})))
	}
	return k
}

// with is a webhook with something changed.
func with(f func(*Settings)) Settings {
	s := hook(example)
	f(&s)
	return s
}

func filtered(key string) Settings {
	return with(func(s *Settings) { s.Filter.Advanced = []filter.Condition{{Operator: "IsNotNull", Key: key}} })
}

func headers(all ...Header) Settings { return with(func(s *Settings) { s.Headers = all }) }

// G2, G6, G8, G9, G10: what cannot work is refused when it is asked for, with what to write
// instead.
func TestSettingsThatAreNotAllowed(t *testing.T) {
	k := checked(t)
	hmac, err := signature.New(signature.HMAC)
	testkit.Must(t, err)
	orders, hub := topic("orders"), Source{Hub: "sensors"}
	for i, test := range []struct {
		source Source
		says   string
		s      Settings
	}{
		{orders, "exactly one", Settings{}},
		{orders, "endpoint (--endpoint), hub (--hub) or pull (--pull)", Settings{}},
		{orders, "exactly one", Settings{Hub: "sensors", Pull: &Pull{}}},
		{orders, "exactly one", with(func(s *Settings) { s.Hub = "sensors" })},
		{orders, "no URL", Settings{Webhook: &egress.Endpoint{}}},
		{orders, "at most 8192", hook("https://example.com/" + strings.Repeat("x", 8192))},
		{orders, "not that address", hook("http://internal/hook")},
		{orders, "as in https://example.com/hook", hook("example.com/hook?code=hush")},
		{orders, "as in https://example.com/hook", hook("ftp://example.com/hook?code=hush")},
		{orders, "plain http", with(func(s *Settings) { s.Webhook.URL, s.Webhook.CA = "http://example.com", "x" })},
		{orders, "plain http", with(func(s *Settings) { s.Webhook.URL, s.Webhook.Cert, s.Webhook.Key = "HTTP://127.0.0.1:1", "x", "x" })},
		{orders, "plain http", with(func(s *Settings) { s.Webhook.URL, s.Webhook.OAuth = "http://example.com", &egress.OAuth{} })},
		{orders, "plain http", with(func(s *Settings) { s.Webhook.URL, s.Webhook.OAuth = "http://localhost.example.com", &egress.OAuth{} })},
		{orders, "plain http", with(func(s *Settings) {
			s.Webhook.OAuth = &egress.OAuth{TokenURL: "http://example.com/token"}
		})},
		{orders, "does not exist", Settings{Hub: "nowhere"}},
		{orders, "filter", with(func(s *Settings) { s.Filter.Advanced = []filter.Condition{{Operator: "Like", Key: "x"}} })},
		{orders, `did you mean "data.total"?`, filtered("total")},
		{orders, `did you mean "data.dataschema"?`, filtered("dataschema")},
		{topic("customs"), `did you mean "data.total"? Its data is the whole event as it was published`, filtered("total")},
		{orders, `did you mean "data.customer"?`, with(func(s *Settings) { s.OrderBy = "customer" })},
		{orders, `did you mean "data.customer.id"?`, with(func(s *Settings) { s.OrderBy = "customer.id" })},
		{topic("customs"), `did you mean "data.customer"?`, with(func(s *Settings) { s.OrderBy = "customer" })},
		{orders, `did you mean "data.tenant"?`, headers(Header{Name: "X", Field: "tenant"})},
		{orders, "retry", with(func(s *Settings) { s.Retry = retry.Policy{MaxAttempts: 31} })},
		{orders, "24h", with(func(s *Settings) { s.Retry.TimeToLive = 25 * time.Hour })},
		{orders, "output", with(func(s *Settings) { s.Output = "xml" })},
		{orders, "output", with(func(s *Settings) { s.Output = schema.Custom })},
		{topic("clouds"), "output", with(func(s *Settings) { s.Output = schema.EventGrid })},
		{hub, "output", with(func(s *Settings) { s.Output = schema.Custom })},
		{orders, "CloudEvents'", with(func(s *Settings) { s.Binary = true })},
		{topic("clouds"), "one event in a request", with(func(s *Settings) { s.Binary, s.MaxEvents = true, 2 })},
		{topic("clouds"), "one event in a request", with(func(s *Settings) { s.Binary, s.PreferredKiB = true, 2 })},
		{orders, "1 to 5000", with(func(s *Settings) { s.MaxEvents = 5001 })},
		{orders, "1 to 5000", with(func(s *Settings) { s.MaxEvents = -1 })},
		{orders, "1 to 1024", with(func(s *Settings) { s.PreferredKiB = 1025 })},
		{orders, "at most 10", headers(make([]Header, 11)...)},
		{orders, "letters, digits", headers(Header{Name: "", Value: "x"})},
		{orders, "letters, digits", headers(Header{Name: "X Y", Value: "x"})},
		{orders, "letters, digits", headers(Header{Name: "Größe", Value: "x"})},
		{orders, "letters, digits", headers(Header{Name: "X:Y", Value: "x"})},
		{orders, "twice", headers(Header{Name: "X", Value: "x"}, Header{Name: "x", Value: "y"})},
		{orders, "aeg-", headers(Header{Name: "AEG-event-type", Value: "x"})},
		{orders, "webhook-", headers(Header{Name: "Webhook-Signature", Value: "x"})},
		{orders, "writes it itself", headers(Header{Name: "Content-Type", Value: "x"})},
		{orders, "writes it itself", headers(Header{Name: "content-length", Value: "x"})},
		{orders, "writes it itself", headers(Header{Name: "HOST", Value: "x"})},
		{orders, "writes it itself", headers(Header{Name: "Connection", Value: "x"})},
		{orders, "writes it itself", headers(Header{Name: "Transfer-Encoding", Value: "x"})},
		{topic("clouds"), "writes it itself", with(func(s *Settings) { s.Binary, s.Headers = true, []Header{{Name: "ce-id", Value: "x"}} })},
		{orders, "OAuth", with(func(s *Settings) {
			s.Webhook.OAuth, s.Headers = &egress.OAuth{}, []Header{{Name: "Authorization", Value: "x"}}
		})},
		{orders, "at most 4096", headers(Header{Name: "X", Value: strings.Repeat("x", 4097)})},
		{orders, "line break", headers(Header{Name: "X", Value: "a\r\nb: c"})},
		{orders, "blanks", headers(Header{Name: "X", Value: " a"})},
		{orders, "either a value", headers(Header{Name: "X"})},
		{orders, "either a value", headers(Header{Name: "X", Value: "x", Field: "subject"})},
		{orders, "a path into the event", headers(Header{Name: "X", Field: "data..x"})},
		{orders, "signing keys", with(func(s *Settings) { s.Keys = []signature.Key{{Text: "rot13"}} })},
		{orders, "at most 10", with(func(s *Settings) { s.Keys = make([]signature.Key, 11) })},
		{orders, "only webhooks", Settings{Hub: "sensors", Keys: []signature.Key{hmac}}},
		{orders, "pull.lock: 1ms: give 1s to 24h", Settings{Pull: &Pull{Lock: time.Millisecond}}},
		{orders, "1 to 10", Settings{Pull: &Pull{MaxDeliveries: 11}}},
		{orders, "who pulls gets CloudEvents", Settings{Pull: &Pull{}, Output: schema.EventGrid}},
		{orders, "where events are pulled", Settings{Pull: &Pull{}, Timeout: time.Second}},
		{orders, "where events are pulled", Settings{Pull: &Pull{}, OrderBy: "subject"}},
		{orders, "where events are pulled", Settings{Pull: &Pull{}, MaxEvents: 10}},
		{orders, "where events are pulled", Settings{Pull: &Pull{}, Retry: retry.Policy{MaxAttempts: 3}}},
		{orders, "where events are pulled", Settings{Pull: &Pull{}, Retry: retry.Policy{Schedule: []time.Duration{time.Second}}}},
		{orders, "where events are pulled", Settings{Pull: &Pull{}, Retry: retry.Policy{NoRetry: []int{}}}},
		{topic("clouds"), "a hub has no binary mode", Settings{Hub: "sensors", Binary: true}},
		{orders, "100ms to 30m", with(func(s *Settings) { s.Timeout = 99 * time.Millisecond })},
		{orders, "100ms to 30m", with(func(s *Settings) { s.Timeout = 31 * time.Minute })},
		{orders, "1 to 1000", with(func(s *Settings) { s.Concurrency = 1001 })},
		{orders, "1 to 1000", with(func(s *Settings) { s.Concurrency = -1 })},
		{orders, "rate: ", with(func(s *Settings) { s.Rate = math.NaN() })},
		{orders, "0.00001 to 1000000; 0: any", with(func(s *Settings) { s.Rate = 1e-9 })},
		{orders, "rate: ", with(func(s *Settings) { s.Rate = -1 })},
		{orders, "rate: ", with(func(s *Settings) { s.Rate = math.Inf(1) })},
		{orders, "order by", with(func(s *Settings) { s.OrderBy = "data." })},
		{orders, "in the future", with(func(s *Settings) { s.Expires = time.Now().Add(-time.Hour) })},
		{orders, "year", with(func(s *Settings) { s.Expires = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) })},
		{orders, "label", with(func(s *Settings) { s.Labels = []string{""} })},
		{orders, "at most 100", with(func(s *Settings) { s.Labels = make([]string, 101) })},
		{orders, "make it shorter", with(func(s *Settings) { s.Webhook.CA = strings.Repeat("x", 300<<10) })},
		{orders, "write yard", with(func(s *Settings) { s.DeadLetter = Target{Kind: "tape", Where: "x"} })},
		{orders, "write yard", with(func(s *Settings) { s.DeadLetter = Target{Kind: TargetFolder} })},
		{orders, "not that folder", with(func(s *Settings) { s.DeadLetter = Target{Kind: TargetFolder, Where: "/etc"} })},
		{orders, "not that folder, either", with(func(s *Settings) { s.DeadLetter = Target{Kind: TargetFolder, Where: "/usr"} })},
		{orders, "does not exist", with(func(s *Settings) { s.DeadLetter = Target{Kind: TargetHub, Where: "nowhere"} })},
		{hub, "round for ever", Settings{Hub: "Sensors"}},
		{hub, "round for ever", with(func(s *Settings) { s.DeadLetter = Target{Kind: TargetHub, Where: "SENSORS"} })},
	} {
		t.Run(fmt.Sprintf("%d: %s", i, test.says), func(t *testing.T) {
			_, err := k.Create(t.Context(), test.source, "mailer", test.s)
			wantError(t, err, ErrInvalid, test.says)
			if text := fmt.Sprint(err); strings.Contains(text, strings.Repeat("x", 200)) || strings.Contains(text, "hush") {
				t.Errorf("the error repeats what is too long, or a secret")
			}
			if text := fmt.Sprint(err); strings.Count(text, ErrInvalid.Error()) != 1 {
				t.Errorf("the error says the same several times: %s", text)
			}
		})
	}
}

// G2, G6, G8, G9: what is allowed is, to the last.
func TestSettingsThatAreAllowed(t *testing.T) {
	k := checked(t)
	hmac, _ := signature.New(signature.HMAC)
	ed25519, _ := signature.New(signature.Ed25519)
	for i, test := range []struct {
		name   string
		source Source
		output schema.Kind
		s      Settings
	}{
		{"a topic", topic("orders"), schema.EventGrid, hook("https://example.com")},
		{"a topic of custom events", topic("customs"), schema.EventGrid, hook("https://example.com")},
		{"a topic of CloudEvents", topic("clouds"), schema.CloudEvents, hook("https://example.com")},
		{"a hub", Source{Hub: "sensors"}, schema.CloudEvents, hook("https://example.com")},
		{"a hub as Event Grid events", Source{Hub: "sensors"}, schema.EventGrid, with(func(s *Settings) { s.Output = schema.EventGrid })},
		{"binary CloudEvents", topic("orders"), schema.CloudEvents, with(func(s *Settings) { s.Output, s.Binary, s.MaxEvents = schema.CloudEvents, true, 1 })},
		{"custom events as they are", topic("customs"), schema.Custom, with(func(s *Settings) { s.Output = schema.Custom })},
		{"pull", topic("orders"), schema.CloudEvents, Settings{Pull: &Pull{Lock: time.Second, MaxDeliveries: 10}}},
		{"pull of CloudEvents with dead letters", topic("clouds"), schema.CloudEvents, Settings{Pull: &Pull{}, Output: schema.CloudEvents, DeadLetter: Target{Kind: TargetYard}}},
		{"pull of custom events", topic("customs"), schema.CloudEvents, Settings{Pull: &Pull{}}},
		{"from hub to hub", Source{Hub: "sensors"}, schema.CloudEvents, Settings{Hub: "elsewhere", DeadLetter: Target{Kind: TargetHub, Where: "elsewhere"}}},
		{"a filter by topic", topic("orders"), schema.EventGrid, filtered("Topic")},
		{"a filter by type in another case", topic("orders"), schema.EventGrid, filtered("EVENTTYPE")},
		{"a filter by source", topic("orders"), schema.EventGrid, filtered("source")},
		{"a filter by data version", topic("customs"), schema.EventGrid, filtered("dataVersion")},
		{"a filter within custom data", topic("customs"), schema.EventGrid, filtered("Data.total")},
		{"a filter by data", topic("orders"), schema.EventGrid, filtered("data")},
		{"a filter by an extension", topic("clouds"), schema.CloudEvents, filtered("tenant")},
		{"a filter by partition key", Source{Hub: "sensors"}, schema.CloudEvents, filtered("partitionkey")},
		{"order and header of an extension", topic("clouds"), schema.CloudEvents, with(func(s *Settings) { s.OrderBy, s.Headers = "tenant", []Header{{Name: "X", Field: "tenant"}} })},
		{"order and header of an attribute", topic("orders"), schema.EventGrid, with(func(s *Settings) { s.OrderBy, s.Headers = "Subject", []Header{{Name: "X", Field: "eventTime"}} })},
		{"a webhook and tokens of this machine", topic("orders"), schema.EventGrid, with(func(s *Settings) {
			s.Webhook.URL, s.Webhook.OAuth = "http://localhost:7071/hook", &egress.OAuth{TokenURL: "http://[::1]:1/token"}
		})},
		{"an authority of its own", topic("orders"), schema.EventGrid, with(func(s *Settings) { s.Webhook.CA = "x" })},
		{"everything at its limit", topic("orders"), schema.EventGrid, with(func(s *Settings) {
			s.MaxEvents, s.PreferredKiB, s.Timeout, s.Concurrency, s.Rate, s.OrderBy = 5000, 1024, 30*time.Minute, 1000, 0.5, "data.a.b"
			s.Retry = retry.Policy{MaxAttempts: 30, TimeToLive: 24 * time.Hour, Schedule: []time.Duration{time.Second}}
			s.Headers = []Header{{Name: "Authorization", Value: strings.Repeat("x", 4096), Secret: true}, {Name: "X", Field: "data.x"}}
			s.Keys = []signature.Key{hmac, ed25519}
			s.Expires = time.Now().Add(time.Minute)
			s.Labels = []string{"a"}
			s.DeadLetter = Target{Kind: TargetBlob, Where: "https://a.blob.core.windows.net/dead?sig=x"}
		})},
	} {
		t.Run(test.name, func(t *testing.T) {
			made, err := k.Create(t.Context(), test.source, fmt.Sprintf("sub-%d", i), test.s)
			if err != nil || made.Output != test.output {
				t.Errorf("%s, %v, want %s", made.Output, err, test.output)
			}
		})
	}
}

// G6: an operator may allow more.
func TestLimitsOfRetryAreTheYards(t *testing.T) {
	k := newYard(t).open(t, Config{MaxAttempts: 100, MaxTimeToLive: 72 * time.Hour}, "orders")
	s := with(func(s *Settings) { s.Retry = retry.Policy{MaxAttempts: 100, TimeToLive: 72 * time.Hour} })
	mustCreate(t, k, topic("orders"), "mailer", s)
	s.Retry.MaxAttempts++
	wantError(t, testkit.Err(k.Create(t.Context(), topic("orders"), "biller", s)), ErrInvalid, "100")
}

// G6: a topic keeps events for longer than they may live, however long an operator lets them.
func TestEventsAreKeptWhileTheyLive(t *testing.T) {
	for longest, want := range map[time.Duration]time.Duration{0: DefaultRetention, time.Hour: DefaultRetention, 72 * time.Hour: 96 * time.Hour} {
		engine := &retaining{Engine: newYard(t).Engine}
		newYard(t).open(t, Config{Engine: engine, MaxTimeToLive: longest})
		if engine.age != want {
			t.Errorf("to live for %v: kept for %v", longest, engine.age)
		}
	}
}

// retaining remembers for how long a log is to be kept.
type retaining struct {
	eventlog.Engine
	age time.Duration
}

func (e *retaining) Provide(ctx context.Context, log string, shape eventlog.Shape) error {
	e.age = shape.Retention.Age
	return e.Engine.Provide(ctx, log, shape)
}

// What stood before a check became stricter, or its hub was deleted, may stand; but nothing new
// may come on top.
func TestWhatStandsMayStand(t *testing.T) {
	y := newYard(t)
	y.Hub(t, "sensors", 1)
	k := y.open(t, Config{}, "orders")
	mustCreate(t, k, topic("orders"), "to-a-hub", Settings{Hub: "sensors"})
	testkit.Must(t, y.Broker.DeleteHub(t.Context(), "sensors"))
	testkit.Check(t, testkit.Err(k.Ensure(t.Context(), topic("orders"), "to-a-hub", Settings{Hub: "sensors"})))
	wantError(t, testkit.Err(k.Ensure(t.Context(), topic("orders"), "to-a-hub", Settings{Hub: "sensors", MaxEvents: 2})), ErrInvalid, "does not exist")
}

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]Target{
		"":                     {},
		"none":                 {},
		"yard":                 {Kind: TargetYard},
		"folder:dead/orders":   {Kind: TargetFolder, Where: "dead/orders"},
		"Folder:C:\\dead":      {Kind: TargetFolder, Where: "C:\\dead"},
		"hub:a/b":              {Kind: TargetHub, Where: "a/b"},
		"blob:https://a/c?s=1": {Kind: TargetBlob, Where: "https://a/c?s=1"},
		"blob:http://a:1/b/c":  {Kind: TargetBlob, Where: "http://a:1/b/c"},
	} {
		got, err := ParseTarget(text)
		if err != nil || got != want {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
		if again, err := ParseTarget(got.String()); err != nil || again.Kind != want.Kind {
			t.Errorf("%s: %s, read again: %v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{"none:x", "yard:x", "folder", "folder:", "hub:", "blob:", "blob:/x", "blob:ftp://a/c", "blob:https://a", "blob:https://a/", "blob:https://u:p@a/c?sig=secret", "s3:x"} {
		_, err := ParseTarget(text)
		if !errors.Is(err, ErrInvalid) || strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%s: got %v", text, err)
		}
	}
	for target, want := range map[Target]string{
		{}:                                 "none",
		{Kind: TargetYard}:                 "yard",
		{Kind: TargetFolder, Where: "a?b"}: "folder:a?b",
		{Kind: TargetBlob, Where: "https://a/c?sig=secret", Key: "k"}: "blob:https://a/c?...",
	} {
		testkit.Equal(t, target.String(), want)
	}
}

// The largest definition that is let in can be stored whatever comes on top of it: a proposal as
// large, keys that are rotated, and a place in each of a large hub's partitions.
func TestLargestDefinitionCanBeStored(t *testing.T) {
	s := full(t).Settings
	s.Webhook.CA = ""
	s.Webhook.CA = strings.Repeat("x", maxSettingsBytes-len(s.encode())-len(`,"ca":""`))
	if err := s.checkSize(); err != nil || len(s.encode()) != maxSettingsBytes {
		t.Fatalf("%d bytes, %v", len(s.encode()), err)
	}
	r := &record{Subscription: full(t), Proposal: &proposal{Settings: s.clone(), Validation: Validation{Code: NewUUID(), Token: NewUUID(), Until: now()}}}
	r.Name, r.Source, r.Settings = strings.Repeat("n", spec.MaxSubscriptionName), Source{Hub: strings.Repeat("h", 256)}, s
	for range 1024 {
		r.Starts = append(r.Starts, math.MaxInt64)
	}
	for range 2 * maxRetired {
		key, err := signature.New(signature.Ed25519)
		testkit.Must(t, err)
		overlap := time.Duration(maxKeys-len(r.Keys)) * time.Hour // none, once there are as many as may be
		testkit.Must(t, r.rotate(key, now(), overlap))
	}
	for len(r.Keys) < maxKeys {
		r.Keys, r.Proposal.Settings.Keys = append(r.Keys, r.Keys[0]), append(r.Proposal.Settings.Keys, r.Keys[0])
	}
	if n := len(encode(r)); n > meta.MaxValueBytes {
		t.Errorf("it takes %d bytes, %d too many", n, n-meta.MaxValueBytes)
	}
}
