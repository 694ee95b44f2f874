package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/server"
)

func TestSpans(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 7 * time.Microsecond: "0s", 250 * time.Microsecond: "250µs", 1234567: "1.23ms", 12345678: "12ms",
		2345 * time.Millisecond: "2.3s", 38*time.Second + 900*time.Millisecond: "38s", time.Minute: "1m", 90 * time.Second: "1m30s",
		25 * time.Hour: "25h", 48 * time.Hour: "2d",
	} {
		testkit.Equal(t, showSpan(d), want)
	}
	now := time.Now()
	testkit.Equal(t, showAgo(now, now.Add(-2900*time.Millisecond)), "2s ago")
	testkit.Equal(t, showAgo(now, now.Add(time.Minute)), "0s ago") // by another clock
}

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -1: "-1"} {
		testkit.Equal(t, thousands(n), want, "%d is written", n)
	}
	if got := counted(1, "event") + ", " + counted(0, "event") + ", " + counted(1000, "event"); got != "1 event, 0 events, 1,000 events" {
		t.Errorf("counted: %q", got)
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 1 << 30: "1.0 GiB", 200 << 20: "200 MiB"} {
		testkit.Equal(t, roughBytes(n), want, "%d is written", n)
	}
	for n, want := range map[int64]string{
		1: "1 byte", 1000: "1,000 bytes", 1024: "1KiB", 5 << 20: "5MiB", 5_000_000: "5,000,000 bytes (4.8 MiB)",
		math.MaxInt64: "9,223,372,036,854,775,807 bytes (8.0 EiB)",
	} {
		testkit.Equal(t, exactBytes(n), want, "%d is written", n)
	}
}

func TestRetentionForPeople(t *testing.T) {
	for _, test := range []struct {
		age   string
		bytes int64
		want  string
	}{
		{"168h0m0s", 0, "7d"}, {"36h0m0s", 1 << 30, "36h, 1GiB a partition"}, {"0s", 0, "forever"}, {"0s", 5, "5 bytes a partition"},
	} {
		t.Run(fmt.Sprintf("%s, %d bytes", test.age, test.bytes), func(t *testing.T) {
			testkit.Equal(t, showRetention(test.age, test.bytes), test.want)
		})
	}
}

