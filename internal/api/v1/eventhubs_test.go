package v1

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// stored reads a partition with its types, as an AMQP reader would see them.
func (y *yard) stored(hub, partition string) (events []event.Event) {
	y.t.Helper()
	cursor, err := y.broker.Cursor(y.t.Context(), hub, broker.DefaultGroup, partition, eventlog.Earliest())
	testkit.Must(y.t, err)
	defer cursor.Close()
	for {
		run, err := cursor.TryNext(y.t.Context())
		testkit.Must(y.t, err)
		if len(run.Events) == 0 {
			return events
		}
		for _, e := range run.Events {
			ev, err := message.Decode(e.Message)
			testkit.Must(y.t, err)
			ev.Key = string(e.Key)
			events = append(events, ev)
		}
	}
}

// H8: paths are read from their right end, because hubs have slashes in their names.
func TestRESTAddresses(t *testing.T) {
	for _, tt := range []struct {
		path string
		want address
		ok   bool
	}{
		{"/orders/messages", address{hub: "orders"}, true},
		{"/orders/Messages", address{hub: "orders"}, true},
		{"/shop/orders/messages", address{hub: "shop/orders"}, true},
		{"/shop%2Forders/messages", address{hub: "shop/orders"}, true},
		{"/shop//orders/messages", address{hub: "shop//orders"}, true},
		{"/orders/partitions/3/messages", address{hub: "orders", partition: "3"}, true},
		{"/shop/orders/Partitions/3/messages", address{hub: "shop/orders", partition: "3"}, true},
		{"/orders/publishers/dev-1/messages", address{hub: "orders", publisher: "dev-1"}, true},
		{"/orders/publishers/a%2Fb/messages", address{hub: "orders", publisher: "a/b"}, true},
		{"/messages/messages", address{hub: "messages"}, true},
		{"/partitions/3/messages", address{hub: "partitions/3"}, true},
		{"/a/partitions/partitions/3/messages", address{hub: "a/partitions", partition: "3"}, true},
		{"/a/publishers/x/partitions/3/messages", address{hub: "a/publishers/x", partition: "3"}, true},
		{"/orders/partitions//messages", address{hub: "orders/partitions/"}, true},
		{"/messages", address{}, false},
		{"//messages", address{}, false},
		{"/orders", address{}, false},
		{"/orders/messages/head", address{}, false},
		{"/api/v1/messages", address{}, false},
		{"/Topics/x/messages", address{}, false},
		{"/%zz/messages", address{}, false},
	} {
		t.Run(tt.path, func(t *testing.T) {
			if got, ok := parseAddress(tt.path); ok != tt.ok || ok && got != tt.want {
				t.Errorf("read %+v, %v", got, ok)
			}
		})
	}
}

// H8, H3: one event: the body is its bytes, the headers are its properties, typed by how they look.
func TestRESTSingleEvent(t *testing.T) {
	for _, tt := range []struct {
		what   string
		header []string
		want   event.Event
	}{
		{"the content type that every call names is not the event's",
			[]string{"Content-Type", "application/atom+xml;type=entry;charset=utf-8"}, event.Event{}},
		{"another content type is", []string{"Content-Type", "text/csv"}, event.Event{ContentType: "text/csv"}},
		{"none is none", []string{"Content-Type", ""}, event.Event{}},
		{"headers are properties, typed by how they look",
			[]string{"Content-Type", "", "An-Int", "-7", "A-Long", "5000000000", "A-Double", "2.5e3", "A-Bool", "True", "A-String", "007x", "Version", "1.2.3"},
			event.Event{Properties: map[string]any{
				"An-Int": int32(-7), "A-Long": int64(5000000000), "A-Double": 2500.0, "A-Bool": true, "A-String": "007x", "Version": "1.2.3"}}},
		{"what only looks like a number is text",
			[]string{"Content-Type", "", "Hex", "0x10", "Inf", "inf", "Dash", "-", "Empty", "", "Huge", "1e999"},
			event.Event{Properties: map[string]any{"Hex": "0x10", "Inf": "inf", "Dash": "-", "Empty": "", "Huge": "1e999"}}},
		{"HTTP's own headers are not",
			[]string{"Content-Type", "", "Authorization", signed("orders", time.Hour), "User-Agent", "me", "Accept", "*/*", "X-Forwarded-For", "1.2.3.4", "Date", "now"},
			event.Event{}},
		{"broker properties are the event's own",
			[]string{"Content-Type", "text/plain", "BrokerProperties", `{"PartitionKey":"k","MessageId":"m","CorrelationId":"c","ContentType":"text/x","Label":"l","TimeToLive":10}`},
			event.Event{Key: "k", MessageID: "m", CorrelationID: "c", ContentType: "text/x", Subject: "l"}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			y := newYard(t)
			y.hub("orders", 1)
			got := y.want(201, "POST", "/orders/messages?timeout=60&api-version=2014-01", `{ "a" : 1 }`, tt.header...)
			testkit.Equal(t, len(got.body), 0, "answered %q", got.body)
			tt.want.Body = []byte(`{ "a" : 1 }`)
			testkit.Diff(t, []event.Event{tt.want}, y.stored("orders", "0"))
		})
	}
}

