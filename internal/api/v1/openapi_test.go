package v1

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/testkit"
)

// loadDocument parses openapi.json once for all tests.
var loadDocument = sync.OnceValues(func() (*openapi3.T, routers.Router) {
	doc, err := openapi3.NewLoader().LoadFromData(openAPIDocument)
	if err != nil {
		panic(err)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		panic(err)
	}
	for _, kind := range []string{"application/x-ndjson", "application/xml"} {
		openapi3filter.RegisterBodyDecoder(kind, openapi3filter.PlainBodyDecoder)
	}
	openapi3filter.RegisterBodyDecoder(batchType, openapi3filter.JSONBodyDecoder)
	return doc, router
})

// checker is a transport that holds every exchange against openapi.json. Requests that
// the listener refuses may be wrong; answers never.
type checker struct {
	t    testing.TB
	next http.RoundTripper

	mu   sync.Mutex
	used map[string]bool // operation ids; guarded by mu
}

func newChecker(t testing.TB, next http.RoundTripper) *checker {
	return &checker{t: t, next: next, used: map[string]bool{}}
}

func (c *checker) RoundTrip(req *http.Request) (*http.Response, error) {
	var sent []byte
	if req.Body != nil {
		sent, _ = io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(sent))
	}
	resp, err := c.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	_, router := loadDocument()
	route, params, err := router.FindRoute(req)
	if err != nil {
		c.undescribed(req, resp)
		return resp, nil
	}
	c.mu.Lock()
	c.used[route.Operation.OperationID] = true
	c.mu.Unlock()

	input := &openapi3filter.RequestValidationInput{Request: req.Clone(req.Context()), PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}}
	if sent != nil {
		input.Request.Body = io.NopCloser(bytes.NewReader(sent))
	}
	if resp.StatusCode < 400 {
		testkit.Check(c.t, openapi3filter.ValidateRequest(req.Context(), input),
			"%s %s was accepted, but openapi.json says", req.Method, req.URL)
	}
	c.checkResponse(req, resp, input)
	return resp, nil
}

// undescribed is right for what is refused as unknown, and for the calls whose hub has
// slashes, which no OpenAPI path can describe.
func (c *checker) undescribed(req *http.Request, resp *http.Response) {
	a, ok := parseAddress(req.URL.EscapedPath())
	if ok && strings.Contains(a.hub, "/") || req.Method == http.MethodHead {
		return // HEAD comes with every GET
	}
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusForbidden:
	default:
		c.t.Errorf("%s %s answered %d, and openapi.json does not know it", req.Method, req.URL, resp.StatusCode)
	}
}

func (c *checker) checkResponse(req *http.Request, resp *http.Response, input *openapi3filter.RequestValidationInput) {
	check := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input,
		Status:                 resp.StatusCode,
		Header:                 resp.Header,
		Options:                &openapi3filter.Options{IncludeResponseStatus: true},
	}
	stream := resp.StatusCode == http.StatusOK && slices.Contains([]string{"application/x-ndjson", "text/event-stream"}, resp.Header.Get("Content-Type"))
	stream = stream || resp.StatusCode == http.StatusOK && input.Route.Operation.OperationID == "readHub"
	if stream {
		check.Options.ExcludeResponseBody = true // it may never end; its lines are checked by their tests
	} else {
		body, err := io.ReadAll(resp.Body)
		testkit.Check(c.t, err, "%s %s: read answer", req.Method, req.URL)
		resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(body))
		check.SetBodyBytes(body)
	}
	testkit.Check(c.t, openapi3filter.ValidateResponse(req.Context(), check),
		"answer %d to %s %s is not what openapi.json says", resp.StatusCode, req.Method, req.URL)
}

// checkEvent holds one event of a stream against the document.
func checkEvent(t testing.TB, event any) {
	t.Helper()
	checkSchema(t, "Event", event)
}

func checkSchema(t testing.TB, name string, v any) {
	t.Helper()
	doc, _ := loadDocument()
	testkit.Check(t, doc.Components.Schemas[name].Value.VisitJSON(v),
		"%v is not the %s that openapi.json describes", v, name)
}

