package invoke

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
)

// F1: each event carries a stable id and its attempt.
func TestEventsAreSentInTheWordsOfEventHubs(t *testing.T) {
	const begin = `{"function":"billing","hub":"orders","group":"bills","partition":"3","attempt":2,"events":[`
	const position = `{"id":"billing/orders/3/17","sequenceNumber":17,"offset":"17","enqueuedTimeUtc":"2026-11-15T12:00:00.123Z"`
	for _, c := range []struct {
		name  string
		event event.Event
		want  string
	}{
		{"JSON that says so", event.Event{Body: []byte(" {\"n\": 1}\n"), ContentType: "application/vnd.order+json; v=1"}, `,"contentType":"application/vnd.order+json; v=1","body":{"n": 1}}`},
		{"JSON that does not say so stays text, as where it is read", event.Text(`{"n":1}`), `,"body":"{\"n\":1}"}`},
		{"a JSON string stays as it is written", event.Event{Body: []byte(`"a"`), ContentType: "application/json"}, `,"contentType":"application/json","body":"\"a\""}`},
		{"JSON that is none", event.Event{Body: []byte(`{`), ContentType: "application/json"}, `,"contentType":"application/json","body":"{"}`},
		{"JSON of nothing", event.Event{Body: []byte(` `), ContentType: "application/json"}, `,"contentType":"application/json","body":" "}`},
		{"bytes", event.Bytes([]byte{0xff, 0}), `,"bodyBase64":"/wA="}`},
		{"an empty body", event.Text(""), `,"body":""}`},
		{"a value", event.Event{Value: event.Map{{Key: event.Symbol("a"), Value: 1.0}}}, `,"value":{"a":1.0}}`},
		{"everything", event.Event{
			Body: []byte("x"), Key: "k", MessageID: uint64(math.MaxUint64), CorrelationID: [16]byte{0xab}, Subject: "s",
			Properties: map[string]any{"b": true, "a": int32(-1)}, System: map[string]any{"to": "you"},
		}, `,"partitionKey":"k","messageId":"18446744073709551615","correlationId":"ab000000-0000-0000-0000-000000000000","subject":"s",` +
			`"properties":{"a":-1,"b":true},"systemProperties":{"to":"you"},"body":"x"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, want := written(t, EventHubs, callOf(c.event)), begin+position+c.want+"]}"; got != want {
				t.Errorf("wrote %s\nwant  %s", got, want)
			}
		})
	}
}

func TestValuesBecomeTheNearestJSON(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{nil, `null`}, {true, `true`}, {"a\x01\t\r\n\\\xff", `"a\u0001\t\r\n\\` + "\ufffd" + `"`}, {event.Symbol("s"), `"s"`}, {event.Char('é'), `"é"`}, {[]byte("hello"), `"aGVsbG8="`},
		{time.UnixMilli(1), `"1970-01-01T00:00:00.001Z"`}, {[16]byte{0xab}, `"ab000000-0000-0000-0000-000000000000"`},
		{int8(-1), `-1`}, {int16(2), `2`}, {int32(3), `3`}, {int64(math.MinInt64), `-9223372036854775808`}, {4, `4`},
		{uint8(5), `5`}, {uint16(6), `6`}, {uint32(7), `7`}, {uint64(math.MaxUint64), `18446744073709551615`}, {uint(8), `8`},
		{float32(0.1), `0.1`}, {1.0, `1.0`}, {1e100, `1e+100`}, {math.NaN(), `"NaN"`}, {math.Inf(1), `"Infinity"`}, {math.Inf(-1), `"-Infinity"`},
		{event.Decimal32{1}, `"01000000"`}, {event.Decimal64{}, `"0000000000000000"`}, {event.Decimal128{}, `"00000000000000000000000000000000"`},
		{[]any{1, []any{}, "x"}, `[1,[],"x"]`}, {event.Array{Values: []any{1, 2}}, `[1,2]`},
		{event.Map{{Key: int32(1), Value: nil}, {Key: "b", Value: event.Map{}}, {Key: event.Symbol("c"), Value: 1}}, `{"1":null,"b":{},"c":1}`},
		{map[string]any{"b": 1, "a": map[string]any{}}, `{"a":{},"b":1}`}, {event.Described{Descriptor: uint64(1), Value: "x"}, `{"descriptor":1,"value":"x"}`},
		{struct{}{}, `"{}"`},
	} {
		t.Run(fmt.Sprintf("%T %v", c.value, c.value), func(t *testing.T) {
			if got := appendValue(nil, c.value); string(got) != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
		})
	}
}
