package spec

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestHeadersAreReadAsPeopleTypeThem(t *testing.T) {
	for text, want := range map[string]admin.Header{
		"X-Env=prod":                {Name: "X-Env", Value: "prod"},
		"X-Region={data.region}":    {Name: "X-Region", Field: "data.region"},
		"Authorization=Basic a=b==": {Name: "Authorization", Value: "Basic a=b=="},
		"X-Brace={":                 {Name: "X-Brace", Value: "{"},
		"X-Empty=":                  {Name: "X-Empty"},
	} {
		got, err := ParseHeader(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	// A value that has no name may be a secret: only what stands before the sign is repeated.
	if _, err := ParseHeader("X-Env"); err == nil || !strings.Contains(err.Error(), "X-Env=prod, or X-Region={data.region}") {
		t.Errorf("without a value: %v", err)
	}
}

func TestRetriesAndHeadersAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]admin.Retries{"0": 0, "12": 12, "forever": admin.Forever, "Forever": admin.Forever} {
		if got, err := ParseRetries(text); got != want || err != nil {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-1", "many"} {
		if _, err := ParseRetries(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	name, value, err := ParseHeaderLine(" X-Key : a:b ")
	if name != "X-Key" || value != "a:b" || err != nil {
		t.Errorf("%q, %q, %v", name, value, err)
	}
	if _, _, err := ParseHeaderLine("no colon"); err == nil || strings.Contains(err.Error(), "no colon") {
		t.Error(err)
	}
}

// Flags and files say every value as a text.
func TestTextsAreReadByTheTypeOfTheirField(t *testing.T) {
	for _, tt := range []struct {
		of          Definition
		field, text string
		want        string // the request as JSON; empty: the text is refused
	}{
		{Subscription, "attempts", " 7 ", `{"attempts":7}`}, {Subscription, "attempts", "many", ""},
		{Subscription, "rate", "0.5", `{"rate":0.5}`}, {Subscription, "rate", "fast", ""},
		{Subscription, "binary", "True", `{"binary":true}`}, {Subscription, "binary", "yes", ""},
		{Subscription, "pull", "true", `{"pull":{}}`}, {Subscription, "pull", "false", `{}`}, {Subscription, "pull", "maybe", ""},
		{Subscription, "pull.lock", "5s", `{"pull":{"lock":"5s"}}`}, {Subscription, "types", "a", `{"types":["a"]}`},
		{Subscription, "filters", "data.k IsNull", `{"filters":["data.k IsNull"]}`}, {Subscription, "filters", `{"key":"a"}`, `{"filters":[{"key":"a"}]}`},
		{Subscription, "noRetry", "400, 413", `{"noRetry":[400,413]}`}, {Subscription, "noRetry", "none", `{"noRetry":[]}`}, {Subscription, "noRetry", "4xx", ""},
		{Subscription, "retryFloors", "503=5s", `{"retryFloors":{"503":"5s"}}`}, {Subscription, "retryFloors", "503", ""},
		{Subscription, "headers", "A=b", `{"headers":[{"name":"A","value":"b"}]}`}, {Subscription, "headers", "A: b=c", `{"headers":[{"name":"A","value":"b=c"}]}`}, {Subscription, "headers", "A", ""},
		{Subscription, "properties", `{"a":1}`, `{"properties":{"a":1}}`}, {Subscription, "properties", "{", ""},
		{Function, "retries", "forever", `{"retries":-1}`}, {Function, "headers", "A: b", `{"headers":{"A":"b"}}`}, {Function, "headers", "A=b:c=d", `{"headers":{"A":"b:c=d"}}`}, {Function, "headers", "A", ""},
		{Hub, "retention.age", "7d", `{"retention":{"age":"168h"}}`}, {Hub, "retention.age", "long", ""},
		{Hub, "retention.bytes", "1KiB", `{"retention":{"bytes":1024}}`}, {Hub, "retention.bytes", "big", ""},
		{Policy, "rights", "send,listen", `{"name":"","rights":["send","listen"]}`},
	} {
		t.Run(tt.of.Name+" "+tt.field+" "+tt.text, func(t *testing.T) {
			row, _ := tt.of.Field(tt.field)
			request := reflect.New(tt.of.Type).Interface()
			err := row.Set(request, tt.text)
			got, _ := json.Marshal(request)
			if (err == nil) != (tt.want != "") || err == nil && string(got) != tt.want {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

// Nothing stands for the default; zero does where a duration may be given, or the row says so.
func TestRangesAndWords(t *testing.T) {
	for _, tt := range []struct {
		of          Definition
		field, text string
		good        bool
	}{
		{Subscription, "attempts", "", true}, {Subscription, "attempts", "0", false}, {Subscription, "attempts", "30", true},
		{Subscription, "attempts", "31", false}, {Subscription, "attempts", "-1", false}, {Subscription, "ttl", "2d", false}, {Subscription, "ttl", "1d", true},
		{Subscription, "ttl", "soon", false}, {Subscription, "ttl", "0", true}, {Subscription, "ttl", "-1s", false}, {Subscription, "maxRetryAfter", "-1s", true},
		{Subscription, "rate", "0", true}, {Subscription, "rate", "-1", false}, {Subscription, "rate", "NaN", false}, {Subscription, "rate", "1e999", false},
		{Subscription, "minTls", "1.3", true}, {Subscription, "minTls", "9", false}, {Subscription, "sign", "HMAC", true}, {Subscription, "sign", "rsa", false},
		{Subscription, "schema", "CloudEventSchemaV1_0", true}, {Subscription, "schema", "xml", false},
		{Subscription, "labels", strings.Repeat("ü", 256), true}, {Subscription, "labels", strings.Repeat("x", 257), false},
		{Function, "format", "EventHubs", true}, {Function, "format", "xml", false}, {Function, "target", "1000000", true}, {Function, "target", "-1", false},
		{Function, "breaker", "0/5s", false}, {Function, "breaker", "off", true}, {Function, "breaker", "5/0s", false}, {Function, "breaker", "5/25h", false},
		{Function, "timeout", "x", false}, {Function, "probe", "0", true},
	} {
		t.Run(fmt.Sprintf("%s %.20q", tt.field, tt.text), func(t *testing.T) {
			row, _ := tt.of.Field(tt.field)
			testkit.Equal(t, row.Check(tt.text) == nil, tt.good, "it is taken")
		})
	}
	request := &admin.FunctionRequest{Batch: new(10_001), Timeout: new("x"), Lanes: new(1), MinBatch: new(0)}
	wrong := Function.Check(request)
	if len(wrong) != 3 || wrong["batch"] == nil || wrong["timeout"] == nil || wrong["minBatch"] == nil {
		t.Errorf("found %v", wrong)
	}
	testkit.Equal(t, Function.CheckFirst(request).Error(), "batch: 10001: give 1 to 10000", "the first")
	testkit.Check(t, Function.CheckFirst(&admin.FunctionRequest{}), "nothing is wrong with nothing")
}

// A stored zero is the default.
func TestStoredValuesAreJudgedByTheRow(t *testing.T) {
	for _, good := range []any{0, 1, 5000} {
		testkit.Check(t, Subscription.CheckValue("maxEvents", good), "%v", good)
	}
	for value, name := range map[any]string{5001: "maxEvents", -1: "maxEvents", 99 * time.Millisecond: "timeout", math.Inf(1): "rate"} {
		testkit.That(t, Subscription.CheckValue(name, value) != nil, "%s %v is accepted", name, value)
	}
}

// Files have lists, maps and objects besides texts.
func TestFieldsThatAreNoTexts(t *testing.T) {
	r := new(admin.SubscriptionRequest)
	row := func(name string) Field { f, _ := Subscription.Field(name); return f }
	floors, headers, labels := row("retryFloors"), row("headers"), row("labels")
	floors.SetEntry(r, "503", "5s")
	floors.Clear(r) // which leaves what is there
	labels.Clear(r)
	Field{Name: "oauth"}.Clear(r)
	testkit.Check(t, headers.SetJSON(r, []byte(`{"name":"A","value":"b"}`)))
	if err := headers.SetJSON(r, []byte(`{"nam":"A"}`)); err == nil || err.Error() != `unknown field "nam"` {
		t.Error(err)
	}
	testkit.Check(t, row("properties").SetJSON(r, []byte(`{"a":[1]}`)))
	got, _ := json.Marshal(r)
	want := `{"retryFloors":{"503":"5s"},"headers":[{"name":"A","value":"b"}],"oauth":{"tokenUrl":"","clientId":""},"labels":[],"properties":{"a":[1]}}`
	testkit.Equal(t, string(got), want, "%s", got)
	if secret := Subscription.Fields[slices.IndexFunc(Subscription.Fields, func(f Field) bool { return f.Flag == "secret-header" })]; secret.Set(r, "K=v") != nil || !r.Headers[1].Secret {
		t.Errorf("%+v", r.Headers)
	}
	topic := new(admin.TopicRequest)
	if enable := Topic.Fields[slices.IndexFunc(Topic.Fields, func(f Field) bool { return f.Flag == "enable-keys" })]; enable.Set(topic, "true") != nil || *topic.DisableKeys {
		t.Errorf("%+v", topic)
	}
	if d, ok := Of(reflect.TypeFor[admin.HubRequest]()); !ok || d.Name != "hub" {
		t.Errorf("found %+v", d)
	}
	if _, ok := Of(reflect.TypeFor[int]()); ok {
		t.Error("an int is no definition")
	}
}

// One row gives the help of the flag and of the file.
func TestHelpOfARow(t *testing.T) {
	attempts, _ := Subscription.Field("attempts")
	types, _ := Subscription.Field("types")
	format, _ := Function.Field("format")
	target, _ := Function.Field("target")
	for got, want := range map[string]string{
		Subscription.Usage(attempts):         "attempts for each event, 1 to 30 (default 30)",
		attempts.Sentence():                  "Attempts for each event, 1 to 30. Default: 30.",
		Subscription.Usage(types):            "only events of this type; may be repeated",
		format.Meaning():                     "What is sent: cloudevents or eventhubs.",
		target.Sentence():                    "How many waiting events are worth one instance, at least 1. Default: the batch.",
		Separated("log.syncInterval", "_"):   "log_sync_interval",
		(&ValueError{"5", "give 6"}).Error(): "5: give 6",
	} {
		testkit.Equal(t, got, want)
	}
}
