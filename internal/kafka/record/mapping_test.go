package record

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

func section(t testkit.T, d wire.Descriptor, v any) []byte {
	return testkit.Value(wire.AppendAny(wire.AppendDescriptor(nil, d), v))(t)
}

func join(sections ...[]byte) []byte { return bytes.Join(sections, nil) }

// created is the list of properties with a time of creation, and a content type unless it is empty.
func created(contentType string) []any {
	list := []any{nil, nil, nil, nil, nil, nil, nil, nil, nil, time.UnixMilli(baseTimestamp)}
	if contentType != "" {
		list[propertyContentType] = wire.Symbol(contentType)
	}
	return list
}

// K4: each row of the mapping from Kafka, byte for byte.
func TestRecordsAsAMQP(t *testing.T) {
	annotations := func(pairs ...wire.Pair) []byte { return section(t, wire.DescriptorMessageAnnotations, wire.Map(pairs)) }
	properties := func(contentType string) []byte { return section(t, wire.DescriptorProperties, created(contentType)) }
	application := func(pairs ...wire.Pair) []byte {
		return section(t, wire.DescriptorApplicationProperties, wire.Map(pairs))
	}
	data := func(s string) []byte { return section(t, wire.DescriptorData, []byte(s)) }
	many := make([]Header, 0, 40)
	for i := range 40 {
		many = append(many, header("same", fmt.Sprint(i)))
	}
	for _, tt := range []struct {
		what string
		of   Record
		want []byte
	}{
		{"a value", Record{Value: []byte("v")}, join(properties(""), data("v"))},
		{"an empty value", Record{Value: []byte{}}, join(properties(""), data(""))},
		{"a null value", Record{}, join(annotations(wire.Pair{Key: wire.Symbol("x-opt-kafka-null"), Value: true}), properties(""), data(""))},
		{"a key", Record{Key: []byte("k\x00\xff"), Value: []byte("v")},
			join(annotations(wire.Pair{Key: wire.Symbol("x-opt-kafka-key"), Value: []byte("k\x00\xff")}), properties(""), data("v"))},
		{"an empty key", Record{Key: []byte{}, Value: []byte("v")},
			join(annotations(wire.Pair{Key: wire.Symbol("x-opt-kafka-key"), Value: []byte{}}), properties(""), data("v"))},
		{"a key and no value", Record{Key: []byte("k")}, join(annotations(
			wire.Pair{Key: wire.Symbol("x-opt-kafka-key"), Value: []byte("k")}, wire.Pair{Key: wire.Symbol("x-opt-kafka-null"), Value: true}),
			properties(""), data(""))},
		{"no timestamp", Record{Timestamp: -1 - baseTimestamp, Value: []byte("v")}, data("v")},
		{"headers", Record{Value: []byte("v"), Headers: []Header{header("a", "1"), {[]byte("null"), nil}, header("empty", "")}},
			join(properties(""), application(wire.Pair{Key: "a", Value: []byte("1")}, wire.Pair{Key: "null"}, wire.Pair{Key: "empty", Value: []byte{}}), data("v"))},
		{"a repeated header", Record{Value: []byte("v"), Headers: []Header{header("a", "1"), header("b", "2"), header("a", "3")}},
			join(properties(""), application(wire.Pair{Key: "b", Value: []byte("2")}, wire.Pair{Key: "a", Value: []byte("3")}), data("v"))},
		{"one repeated many times", Record{Value: []byte("v"), Headers: many},
			join(properties(""), application(wire.Pair{Key: "same", Value: []byte("39")}), data("v"))},
		{"a name that is no text", Record{Value: []byte("v"), Headers: []Header{header("\xff", "1"), header("\xfe", "2")}},
			join(properties(""), application(wire.Pair{Key: "\uFFFD", Value: []byte("2")}), data("v"))},
		{"a content type", Record{Value: []byte("v"), Headers: []Header{header("content-type", "text/plain")}},
			join(properties("text/plain"), application(wire.Pair{Key: "content-type", Value: []byte("text/plain")}), data("v"))},
		{"a content type that is none", Record{Value: []byte("v"), Headers: []Header{header("content-type", "t\xff")}},
			join(properties(""), application(wire.Pair{Key: "content-type", Value: []byte("t\xff")}), data("v"))},
		{"a CloudEvent", Record{Value: []byte("{}"), Headers: []Header{
			header("ce_specversion", "1.0"), header("ce_id", "7"), header("ce_bad", "\xff"), header("other", "x"), header("content-type", "application/json"),
		}}, join(properties("application/json"), application(
			wire.Pair{Key: "ce_specversion", Value: []byte("1.0")}, wire.Pair{Key: "ce_id", Value: []byte("7")}, wire.Pair{Key: "ce_bad", Value: []byte("\xff")},
			wire.Pair{Key: "other", Value: []byte("x")}, wire.Pair{Key: "content-type", Value: []byte("application/json")},
			wire.Pair{Key: "cloudEvents:specversion", Value: "1.0"}, wire.Pair{Key: "cloudEvents:id", Value: "7"}), data("{}"))},
		{"what looks like a CloudEvent", Record{Value: []byte("v"), Headers: []Header{header("ce_id", "7")}},
			join(properties(""), application(wire.Pair{Key: "ce_id", Value: []byte("7")}), data("v"))},
		{"a CloudEvent of who knows both", Record{Value: []byte("v"), Headers: []Header{
			header("ce_specversion", "1.0"), header("cloudEvents:specversion", "0.3"),
		}}, join(properties(""), application(
			wire.Pair{Key: "ce_specversion", Value: []byte("1.0")}, wire.Pair{Key: "cloudEvents:specversion", Value: []byte("0.3")}), data("v"))},
	} {
		t.Run(tt.what, func(t *testing.T) {
			tt.of.Timestamp += baseTimestamp
			got := translate(t, batchOf(t, packings[0], []Record{tt.of}), 1, 0)
			testkit.Equal(t, string(got[0]), string(tt.want))
			again, _, err := wire.Normalize(nil, got[0])
			testkit.Must(t, err)
			testkit.Equal(t, string(again), string(tt.want), "it is in the form that the log keeps")
		})
	}
}

