package v1

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

func (y *yard) sent(hub, query string, body any) admin.Sent {
	y.t.Helper()
	got := read[admin.Sent](y.t, y.want(201, "POST", "/api/v1/hubs/"+hub+"/events"+query, body))
	return got
}

// H2: events go to the partition named, to the one of their key, or to the next.
func TestSendChoosesThePartition(t *testing.T) {
	byKey := strconv.Itoa(broker.PartitionForKey("device-2", 4))
	for _, tt := range []struct {
		what, query, body string
		partition         string
		key               string
	}{
		{"named in the body", "", `{"events":[{"body":"x"}],"partition":"3"}`, "3", ""},
		{"named in the query", "?partition=3", `[{"body":"x"}]`, "3", ""},
		{"named in both alike", "?partition=3", `{"partition":"3","events":[{"body":"x"}]}`, "3", ""},
		{"by the key in the body", "", `{"key":"device-2","events":[{"body":"x"}]}`, byKey, "device-2"},
		{"by the key in the query", "?key=device-2", `[{"body":"x"}]`, byKey, "device-2"},
		{"by the key of the event", "", `[{"body":"x","key":"device-2"}]`, byKey, "device-2"},
		{"by the key of all", "?key=device-2", `[{"body":"x","key":"device-2"}]`, byKey, "device-2"},
		{"the name goes before the key, which is kept", "?partition=1&key=device-2", `[{"body":"x"}]`, "1", "device-2"},
		{"a named partition takes any key", "?partition=1", `[{"body":"x","key":"a"},{"body":"x","key":"b"}]`, "1", "a"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			y := newYard(t)
			y.hub("orders", 4)
			got := y.sent("orders", tt.query, tt.body)
			testkit.Equal(t, got.Partition, tt.partition, "stored at %+v", got)
			testkit.Equal(t, got.First, 0, "stored at %+v", got)
			stored := y.page("orders", got.Partition, "").Events[0]
			testkit.Equal(t, stored.Key, tt.key, "the key")
			testkit.Equal(t, showTime(got.Enqueued.Time), stored.Enqueued, "told, and enqueued")
		})
	}
}

// H2: without key and partition the partitions take turns.
func TestSendTakesTurns(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 3)
	seen := map[string]int{}
	for range 6 {
		seen[y.sent("orders", "", `[{"body":"x"}]`).Partition]++
	}
	testkit.Diff(t, map[string]int{"0": 2, "1": 2, "2": 2}, seen)
}

// H2, H3: a batch is stored in order, without gaps, and numbered from its first.
func TestSendBatch(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	y.sent("orders", "", `[{"body":"a"},{"body":"b"}]`)
	got := y.sent("orders", "", `{"events":[{"body":"c"},{"body":"d"},{"body":"e"}]}`)
	if got.First != 2 || got.Count != 3 || got.Partition != "0" {
		t.Errorf("stored at %+v", got)
	}
	page := y.page("orders", "0", "")
	testkit.Equal(t, texts(page.Events), "a b c d e", "read %s, next %d", texts(page.Events), page.Next)
	testkit.Equal(t, page.Next, 5, "read %s, next %d", texts(page.Events), page.Next)
	for i, e := range page.Events {
		if e.Sequence != int64(i) || e.Offset != strconv.Itoa(i) || e.Partition != "0" {
			t.Errorf("event %d is at %s/%d, offset %s", i, e.Partition, e.Sequence, e.Offset)
		}
	}
}

