package config

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// G13: a field may be written in every form that suits its type.
func TestFormsOfFields(t *testing.T) {
	got, err := Load(Sources{File: write(t, "c.yaml", `
topics:
  - {name: orders, schema: custom, mapping: {subject: {sourceField: path}}, disableKeys: true}
subscriptions:
  - name: billing
    topic: orders
    pull: {lock: 90s, maxDeliveries: 5}
    filters: [data.k IsNull, {operatorType: NumberIn, key: data.n, values: [1, 2.5, true, x, null]}]
    headers: [X-Env=prod, {name: X-Key, value: abc, secret: true}]
    retryFloors: {503: 5s}
    noRetry: none
    labels: []
    oauth:
    rate: 1.5
functions:
  - {name: f, hub: h, endpoint: "http://x/", headers: {X-Id: 5}, retries: forever}
`)})
	testkit.Must(t, err)
	want := admin.SubscriptionRequest{
		Name: "billing", Topic: "orders", Pull: &admin.Pull{Lock: "90s", MaxDeliveries: new(5)},
		Filters: []admin.Filter{"data.k IsNull", `{"operatorType":"NumberIn","key":"data.n","values":[1,2.5,true,"x",null]}`},
		Headers: admin.Headers{{Name: "X-Env", Value: "prod"}, {Name: "X-Key", Value: "abc", Secret: true}}, RetryFloors: admin.Floors{"503": "5s"},
		NoRetry: admin.Statuses{}, Labels: []string{}, Rate: new(1.5),
	}
	testkit.Diff(t, want, got.Config.Subscriptions[0])
	topic := admin.TopicRequest{Name: "orders", Schema: "custom", Mapping: json.RawMessage(`{"subject":{"sourceField":"path"}}`), DisableKeys: new(true)}
	testkit.Diff(t, topic, got.Config.Topics[0])
	function := admin.FunctionRequest{Name: "f", Hub: "h", Endpoint: new("http://x/"), Headers: map[string]string{"X-Id": "5"}, Retries: new(admin.Forever)}
	testkit.Diff(t, function, got.Config.Functions[0])
}

func TestFormsThatDoNotSuit(t *testing.T) {
	for text, want := range map[string]string{
		"types: a":              "subscriptions[0].types: a list is wanted here, not a single value",
		"types: [[a]]":          "subscriptions[0].types[0]: a single value is wanted here, not a list",
		"types: [{a: b}]":       "subscriptions[0].types[0]: a single value is wanted here, not a mapping",
		"ttl: [1h]":             "subscriptions[0].ttl: a single value is wanted here, not a list",
		"oauth: x":              "subscriptions[0].oauth: a mapping is wanted here, not a single value",
		"oauth: {tokenUri: x}":  `unknown key "tokenUri", did you mean "tokenUrl"?`,
		"properties: x":         "subscriptions[0].properties: a mapping is wanted here, not a single value",
		"headers: [{nam: x}]":   `subscriptions[0].headers[0]: unknown field "nam"`,
		"attempts: many":        `subscriptions[0].attempts: "many" is no whole number`,
		"attempts: 31":          "subscriptions[0].attempts: 31: give 1 to 30",
		"timeout: soon":         `subscriptions[0].timeout: "soon" is no duration`,
		"pull: perhaps":         `subscriptions[0].pull: "perhaps" is neither true nor false`,
		"retryFloors: ['503']":  `subscriptions[0].retryFloors[0]: "503": write it like 503=5s`,
		"noRetry: [400, 4xx]":   `subscriptions[0].noRetry[1]: "4xx" is no status`,
		"skipValidation: maybe": `subscriptions[0].skipValidation: "maybe" is neither true nor false`,
	} {
		t.Run(text, func(t *testing.T) {
			_, err := Load(Sources{File: write(t, "c.yaml", "subscriptions: [{name: abc, topic: t, hub: h, "+text+"}]")})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
		})
	}
}
