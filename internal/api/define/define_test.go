package define

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/runner"
	"github.com/eventyard/eventyard/internal/functions/triage"
	"github.com/eventyard/eventyard/internal/testkit"
)

const everySetting = `{"name":"billing","hub":"orders","group":"g","endpoint":"http://x/","format":"eventhubs","headers":{"A":"secret"},
	"batch":7,"minBatch":2,"maxWait":"3s","lanes":4,"start":"latest","timeout":"5s","retries":-1,"retryDelay":"200ms","retryMaxDelay":"1m","exponential":true,
	"poison":"bad","breaker":"20/10s","probe":"7s","probeMax":"1h","countAttempts":true,"notify":["mailto:a@b"],"target":9}`

func every() runner.Definition {
	return runner.Definition{
		Name: "billing", Hub: "orders", Group: "g", Endpoint: "http://x/", Format: "eventhubs", Headers: map[string]string{"A": "secret"},
		Batch: 7, MinBatch: 2, MaxWait: 3 * time.Second, Lanes: 4, Start: "latest", Timeout: 5 * time.Second, Retries: new(-1),
		RetryDelay: 200 * time.Millisecond, RetryMax: time.Minute, Exponential: true, Poison: "bad",
		Breaker: breaker.Policy{Failures: 20, Within: 10 * time.Second, Probe: 7 * time.Second, ProbeMax: time.Hour, Attempts: true},
		Notify:  []string{"mailto:a@b"}, Target: 9,
	}
}

func applied(t *testing.T, text string, to runner.Definition) (runner.Definition, error) {
	t.Helper()
	var r admin.FunctionRequest
	testkit.Must(t, json.Unmarshal([]byte(text), &r))
	err := Apply(r, &to)
	return to, err
}

