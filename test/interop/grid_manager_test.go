//go:build linux

package interop

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// manager calls the paths of Azure's resource manager.
type manager struct {
	y    *yard
	base string
}

const underManager = "/subscriptions/5b4b650e-28b9-4790-b3ab-ddbd88d727c4/resourceGroups/shop/providers/Microsoft.EventGrid"

// call sends a request by a bearer token, as Azure's tools do, and reads the answer.
func (m manager) call(t *testing.T, method, path, body string, want int) object {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+m.y.hostPort(t, "http")+m.base+path+"?api-version=2022-06-15", strings.NewReader(body))
	testkit.Must(t, err)
	r.Header.Set("Authorization", "Bearer "+nobodysToken())
	r.Header.Set("Content-Type", "application/json")
	status, text := fetch(t, http.DefaultClient, r)
	testkit.MustEqual(t, status, want, "%s %s: %s", method, path, text)
	if text == "" {
		return nil
	}
	return read[object](t, []byte(text))
}

// in follows a path of members into an object.
func in(o object, path string) any {
	var at any = o
	for name := range strings.SplitSeq(path, ".") {
		inner, ok := at.(object)
		if !ok {
			return nil
		}
		at = inner[name]
	}
	return at
}

func expect(t *testing.T, what string, o object, want map[string]any) {
	t.Helper()
	for path, value := range want {
		if got := in(o, path); fmt.Sprint(got) != fmt.Sprint(value) {
			t.Errorf("%s: %s is %v, want %v", what, path, got, value)
		}
	}
}

// The JSON of the resource manager, with everything in it that it has words for.
const (
	managedTopic = `{"location":"westeurope","tags":{"team":"shop"},"properties":{"inputSchema":"CustomEventSchema","publicNetworkAccess":"Enabled","disableLocalAuth":false,
		"inputSchemaMapping":{"inputSchemaMappingType":"Json","properties":{"id":{"sourceField":"orderId"},"eventTime":{"sourceField":"at"},"topic":{"sourceField":null},
		"eventType":{"sourceField":"kind","defaultValue":"order"},"subject":{"sourceField":"path","defaultValue":"none"},"dataVersion":{"defaultValue":"1.0"}}}}}`
	managedSubscription = `{"properties":{"destination":{"endpointType":"WebHook","properties":{"endpointUrl":"%s?code=secret","maxEventsPerBatch":1,"preferredBatchSizeInKilobytes":64,
		"azureActiveDirectoryTenantId":null,"azureActiveDirectoryApplicationIdOrUri":null,"deliveryAttributeMappings":[
		{"name":"X-Env","type":"Static","properties":{"value":"prod","isSecret":false}},{"name":"X-Token","type":"Static","properties":{"value":"hush","isSecret":true}},
		{"name":"X-Region","type":"Dynamic","properties":{"sourceField":"data.region"}}]}},
		"filter":{"subjectBeginsWith":"/SHOPS","subjectEndsWith":"","isSubjectCaseSensitive":false,"includedEventTypes":["order.placed"],"enableAdvancedFilteringOnArrays":false,
		"advancedFilters":[{"operatorType":"NumberInRange","key":"data.total","values":[[10,20],[40,50]]}]},
		"labels":["a","b"],"expirationTimeUtc":null,"eventDeliverySchema":"EventGridSchema","retryPolicy":{"maxDeliveryAttempts":7,"eventTimeToLiveInMinutes":60},"deadLetterDestination":null}}`
)