// translate gives the messages of a frame behind so many of its records.
func translate(t testkit.T, raw []byte, count, skip int) (messages [][]byte) {
	events, _, err := Translate(nil, nil, eventlog.Run{Form: eventlog.FormKafka, Raw: raw, Count: count, Skip: skip}, 1<<30)
	testkit.Must(t, err)
	for _, e := range events {
		testkit.That(t, e.Key == nil, "it has a partition key: %q", e.Key)
		messages = append(messages, e.Message)
	}
	return messages
}

// K4: each row of the mapping to Kafka, byte for byte.
func TestEventsAsRecords(t *testing.T) {
	encoded := func(v any) string { return string(testkit.Value(wire.AppendAny(nil, v))(t)) }
	data := section(t, wire.DescriptorData, []byte("v"))
	properties := func(list ...any) []byte { return join(section(t, wire.DescriptorProperties, list), data) }
	application := func(pairs ...wire.Pair) []byte {
		return join(section(t, wire.DescriptorApplicationProperties, wire.Map(pairs)), data)
	}
	annotated := func(name string, v any, body []byte) []byte {
		return join(section(t, wire.DescriptorMessageAnnotations, wire.Map{{Key: uint64(5), Value: "numbered"}, {Key: wire.Symbol(name), Value: v}}), body)
	}
	empty, v := section(t, wire.DescriptorData, []byte{}), []byte("v")
	uuid := wire.UUID{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}
	for _, tt := range []struct {
		what string
		of   eventlog.Event
		want Record
	}{
		{"data", eventlog.Event{Message: data}, Record{Value: v}},
		{"several data sections", eventlog.Event{Message: join(data, empty, data)}, Record{Value: []byte("vv")}},
		{"no data", eventlog.Event{Message: empty}, Record{Value: []byte{}}},
		{"no body", eventlog.Event{}, Record{Value: []byte{}}},
		{"data that is null", eventlog.Event{Message: section(t, wire.DescriptorData, nil)}, Record{Value: []byte{}}},
		{"a value", eventlog.Event{Message: section(t, wire.DescriptorValue, "text")}, Record{Value: []byte(encoded("text"))}},
		{"sequences", eventlog.Event{Message: join(section(t, wire.DescriptorSequence, []any{"a"}), section(t, wire.DescriptorSequence, []any{true}))},
			Record{Value: []byte(encoded([]any{"a"}) + encoded([]any{true}))}},
		{"a key of Kafka's", eventlog.Event{Message: annotated(annotationKey, []byte("k\xff"), data)}, Record{Key: []byte("k\xff"), Value: v}},
		{"one of text", eventlog.Event{Message: annotated(annotationKey, "k", data)}, Record{Key: []byte("k"), Value: v}},
		{"null", eventlog.Event{Message: annotated(annotationNull, true, empty)}, Record{}},
		{"null that is not", eventlog.Event{Message: annotated(annotationNull, true, data)}, Record{Value: v}},
		{"null that is false", eventlog.Event{Message: annotated(annotationNull, false, empty)}, Record{Value: []byte{}}},
		{"another annotation", eventlog.Event{Message: annotated("x-mine", "y", data)}, Record{Value: v}},
		{"a partition key", eventlog.Event{Key: []byte("home-42"), Message: data}, Record{Value: v, Headers: []Header{header("x-opt-partition-key", "home-42")}}},
		{"application properties", eventlog.Event{Message: application(wire.Pair{Key: "a", Value: int32(1)}, wire.Pair{Key: "b", Value: "x"}, wire.Pair{Key: "n"})},
			Record{Value: v, Headers: []Header{header("a", encoded(int32(1))), header("b", encoded("x")), header("n", encoded(nil))}}},
		{"properties", eventlog.Event{Message: properties("id", []byte("user"), "to", "subject", "reply", uint64(9), wire.Symbol("text/plain"), wire.Symbol("gzip"),
			time.UnixMilli(5), time.UnixMilli(1), "group")},
			Record{Value: v, Headers: []Header{
				header("message-id", "id"), header("user-id", "user"), header("to", "to"), header("reply-to", "reply"), header("content-type", "text/plain"),
				header("content-encoding", "gzip"), header("creation-time", "1970-01-01T00:00:00.001Z"),
			}}},
		{"a number as an id", eventlog.Event{Message: properties(uint64(18))}, Record{Value: v, Headers: []Header{header("message-id", "18")}}},
		{"a uuid as an id", eventlog.Event{Message: properties(uuid)},
			Record{Value: v, Headers: []Header{header("message-id", "01234567-89ab-cdef-0123-456789abcdef")}}},
		{"an id that is a list", eventlog.Event{Message: properties([]any{"id"})}, Record{Value: v}},
		{"a CloudEvent", eventlog.Event{Message: application(
			wire.Pair{Key: "cloudEvents:id", Value: "7"}, wire.Pair{Key: "cloudEvents_time", Value: time.UnixMilli(1)}, wire.Pair{Key: "cloudEvents:x", Value: 1.5})},
			Record{Value: v, Headers: []Header{
				header("cloudEvents:id", encoded("7")), header("cloudEvents_time", encoded(time.UnixMilli(1))), header("cloudEvents:x", encoded(1.5)),
				header("ce_id", "7"), header("ce_time", "1970-01-01T00:00:00.001Z"),
			}}},
		{"a trace", eventlog.Event{Message: application(
			wire.Pair{Key: "traceparent", Value: "00-1"}, wire.Pair{Key: "other", Value: "x"}, wire.Pair{Key: "tracestate", Value: []byte("a=1")})},
			Record{Value: v, Headers: []Header{
				header("traceparent", encoded("00-1")), header("other", encoded("x")), header("tracestate", encoded([]byte("a=1"))),
				header("traceparent", "00-1"), header("tracestate", "a=1"),
			}}},
		{"a trace that is none", eventlog.Event{Message: application(wire.Pair{Key: "traceparent", Value: 1.5})},
			Record{Value: v, Headers: []Header{header("traceparent", encoded(1.5))}}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			tt.want.Timestamp = baseTimestamp
			run := eventlog.Run{First: offsetInLog, Time: time.UnixMilli(baseTimestamp), Events: []eventlog.Event{tt.of}}
			batch, unread := AppendRun(nil, run)
			testkit.Equal(t, unread, 0, "that could not be read")
			sameRecords(t, read(t, batch), []Record{tt.want}, tt.what)
			testkit.Equal(t, string(batch), string(batchOf(t, packings[0], []Record{tt.want})))
		})
	}
}

