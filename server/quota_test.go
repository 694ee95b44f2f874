package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	goamqp "github.com/Azure/go-amqp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R4: whoever publishes more than a hub's quota hears it the way its library knows: over HTTP 429
// with Retry-After, over AMQP server-busy.
func TestWhatClientsHearOfAQuota(t *testing.T) {
	cfg, one := everyListener(t), 1
	cfg.Hubs = []Hub{{Name: "orders", Partitions: 1, Quota: &admin.QuotaRequest{Events: &one}}}
	r := start(t, cfg)
	var shown struct{ Quota struct{ Events, Bytes int64 } }
	testkit.Must(t, json.Unmarshal([]byte(r.want(200, "GET", "/api/v1/hubs/orders", "")), &shown))
	testkit.Equal(t, shown.Quota.Events, 1, "events a second")
	// A minute's worth at once, so that the hub makes up for it for longer than the test takes.
	r.want(201, "POST", "/api/v1/hubs/orders/events", "["+strings.Repeat(`{"body":"x"},`, 99)+`{"body":"x"}]`)

	testkit.Equal(t, r.throttled("/api/v1/hubs/orders/events", `[{"body":"x"}]`), "429 throttled", "over HTTP")

	err := send(t.Context(), r.session("amqp", auth.RootPolicy, auth.DevelopmentKey), "orders", "x")
	refused, ok := errors.AsType[*goamqp.Error](err)
	testkit.MustEqual(t, ok, true, "the error is %v", err)
	testkit.Equal(t, string(refused.Condition), "com.microsoft:server-busy", "condition")

	r.want(200, "PATCH", "/api/v1/hubs/orders", `{"quota":{"events":0}}`)
	r.want(201, "POST", "/api/v1/hubs/orders/events", `[{"body":"x"}]`)
	r.want(400, "PATCH", "/api/v1/hubs/orders", `{"quota":{"bytes":-1}}`)
	r.shutdown()
}