// The document is valid OpenAPI.
func TestOpenAPIDocumentIsValid(t *testing.T) {
	doc, _ := loadDocument()
	testkit.Must(t, doc.Validate(t.Context()))
}

// Every route of the table is described, and nothing else is.
func TestOpenAPIDescribesEveryRouteAndNoOther(t *testing.T) {
	doc, _ := loadDocument()
	described := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			described[method+" "+path] = true
		}
	}
	routes := map[string]bool{}
	for _, rt := range newYard(t).handler.routes() {
		routes[rt.method+" "+rt.path] = true
	}
	for _, name := range slices.Sorted(maps.Keys(routes)) {
		if !described[name] {
			t.Errorf("%s is served and not described", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(described)) {
		if !routes[name] {
			t.Errorf("%s is described and not served", name)
		}
	}
}

// Every operation says what it needs to be let in, and that it is open if it is.
func TestOpenAPISaysWhatRoutesNeed(t *testing.T) {
	doc, _ := loadDocument()
	if len(doc.Security) != len(frame.Challenges) || len(doc.Components.SecuritySchemes) != len(frame.Challenges) {
		t.Errorf("the document has %d ways to be let in, the listener %d", len(doc.Security), len(frame.Challenges))
	}
	for _, rt := range newYard(t).handler.routes() {
		op := doc.Paths.Value(rt.path).GetOperation(rt.method)
		if got := op.Extensions["x-needs"]; got != rt.need.String() {
			t.Errorf("%s %s needs %q, and the document says %q", rt.method, rt.path, rt.need, got)
		}
		if open := op.Security != nil && len(*op.Security) == 0; open != (rt.need.Reach == frame.Nobody) {
			t.Errorf("%s %s needs %q, and the document says that it is open: %v", rt.method, rt.path, rt.need, open)
		}
	}
}

// everySetting creates a webhook subscription with all that one can be told.
const everySetting = `{"name":"billing","topic":"readings","endpoint":"https://billing.example.com/hook?code=1","types":["order.placed"],
	"subjectBeginsWith":"/","subjectEndsWith":"s","subjectCaseSensitive":true,"arrays":true,
	"filters":["data.n NumberGreaterThan 0",{"operatorType":"IsNotNull","key":"data.n"}],"schema":"eventgrid","binary":false,"attempts":1,"ttl":"1h",
	"retrySchedule":"1s,2s","retryFloors":{"503":"5s","other":"1s"},"noRetry":[400],"maxRetryAfter":"1m","maxEvents":10,"preferredKib":64,
	"deadLetter":"blob:https://account.example.com/dead?sig=1","deadLetterKey":"","expires":"2100-01-01T00:00:00Z",
	"headers":[{"name":"X-Env","value":"prod"},{"name":"X-Key","value":"k","secret":true},{"name":"X-Subject","field":"subject"}],
	"sign":"ed25519","oauth":{},"skipVerify":true,"ca":"","cert":"","key":"","minTls":"1.2","timeout":"10s","concurrency":2,"rate":100,
	"orderBy":"subject","fromStart":true,"skipValidation":false,"disableOnGone":true,"paused":false,"labels":["a"]}`

// Every operation is really called, each exchange being checked on its way, and its
// hub's name holds a slash wherever the document allows one.
func TestOpenAPIEveryOperationAnswersAsDescribed(t *testing.T) { withGrid(t, everyOperation) }

func everyOperation(t *testing.T, y *gridYard) {
	hub, sub := "/api/v1/hubs/shop%2Forders", "/api/v1/subscriptions/billing"
	steps := []struct {
		status       int
		method, path string
		body         any
		header       []string
	}{
		{200, "GET", "/api/v1", nil, nil},
		{200, "GET", "/api/v1/openapi.json", nil, nil},
		{200, "GET", "/healthz", nil, nil},
		{200, "GET", "/readyz", nil, nil},
		{200, "GET", "/metrics", nil, nil},
		{201, "POST", "/api/v1/hubs", `{"name":"shop/orders","partitions":2,"retention":{"age":"24h","bytes":1000000}}`, nil},
		{200, "GET", "/api/v1/hubs", nil, nil},
		{200, "GET", "/api/v1/hubs?stats=true", nil, nil},
		{200, "GET", hub, nil, nil},
		{200, "PATCH", hub, `{"retention":{"age":"7d"}}`, nil},
		{200, "GET", "/api/v1/activity?kind=hub&since=1h&limit=10", nil, nil},
		{200, "GET", hub + "/activity", nil, nil},
		{200, "GET", "/api/v1/connections?limit=5", nil, nil},
		{200, "GET", "/api/v1/storage", nil, nil},
		{202, "POST", "/api/v1/storage/check", `{"rate":1000000}`, nil},
		{200, "GET", "/api/v1/certificate", nil, nil},
		{201, "POST", hub + "/groups", `{"name":"billing"}`, nil},
		{200, "GET", hub + "/groups/billing/history?span=2h", nil, nil},
		{404, "DELETE", hub + "/groups/billing/instances/worker-3", nil, nil},
		{200, "GET", hub + "/groups", nil, nil},
		{200, "GET", hub + "/groups/billing", nil, nil},
		{201, "POST", hub + "/events", `{"events":[{"body":{"a":1},"properties":{"n":1,"t":"x","z":null}}],"key":"k"}`, nil},
		{201, "POST", hub + "/events?partition=0", `[{"bodyBase64":"AAE=","messageId":"m","subject":"s"}]`, nil},
		{200, "GET", hub + "/partitions", nil, nil},
		{200, "GET", hub + "/partitions?limit=1&fields=last", nil, nil},
		{200, "GET", hub + "/partitions?after=0", nil, nil},
		{200, "GET", hub + "/partitions/0", nil, nil},
		{200, "GET", hub + "/partitions/0/events?from=earliest&max=10&wait=1s&group=billing", nil, nil},
		{200, "GET", hub + "/events?partition=0,1&count=2", nil, nil},
		{200, "GET", hub + "/groups/billing/ownership?target=5", nil, nil},
		{200, "GET", hub + "/groups/billing/ownership?limit=1&fields=owner,lagEvents", nil, nil},
		{200, "PUT", hub + "/groups/billing/checkpoints/0", `{"to":{"latest":true},"force":true}`, nil},
		{200, "PUT", hub + "/groups/$Default/checkpoints/1", `{"to":{"time":"2026-01-02T15:04:05Z"},"dryRun":true}`, nil},
		{200, "POST", hub + "/groups/billing/checkpoints", `{"checkpoints":[{"partition":"1","offset":"-1"}]}`, nil},
		{416, "PUT", hub + "/groups/billing/checkpoints/0", `{"to":{"sequence":99}}`, nil},
		{200, "GET", hub + "/groups/billing/checkpoints", nil, nil},
		{200, "GET", hub + "/groups/billing/ownership", nil, nil},
		{200, "POST", hub + "/kafka-groups/readers/copy", `{"group":"billing","to":"kafka"}`, nil},
		{200, "GET", "/api/v1/kafka-groups", nil, nil},
		{200, "GET", hub + "/kafka-groups", nil, nil},
		{200, "GET", hub + "/kafka-groups/readers", nil, nil},
		{200, "PUT", hub + "/kafka-groups/readers/offsets/0", `{"to":{"earliest":true}}`, nil},
		{204, "DELETE", hub + "/kafka-groups/readers", nil, nil},
		{200, "POST", hub + "/kafka-groups/readers/copy", `{"group":"billing","to":"kafka"}`, nil},
		{204, "DELETE", hub + "/kafka-groups/readers/offsets", nil, nil},
		{200, "DELETE", hub + "/groups/billing/ownership/0", nil, nil},
		{201, "POST", "/shop%2Forders/messages", "text", []string{"Content-Type", "text/plain", "Color", "red"}},
		{201, "POST", "/shop%2Forders/partitions/1/messages", `[{"Body":"x"}]`, []string{"Content-Type", batchType}},
		{201, "POST", "/shop%2Forders/publishers/me/messages", "text", []string{"Content-Type", "text/plain"}},
		{201, "POST", hub + "/policies", `{"name":"sender","rights":["Send"]}`, nil},
		{200, "GET", hub + "/policies", nil, nil},
		{200, "GET", hub + "/policies/sender", nil, nil},
		{200, "POST", hub + "/policies/sender/regenerate", `{"key":"primary"}`, nil},
		{200, "PATCH", hub + "/policies/sender", `{"quota":{"events":5}}`, nil},
		{204, "DELETE", hub + "/policies/sender", nil, nil},
		{201, "POST", "/api/v1/policies", `{"name":"reader","rights":["listen","Send"]}`, nil},
		{200, "GET", "/api/v1/policies", nil, nil},
		{200, "GET", "/api/v1/policies/reader", nil, nil},
		{200, "POST", "/api/v1/policies/reader/regenerate", `{"key":"secondary"}`, nil},
		{200, "PATCH", "/api/v1/policies/reader", `{"quota":{"bytes":5}}`, nil},
		{204, "DELETE", "/api/v1/policies/reader", nil, nil},
		{200, "GET", "/api/v1/cluster", nil, nil},
		{200, "POST", "/api/v1/cluster/scrub", `{"rate":1000}`, nil},
		{200, "POST", "/api/v1/cluster/replicas", `{"replicas":3}`, nil},
		{200, "GET", "/api/v1/ca.pem", nil, nil},
		{200, "GET", "/api/v1/overview", nil, nil},
		{200, "GET", "/api/v1/series?of=published,read&hub=shop%2Forders&span=20s", nil, nil},
		{200, "GET", "/api/v1/blob-account", nil, nil},
		{200, "PATCH", "/api/v1/blob-account", `{"rootKeys":true}`, nil},
		{200, "POST", "/api/v1/blob-account/regenerate", `{"key":"primary"}`, nil},
		{200, "GET", "/api/v1/connection-string?hub=shop%2Forders&key=secondary&tls=true", nil, nil},
		{200, "GET", "/api/v1/backup", nil, nil},
		{201, "POST", "/api/v1/topics", `{"name":"orders","schema":"custom","mapping":{"subject":{"sourceField":"path"}},"key1":"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}`, nil},
		{201, "POST", "/api/v1/topics", `{"name":"readings","properties":{"inputSchema":"EventGridSchema","disableLocalAuth":true}}`, nil},
		{200, "GET", "/api/v1/topics", nil, nil},
		{200, "GET", "/api/v1/topics?stats=true", nil, nil},
		{200, "GET", "/api/v1/topics/orders", nil, nil},
		{200, "PATCH", "/api/v1/topics/orders", `{"disableKeys":true,"mapping":null}`, nil},
		{200, "POST", "/api/v1/topics/orders/regenerate", `{"key":"key2"}`, nil},
		{201, "POST", "/api/v1/subscriptions", everySetting, nil},
		{201, "POST", "/api/v1/subscriptions", `{"name":"worker","topic":"orders","pull":{"lock":"90s","maxDeliveries":3},"deadLetter":"yard"}`, nil},
		{201, "POST", "/api/v1/subscriptions", `{"name":"archive","topic":"readings","hub":"shop/orders","properties":{"labels":["a"]}}`, nil},
		{201, "POST", "/api/v1/subscriptions", `{"name":"audit","sourceHub":"shop/orders","endpoint":"https://audit.example.com/","skipValidation":true}`, nil},
		{200, "GET", "/api/v1/subscriptions", nil, nil},
		{200, "GET", "/api/v1/subscriptions?stats=true", nil, nil},
		{200, "GET", "/api/v1/subscriptions?hub=shop%2Forders", nil, nil},
		{200, "GET", sub + "?topic=readings", nil, nil},
		{200, "GET", sub + "?secrets=true", nil, nil},
		{200, "GET", "/api/v1/subscriptions/worker", nil, nil},
		{200, "PATCH", sub, `{"types":[],"ttl":null,"deadLetter":"yard","sign":"hmac","paused":false}`, nil},
		{200, "POST", sub + "/rotate-key", `{}`, nil},
		{204, "POST", sub + "/resume", nil, nil},
		{204, "POST", sub + "/probe", nil, nil},
		{200, "GET", sub + "/attempts", nil, nil},
		{200, "GET", "/api/v1/topics/readings/events/1/journey", nil, nil},
		{200, "GET", hub + "/density?from=1h&to=0s&buckets=4", nil, nil},
		{200, "GET", hub + "/keys?partition=0,1&limit=5", nil, nil},
		{200, "GET", hub + "/partitions/0/events?find=hello", nil, nil},
		{200, "GET", hub + "/partitions/0/events/0/journey", nil, nil},
		{200, "POST", sub + "/explain", `[{"id":"1","subject":"/s","eventType":"t","eventTime":"2026-01-02T03:04:05Z","data":{"n":1}}]`, nil},
		{200, "GET", "/api/v1/topics/readings/events?from=earliest&max=1", nil, nil},
		{200, "GET", sub + "/dead?reason=MaxDeliveryAttemptsExceeded&since=2h&until=2100-01-01T00:00:00Z&max=10&from=0&redriven=true", nil, nil},
		{200, "GET", sub + "/dead/0", nil, nil},
		{404, "GET", sub + "/dead/99", nil, nil},
		{200, "POST", sub + "/redrive", `{"numbers":[0],"dryRun":true,"rate":5}`, nil},
		{200, "POST", sub + "/redrive", `{"eventType":"order.placed"}`, nil},
		{200, "POST", sub + "/purge", `{"redriven":true}`, nil},
		{204, "DELETE", sub, nil, nil},
		{404, "GET", sub, nil, nil},
		{204, "DELETE", "/api/v1/topics/orders", nil, nil},
		{201, "POST", "/api/v1/functions", `{"name":"billing","hub":"shop/orders","group":"billing","endpoint":"http://x/","format":"eventhubs","headers":{"A":"b"},"batch":10,` +
			`"maxWait":"2s","lanes":3,"start":"latest","timeout":"5s","retries":2,"retryDelay":"1s","retryMaxDelay":"1m","exponential":true,"poison":"none",` +
			`"breaker":"5/10s","probe":"10s","probeMax":"1m","countAttempts":true,"notify":["mailto:a@b"],"target":50}`, nil},
		{200, "GET", "/api/v1/functions", nil, nil},
		{200, "GET", "/api/v1/functions?stats=true", nil, nil},
		{200, "GET", "/api/v1/functions/billing", nil, nil},
		{200, "PATCH", "/api/v1/functions/billing", `{"retries":-1,"breaker":"off","notify":[],"lanes":1,"minBatch":2}`, nil},
		{200, "POST", "/api/v1/functions/billing/pause", `{"reason":"drill"}`, nil},
		{200, "GET", "/api/v1/circuits", nil, nil},
		{200, "POST", "/api/v1/functions/billing/resume", nil, nil},
		{200, "POST", "/api/v1/circuits/billing/open?hub=shop%2Forders&group=billing", `{}`, nil},
		{200, "GET", "/api/v1/circuits/billing", nil, nil},
		{200, "GET", "/api/v1/circuits/billing/history", nil, nil},
		{200, "POST", "/api/v1/circuits/billing/close", `{"reason":"done"}`, nil},
		{404, "GET", "/api/v1/circuits/nobody", nil, nil},
		{200, "GET", hub + "/poison?function=billing&since=1h&redriven=true&max=10", nil, nil},
		{200, "POST", hub + "/poison/redrive", `{"function":"billing","since":"1h","force":true,"rate":10,"max":5}`, nil},
		{204, "POST", "/api/v1/notices/test", `{"target":"mailto:a@b"}`, nil},
		{204, "DELETE", "/api/v1/functions/billing", nil, nil},
		{404, "POST", "/nowhere/messages", "text", []string{"Content-Type", "text/plain"}},
		{404, "GET", "/api/v1/hubs/nowhere", nil, nil},
		{416, "GET", hub + "/partitions/0/events?from=99", nil, nil},
		{204, "DELETE", hub + "/groups/billing", nil, nil},
		{204, "DELETE", hub, nil, nil},
	}
	for _, s := range steps {
		synctest.Wait() // what was made is delivered to a moment later
		y.want(s.status, s.method, s.path, s.body, s.header...)
		if strings.HasSuffix(s.path, "/probe") { // for attempts and dead letters to look at
			y.hook.set(true, 400)
			y.publish("readings", "1", "2")
		}
	}
	doc, _ := loadDocument()
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if !y.ops.used[op.OperationID] {
				t.Errorf("%s %s (%s) was never called", method, path, op.OperationID)
			}
		}
	}
}