// What an event holds must not be able to speak to the reader's terminal.
func TestTextStaysOnItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"plain ä 漢 \t tab":  "plain ä 漢 \t tab",
		"two\nlines\r":      `two\nlines\r`,
		"\x1b[31mred\x07":   `\x1b[31mred\a`,
		"\u202ebackwards":   `\u202ebackwards`,
		"\u0085next\u2028x": `\u0085next\u2028x`,
	} {
		if got := oneLine(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestEventsAsText(t *testing.T) {
	for event, want := range map[string]string{
		`{"partition":"1","sequence":7,"enqueued":"T","key":"k","body":"hi\nyou"}`:           `1/7  T  k  hi\nyou`,
		`{"partition":"1","sequence":7,"enqueued":"T","body":{"a":1}}`:                       `1/7  T  -  {"a":1}`,
		`{"partition":"1","sequence":7,"enqueued":"T","bodyBase64":"/wA="}`:                  `1/7  T  -  (2 bytes: ff00)`,
		`{"partition":"1","sequence":7,"enqueued":"T","value":[1,2]}`:                        `1/7  T  -  [1,2]`,
		`{"partition":"1","sequence":7,"enqueued":"T","unreadable":"why","storedBase64":""}`: `1/7  T  -  (unreadable: why)`,
	} {
		var b bytes.Buffer
		if err := (eventForm{}).print(&b, json.RawMessage(event)); err != nil || b.String() != want+"\n" {
			t.Errorf("%s is shown as %q, %v", event, b.String(), err)
		}
	}
	if got := showBytes(strings.Repeat("AAAA", 100)); !strings.HasSuffix(got, "00…)") {
		t.Errorf("many bytes are shown as %q", got)
	}
}

// H4
func TestPositionsThatPeopleWrite(t *testing.T) {
	zone := time.FixedZone("there", 2*60*60)
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, zone)
	for text, want := range map[string]string{
		"earliest": "earliest", "latest": "latest", "17": "17", "after:17": "after:17", "0:17,1:4": "0:17,1:4", "p1.AEAAAg": "p1.AEAAAg",
		"2026-01-31T12:00:00Z":      "2026-01-31T12:00:00Z",
		"2026-01-31T12:00:00.5Z":    "2026-01-31T12:00:00.5Z",
		"2026-01-31T12:00:00+01:00": "2026-01-31T11:00:00Z",
		"2026-01-31T12:00:00":       "2026-01-31T10:00:00Z",
		"2026-01-31 12:00":          "2026-01-31T10:00:00Z",
		"2026-01-31":                "2026-01-30T22:00:00Z",
		"15m":                       "2026-01-31T09:45:00Z",
		"7d":                        "2026-01-24T10:00:00Z",
	} {
		if got, err := parseFrom(text, now); err != nil || got != want {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "never", "-5", "after:", "after:x", "0:", "0:1,", "p1.", "p1.*", "p2.AEAAAg", "2026-13-01", "5 minutes", "1.5"} {
		if got, err := parseFrom(text, now); err == nil {
			t.Errorf("%q is %q, want an error", text, got)
		}
	}
}

func TestErrorsEndWithWhatToTry(t *testing.T) {
	problem := func(kind string) error {
		return &admin.Problem{Type: "urn:eventyard:problem:" + kind, Title: "T", Next: "the yard's own words"}
	}
	taken := func(listener string) error {
		return &server.ListenerError{Listener: listener, Address: "127.0.0.1:1", Err: syscall.EADDRINUSE}
	}
	unverified := func(err error) error {
		return &admin.UnreachableError{Server: "S", Err: &tls.CertificateVerificationError{Err: err}}
	}
	refused := &admin.UnreachableError{Server: "S", Err: syscall.ECONNREFUSED}
	for name, test := range map[string]struct {
		err  error
		code int
		want string
	}{
		"no error":          {nil, 0, ""},
		"Ctrl-C":            {fmt.Errorf("sent 3 events: %w", errInterrupted), 130, "interrupted"},
		"Ctrl-C in a call":  {fmt.Errorf("ask: %w", context.Canceled), 130, ""},
		"usage":             {&usageError{"eventyard send", errors.New("x")}, 2, "see: eventyard send --help"},
		"nobody there":      {refused, 1, "is the yard running? start it with: eventyard serve"},
		"wrapped":           {fmt.Errorf("events 1 to 2: %w", refused), 1, "eventyard serve"},
		"another host":      {&admin.UnreachableError{Server: "S", Err: errors.New("no such host")}, 1, "is --server right?"},
		"broken off":        {&admin.UnreachableError{Server: "S", Err: admin.ErrBrokeOff}, 1, "but not all there is"},
		"damaged events":    {problem("damaged-events"), 1, "eventyard doctor"},
		"a lost meta.db":    {fmt.Errorf("%w: %w", server.ErrMetaLost, fs.ErrNotExist), 1, "restore meta.db from a copy"},
		"a stranger":        {&admin.StrangerError{Server: "S"}, 1, "EVENTYARD_SERVER"},
		"not found":         {problem("not-found"), 1, "eventyard hub list"},
		"own words":         {&advisedError{"it exists", "look at it"}, 1, "error: it exists\n  look at it\n"},
		"too large":         {&tooLargeError{number: 3, size: 2_000_000}, 1, "event 3 is too large: it has 2,000,000 bytes"},
		"a cut connection":  {&admin.UnreachableError{Server: "S", Err: syscall.ECONNRESET}, 1, "the yard went away"},
		"any other problem": {problem("no-space"), 1, "the yard's own words"},
		"a setting":         {&config.Problem{Origin: "--http", Reason: "x"}, 1, "eventyard config doc"},
		"a locked folder":   {fmt.Errorf("open: %w", server.ErrLocked), 1, "--data"},
		"a taken address":   {&server.ListenerError{Listener: "amqp", Address: "127.0.0.1:5672", Err: syscall.EADDRINUSE}, 1, "or close the listener with --amqp off"},
		"two of them":       {errors.Join(taken("amqp"), taken("http")), 1, "with --amqp, --http (port 0 picks a free one), or close the listener with --amqp off, --http off"},
		"a port of root's":  {&server.ListenerError{Listener: "https", Address: ":443", Err: syscall.EACCES}, 1, "choose another address with --https"},
		"no key":            {&admin.Problem{Type: "urn:eventyard:problem:no-token", Title: "T", Status: 401}, 1, "EVENTYARD_CONNECTION_STRING=@DATA/connection-string"},
		"no authority":      {unverified(x509.UnknownAuthorityError{}), 1, "trust the yard's authority: eventyard cert export"},
		"another name":      {unverified(x509.HostnameError{Certificate: &x509.Certificate{}}), 1, "eventyard serve --host NAME adds one"},
		"an old one":        {unverified(x509.CertificateInvalidError{Reason: x509.Expired}), 1, "how long the certificate is valid"},
		"too few rights":    {problem("insufficient-rights"), 1, "eventyard policy list"},
		"no such policy":    {problem("policy-not-found"), 1, "eventyard policy list"},
		"no permission":     {fmt.Errorf("make: %w", fs.ErrPermission), 1, "eventyard doctor"},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			testkit.Equal(t, report(&b, test.err), test.code, "code is")
			if !strings.Contains(b.String(), test.want) || strings.Contains(b.String(), "\x1b") {
				t.Errorf("reported %q", b.String())
			}
		})
	}
	var b bytes.Buffer
	if code := report(&b, errReported); code != 1 || b.Len() != 0 {
		t.Errorf("code %d, %q", code, b.String())
	}
}