// throttled sends something that is to be refused for a quota, and gives status and code. as is a
// policy's name and key; nothing: the root policy's.
func (r *running) throttled(path, body string, as ...string) string {
	r.t.Helper()
	request := r.request("POST", path, strings.NewReader(body))
	if len(as) > 0 {
		request.SetBasicAuth(as[0], as[1])
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	testkit.Must(r.t, err)
	defer response.Body.Close()
	wait, err := strconv.Atoi(response.Header.Get("Retry-After"))
	testkit.That(r.t, err == nil && wait > 0, "Retry-After is %q", response.Header.Get("Retry-After"))
	var said struct {
		Type  string
		Error struct {
			Code    string
			Details []struct{ Code, Message string }
		}
	}
	testkit.Must(r.t, json.NewDecoder(response.Body).Decode(&said))
	return fmt.Sprint(response.StatusCode, " ", said.Type[strings.LastIndexByte(said.Type, ':')+1:], said.Error.Code)
}

// R4: whoever publishes more than a topic's quota gets Event Grid's answer, until an operator raises
// it. What a topic's definition does not mention stays, also by Event Grid's own calls.
func TestWhatPublishersHearOfAQuota(t *testing.T) {
	cfg := everyListener(t)
	events := 1
	cfg.Topics = []Topic{{Name: "sales", Quota: &admin.QuotaRequest{Events: &events}}}
	r := start(t, cfg)
	testkit.Equal(t, r.topic("sales").Quota, admin.Quota{Events: 1}, "the quota")
	const path, event = "/topics/sales/api/events", `{"id":"1","subject":"s","eventType":"t","eventTime":"2026-01-01T00:00:00Z","dataVersion":"1"}`
	r.want(200, "POST", path, "["+strings.Repeat(event+",", 99)+event+"]")
	testkit.Equal(t, r.throttled(path, "["+event+"]"), "429 TooManyRequests", "refused")

	r.want(200, "PATCH", "/api/v1/topics/sales", `{"quota":{"bytes":1000000}}`)
	testkit.Equal(t, r.topic("sales").Quota, admin.Quota{Events: 1, Bytes: 1_000_000}, "the quota")
	testkit.Equal(t, r.throttled(path, "["+event+"]"), "429 TooManyRequests", "refused still")
	r.want(200, "PATCH", "/api/v1/topics/sales", `{"quota":{"events":0}}`)
	r.want(200, "POST", path, "["+event+"]")
	r.want(400, "PATCH", "/api/v1/topics/sales", `{"quota":{"bytes":-1}}`)
	r.shutdown()
}

// R4: the quota of a policy is for all that its holders publish, over every protocol, and nobody
// else's. A configuration may set it, and what it does not mention stays. Kafka's, which asks nobody in development who
// he is, has the test behind this one.
func TestTheQuotaOfAPolicyHoldsForEveryProtocol(t *testing.T) {
	const key = "a-key-of-a-length-that-is-allowed-0123456789"
	cfg, events := everyListener(t), 1
	cfg.Hubs, cfg.Topics = []Hub{{Name: "orders", Partitions: 1}}, []Topic{{Name: "sales"}}
	cfg.Policies = []Policy{{Name: "till", Rights: []string{"send"}, PrimaryKey: key, Quota: &admin.QuotaRequest{Events: &events}}}
	r := start(t, cfg)
	batch := r.request("POST", "/api/v1/hubs/orders/events", strings.NewReader("["+strings.Repeat(`{"body":"x"},`, 999)+`{"body":"x"}]`))
	batch.SetBasicAuth("till", key)
	response, err := http.DefaultClient.Do(batch)
	testkit.Must(t, err)
	response.Body.Close()
	testkit.Equal(t, response.StatusCode, http.StatusCreated, "what is worth a quarter of an hour")

	const one, grid = `[{"body":"x"}]`, `[{"id":"1","subject":"s","eventType":"t","eventTime":"2026-01-01T00:00:00Z","dataVersion":"1"}]`
	testkit.Equal(t, r.throttled("/api/v1/hubs/orders/events", one, "till", key), "429 throttled", "over HTTP")
	testkit.Equal(t, r.throttled("/topics/sales/api/events", grid, "till", key), "429 TooManyRequests", "to a topic")
	refused, ok := errors.AsType[*goamqp.Error](send(t.Context(), r.session("amqp", "till", key), "orders", "x"))
	testkit.MustEqual(t, ok, true, "refused over AMQP")
	testkit.Equal(t, string(refused.Condition), "com.microsoft:server-busy", "over AMQP")
	r.want(201, "POST", "/api/v1/hubs/orders/events", one)
	r.want(200, "POST", "/topics/sales/api/events", grid)

	listed := r.want(200, "GET", "/api/v1/policies", "")
	testkit.That(t, strings.Contains(listed, `"quota":{"events":1}`), "listed is %s", listed)
	r.want(400, "PATCH", "/api/v1/policies/till", `{"quota":{"events":-1}}`)
	r.want(400, "PATCH", "/api/v1/policies/till", `{"rights":["manage"]}`)
	r.want(200, "PATCH", "/api/v1/policies/till", `{"quota":{"events":0,"bytes":1000000}}`)
	testkit.Must(t, send(t.Context(), r.session("amqp", "till", key), "orders", "x"))
	r.shutdown()

	cfg.Policies[0].Quota = nil
	r = start(t, cfg)
	shown := r.want(200, "GET", "/api/v1/policies/till", "")
	testkit.That(t, strings.Contains(shown, `"quota":{"bytes":1000000}`), "after a restart it is %s", shown)
	r.shutdown()
}

// R4: over Kafka, too, where a client has to say who it is: what a policy's holders have sent over HTTP counts there,
// and the reverse, and nobody else is held back.
func TestTheQuotaOfAPolicyHoldsOverKafka(t *testing.T) {
	const tills, others, one = "a-key-of-a-length-that-is-allowed-0123456789", "another-key-of-a-length-that-is-allowed-0123", `[{"body":"x"}]`
	for _, first := range []string{"http", "kafka"} {
		t.Run(first+" first", func(t *testing.T) {
			cfg, events := outside(everyListener(t)), 1
			cfg.Hubs = []Hub{{Name: "orders", Partitions: 1}}
			cfg.Policies = []Policy{
				{Name: "till", Rights: []string{"send"}, PrimaryKey: tills, Quota: &admin.QuotaRequest{Events: &events}},
				{Name: "other", Rights: []string{"send"}, PrimaryKey: others},
			}
			r := start(t, cfg)
			values := slices.Repeat([]string{"x"}, 1000) // worth a quarter of an hour
			if first == "kafka" {
				code, wait := r.kafkaSend("till", tills, values...)
				testkit.That(t, code == 0 && wait == 0, "the first over Kafka are refused with %d, for %d ms", code, wait)
			} else {
				r.sendAs("till", tills, "["+strings.Repeat(`{"body":"x"},`, len(values)-1)+`{"body":"x"}]`)
			}
			testkit.Equal(t, r.throttled("/api/v1/hubs/orders/events", one, "till", tills), "429 throttled", "over HTTP")
			code, wait := r.kafkaSend("till", tills, "x")
			testkit.That(t, code == kerr.RequestTimedOut.Code && wait > 0, "over Kafka it is refused with %d, for %d ms", code, wait)

			r.sendAs("other", others, one)
			code, wait = r.kafkaSend("other", others, "x")
			testkit.That(t, code == 0 && wait == 0, "another policy's is refused with %d, for %d ms", code, wait)
			r.shutdown()
		})
	}
}

// sendAs has a policy send to the hub orders over HTTP, which is taken.
func (r *running) sendAs(policy, key, body string) {
	r.t.Helper()
	request := r.request("POST", "/api/v1/hubs/orders/events", strings.NewReader(body))
	request.SetBasicAuth(policy, key)
	response, err := http.DefaultClient.Do(request)
	testkit.Must(r.t, err)
	response.Body.Close()
	testkit.Equal(r.t, response.StatusCode, http.StatusCreated, "status for %s", policy)
}

// kafkaSend has a policy send a batch to the hub orders, from a client that does not wait longer than it must. It gives
// the answer's code, and for how many milliseconds the client is told to wait.
func (r *running) kafkaSend(policy, key string, values ...string) (code int16, wait int32) {
	r.t.Helper()
	conn := r.dialKafka("kafka")
	defer conn.Close()
	testkit.Must(r.t, conn.LogIn("$ConnectionString", "Endpoint=sb://localhost/;SharedAccessKeyName="+policy+";SharedAccessKey="+key))
	batch := KafkaProduce("orders", values...)
	batch.TimeoutMillis = 1
	answer := testkit.Value(conn.Ask(batch))(r.t).(*kmsg.ProduceResponse)
	return answer.Topics[0].Partitions[0].ErrorCode, answer.ThrottleMillis
}

// R4: the API takes no quota that a row does not allow, nor do the file and the flags.
func TestTheBoundsOfAQuota(t *testing.T) {
	r := start(t, everyListener(t))
	r.want(201, "POST", "/api/v1/hubs", `{"name":"orders"}`)
	r.want(201, "POST", "/api/v1/topics", `{"name":"sales"}`)
	r.want(201, "POST", "/api/v1/policies", `{"name":"till","rights":["send"]}`)
	for _, path := range []string{"hubs/orders", "topics/sales", "policies/till", "blob-account"} {
		for bytes, status := range map[string]int{"1099511627776": 200, "1099511627777": 400, "9223372036854775807": 400, "-1": 400} {
			r.want(status, "PATCH", "/api/v1/"+path, `{"quota":{"bytes":`+bytes+`}}`)
		}
	}
	for _, path := range []string{"hubs", "topics"} {
		r.want(400, "POST", "/api/v1/"+path, `{"name":"other","quota":{"bytes":1099511627777}}`)
	}
	r.want(400, "POST", "/api/v1/policies", `{"name":"other","rights":["send"],"quota":{"events":1000000001}}`)
	r.shutdown()
}

// R4: the quota of the yard is for all that is published, to whatever hub or topic.
func TestTheQuotaOfTheWholeYard(t *testing.T) {
	usual := Config{}.withDefaults().Quota
	testkit.That(t, usual.Events > 10_000_000 && usual.Bytes > 10<<30, "the default %+v is within what a machine may store", usual)
	cfg := everyListener(t)
	cfg.Quota = Quota{Events: 1, Bytes: -1}
	cfg.Hubs, cfg.Topics = []Hub{{Name: "orders", Partitions: 1}, {Name: "others", Partitions: 1}}, []Topic{{Name: "sales"}}
	r := start(t, cfg)
	r.want(201, "POST", "/api/v1/hubs/orders/events", "["+strings.Repeat(`{"body":"x"},`, 999)+`{"body":"x"}]`)
	testkit.Equal(t, r.throttled("/api/v1/hubs/others/events", `[{"body":"x"}]`), "429 throttled", "another hub")
	testkit.Equal(t, r.throttled("/topics/sales/api/events",
		`[{"id":"1","subject":"s","eventType":"t","eventTime":"2026-01-01T00:00:00Z","dataVersion":"1"}]`), "429 TooManyRequests", "a topic")
	r.shutdown()
}

// R4: the blob account's clients hear of its quota what Azure tells them, 503 ServerBusy with
// Retry-After, for which they wait by themselves. The quota stays over a restart.
func TestTheQuotaOfTheBlobAccount(t *testing.T) {
	cfg := everyListener(t)
	r := start(t, cfg)
	r.want(400, "PATCH", "/api/v1/blob-account", `{"quota":{"bytes":-1}}`)
	r.want(200, "PATCH", "/api/v1/blob-account", `{"quota":{"bytes":1000,"requests":1000}}`)
	r.shutdown()

	r = start(t, cfg)
	var account admin.BlobAccount
	testkit.Must(t, json.Unmarshal([]byte(r.want(200, "GET", "/api/v1/blob-account", "")), &account))
	testkit.Equal(t, account.Quota, admin.BlobQuota{Requests: 1000, Bytes: 1000}, "the quota after a restart")
	var heard []string
	client := testkit.Value(azblob.NewClientFromConnectionString(r.blobConnection(), &azblob.ClientOptions{ClientOptions: azcore.ClientOptions{
		Retry: policy.RetryOptions{RetryDelay: time.Millisecond},
		PerRetryPolicies: []policy.Policy{hearing(func(answer *http.Response) {
			heard = append(heard, fmt.Sprint(answer.StatusCode, " ", answer.Header.Get("x-ms-error-code")))
			if wait, _ := strconv.Atoi(answer.Header.Get("Retry-After")); wait > 100 { // which the test is spared
				answer.Header.Del("Retry-After")
				r.want(200, "PATCH", "/api/v1/blob-account", `{"quota":{"bytes":0}}`)
			}
		})},
	}}))(t)
	testkit.Must(t, testkit.Err(client.CreateContainer(t.Context(), "files", nil)))
	testkit.Must(t, testkit.Err(client.UploadBuffer(t.Context(), "files", "large", make([]byte, 1_000_000), nil)))
	testkit.Must(t, testkit.Err(client.UploadBuffer(t.Context(), "files", "small", make([]byte, 10), nil)))
	testkit.Slices(t, heard, []string{"201 ", "201 ", "503 ServerBusy", "201 "}, "answers")
	r.shutdown()
}

// hearing tells of each answer.
type hearing func(*http.Response)

func (h hearing) Do(r *policy.Request) (*http.Response, error) {
	answer, err := r.Next()
	if err == nil {
		h(answer)
	}
	return answer, err
}