// H2: a refused send stores nothing, not even the good half of it.
func TestSendRefusals(t *testing.T) {
	long := strings.Repeat("k", 129)
	tests := []struct {
		what, query, body string
		status            int
		kind              string
	}{
		{"no events", "", `{"events":[]}`, 400, "no-events"},
		{"an empty array", "", `[]`, 400, "no-events"},
		{"an event without a body", "", `[{"body":"x"},{"subject":"y"}]`, 400, "bad-request"},
		{"an event with two bodies", "", `[{"body":"x"},{"body":"x","bodyBase64":"eA=="}]`, 400, "bad-request"},
		{"a body that is not base64", "", `[{"body":"x"},{"bodyBase64":"%%"}]`, 400, "bad-request"},
		{"a field nobody knows", "", `[{"body":"x"},{"bdy":"x"}]`, 400, "bad-request"},
		{"an envelope's field nobody knows", "", `{"event":[{"body":"x"}]}`, 400, "bad-request"},
		{"events that are no array", "", `{"events":{"body":"x"}}`, 400, "bad-request"},
		{"a bare value", "", `"x"`, 400, "bad-request"},
		{"an event that is no object", "", `[{"body":"x"},"y"]`, 400, "bad-request"},
		{"half a body", "", `[{"body":"x"}`, 400, "bad-request"},
		{"more than a body", "", `[{"body":"x"}] x`, 400, "bad-request"},
		{"nothing at all", "", ``, 400, "bad-request"},
		{"a property with structure", "", `[{"body":"x","properties":{"a":{"b":1}}}]`, 400, "bad-request"},
		{"a property beyond all numbers", "", `[{"body":"x","properties":{"a":1e999}}]`, 400, "bad-request"},
		{"different keys", "", `[{"body":"x","key":"a"},{"body":"x","key":"b"}]`, 400, "bad-request"},
		{"a key and none", "", `[{"body":"x","key":"a"},{"body":"x"}]`, 400, "bad-request"},
		{"a key that is not the request's", "?key=b", `[{"body":"x","key":"a"}]`, 400, "bad-request"},
		{"query and body that disagree", "?key=b", `{"key":"a","events":[{"body":"x"}]}`, 400, "bad-request"},
		{"a key too long", "?key=" + long, `[{"body":"x"}]`, 400, "key-too-long"},
		{"a key too long on an event", "", `[{"body":"x","key":"` + long + `"}]`, 400, "key-too-long"},
		{"a key that is no text", "?key=%FF", `[{"body":"x"}]`, 400, "invalid-key"},
		{"a key on an event that is no text", "", "[{\"body\":\"x\",\"key\":\"\xff\"}]", 400, "bad-request"},
		{"a key in the body that is half a character", "", `{"events":[{"body":"x"}],"key":"\ud800"}`, 400, "bad-request"},
		{"a value of null", "", `[{"body":"x"},{"value":null}]`, 400, "bad-request"},
		{"a value beyond whole numbers", "", `[{"value":[18446744073709551616]}]`, 400, "bad-request"},
		{"a property below whole numbers", "", `[{"body":"x","properties":{"a":-9223372036854775809}}]`, 400, "bad-request"},
		{"a property's name that is half a character", "", `[{"body":"x","properties":{"\ud800x":1}}]`, 400, "bad-request"},
		{"a body that is half a character", "", `[{"body":"\ude00"}]`, 400, "bad-request"},
		{"a value with two first halves", "", `[{"value":{"a":"\ud83d\ud83d\ude00"}}]`, 400, "bad-request"},
		{"a body that is not UTF-8", "", "[{\"body\":\"\xff\"}]", 400, "bad-request"},
		{"a partition that is not there", "?partition=7", `[{"body":"x"}]`, 404, "not-found"},
		{"more than may be stored at once", "", `[{"body":"` + strings.Repeat("x", 1100) + `"}]`, 413, "too-large"},
		{"a body beyond bounds", "", `[{"body":"` + strings.Repeat("x", 3000) + `"}]`, 413, "too-large"},
	}
	y := newYard(t, func(c *Config) { c.MaxEventBytes = 1024 })
	y.hub("orders", 1)
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			y := y.in(t)
			y.refused(tt.status, tt.kind, "POST", "/api/v1/hubs/orders/events"+tt.query, tt.body)
			testkit.Equal(t, y.page("orders", "0", "").Next, 0, "events were stored")
		})
	}
	y.refused(404, "not-found", "POST", "/api/v1/hubs/nowhere/events", `[{"body":"x"}]`)
}

// One event that cannot fit is named, and nobody is told to send it in several requests.
func TestAnEventThatIsTooLargeAloneIsNamed(t *testing.T) {
	y := newYard(t, func(c *Config) { c.MaxEventBytes = 1024 })
	y.hub("orders", 1)
	body := `[{"body":"small"},{"body":"` + strings.Repeat("x", 1100) + `"}]`
	got := string(y.do("POST", "/api/v1/hubs/orders/events", body).body)
	if !strings.Contains(got, "event 1 takes ") || !strings.Contains(got, "may take 1024 bytes") || strings.Contains(got, "several") {
		t.Errorf("answered %s", got)
	}
}

// H2: a full disk is told as such, and sending goes on once there is room.
func TestSendWhenStorageIsFull(t *testing.T) {
	disk := vfs.NewMem()
	y := openYardOn(t, disk)
	y.openHandler()
	y.errors.Want(1) // the engine tells the operator
	y.hub("orders", 1)
	y.send("orders", "0", "before")
	disk.SetCapacity(1)
	body := fmt.Sprintf(`[{"body":%q}]`, strings.Repeat("x", 900<<10))
	status := 0
	for range 8 { // preallocated segments take some
		if status = y.do("POST", "/api/v1/hubs/orders/events", body).status; status != 201 {
			break
		}
	}
	testkit.MustEqual(t, status, 507, "a full disk answered")
	testkit.Equal(t, texts(y.page("orders", "0", "max=1").Events), "before", "reading stopped")
	disk.SetCapacity(0)
	y.want(201, "POST", "/api/v1/hubs/orders/events", body)
}

