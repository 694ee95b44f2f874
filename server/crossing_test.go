package server

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/testkit"
)

// crossing is an event that is sent by one protocol and read by all three.
type crossing struct {
	what string
	// One of these is what is sent.
	record  *record.Record
	message *goamqp.Message
	json    string

	// What readers are given; of a timestamp that is 0 it is the time of storing.
	kafka record.Record
	amqp  goamqp.Message
	http  string
}

const (
	crossedMillis = 1_767_323_045_006
	crossedTime   = `"2026-01-02T03:04:05.006Z"`
)

// crossed is a record with a timestamp.
func crossed(key, value []byte, headers ...record.Header) record.Record {
	return record.Record{Timestamp: crossedMillis, Key: key, Value: value, Headers: headers}
}

func kafkaHeader(name, value string) record.Header {
	return record.Header{Name: []byte(name), Value: []byte(value)}
}

// dataOf is a message as it is received.
func dataOf(value string, annotations goamqp.Annotations, properties *goamqp.MessageProperties, application map[string]any) goamqp.Message {
	return goamqp.Message{Data: [][]byte{[]byte(value)}, Annotations: annotations, Properties: properties, ApplicationProperties: application}
}

// base64Of is how JSON shows bytes.
func base64Of(s string) string { return `"` + base64.StdEncoding.EncodeToString([]byte(s)) + `"` }