// H8, H2: a batch is stored in order, in one partition.
func TestRESTBatch(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 4)
	y.want(201, "POST", "/orders/messages", `[
		{"Body":"a","UserProperties":{"n":1,"f":1.5,"t":"x","b":false},"BrokerProperties":{"PartitionKey":"device-2","MessageId":"m"}},
		{"Body":"AAE=","IsBodyBase64":true,"BrokerProperties":{"PartitionKey":"device-2"}},
		{"Body":{"x":[1]},"BrokerProperties":{"PartitionKey":"device-2","CorrelationId":"c"}}]`,
		"Content-Type", "application/vnd.microsoft.servicebus.json; charset=utf-8", "Color", "ignored", "BrokerProperties", `{"PartitionKey":"ignored"}`)
	want := []event.Event{
		{Key: "device-2", Body: []byte("a"), MessageID: "m", Properties: map[string]any{"n": int64(1), "f": 1.5, "t": "x", "b": false}},
		{Key: "device-2", Body: []byte{0, 1}},
		{Key: "device-2", Body: []byte(`{"x":[1]}`), CorrelationID: "c"},
	}
	partition := strconv.Itoa(broker.PartitionForKey("device-2", 4))
	testkit.Diff(t, want, y.stored("orders", partition))
}

// H8, H2: to a partition, where the key is kept; and as a publisher, whose name is the key.
func TestRESTPartitionAndPublisher(t *testing.T) {
	y := newYard(t)
	y.hub("shop/orders", 4)
	y.want(201, "POST", "/shop/orders/partitions/3/messages", "a", "Content-Type", "text/plain", "BrokerProperties", `{"PartitionKey":"k"}`)
	if got := y.stored("shop/orders", "3"); len(got) != 1 || got[0].Key != "k" {
		t.Errorf("partition 3 has %+v", got)
	}
	y.want(201, "POST", "/SHOP/orders/publishers/device-2/messages", `[{"Body":"b"},{"Body":"c"}]`, "Content-Type", batchType)
	partition := strconv.Itoa(broker.PartitionForKey("device-2", 4))
	if got := y.stored("shop/orders", partition); len(got) != 2 || got[0].Key != "device-2" || got[1].Key != "device-2" {
		t.Errorf("partition %s has %+v", partition, got)
	}
}