// TestGridManager works with a topic and a subscription by the paths and the JSON of Azure's
// resource manager. // G6, G9, G10, G12
func TestGridManager(t *testing.T) {
	t.Parallel()
	y := startGrid(t, quickGrid, "acceptAnyJwt: true")
	m := manager{y, underManager}
	topic := m.call(t, "PUT", "/topics/orders", managedTopic, http.StatusCreated)
	expect(t, "the topic made", topic, map[string]any{
		"name": "orders", "type": "Microsoft.EventGrid/topics", "location": "westeurope", "tags.team": "shop", "properties.provisioningState": "Succeeded", "properties.inputSchema": "CustomEventSchema",
		"properties.inputSchemaMapping.properties.eventType.sourceField": "kind", "properties.inputSchemaMapping.properties.subject.defaultValue": "none",
		"properties.disableLocalAuth": false,
	})
	testkit.Equal(t, topic["id"], any(underManager+"/topics/orders"), "the topic's id")
	keys := m.call(t, "POST", "/topics/orders/listKeys", "", http.StatusOK)
	changed := m.call(t, "POST", "/topics/orders/regenerateKey", `{"keyName":"key2"}`, http.StatusOK)
	if keys["key1"] == nil || keys["key1"] != changed["key1"] || keys["key2"] == changed["key2"] {
		t.Errorf("the keys are %v, then %v", keys, changed)
	}

	h := newHook(t, nil)
	made := m.call(t, "PUT", "/topics/orders/eventSubscriptions/billing", fmt.Sprintf(managedSubscription, h.URL), http.StatusCreated)
	for what, shown := range map[string]object{"made": made, "found": m.call(t, "GET", "/topics/orders/eventSubscriptions/billing", "", http.StatusOK)} {
		expect(t, "the subscription "+what, shown, map[string]any{
			"name": "billing", "type": "Microsoft.EventGrid/eventSubscriptions", "properties.provisioningState": "Succeeded", "properties.eventDeliverySchema": "EventGridSchema",
			"properties.destination.endpointType": "WebHook", "properties.destination.properties.endpointBaseUrl": h.URL, "properties.destination.properties.endpointUrl": nil,
			"properties.filter.subjectBeginsWith": "/SHOPS", "properties.filter.includedEventTypes": "[order.placed]", "properties.labels": "[a b]",
			"properties.retryPolicy.maxDeliveryAttempts": 7, "properties.retryPolicy.eventTimeToLiveInMinutes": 60,
		})
		if strings.Contains(fmt.Sprint(shown), "hush") || strings.Contains(fmt.Sprint(shown), "code=secret") {
			t.Errorf("a secret is shown: %v", shown)
		}
	}
	full := m.call(t, "POST", "/topics/orders/eventSubscriptions/billing/getFullUrl", "", http.StatusOK)
	expect(t, "the full URL", full, map[string]any{"endpointUrl": h.URL + "?code=secret"})
	if attributes := m.call(t, "POST", "/topics/orders/eventSubscriptions/billing/getDeliveryAttributes", "", http.StatusOK); !strings.Contains(fmt.Sprint(attributes), "hush") {
		t.Errorf("the delivery attributes are %v", attributes)
	}
	managedDelivery(t, m, h, fmt.Sprint(changed["key2"]))
	managedChanges(t, m, h)
}

// managedDelivery publishes what passes the filter and what does not.
func managedDelivery(t *testing.T, m manager, h *hook, key string) {
	t.Helper()
	shown := ask[admin.Topic](t, m.y, "topic", "show", "orders")
	shown.Keys.Key1 = key
	m.y.publish(t, shown, "application/json", `[
		{"orderId":"1","kind":"order.placed","path":"/shops/1","at":"2030-01-02T15:04:05Z","total":42,"region":"north"},
		{"orderId":"2","kind":"order.placed","path":"/shops/1","at":"2030-01-02T15:04:05Z","total":30},
		{"orderId":"3","kind":"order.paid","path":"/shops/1","at":"2030-01-02T15:04:05Z","total":42},
		{"orderId":"4","kind":"order.placed","at":"2030-01-02T15:04:05Z","total":42}]`)
	d := h.await(t, 1)[0]
	e := read[[]object](t, d.body)[0]
	expect(t, "the event", e, map[string]any{
		"id": "1", "eventType": "order.placed", "subject": "/shops/1", "dataVersion": "1.0", "metadataVersion": "1", "topic": shown.Resource, "data.orderId": "1", "data.total": 42,
	})
	if d.header.Get("X-Env") != "prod" || d.header.Get("X-Token") != "hush" || d.header.Get("X-Region") != "north" || d.query != "code=secret" || d.header.Get("aeg-subscription-name") != "BILLING" {
		t.Errorf("it came with %v to %s", d.header, d.query)
	}
	m.y.eventuallyShown(t, "billing", func(s admin.Subscription) bool {
		return s.Stats.Matched == 1 && s.Stats.Delivered == 1 && s.Stats.Behind == 0
	})
}