// An event that is not what it was keeps its offset; what is behind dst is the batch and nothing else.
func TestARunBecomesOneBatch(t *testing.T) {
	good := section(t, wire.DescriptorData, []byte("v"))
	run := eventlog.Run{First: 7, Time: time.UnixMilli(baseTimestamp), Events: []eventlog.Event{{Message: good}, {Message: []byte("no AMQP")}, {Message: good}}}
	dst, unread := AppendRun([]byte("before"), run)
	testkit.Equal(t, unread, 1)
	batch := bytes.TrimPrefix(dst, []byte("before"))
	testkit.Must(t, testkit.Err(Check(batch)))
	testkit.Equal(t, testkit.Value(ReadHead(batch))(t).BaseOffset, 7)
	record := func(value string) Record { return Record{Timestamp: baseTimestamp, Value: []byte(value)} }
	sameRecords(t, read(t, batch), []Record{record("v"), record(""), record("v")}, "read")
}

// K4: who writes what it has read, of what both protocols have, has changed nothing but how headers are encoded.
func TestThereAndBack(t *testing.T) {
	sent := Record{Timestamp: baseTimestamp, Key: []byte("k"), Value: []byte("v"), Headers: []Header{header("content-type", "text/plain"), header("ce_specversion", "1.0")}}
	e := testkit.Value(message.Decode(translate(t, batchOf(t, packings[0], []Record{sent}), 1, 0)[0]))(t)
	testkit.Diff(t, event.Event{
		Body: []byte("v"), ContentType: "text/plain",
		Properties: map[string]any{"content-type": []byte("text/plain"), "ce_specversion": []byte("1.0"), "cloudEvents:specversion": "1.0"},
		System:     map[string]any{"x-opt-kafka-key": []byte("k"), "creation-time": time.UnixMilli(baseTimestamp).UTC()},
	}, e)
	stored := testkit.Value(message.Append(nil, e))(t)
	batch, _ := AppendRun(nil, eventlog.Run{Time: time.UnixMilli(baseTimestamp), Events: []eventlog.Event{{Message: stored}}})
	back := read(t, batch)[0]
	testkit.Equal(t, string(back.Key), "k")
	testkit.Equal(t, string(back.Value), "v")
	last := map[string]string{}
	for _, h := range back.Headers {
		last[string(h.Name)] = string(h.Value)
	}
	testkit.Equal(t, last["content-type"], "text/plain")
	testkit.Equal(t, last["ce_specversion"], "1.0")
}