// A yard with many policies says how many, and fills no screen with them.
func TestSomePoliciesAreNamed(t *testing.T) {
	reported := server.Access{Readable: []server.Policy{{Name: "a"}, {Name: "b", Hub: "h"}}}
	if got := renewal(reported); got != nil {
		t.Errorf("nothing was renewed: %q", got)
	}
	reported.Renewed = true
	if got := renewal(reported); len(got) != 2 || !strings.Contains(got[1], "still valid: a, b of hub h; replace") {
		t.Errorf("said %q", got)
	}
	reported.Readable = slices.Repeat(reported.Readable, 4)
	if got := renewal(reported); len(got) != 2 || !strings.Contains(got[1], ", a and 3 more; replace") {
		t.Errorf("said %q", got)
	}
	reported.Readable, reported.ReadableTopics = nil, []string{"shop", "till"}
	if got := renewal(reported); len(got) != 2 || !strings.Contains(got[1], "topics could be read as well, and are still valid: shop, till; replace") {
		t.Errorf("said %q", got)
	}
	reported.ReadableTopics = nil
	if got := renewal(reported); len(got) != 1 {
		t.Errorf("said %q", got)
	}
}

// F5: how many failures opened a circuit is told as that, and not as what there is now.
func TestFailuresOfACircuitInWords(t *testing.T) {
	for state, want := range map[string]string{
		"closed": "3 failures now, 1,200 since its instances started", "held": "3 failures now, 1,200 since its instances started",
		"open": "3 failures when it opened, 1,200 since its instances started", "half-open": "3 failures when it opened, 1,200 since its instances started",
	} {
		var out strings.Builder
		one := admin.Circuit{Function: "billing", Failures: 3, Total: 1200, CircuitState: admin.CircuitState{State: state}}
		if err := printCircuit(&out, one); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s%v", state, out.String(), err)
		}
	}
}

// F7: who tries which event is told of a circuit that is half-open, where it is known.
func TestWhatAHalfOpenCircuitTries(t *testing.T) {
	show := func(s admin.CircuitState) string {
		var out strings.Builder
		testkit.Must(t, printCircuit(&out, admin.Circuit{Function: "billing", CircuitState: s}))
		return out.String()
	}
	one := admin.CircuitState{State: "half-open", By: "yard-1"}
	testkit.That(t, !strings.Contains(show(one), "tries "), "it tries something that is not known: %s", show(one))
	one.Trying = &admin.TriedEvent{Partition: "7", Sequence: 41}
	testkit.That(t, strings.Contains(show(one), "partition 7, event 41"), "it does not say what is tried: %s", show(one))
}

// No name breaks a table, whatever is in it: Kafka's groups may be called anything.
func TestTablesShowNamesInOneLine(t *testing.T) {
	var b bytes.Buffer
	table := newTable(&b, "GROUP", "STATE")
	table.row("a\nb\tc", "Stable")
	table.row("red \x1b[31m", "Empty\r")
	testkit.Must(t, table.flush())
	testkit.Equal(t, b.String(), "GROUP         STATE\na\\nb\\tc       Stable\nred \\x1b[31m  Empty\\r\n")
}

// The yard speaks to programs of its API, and the command line speaks to people of commands: of whatever the yard
// refuses with a path of the API the command line says something else, or leaves it to the help.
func TestNextIsInWordsOfCommands(t *testing.T) {
	page := string(testkit.Value(os.ReadFile("../../docs/reference/errors.md"))(t))
	row := regexp.MustCompile("(?m)^\\| (\\d{3}) \\| `([a-z-]+)` \\| .* \\| (.*) \\| .*\\|$")
	found := row.FindAllStringSubmatch(page, -1)
	testkit.That(t, len(found) > 50, "only %d problems were found", len(found))
	for _, one := range found {
		status, _ := strconv.Atoi(one[1])
		next := nextForProblem(&admin.Problem{Type: "urn:eventyard:problem:" + one[2], Status: status, Next: one[3]})
		testkit.That(t, !strings.Contains(next, "/api/"), "%s: %s", one[2], next)
	}
}

func TestFaultsOfJSON(t *testing.T) {
	type event struct {
		Key        string         `json:"key"`
		Properties map[string]any `json:"properties"`
	}
	for text, want := range map[string]string{
		"":                   "it is empty",
		`{"key":`:            "it ends in the middle of its JSON",
		"not json":           "it is no JSON: it goes wrong at character 2",
		"[]":                 "it is a JSON array, and an object like {…} is wanted",
		`{"properties":[1]}`: `its field "properties" cannot be a JSON array`,
	} {
		testkit.Equal(t, jsonFault(json.Unmarshal([]byte(text), new(event))), want, text)
	}
	testkit.Equal(t, jsonFault(errors.New("it is none")), "it is none")
}