// managedChanges changes, lists and deletes.
func managedChanges(t *testing.T, m manager, h *hook) {
	t.Helper()
	one := "/topics/orders/eventSubscriptions/billing"
	// A PATCH has no frame, and leaves what it does not name.
	patched := m.call(t, "PATCH", one, `{"labels":["c"],"retryPolicy":{"maxDeliveryAttempts":5,"eventTimeToLiveInMinutes":30}}`, http.StatusCreated)
	expect(t, "what was patched", patched, map[string]any{"properties.labels": "[c]", "properties.retryPolicy.maxDeliveryAttempts": 5, "properties.filter.subjectBeginsWith": "/SHOPS"})
	older := m.call(t, "GET", "/topics/orders/providers/Microsoft.EventGrid/eventSubscriptions/billing", "", http.StatusOK)
	expect(t, "by the older path", older, map[string]any{"properties.labels": "[c]"})
	if list := m.call(t, "GET", "/topics/orders/eventSubscriptions", "", http.StatusOK); len(list["value"].([]any)) != 1 {
		t.Errorf("the list is %v", list)
	}
	refused := m.call(t, "PUT", "/topics/orders/eventSubscriptions/wrong", `{"properties":{"destination":{"endpointType":"WebHook","properties":{"endpointUrl":"`+h.URL+`"}},"retryPolicy":{"maxDeliveryAttempts":99}}}`, http.StatusBadRequest)
	if in(refused, "error.code") == nil || in(refused, "error.message") == nil {
		t.Errorf("refused with %v", refused)
	}
	m.call(t, "DELETE", one, "", http.StatusNoContent)
	m.call(t, "GET", one, "", http.StatusNotFound)
	m.call(t, "DELETE", "/topics/orders", "", http.StatusNoContent)
	m.call(t, "GET", "/topics/orders", "", http.StatusNotFound)
}

// managerEnvironment tells a script where a yard is that has nothing to manage yet.
func managerEnvironment(t *testing.T) map[string]string {
	t.Helper()
	y := startGrid(t, quickGrid, "acceptAnyJwt: true")
	env := y.onPlain(t, "amqp", "arrivals")
	env["YARD_SERVER"], env["YARD_CA"] = "https://"+y.hostPort(t, "https"), y.authority(t)
	env["YARD_HOOK"] = newHook(t, nil).URL
	return env
}

// TestGridManagerPython works with the official management library for Python. // G6, G9, G12
func TestGridManagerPython(t *testing.T) {
	t.Parallel()
	interpreter := python(t)
	runPython(t, interpreter, "manager_client.py", managerEnvironment(t))
}

// TestGridManagerJavaScript works with the official management library for JavaScript. // G6, G9, G12
func TestGridManagerJavaScript(t *testing.T) {
	t.Parallel()
	node(t)
	env := managerEnvironment(t)
	env["NODE_EXTRA_CA_CERTS"] = env["YARD_CA"]
	runNode(t, "manager.js", env)
}

// TestGridManagedNamespace makes a topic and a queue of a namespace by the resource manager's JSON,
// and receives from it. // G12
func TestGridManagedNamespace(t *testing.T) {
	t.Parallel()
	y := startGrid(t, quickGrid, "acceptAnyJwt: true")
	m := manager{y, underManager + "/namespaces/shop"}
	expect(t, "the topic", m.call(t, "PUT", "/topics/readings", `{"properties":{"publisherType":"Custom","inputSchema":"CloudEventSchemaV1_0","eventRetentionInDays":1}}`, http.StatusCreated),
		map[string]any{"name": "readings", "properties.inputSchema": "CloudEventSchemaV1_0"})
	made := m.call(t, "PUT", "/topics/readings/eventSubscriptions/worker", `{"properties":{"deliveryConfiguration":{"deliveryMode":"Queue","queue":{"receiveLockDurationInSeconds":60,"maxDeliveryCount":4,"eventTimeToLive":"P1D"}},
		"eventDeliverySchema":"CloudEventSchemaV1_0","filtersConfiguration":{"includedEventTypes":["order.placed"],"filters":[{"operatorType":"StringContains","key":"source","values":["shops"]}]}}}`, http.StatusCreated)
	expect(t, "the queue", made, map[string]any{"properties.deliveryConfiguration.deliveryMode": "Queue", "properties.deliveryConfiguration.queue.maxDeliveryCount": 4})
	y.awaitDelivered(t, "worker")
	topic := ask[admin.Topic](t, y, "topic", "show", "readings")
	y.publish(t, topic, "application/cloudevents-batch+json", "["+cloudEvent("1")+`,{"specversion":"1.0","id":"2","source":"/shops/1","type":"other"}]`)
	root := manager{y, ""}
	received := root.call(t, "POST", "/topics/readings/eventsubscriptions/worker:receive", "", http.StatusOK)
	list, _ := received["value"].([]any)
	if len(list) != 1 || in(list[0].(object), "event.id") != "1" || fmt.Sprint(in(list[0].(object), "brokerProperties.deliveryCount")) != "1" {
		t.Errorf("received %v", received)
	}
}
