package v1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
	"pgregory.net/rapid"
)

// runOf is a run of one stored event.
func runOf(stored []byte) eventlog.Run {
	return eventlog.Run{
		First:  17,
		Time:   time.UnixMilli(1700000000123),
		Events: []eventlog.Event{{Key: []byte("k"), Message: stored}},
	}
}

// sendAgain reads an event from the JSON it was shown as.
func sendAgain(line []byte) (event.Event, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	dec.UseNumber()
	var given sentEvent
	if err := dec.Decode(&given); err != nil {
		return event.Event{}, err
	}
	return given.event()
}

// checkLine insists on one valid JSON object on one line.
func checkLine(t interface{ Fatalf(string, ...any) }, line []byte) {
	if !json.Valid(line) {
		t.Fatalf("not JSON: %q", line)
	}
	if bytes.ContainsAny(line, "\n\r") {
		t.Fatalf("more than one line: %q", line)
	}
}

// anyText draws text with everything in it that JSON has to escape.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("\x00\x1f\"\\/\n\r\t\u2028\uffffé😀a{}[]"))))
}

// plainValue draws what JSON can say without loss.
func plainValue() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(v bool) any { return v }),
		rapid.Map(rapid.Int64(), func(v int64) any { return v }),
		rapid.Map(rapid.Uint64Min(math.MaxInt64+1), func(v uint64) any { return v }),
		rapid.Map(rapid.Float64(), func(v float64) any { return v }),
		rapid.Map(anyText(), func(v string) any { return v }),
	)
}

// H3: whatever is sent by HTTP is shown so that sending it again stores the same bytes.
func TestShownEventsStoreTheSameAgain(t *testing.T) {
	text := rapid.OneOf(rapid.Just(""), anyText())
	rapid.Check(t, func(t *rapid.T) {
		ev := event.Event{
			Body:        rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(anyText(), func(s string) []byte { return []byte(s) })).Draw(t, "body"),
			ContentType: rapid.SampledFrom([]string{"", "text/plain", "application/json", "application/x+json;v=1"}).Draw(t, "type"),
			Subject:     text.Draw(t, "subject"),
			Properties:  rapid.MapOf(anyText(), plainValue()).Draw(t, "properties"),
		}
		if rapid.Bool().Draw(t, "has id") {
			ev.MessageID = text.Draw(t, "id")
		}
		stored, err := message.Append(nil, ev)
		if err != nil {
			t.Skip(err) // what AMQP cannot hold either
		}
		line := eventFormat{}.appendEvent(nil, "0", runOf(stored), 0)
		checkLine(t, line)
		again, err := sendAgain(line)
		testkit.Must(t, err, "%s cannot be sent", line)
		restored, err := message.Append(nil, again)
		testkit.Must(t, err)
		if !bytes.Equal(stored, restored) && !sameButForSpace(ev, again) {
			t.Fatalf("%s\nstored %q\nagain  %q", line, stored, restored)
		}
	})
}

// sameButForSpace: JSON bodies are embedded, and lose their white space.
func sameButForSpace(a, b event.Event) bool {
	var compact bytes.Buffer
	return isJSON(a.ContentType) && json.Compact(&compact, a.Body) == nil && bytes.Equal(compact.Bytes(), b.Body)
}

// H3: ids are text, whatever they were.
func TestIDsAreText(t *testing.T) {
	for id, want := range map[any]string{"m": "m", uint64(7): "7", [16]byte{15: 1}: "00000000-0000-0000-0000-000000000001"} {
		stored, err := message.Append(nil, event.Event{Body: []byte("x"), MessageID: id, CorrelationID: id})
		testkit.Must(t, err)
		var got shown
		testkit.Must(t, json.Unmarshal(eventFormat{}.appendEvent(nil, "0", runOf(stored), 0), &got))
		testkit.Equal(t, got.MessageID, want, "%v is shown as %q and %q", id, got.MessageID, got.CorrelationID)
		testkit.Equal(t, got.CorrelationID, want, "%v is shown as %q and %q", id, got.MessageID, got.CorrelationID)
	}
}

// Whatever bytes are stored, what is shown is one JSON object on one line.
func FuzzStoredEvent(f *testing.F) {
	for _, ev := range []event.Event{
		event.Text("x"),
		{Body: []byte(`{"a" : 1}`), ContentType: "application/json", MessageID: uint64(7), Properties: map[string]any{"a": "b"}},
		{Value: event.Map{{Key: "a", Value: []any{1.5}}}, System: map[string]any{"to": "me", "x-opt-x": event.Symbol("s")}},
	} {
		stored, err := message.Append(nil, ev)
		testkit.Must(f, err)
		f.Add(stored)
	}
	f.Add([]byte("junk"))
	f.Fuzz(func(t *testing.T, stored []byte) {
		for _, format := range []eventFormat{{}, {rawBodies: true}} {
			line := format.appendEvent([]byte("before"), "0", runOf(stored), 0)
			checkLine(t, bytes.TrimPrefix(line, []byte("before")))
		}
	})
}

// Whatever JSON is sent as an event, it is refused or it can be shown, sent again, and
// is then the same.
func FuzzSentEvent(f *testing.F) {
	for _, text := range []string{
		`{"body":"x"}`, `{"body":{"a":[1,2.0]}}`, `{"bodyBase64":"AAE="}`, `{"value":{"a":[1,null]}}`, `{"body":"\ud800\u0000","properties":{"a":1e3}}`,
		`{"body":"x","system":{"user-id":"AAE=","creation-time":"2026-01-02T03:04:05Z","group-sequence":4294967295,"a":{"b":[]}}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ev, err := sendAgain(text)
		if err != nil {
			return
		}
		stored, err := message.Append(nil, ev)
		if err != nil {
			return
		}
		line := eventFormat{}.appendEvent(nil, "0", runOf(stored), 0)
		checkLine(t, line)
		again, err := sendAgain(line)
		testkit.Must(t, err, "%s cannot be sent again", line)
		stored, err = message.Append(nil, again)
		testkit.Must(t, err, "%s cannot be stored again", line)
		twice := eventFormat{}.appendEvent(nil, "0", runOf(stored), 0)
		testkit.MustDiff(t, string(line), string(twice)) // shown as it was, after it was sent again
	})
}

// BenchmarkAppendEvent is what a tail does for every event.
func BenchmarkAppendEvent(b *testing.B) {
	body := []byte(fmt.Sprintf(`{"temperature":21.5,"note":%q}`, strings.Repeat("n", 200)))
	for _, bm := range []struct {
		name string
		ev   event.Event
	}{
		{"text", event.Event{Body: body}},
		{"json", event.Event{Body: body, ContentType: "application/json", Properties: map[string]any{"sensor": "front", "battery": 0.5}}},
	} {
		stored, err := message.Append(nil, bm.ev)
		testkit.Must(b, err)
		run := runOf(stored)
		var buf []byte
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				buf = eventFormat{}.appendEvent(buf[:0], "0", run, 0)
			}
		})
	}
}