// crossings has the rows of docs/internals/kafka.md. The bytes of AMQP's encodings are written out: a str8 is a1, its length
// and the text, an int of one byte 54, a long of one byte 55, null 40,
// true 41, and a list32, as this sender writes them, d0.
func crossings() []crossing {
	created := new(time.UnixMilli(crossedMillis).UTC())
	at := func(contentType string) *goamqp.MessageProperties {
		p := &goamqp.MessageProperties{CreationTime: created}
		if contentType != "" {
			p.ContentType = &contentType
		}
		return p
	}
	full := crossed([]byte("k\x00\xff"), []byte("v"), kafkaHeader("a", "1"), record.Header{Name: []byte("n")}, kafkaHeader("e", ""), kafkaHeader("a", "2\xff"))
	tombstone := crossed([]byte("k"), nil)
	empty := crossed([]byte{}, []byte{})
	plain := crossed(nil, []byte("v"))
	binary := crossed(nil, []byte{0xff, 0})
	typed := crossed(nil, []byte(`{"n": 1}`), kafkaHeader("content-type", "application/json"))
	cloud := crossed(nil, []byte("x"), kafkaHeader("ce_specversion", "1.0"), kafkaHeader("ce_id", "7"))
	return []crossing{
		{
			what: "a key, headers, one twice and one null", record: &full, kafka: full,
			amqp: dataOf("v", goamqp.Annotations{"x-opt-kafka-key": []byte("k\x00\xff")}, at(""), map[string]any{"n": nil, "e": []byte{}, "a": []byte("2\xff")}),
			http: `"properties":{"a":` + base64Of("2\xff") + `,"e":"","n":null},"system":{"creation-time":` + crossedTime + `,"x-opt-kafka-key":` + base64Of("k\x00\xff") + `},"body":"v"`,
		},
		{
			what: "a tombstone", record: &tombstone, kafka: tombstone,
			amqp: dataOf("", goamqp.Annotations{"x-opt-kafka-key": []byte("k"), "x-opt-kafka-null": true}, at(""), nil),
			http: `"system":{"creation-time":` + crossedTime + `,"x-opt-kafka-key":` + base64Of("k") + `,"x-opt-kafka-null":true},"body":""`,
		},
		{
			what: "an empty key and value", record: &empty, kafka: empty,
			amqp: dataOf("", goamqp.Annotations{"x-opt-kafka-key": []byte{}}, at(""), nil),
			http: `"system":{"creation-time":` + crossedTime + `,"x-opt-kafka-key":""},"body":""`,
		},
		{
			what: "a value alone", record: &plain, kafka: plain, amqp: dataOf("v", nil, at(""), nil),
			http: `"system":{"creation-time":` + crossedTime + `},"body":"v"`,
		},
		{
			what: "a value that is no text", record: &binary, kafka: binary, amqp: dataOf("\xff\x00", nil, at(""), nil),
			http: `"system":{"creation-time":` + crossedTime + `},"bodyBase64":` + base64Of("\xff\x00"),
		},
		{
			what: "a content type", record: &typed, kafka: typed,
			amqp: dataOf(`{"n": 1}`, nil, at("application/json"), map[string]any{"content-type": []byte("application/json")}),
			http: `"contentType":"application/json","properties":{"content-type":` + base64Of("application/json") + `},"system":{"creation-time":` + crossedTime + `},"body":{"n":1}`,
		},
		{
			what: "a CloudEvent of Kafka's", record: &cloud, kafka: cloud,
			amqp: dataOf("x", nil, at(""), map[string]any{
				"ce_specversion": []byte("1.0"), "ce_id": []byte("7"), "cloudEvents:specversion": "1.0", "cloudEvents:id": "7",
			}),
			http: `"properties":{"ce_id":` + base64Of("7") + `,"ce_specversion":` + base64Of("1.0") + `,"cloudEvents:id":"7","cloudEvents:specversion":"1.0"},` +
				`"system":{"creation-time":` + crossedTime + `},"body":"x"`,
		},

		{
			what: "AMQP's properties", message: &goamqp.Message{
				Data:                  [][]byte{[]byte("v")},
				Annotations:           goamqp.Annotations{"x-opt-partition-key": "home-42"},
				ApplicationProperties: map[string]any{"i": int32(1)},
				Properties: &goamqp.MessageProperties{
					MessageID: uint64(18), UserID: []byte("me"), To: new("to"), Subject: new("s"), ReplyTo: new("back"),
					ContentType: new("text/plain"), ContentEncoding: new("gzip"), CreationTime: created,
				},
			},
			kafka: record.Record{Value: []byte("v"), Headers: []record.Header{
				kafkaHeader("i", "\x54\x01"), kafkaHeader("message-id", "18"), kafkaHeader("user-id", "me"), kafkaHeader("to", "to"), kafkaHeader("reply-to", "back"),
				kafkaHeader("content-type", "text/plain"), kafkaHeader("content-encoding", "gzip"), kafkaHeader("creation-time", "2026-01-02T03:04:05.006Z"),
				kafkaHeader("x-opt-partition-key", "home-42"),
			}},
			amqp: dataOf("v", goamqp.Annotations{"x-opt-partition-key": "home-42"}, &goamqp.MessageProperties{
				MessageID: uint64(18), UserID: []byte("me"), To: new("to"), Subject: new("s"), ReplyTo: new("back"),
				ContentType: new("text/plain"), ContentEncoding: new("gzip"), CreationTime: created,
			}, map[string]any{"i": int32(1)}),
			http: `"key":"home-42","contentType":"text/plain","messageId":"18","subject":"s","properties":{"i":1},` +
				`"system":{"content-encoding":"gzip","creation-time":` + crossedTime + `,"reply-to":"back","to":"to","user-id":` + base64Of("me") + `},"body":"v"`,
		},
		{
			what:    "Kafka's key from AMQP, and a null value",
			message: &goamqp.Message{Data: [][]byte{{}}, Annotations: goamqp.Annotations{"x-opt-kafka-key": []byte("k\xff"), "x-opt-kafka-null": true}},
			kafka:   record.Record{Key: []byte("k\xff")},
			amqp:    dataOf("", goamqp.Annotations{"x-opt-kafka-key": []byte("k\xff"), "x-opt-kafka-null": true}, nil, nil),
			http:    `"system":{"x-opt-kafka-key":` + base64Of("k\xff") + `,"x-opt-kafka-null":true},"body":""`,
		},
		{
			what: "several data sections", message: &goamqp.Message{Data: [][]byte{[]byte("a"), []byte("b")}},
			kafka: record.Record{Value: []byte("ab")}, amqp: goamqp.Message{Data: [][]byte{[]byte("a"), []byte("b")}}, http: `"body":"ab"`,
		},
		{
			what: "AMQP's value", message: &goamqp.Message{Value: "text"},
			kafka: record.Record{Value: []byte("\xa1\x04text")}, amqp: goamqp.Message{Value: "text"}, http: `"value":"text"`,
		},
		{
			what: "AMQP's sequence", message: &goamqp.Message{Sequence: [][]any{{"a", true}}},
			kafka: record.Record{Value: []byte("\xd0\x00\x00\x00\x08\x00\x00\x00\x02\xa1\x01a\x41")}, amqp: goamqp.Message{Sequence: [][]any{{"a", true}}}, http: `"value":[["a",true]]`,
		},
		{
			what: "a CloudEvent of AMQP's", message: &goamqp.Message{
				Data: [][]byte{[]byte("{}")}, Properties: &goamqp.MessageProperties{ContentType: new("application/json")},
				ApplicationProperties: map[string]any{"cloudEvents:id": "7"},
			},
			kafka: record.Record{Value: []byte("{}"), Headers: []record.Header{
				kafkaHeader("cloudEvents:id", "\xa1\x017"), kafkaHeader("ce_id", "7"), kafkaHeader("content-type", "application/json"),
			}},
			amqp: dataOf("{}", nil, &goamqp.MessageProperties{ContentType: new("application/json")}, map[string]any{"cloudEvents:id": "7"}),
			http: `"contentType":"application/json","properties":{"cloudEvents:id":"7"},"body":{}`,
		},

		{
			what: "HTTP's text, with a key and a property", json: `{"body":"v","key":"home-42","messageId":"m","properties":{"n":null}}`,
			kafka: record.Record{Value: []byte("v"), Headers: []record.Header{kafkaHeader("n", "\x40"), kafkaHeader("message-id", "m"), kafkaHeader("x-opt-partition-key", "home-42")}},
			amqp:  dataOf("v", goamqp.Annotations{"x-opt-partition-key": "home-42"}, &goamqp.MessageProperties{MessageID: "m"}, map[string]any{"n": nil}),
			http:  `"key":"home-42","messageId":"m","properties":{"n":null},"body":"v"`,
		},
		{
			what: "HTTP's JSON", json: `{"body":{"n": 1}}`,
			kafka: record.Record{Value: []byte(`{"n":1}`), Headers: []record.Header{kafkaHeader("content-type", "application/json")}},
			amqp:  dataOf(`{"n":1}`, nil, &goamqp.MessageProperties{ContentType: new("application/json")}, nil),
			http:  `"contentType":"application/json","body":{"n":1}`,
		},
		{
			what: "HTTP's bytes", json: `{"bodyBase64":` + base64Of("\xff\x00") + `}`,
			kafka: record.Record{Value: []byte("\xff\x00")}, amqp: dataOf("\xff\x00", nil, nil, nil), http: `"bodyBase64":` + base64Of("\xff\x00"),
		},
		{
			what: "an empty body over HTTP", json: `{"body":""}`,
			kafka: record.Record{Value: []byte{}}, amqp: dataOf("", nil, nil, nil), http: `"body":""`,
		},
		{
			what: "Kafka's key from HTTP, and a null value", json: `{"body":"","system":{"x-opt-kafka-key":"k","x-opt-kafka-null":true}}`,
			kafka: record.Record{Key: []byte("k")},
			amqp:  dataOf("", goamqp.Annotations{"x-opt-kafka-key": "k", "x-opt-kafka-null": true}, nil, nil),
			http:  `"system":{"x-opt-kafka-key":"k","x-opt-kafka-null":true},"body":""`,
		},
		{
			what: "HTTP's value", json: `{"value":1}`,
			kafka: record.Record{Value: []byte("\x55\x01")}, amqp: goamqp.Message{Value: int64(1)}, http: `"value":1`,
		},
		{
			what: "a CloudEvent over HTTP", json: `{"body":"x","properties":{"cloudEvents:specversion":"1.0"}}`,
			kafka: record.Record{Value: []byte("x"), Headers: []record.Header{kafkaHeader("cloudEvents:specversion", "\xa1\x031.0"), kafkaHeader("ce_specversion", "1.0")}},
			amqp:  dataOf("x", nil, nil, map[string]any{"cloudEvents:specversion": "1.0"}),
			http:  `"properties":{"cloudEvents:specversion":"1.0"},"body":"x"`,
		},
	}
}