// H8: errors are XML with a code and a detail, and a refused batch stores nothing.
func TestRESTRefusals(t *testing.T) {
	text := []string{"Content-Type", "text/plain"}
	batch := []string{"Content-Type", batchType}
	tests := []struct {
		what, path, body string
		header           []string
		status           int
		says             string
	}{
		{"a hub that is not there", "/nowhere/messages", "x", text, 404, "nowhere"},
		{"a partition that is not there", "/orders/partitions/9/messages", "x", text, 404, "partition"},
		{"too much", "/orders/messages", strings.Repeat("x", 2000), text, 413, "too large"},
		{"too much with its properties", "/orders/messages", strings.Repeat("x", 1000), append(text, "Color", strings.Repeat("y", 100)), 413, "1024 bytes"},
		{"broker properties that are none", "/orders/messages", "x", append(text, "BrokerProperties", "k"), 400, "BrokerProperties"},
		{"a batch that is no array", "/orders/messages", `{"Body":"x"}`, batch, 400, "array"},
		{"a batch of nothing", "/orders/messages", `[]`, batch, 400, "no events"},
		{"half a batch", "/orders/messages", `[{"Body":"x"}`, batch, 400, "middle"},
		{"more than a batch", "/orders/messages", `[{"Body":"x"}]]`, batch, 400, "goes on"},
		{"an event without a body", "/orders/messages", `[{"Body":"x"},{}]`, batch, 400, "no Body"},
		{"an event that is no object", "/orders/messages", `[{"Body":"x"},7]`, batch, 400, "event 1"},
		{"a body that is not base64", "/orders/messages", `[{"Body":"%","IsBodyBase64":true}]`, batch, 400, "base64"},
		{"a property with structure", "/orders/messages", `[{"Body":"x","UserProperties":{"a":[]}}]`, batch, 400, "property"},
		{"a property beyond whole numbers", "/orders/messages", `[{"Body":"x","UserProperties":{"a":18446744073709551616}}]`, batch, 400, "too large"},
		{"a body that is half a character", "/orders/messages", `[{"Body":"\ud800"}]`, batch, 400, "half of a character"},
		{"a key that is half a character", "/orders/messages", `[{"Body":"x","BrokerProperties":{"PartitionKey":"\ud800"}}]`, batch, 400, "half of a character"},
		{"a publisher that is no text", "/orders/publishers/%FF/messages", "x", text, 400, "not text"},
		{"different keys", "/orders/messages", `[{"Body":"x","BrokerProperties":{"PartitionKey":"a"}},{"Body":"x","BrokerProperties":{"PartitionKey":"b"}}]`, batch, 400, "share one key"},
		{"a key and none", "/orders/messages", `[{"Body":"x","BrokerProperties":{"PartitionKey":"a"}},{"Body":"x"}]`, batch, 400, "share one key"},
		{"a key that is not the publisher's", "/orders/publishers/p/messages", `[{"Body":"x","BrokerProperties":{"PartitionKey":"a"}}]`, batch, 400, "partition key"},
	}
	y := newYard(t, func(c *Config) { c.MaxEventBytes = 1024 })
	y.hub("orders", 1)
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			got := y.in(t).want(tt.status, "POST", tt.path, tt.body, tt.header...)
			var e struct {
				XMLName xml.Name `xml:"Error"`
				Code    int
				Detail  string
			}
			if err := xml.Unmarshal(got.body, &e); err != nil {
				t.Fatalf("%v: %s", err, got.body)
			}
			if e.Code != tt.status || !strings.Contains(e.Detail, tt.says) {
				t.Errorf("answered %s, which does not say %q", got.body, tt.says)
			}
			testkit.Equal(t, got.header.Get("Content-Type"), "application/xml; charset=utf-8", "content type")
		})
	}
	testkit.Equal(t, len(y.stored("orders", "0")), 0, "events were stored")
	got := y.want(405, "GET", "/orders/messages", nil)
	if got.header.Get("Allow") != "POST" || !strings.HasPrefix(string(got.body), "<Error><Code>405</Code>") {
		t.Errorf("answered %v %s", got.header, got.body)
	}
}

// H8: 1 MiB is what one publication may measure, its few bytes of frame included.
func TestRESTLimit(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	for _, tt := range []struct{ size, status int }{{1<<20 - 64, 201}, {1 << 20, 413}, {1<<20 + 1, 413}} {
		t.Run(fmt.Sprintf("%d bytes", tt.size), func(t *testing.T) {
			y.in(t).want(tt.status, "POST", "/orders/messages", strings.Repeat("x", tt.size), "Content-Type", "text/plain")
		})
	}
	if got := y.stored("orders", "0"); len(got) != 1 || len(got[0].Body) != 1<<20-64 {
		t.Errorf("%d events were stored", len(got))
	}
}