func TestEverySettingIsRead(t *testing.T) {
	got, err := applied(t, everySetting, runner.Definition{})
	if diff := cmp.Diff(every(), got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestWhatIsNotGivenStays(t *testing.T) {
	got, err := applied(t, `{"retries":0}`, every())
	want := every()
	want.Retries = new(0)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if got, _ = applied(t, `{"notify":[],"headers":{}}`, every()); len(got.Notify)+len(got.Headers) != 0 {
		t.Errorf("empty lists leave %v and %v", got.Notify, got.Headers)
	}
}

// F3: waits double where nothing is said of retries, and not where that is refused.
func TestWaitsThatAreNotToDouble(t *testing.T) {
	for text, want := range map[string]runner.Definition{
		`{}`:                    {},
		`{"exponential":false}`: {RetryDelay: triage.DefaultDelay},
		`{"exponential":false,"retryDelay":"7s"}`:   {RetryDelay: 7 * time.Second},
		`{"exponential":true,"retryMaxDelay":"8s"}`: {Exponential: true, RetryMax: 8 * time.Second},
	} {
		if got, err := applied(t, text, runner.Definition{}); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func TestWhatIsShownCanBeGivenAgain(t *testing.T) {
	shown := Show(runner.Function{Definition: every(), Lag: 3, Poisoned: -1, PoisonTarget: "bad"})
	text, err := json.Marshal(shown)
	testkit.Must(t, err)
	if strings.Contains(string(text), "secret") {
		t.Errorf("a header's value is shown: %s", text)
	}
	fields := map[string]json.RawMessage{}
	testkit.Must(t, json.Unmarshal(text, &fields))
	delete(fields, "headers")
	if text, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	got, err := applied(t, string(text), runner.Definition{})
	want := every()
	want.Headers = nil
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if shown.Poisoned != nil || *shown.Lag != 3 || shown.Circuit.State != "closed" {
		t.Errorf("shown as %+v", shown)
	}
}

// R1: the values of headers are never shown, so that they do not go where somebody else listens.
func TestHeadersDoNotMove(t *testing.T) {
	_, err := applied(t, `{"endpoint":"http://elsewhere/"}`, every())
	if testkit.ErrorIs(t, err, runner.ErrInvalid); err != nil && strings.Contains(err.Error(), "secret") {
		t.Errorf("told is %v", err)
	}
	for text, want := range map[string]map[string]string{
		`{"endpoint":"http://elsewhere/","headers":{"B":"new"}}`: {"B": "new"},
		`{"endpoint":"http://elsewhere/","headers":{}}`:          {},
		`{"endpoint":"http://x/"}`:                               {"A": "secret"},
		`{"batch":5}`:                                            {"A": "secret"},
	} {
		got, err := applied(t, text, every())
		testkit.Check(t, err, "%s", text)
		testkit.Diff(t, want, got.Headers)
	}
	none := every()
	none.Headers = nil
	testkit.Check(t, testkit.Err(applied(t, `{"endpoint":"http://elsewhere/"}`, none)), "without headers")
}

// R1: in the URLs of chats the path is what lets in. It is not shown, and may be written back so.
func TestTargetsAreShownWithoutTheirSecrets(t *testing.T) {
	d := every()
	d.Notify = []string{
		"mailto:a@b", "https://chat.example/services/SECRET1", "https://chat.example/services/SECRET2", "https://plain.example/", "https://q.example?k=SECRET3",
	}
	shown := Show(runner.Function{Definition: d}).Notify
	testkit.Slices(t, shown, []string{"mailto:a@b", "https://chat.example/...", "https://chat.example/...", "https://plain.example/", "https://q.example/..."})
	back, err := json.Marshal(admin.FunctionRequest{Notify: shown})
	testkit.Must(t, err)
	got, err := applied(t, string(back), d)
	testkit.Must(t, err)
	testkit.Slices(t, got.Notify, d.Notify)
	for _, text := range []string{
		`{"notify":["https://elsewhere.example/..."]}`, `{"notify":["http://chat.example/..."]}`, `{"notify":["https://q.example/...","https://q.example/..."]}`,
	} {
		testkit.ErrorIs(t, testkit.Err(applied(t, text, d)), runner.ErrInvalid, "%s", text)
	}
}

func TestBadWordsAreRefused(t *testing.T) {
	for _, text := range []string{
		`{"timeout":"soon"}`, `{"breaker":"100"}`, `{"breaker":"0/30s"}`, `{"breaker":"-1/30s"}`, `{"breaker":"5/0s"}`, `{"breaker":"a/30s"}`, `{"probe":"x"}`,
	} {
		testkit.ErrorIs(t, testkit.Err(applied(t, text, runner.Definition{})), runner.ErrInvalid, "%s", text)
	}
}

// What a row of the spec allows is what the runner allows.
func TestRangesAreThoseOfTheSpec(t *testing.T) {
	for _, row := range spec.Function.Fields {
		if row.Max == 0 {
			continue
		}
		for n, good := range map[float64]bool{row.Min: true, row.Max: true, row.Max + 1: false, row.Min - 1: false} {
			d, err := applied(t, fmt.Sprintf(`{"name":"f","hub":"h","endpoint":"http://x/","batch":10000,%q:%v}`, row.Name, n), runner.Definition{})
			if err == nil {
				err = runner.Check(d)
			}
			testkit.Equal(t, (err == nil), good, "%s %v: %v", row.Name, n, err)
		}
	}
}

func TestABreakerCanBeSwitchedOff(t *testing.T) {
	got, err := applied(t, `{"breaker":"off"}`, every())
	if err != nil || got.Breaker.Failures >= 0 {
		t.Errorf("%+v, %v", got.Breaker, err)
	}
	testkit.Equal(t, Show(runner.Function{Definition: got}).Breaker, "off", "shown")
	testkit.Equal(t, Show(runner.Function{}).Timeout, "", "a time that was never set is shown")
	testkit.Equal(t, *ShowCircuit(runner.Circuit{Lag: 5}).Lag, 5, "the lag is shown")
}

func TestACircuitIsShownWithItsErrors(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := ShowCircuit(runner.Circuit{
		Function: "f", Hub: "h", Group: "g", Failures: 3, Total: 9, Lag: -1, Here: true, Instances: map[string]breaker.Tally{"i": {Total: 9}},
		Record: breaker.Record{State: breaker.Open, Term: 2, Incident: "x", Since: at, Samples: []breaker.Sample{{At: at, Partition: "1", Sequence: 7, Error: "boom"}}},
	})
	if c.State != "open" || c.Lag != nil || c.Instances["i"] != 9 || len(c.Errors) != 1 || c.Errors[0].Error != "boom" || !c.Since.Equal(at) {
		t.Errorf("%+v", c)
	}
}