// K4: whatever is sent by AMQP, HTTP or Kafka is what each of the three gives its readers, byte for byte, under one number
// and with one time of storing.
func TestEventsCrossBetweenProtocols(t *testing.T) {
	cfg := everyListener(t)
	cfg.Hubs = []Hub{{Name: "h", Partitions: 1}}
	r := start(t, cfg)
	client, session := r.dialKafka("kafka"), r.session("amqp", auth.RootPolicy, auth.DevelopmentKey)
	sender := testkit.Value(session.NewSender(t.Context(), "h/Partitions/0", nil))(t)
	all := crossings()
	for i := range all {
		c := &all[i]
		switch {
		case c.record != nil:
			client.wantStored(t, "h", c.record)
		case c.message != nil:
			testkit.Must(t, sender.Send(t.Context(), c.message, nil), c.what)
		default:
			r.want(201, "POST", "/api/v1/hubs/h/events", `{"partition":"0","events":[`+c.json+`]}`)
		}
	}

	records := client.records(t, "h", len(all))
	pages := r.bare("h", len(all))
	receiver := testkit.Value(session.NewReceiver(t.Context(), "h/ConsumerGroups/$Default/Partitions/0", nil))(t)
	for i, c := range all {
		message := testkit.Value(receiver.Receive(t.Context(), nil))(t)
		testkit.Must(t, receiver.AcceptMessage(t.Context(), message))
		t.Run(c.what, func(t *testing.T) {
			stored, ok := message.Annotations["x-opt-enqueued-time"].(time.Time)
			testkit.That(t, ok, "it has no time of storing: %v", message.Annotations)
			testkit.Equal(t, message.Annotations["x-opt-sequence-number"], any(int64(i)), "AMQP's number")
			if c.kafka.Timestamp == 0 {
				c.kafka.Timestamp = stored.UnixMilli()
			}
			testkit.Diff(t, c.kafka, records[i])
			testkit.Diff(t, c.amqp, bareMessage(message), cmpopts.IgnoreUnexported(goamqp.Message{}))
			testkit.Equal(t, pages[i], c.http, "over HTTP")
		})
	}
	r.shutdown()
}

