package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R4: whoever publishes more than a hub's quota hears it the way its library knows: over HTTP 429
// with Retry-After, over AMQP server-busy.
func TestWhatClientsHearOfAQuota(t *testing.T) {
	cfg := everyListener(t)
	cfg.Hubs = []Hub{{Name: "orders", Partitions: 1, Quota: &Quota{Events: 1}}}
	r := start(t, cfg)
	var shown struct{ Quota struct{ Events, Bytes int64 } }
	testkit.Must(t, json.Unmarshal([]byte(r.want(200, "GET", "/api/v1/hubs/orders", "")), &shown))
	testkit.Equal(t, shown.Quota.Events, 1, "events a second")
	// A minute's worth at once, so that the hub makes up for it for longer than the test takes.
	r.want(201, "POST", "/api/v1/hubs/orders/events", "["+strings.Repeat(`{"body":"x"},`, 99)+`{"body":"x"}]`)

	response, err := http.DefaultClient.Do(r.request("POST", "/api/v1/hubs/orders/events", strings.NewReader(`[{"body":"x"}]`)))
	testkit.Must(t, err)
	response.Body.Close()
	testkit.Equal(t, response.StatusCode, http.StatusTooManyRequests, "status")
	testkit.That(t, response.Header.Get("Retry-After") != "", "there is no Retry-After")

	err = send(t.Context(), r.session("amqp", auth.RootPolicy, auth.DevelopmentKey), "orders", "x")
	refused, ok := errors.AsType[*goamqp.Error](err)
	testkit.MustEqual(t, ok, true, "the error is %v", err)
	testkit.Equal(t, string(refused.Condition), "com.microsoft:server-busy", "condition")

	r.want(200, "PATCH", "/api/v1/hubs/orders", `{"quota":{"events":0}}`)
	r.want(201, "POST", "/api/v1/hubs/orders/events", `[{"body":"x"}]`)
	r.want(400, "PATCH", "/api/v1/hubs/orders", `{"quota":{"bytes":-1}}`)
	r.shutdown()
}