// H3: what was sent comes back, and can be sent again as it is.
func TestSentEventsComeBack(t *testing.T) {
	binary := base64.StdEncoding.EncodeToString([]byte{0, 0xff, 0xfe})
	for _, tt := range []struct {
		what, event string
		// want is the event as read, without what the hub adds; empty means as sent.
		want string
	}{
		{"text", `{"body":"grüße \"\\\n\u0001"}`, ""},
		{"characters beyond 16 bits, and what only looks like half of one", `{"body":"\ud83d\ude00 \\ud800"}`, `{"body":"😀 \\ud800"}`},
		{"half a character inside a JSON body, which is kept as it is", `{"contentType":"application/json","body":{"a":"\ud800"}}`, ""},
		{"empty text", `{"body":""}`, ""},
		{"an object is JSON", `{"body":{"b":1.50,"a":[1,2,{"c":null}]}}`, `{"contentType":"application/json","body":{"b":1.50,"a":[1,2,{"c":null}]}}`},
		{"white space goes", "{\"body\":{ \"a\" :\n 1 }}", `{"contentType":"application/json","body":{"a":1}}`},
		{"a number", `{"body":12345678901234567890}`, `{"contentType":"application/json","body":12345678901234567890}`},
		{"null is JSON too", `{"body":null}`, `{"contentType":"application/json","body":null}`},
		{"JSON under another name is text", `{"contentType":"text/plain","body":{"a":1}}`, `{"contentType":"text/plain","body":"{\"a\":1}"}`},
		{"JSON of a suffix type is embedded", `{"contentType":"application/cloudevents+json; charset=utf-8","body":{"id":"1"}}`, ""},
		{"text said to be JSON is embedded", `{"contentType":"application/json","body":"[1, 2]"}`, `{"contentType":"application/json","body":[1,2]}`},
		{"a JSON string stays text, quotes and all", `{"contentType":"application/json","body":"\"hi\""}`, ""},
		{"text that is no JSON, whatever it says", `{"contentType":"application/json","body":"{oops"}`, ""},
		{"bytes", `{"bodyBase64":"` + binary + `"}`, ""},
		{"bytes that are text come back as text", `{"bodyBase64":"aGk="}`, `{"body":"hi"}`},
		{"ids and subject", `{"messageId":"m-1","correlationId":"c-1","subject":"door","body":"x"}`, ""},
		{"an empty id is one", `{"messageId":"","body":"x"}`, ""},
		{"properties keep their types", `{"properties":{"big":18446744073709551615,"f":1.0,"n":-7,"no":null,"t":"x","y":true},"body":"x"}`, ""},
		{"system properties", `{"system":{"creation-time":"2026-01-02T03:04:05.678Z","group-sequence":7,"reply-to":"me","user-id":"AAE=","x-opt-mine":5},"body":"x"}`, ""},
		{"an AMQP value", `{"value":{"a":[1,2.5,"x",true,null]}}`, ""},
	} {
		t.Run(tt.what, func(t *testing.T) {
			y := newYard(t)
			y.hub("orders", 1)
			y.sent("orders", "", "["+tt.event+"]")
			want := tt.want
			if want == "" {
				want = tt.event
			}
			first := y.want(200, "GET", "/api/v1/hubs/orders/events", nil).body
			testkit.Equal(t, withoutPosition(t, string(first)), want, "read")
			y.sent("orders", "", "["+string(first)+"]")
			again := y.want(200, "GET", "/api/v1/hubs/orders/events?from=1", nil).body
			testkit.Equal(t, withoutPosition(t, string(again)), want, "sent again it")
		})
	}
}

// withoutPosition cuts off what the hub adds, after a look at it.
func withoutPosition(t *testing.T, line string) string {
	t.Helper()
	from := strings.Index(line, `"enqueued":"`)
	if !strings.HasPrefix(line, `{"partition":"0","sequence":`) || from < 0 || strings.Count(line, "\n") != 1 {
		t.Fatalf("not one event on one line: %q", line)
	}
	rest := line[from+len(`"enqueued":"`):]
	stamp, rest, _ := strings.Cut(rest, `",`)
	testkit.Check(t, testkit.Err(time.Parse(timeFormat, stamp)))
	return "{" + strings.TrimSuffix(rest, "\n")
}

// H3: whoever needs every byte of a JSON body as it was gets it.
func TestExactBodiesOnRequest(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	exact := "{ \"a\" :\n1 }"
	y.sent("orders", "", `[{"contentType":"application/json","body":"{ \"a\" :\n1 }"}]`)
	if got := y.page("orders", "0", "").Events[0]; string(got.Body) != `{"a":1}` {
		t.Errorf("embedded it is %s", got.Body)
	}
	got := y.page("orders", "0", "bodies=base64").Events[0]
	data, err := base64.StdEncoding.DecodeString(*got.BodyBase64)
	testkit.Must(t, err)
	testkit.Equal(t, string(data), exact, "exactly it is %q", data)
	y.refused(400, "bad-request", "GET", "/api/v1/hubs/orders/partitions/0/events?bodies=xml", nil)
	for _, path := range []string{"/api/v1/hubs/orders/partitions/0/events", "/api/v1/hubs/orders/events"} { // G10: as subscriptions see it
		answer := string(y.want(200, "GET", path+"?bodies=cloudevents", nil).body)
		for _, has := range []string{`"cloudEvent":{"specversion":"1.0"`, `/orders/0/0"`, `"type":"Eventyard.Hub.Event"`} {
			testkit.That(t, strings.Contains(answer, has), "%s has no %s: %s", path, has, answer)
		}
	}
}