// K4, G1: an event of a topic that a subscription puts into a hub is to a Kafka reader a CloudEvent in its structured form.
func TestCloudEventsOfATopicAreReadOverKafka(t *testing.T) {
	cfg := everyListener(t)
	cfg.Hubs = []Hub{{Name: "archive", Partitions: 1}}
	cfg.Topics = []Topic{{Name: "shop", Schema: "cloudevents", Key1: configuredKey}}
	r := start(t, cfg)
	r.want(201, "POST", "/api/v1/subscriptions", `{"name":"keep","topic":"shop","hub":"archive","deadLetter":"yard"}`)
	sent := r.request("POST", "/topics/shop/api/events", strings.NewReader(`{"specversion":"1.0","id":"7","source":"/s","type":"t","data":{"n":1}}`))
	sent.Header.Set("Content-Type", "application/cloudevents+json")
	sent.Header.Set("aeg-sas-key", configuredKey)
	response := testkit.Value(r.client().Do(sent))(t)
	testkit.Must(t, response.Body.Close())
	testkit.MustEqual(t, response.StatusCode, 200, "status of publishing")

	got := r.dialKafka("kafka").records(t, "archive", 1)[0]
	testkit.Equal(t, string(got.Value), `{"specversion":"1.0","id":"7","source":"/s","type":"t","data":{"n":1}}`, "value")
	headers := map[string]string{}
	for _, h := range got.Headers {
		headers[string(h.Name)] = string(h.Value)
	}
	testkit.Equal(t, headers["content-type"], "application/cloudevents+json; charset=utf-8", "content type")
	r.shutdown()
}

// wantStored sends a record to partition 0 of a hub.
func (c *KafkaConn) wantStored(t *testing.T, hub string, of *record.Record) {
	t.Helper()
	batch := record.Begin(nil, 0, of.Timestamp)
	batch.Add(of)
	r := KafkaProduce(hub)
	r.Topics[0].Partitions[0].Records = batch.End()
	answer := testkit.Value(c.Ask(r))(t).(*kmsg.ProduceResponse)
	testkit.MustEqual(t, answer.Topics[0].Partitions[0].ErrorCode, 0, "code of sending %+v", of)
}

// records reads so many from the beginning of partition 0 of a hub, waiting for them, and checks their offsets.
func (c *KafkaConn) records(t *testing.T, hub string, count int) (all []record.Record) {
	t.Helper()
	for len(all) < count {
		part := kmsg.NewFetchRequestTopicPartition()
		part.FetchOffset, part.PartitionMaxBytes, part.CurrentLeaderEpoch = int64(len(all)), 1<<20, -1
		topic := kmsg.NewFetchRequestTopic()
		topic.Topic, topic.Partitions = hub, []kmsg.FetchRequestTopicPartition{part}
		r := kmsg.NewPtrFetchRequest()
		r.Version, r.ReplicaID, r.MaxWaitMillis, r.MinBytes, r.MaxBytes, r.SessionEpoch = 12, -1, 10_000, 1, 1<<20, -1
		r.Topics = []kmsg.FetchRequestTopic{topic}
		answer := testkit.Value(c.Ask(r))(t).(*kmsg.FetchResponse)
		got := answer.Topics[0].Partitions[0]
		testkit.MustThat(t, got.ErrorCode == 0 && len(got.RecordBatches) > 0, "after %d records of %d: %+v", len(all), count, got)
		for rest := got.RecordBatches; len(rest) > 0; {
			size := int(binary.BigEndian.Uint32(rest[8:])) + 12
			raw := rest[:size]
			rest = rest[size:]
			head := testkit.Value(record.ReadHead(raw))(t)
			testkit.MustEqual(t, int(head.BaseOffset), len(all), "offset")
			testkit.Must(t, testkit.Err(record.Check(raw)))
			testkit.Must(t, head.Each(raw, func(_ int, r *record.Record) bool {
				all = append(all, *r) // what it leads to is the answer's
				all[len(all)-1].Headers = append([]record.Header(nil), r.Headers...)
				return true
			}))
		}
	}
	return all
}

// bare gives what HTTP says of each event of partition 0 of a hub, but for number and time, of which it checks the number.
func (r *running) bare(hub string, count int) (all []string) {
	r.t.Helper()
	lines := strings.Split(strings.TrimSpace(r.want(200, "GET", "/api/v1/hubs/"+hub+"/events?from=earliest", "")), "\n")
	testkit.MustEqual(r.t, len(lines), count, "events over HTTP")
	for i, line := range lines {
		begins := fmt.Sprintf(`{"partition":"0","sequence":%d,"offset":"%d","enqueued":"`, i, i)
		rest, ok := strings.CutPrefix(line, begins)
		testkit.MustThat(r.t, ok, "event %d is %s", i, line)
		_, rest, _ = strings.Cut(rest, `",`)
		all = append(all, strings.TrimSuffix(rest, "}"))
	}
	return all
}

// bareMessage is what AMQP gives of an event, but for number and time.
func bareMessage(m *goamqp.Message) goamqp.Message {
	bare := goamqp.Message{Data: m.Data, Value: m.Value, Sequence: m.Sequence, Properties: m.Properties, ApplicationProperties: m.ApplicationProperties}
	for name, value := range m.Annotations {
		switch name {
		case "x-opt-sequence-number", "x-opt-offset", "x-opt-enqueued-time":
			continue
		}
		if bare.Annotations == nil {
			bare.Annotations = goamqp.Annotations{}
		}
		bare.Annotations[name] = value
	}
	return bare
}
