package topics

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

func parseARM(t testing.TB, properties string, present Settings) Settings {
	t.Helper()
	s, err := ParseSubscriptionARM([]byte(`{"properties":`+properties+`}`), present)
	testkit.Must(t, err)
	return s
}

// G9: a topic as templates have it.
func TestParseTopicARM(t *testing.T) {
	got, err := ParseTopicARM([]byte(`{
		"name": "orders", "type": "Microsoft.EventGrid/topics", "location": "westeurope", "tags": {"team": "a"}, "sku": {"name": "Basic"},
		"properties": {
			"inputSchema": "CustomEventSchema",
			"inputSchemaMapping": {"inputSchemaMappingType": "Json", "properties": {
				"id": {"sourceField": "orderId"}, "eventTime": {"sourceField": "at"}, "topic": {"sourceField": null},
				"eventType": {"sourceField": "kind", "defaultValue": "order"}, "subject": {"sourceField": "path", "defaultValue": "none"},
				"dataVersion": {"defaultValue": "1.0"}}},
			"publicNetworkAccess": "enabled", "inboundIpRules": [],
			"disableLocalAuth": true, "minimumTlsVersionAllowed": "1.2", "endpoint": "https://x", "provisioningState": "Succeeded"
		}}`))
	want := TopicConfig{Topic{
		Name: "orders", Schema: schema.Custom, DisableKeys: true, Tags: map[string]string{"team": "a"}, Location: "westeurope",
		Mapping: schema.Mapping{
			ID: schema.Field{Source: "orderId"}, EventTime: schema.Field{Source: "at"}, EventType: schema.Field{Source: "kind", Default: "order"},
			Subject: schema.Field{Source: "path", Default: "none"}, DataVersion: schema.Field{Default: "1.0"},
		},
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, little := range []string{"", "{}", `{"location":"local"}`, `{"properties":{"inputSchema":null,"inputSchemaMapping":null}}`, `{"properties":null}`} {
		if got, err := ParseTopicARM([]byte(little)); err != nil || cmp.Diff(TopicConfig{}, got) != "" {
			t.Errorf("%s: got %+v, %v", little, got, err)
		}
	}
	// A topic that only some were meant to reach must not be open to all.
	for _, guarded := range []string{`"publicNetworkAccess":"Disabled"`, `"publicNetworkAccess":"SecuredByPerimeter"`, `"inboundIpRules":[{"ipMask":"10.0.0.0/8","action":"Allow"}]`} {
		wantError(t, testkit.Err(ParseTopicARM([]byte(`{"properties":{`+guarded+`}}`))), ErrInvalid, "firewall")
	}
	for _, bad := range []string{"[", "[]", `{"properties":{"inputSchema":"Xml"}}`, `{"properties":{"inputSchema":7}}`, `{"properties":{"inputSchemaMapping":{"inputSchemaMappingType":"Xslt"}}}`} {
		testkit.ErrorIs(t, testkit.Err(ParseTopicARM([]byte(bad))), ErrInvalid, "%s", bad)
	}
}

// G9: what is shown can be read again, and has no keys in it.
func TestRenderTopicARM(t *testing.T) {
	k := newYard(t).open(t, Config{})
	made, err := k.CreateTopic(t.Context(), TopicConfig{Topic{
		Name: "Orders", Schema: schema.Custom, Mapping: schema.Mapping{Subject: schema.Field{Default: "x"}}, Tags: map[string]string{"a": "b"}, DisableKeys: true,
	}})
	testkit.Must(t, err)
	text, err := json.Marshal(RenderTopicARM(made, "https://yard/topics/Orders/api/events"))
	if err != nil || strings.Contains(string(text), made.Key1) || strings.Contains(string(text), made.Key2) {
		t.Fatalf("%s, %v", text, err)
	}
	for _, part := range []string{
		`"id":"/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/yard/providers/Microsoft.EventGrid/topics/Orders"`,
		`"type":"Microsoft.EventGrid/topics"`, `"endpoint":"https://yard/topics/Orders/api/events"`, `"provisioningState":"Succeeded"`, `"inputSchema":"CustomEventSchema"`,
	} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s is not in %s", part, text)
		}
	}
	again, err := ParseTopicARM(text)
	testkit.Must(t, err)
	if same, err := k.EnsureTopic(t.Context(), again); err != nil || cmp.Diff(made, same) != "" {
		t.Errorf("%v\n%s", err, cmp.Diff(made, same))
	}
}

// G2, G6, G8, G9, G10: a subscription as templates have it.
func TestParseSubscriptionARM(t *testing.T) {
	got := parseARM(t, `{
		"destination": {"endpointType": "WebHook", "properties": {
			"endpointUrl": "https://billing.example.test/hook?code=secret", "maxEventsPerBatch": 10, "preferredBatchSizeInKilobytes": 128,
			"azureActiveDirectoryTenantId": null, "azureActiveDirectoryApplicationIdOrUri": "", "minimumTlsVersionAllowed": "1.1",
			"deliveryAttributeMappings": [
				{"name": "X-Env", "type": "Static", "properties": {"value": "prod", "isSecret": true}},
				{"name": "X-Region", "type": "dynamic", "properties": {"sourceField": "data.region"}}]}},
		"filter": {"subjectBeginsWith": "a", "subjectEndsWith": "", "isSubjectCaseSensitive": true, "includedEventTypes": ["x"],
			"enableAdvancedFilteringOnArrays": true, "advancedFilters": [{"operatorType": "NumberInRange", "key": "data.total", "value": null, "values": [[10, 20]]}]},
		"labels": ["a", "b"], "expirationTimeUtc": "2199-01-31T18:00:00", "eventDeliverySchema": "CloudEventSchemaV1_0",
		"retryPolicy": {"maxDeliveryAttempts": 5, "eventTimeToLiveInMinutes": 60},
		"deadLetterDestination": {"endpointType": "StorageBlob", "properties": {"resourceId": "https://acct.blob.core.windows.net", "blobContainerName": "dead"}},
		"provisioningState": "Succeeded", "topic": "x", "somethingNew": {"a": [1]}
	}`, Settings{})
	want := Settings{
		Webhook: &egress.Endpoint{URL: "https://billing.example.test/hook?code=secret", MinTLS: "1.2"}, MaxEvents: 10, PreferredKiB: 128,
		Headers: []Header{{Name: "X-Env", Value: "prod", Secret: true}, {Name: "X-Region", Field: "data.region"}},
		Filter: filter.Config{EventTypes: []string{"x"}, SubjectBeginsWith: "a", SubjectCaseSensitive: true, Arrays: true,
			Advanced: []filter.Condition{{Operator: "NumberInRange", Key: "data.total", Values: json.RawMessage("[[10, 20]]")}}},
		Labels: []string{"a", "b"}, Expires: time.Date(2199, 1, 31, 18, 0, 0, 0, time.UTC), Output: schema.CloudEvents,
		Retry:      retry.Policy{MaxAttempts: 5, TimeToLive: time.Hour},
		DeadLetter: Target{Kind: TargetBlob, Where: "https://acct.blob.core.windows.net/dead"},
	}
	testkit.Diff(t, want, got)
}

// G8: everything that an endpoint or a target of dead letters can be written as.
func TestSubscriptionPartsInARM(t *testing.T) {
	hubID := "/subscriptions/x/resourceGroups/y/providers/Microsoft.EventHub/namespaces/n/eventhubs/sensors"
	azure := "/subscriptions/x/resourceGroups/y/providers/Microsoft.Storage/storageAccounts/acct"
	for _, test := range []struct {
		name, properties string
		want             Settings
	}{
		{"a hub by its resource", `{"destination":{"endpointType":"EventHub","properties":{"resourceId":"` + hubID + `"}}}`, Settings{Hub: "sensors", HubResource: hubID}},
		{"a hub of ours", `{"destination":{"endpointType":"eventhub","properties":{"eventHub":"a/b"}}}`, Settings{Hub: "a/b"}},
		{"with an identity", `{"destination":null,"deliveryWithResourceIdentity":{"identity":{"type":"SystemAssigned"},"destination":{"endpointType":"EventHub","properties":{"resourceId":"` + hubID + `"}}}}`, Settings{Hub: "sensors", HubResource: hubID}},
		{"no batching by default", `{"destination":{"endpointType":"EventHub","properties":{"eventHub":"x","maxEventsPerBatch":1,"preferredBatchSizeInKilobytes":64}}}`, Settings{Hub: "x"}},
		{"batching by size alone", `{"destination":{"endpointType":"EventHub","properties":{"eventHub":"x","preferredBatchSizeInKilobytes":64}}}`, Settings{Hub: "x", PreferredKiB: 64}},
		{"pulled", `{"deliveryConfiguration":{"deliveryMode":"Queue","queue":{"receiveLockDurationInSeconds":120,"maxDeliveryCount":7,"eventTimeToLive":"P1D"}},"eventDeliverySchema":"CloudEventSchemaV1_0"}`,
			Settings{Pull: &Pull{Lock: 2 * time.Minute, MaxDeliveries: 7}, Retry: retry.Policy{TimeToLive: 24 * time.Hour}, Output: schema.CloudEvents}},
		{"pulled, in short", `{"deliveryConfiguration":{"deliveryMode":"Queue"}}`, Settings{Pull: &Pull{}}},
		{"pushed by a namespace", `{"deliveryConfiguration":{"push":{"maxDeliveryCount":4,"eventTimeToLive":"PT1H30M","deliveryWithResourceIdentity":{"destination":{"endpointType":"EventHub","properties":{"eventHub":"x"}}}}},
			"filtersConfiguration":{"includedEventTypes":["a"],"filters":[{"operatorType":"IsNotNull","key":"data.x"}]}}`,
			Settings{Hub: "x", Retry: retry.Policy{MaxAttempts: 4, TimeToLive: 90 * time.Minute}, Filter: filter.Config{EventTypes: []string{"a"}, Advanced: []filter.Condition{{Operator: "IsNotNull", Key: "data.x"}}}}},
		{"the Edge edition's time to live", `{"retryPolicy":{"eventExpiryInMinutes":120}}`, Settings{Retry: retry.Policy{TimeToLive: 2 * time.Hour}}},
		{"dead letters in a folder", `{"deadLetterDestination":{"endpointType":"Folder","properties":{"path":"dead"}}}`, Settings{DeadLetter: Target{Kind: TargetFolder, Where: "dead"}}},
		{"dead letters in a hub", `{"deadLetterDestination":{"endpointType":"EventHub","properties":{"resourceId":"` + hubID + `"}}}`, Settings{DeadLetter: Target{Kind: TargetHub, Where: "sensors", Resource: hubID}}},
		{"dead letters in the yard", `{"deadLetterDestination":{"endpointType":"Yard"}}`, Settings{DeadLetter: Target{Kind: TargetYard}}},
		{"dead letters in a container", `{"deadLetterDestination":{"endpointType":"StorageBlob","properties":{"blobContainerUrl":"https://a/c?sig=x"}}}`, Settings{DeadLetter: Target{Kind: TargetBlob, Where: "https://a/c?sig=x"}}},
		{"in an account with a signature", `{"deadLetterDestination":{"endpointType":"StorageBlob","properties":{"resourceId":"https://a/?sig=x","blobContainerName":"c"}}}`, Settings{DeadLetter: Target{Kind: TargetBlob, Where: "https://a/c?sig=x"}}},
		{"in an account of Azure", `{"deadLetterDestination":{"endpointType":"StorageBlob","properties":{"resourceId":"` + azure + `","blobContainerName":"c","accountKey":"k"}}}`, Settings{DeadLetter: Target{Kind: TargetBlob, Where: "https://acct.blob.core.windows.net/c", Key: "k", Resource: azure}}},
		{"in an account that the yard knows", `{"deadLetterDestination":{"endpointType":"StorageBlob","properties":{"resourceId":"` + azure + `","blobContainerName":"dead"}}}`, Settings{DeadLetter: Target{Kind: TargetBlob, Where: "acct/dead", Resource: azure}}},
		{"with an identity there", `{"deadLetterWithResourceIdentity":{"deadLetterDestination":{"endpointType":"Yard"}}}`, Settings{DeadLetter: Target{Kind: TargetYard}}},
		{"of a queue", `{"deliveryConfiguration":{"queue":{"deadLetterDestinationWithResourceIdentity":{"deadLetterDestination":{"endpointType":"Yard"}}}}}`, Settings{Pull: &Pull{}, DeadLetter: Target{Kind: TargetYard}}},
		{"no expiry, in other words", `{"expirationTimeUtc":"0001-01-01T00:00:00"}`, Settings{}},
		{"nothing", `{}`, Settings{}},
		{"nulls", `{"filter":null,"labels":null,"expirationTimeUtc":null,"eventDeliverySchema":null,"retryPolicy":null,"deadLetterDestination":null,"deadLetterWithResourceIdentity":null,"deliveryConfiguration":null,"filtersConfiguration":null}`, Settings{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Diff(t, test.want, parseARM(t, test.properties, Settings{}))
		})
	}
}

func TestSubscriptionsInARMThatAreNotAllowed(t *testing.T) {
	for says, properties := range map[string]string{
		"subscription":                   `[`,
		"WebHook or an EventHub":         `{"destination":{"endpointType":"StorageQueue"}}`,
		"destination":                    `{"destination":7}`,
		"names no hub":                   `{"destination":{"endpointType":"EventHub"}}`,
		"OAuth":                          `{"destination":{"endpointType":"WebHook","properties":{"endpointUrl":"https://x","azureActiveDirectoryTenantId":"t"}}}`,
		"whole endpointUrl":              `{"destination":{"endpointType":"WebHook","properties":{"endpointBaseUrl":"https://x"}}}`,
		"Static or Dynamic":              `{"destination":{"endpointType":"EventHub","properties":{"eventHub":"x","deliveryAttributeMappings":[{"name":"X","type":"Random"}]}}}`,
		"filter":                         `{"filter":{"includedEventTypes":7}}`,
		"filtersConfiguration":           `{"filtersConfiguration":[]}`,
		"labels":                         `{"labels":"x"}`,
		"2027-01-31T18:00:00Z":           `{"expirationTimeUtc":"tomorrow"}`,
		"eventDeliverySchema":            `{"eventDeliverySchema":"xml"}`,
		"1 to 30":                        `{"retryPolicy":{"maxDeliveryAttempts":0}}`,
		"1 to 1440":                      `{"retryPolicy":{"eventTimeToLiveInMinutes":9223372036854775807}}`,
		"Queue or Push":                  `{"deliveryConfiguration":{"deliveryMode":"Carrier"}}`,
		"give push":                      `{"deliveryConfiguration":{"deliveryMode":"Push"}}`,
		"60 to 300":                      `{"deliveryConfiguration":{"queue":{"receiveLockDurationInSeconds":0}}}`,
		"maxDeliveryCount":               `{"deliveryConfiguration":{"queue":{"maxDeliveryCount":0}}}`,
		"ISO 8601":                       `{"deliveryConfiguration":{"queue":{"eventTimeToLive":"1d"}}}`,
		"StorageBlob, Folder":            `{"deadLetterDestination":{"endpointType":"Tape"}}`,
		"blobContainerName":              `{"deadLetterDestination":{"endpointType":"StorageBlob","properties":{"resourceId":"https://a"}}}`,
		"storage account":                `{"deadLetterDestination":{"endpointType":"StorageBlob","properties":{"resourceId":"/x/acct","blobContainerName":"c"}}}`,
		"write yard":                     `{"deadLetterDestination":{"endpointType":"Folder"}}`,
		"deadLetterWithResourceIdentity": `{"deadLetterWithResourceIdentity":7}`,
	} {
		wantError(t, testkit.Err(ParseSubscriptionARM([]byte(`{"properties":`+properties+`}`), Settings{})), ErrInvalid, says)
	}
}

// full is a subscription with something secret wherever there can be.
func full(t testing.TB) Subscription {
	key, err := signature.New(signature.HMAC)
	testkit.Must(t, err)
	return Subscription{
		Name: "Mailer", ID: newID(), Source: Source{Topic: "Orders"}, SourceID: newID(), State: Active, Resource: TopicResource("yard", "Orders"),
		Validation: Validation{Code: "SECRET", Token: "SECRET"},
		Settings: Settings{
			Webhook: &egress.Endpoint{URL: "https://example.com/hook?code=SECRET#x", Key: "SECRET", OAuth: &egress.OAuth{Secret: "SECRET"}, MinTLS: "1.3"},
			Headers: []Header{{Name: "X-Key", Value: "SECRET", Secret: true}, {Name: "X", Value: "y"}, {Name: "Z", Field: "data.z"}}, Keys: []signature.Key{key},
			DeadLetter: Target{Kind: TargetBlob, Where: "https://acct.blob.core.windows.net/dead?sig=SECRET", Key: "SECRET"},
			Retry:      retry.Policy{MaxAttempts: 3, TimeToLive: 90 * time.Second, Schedule: []time.Duration{time.Second}}, Output: schema.EventGrid,
			Filter:  filter.Config{EventTypes: []string{"x"}, Advanced: []filter.Condition{{Operator: "IsNotNull", Key: "data.x"}}},
			Expires: time.Date(2199, 1, 1, 0, 0, 0, 500, time.UTC), Labels: []string{"a"}, Timeout: time.Minute, Concurrency: 3, OrderBy: "subject",
		},
	}
}

// G11: secrets are not shown, and whoever reads, changes nothing and writes back changes nothing.
func TestRenderSubscriptionARM(t *testing.T) {
	pulled := full(t)
	pulled.Webhook, pulled.Headers, pulled.Keys, pulled.Timeout, pulled.Concurrency, pulled.OrderBy = nil, nil, nil, 0, 0, ""
	pulled.Pull, pulled.Output = &Pull{Lock: time.Minute, MaxDeliveries: 3}, schema.CloudEvents
	pulled.Retry = retry.Policy{TimeToLive: 90 * time.Second}
	toHub := full(t)
	toHub.Webhook, toHub.Keys, toHub.Hub, toHub.DeadLetter = nil, nil, "a/b", Target{Kind: TargetHub, Where: "c/d"}
	toHub.Source, toHub.Resource = Source{Hub: "x"}, HubResource("yard", "x")
	batched := full(t)
	batched.MaxEvents, batched.PreferredKiB, batched.DeadLetter = 10, 64, Target{Kind: TargetFolder, Where: "dead"}
	bySize := full(t)
	bySize.PreferredKiB, bySize.DeadLetter = 64, Target{Kind: TargetYard}
	plain := full(t)
	plain.Settings = hook("https://example.com/hook")
	plain.Output, plain.Webhook.MinTLS = schema.EventGrid, "1.2"
	plain.Retry = retry.Policy{MaxAttempts: 30, TimeToLive: 24 * time.Hour}
	for name, s := range map[string]Subscription{"a webhook": full(t), "pulled": pulled, "a hub": toHub, "batched": batched, "by size": bySize, "plain": plain} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(RenderSubscriptionARM(s))
			if err != nil || strings.Contains(string(text), "SECRET") || strings.Contains(string(text), "whsec") {
				t.Fatalf("%s, %v", text, err)
			}
			again, err := ParseSubscriptionARM(text, s.Settings)
			if err != nil || !again.equal(s.Settings) {
				t.Errorf("%v\n%s", err, cmp.Diff(s.Settings, again))
			}
		})
	}
	text, _ := json.Marshal(RenderSubscriptionARM(full(t)))
	for _, part := range []string{
		`"endpointBaseUrl":"https://example.com/hook"`, `"value":"Hidden"`, `"provisioningState":"Succeeded"`, `"name":"Mailer"`,
		`"id":"/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/yard/providers/Microsoft.EventGrid/topics/Orders/eventSubscriptions/Mailer"`,
		`"maxEventsPerBatch":1`, `"eventTimeToLiveInMinutes":2`, `"eventDeliverySchema":"EventGridSchema"`, `"blobContainerName":"dead"`,
	} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s is not in %s", part, text)
		}
	}
}

// G11
func TestProvisioningState(t *testing.T) {
	for state, want := range map[State]string{
		Active: "Succeeded", Paused: "Succeeded", Pending: "AwaitingManualAction", Failed: "Failed", Disabled: "Failed", Expired: "Failed",
	} {
		s := full(t)
		s.State, s.Why = state, "because"
		text, _ := json.Marshal(RenderSubscriptionARM(s))
		if !strings.Contains(string(text), `"provisioningState":"`+want+`"`) || !strings.Contains(string(text), `"why":"because"`) {
			t.Errorf("%s: %s", state, text)
		}
	}
}

// What a request gives replaces; what it leaves out stays; the present settings are not touched.
func TestPatchARM(t *testing.T) {
	present := full(t).Settings
	before := string(present.encode())
	got := parseARM(t, `{"destination":{"endpointType":"WebHook","properties":{"endpointUrl":"https://example.com/new","minimumTlsVersionAllowed":"1.3"}},"deadLetterDestination":null}`, present)
	testkit.Equal(t, string(present.encode()), before, "the present settings were changed")
	want := full(t).Settings
	want.Keys = present.Keys
	want.Webhook.URL, want.Headers, want.DeadLetter = "https://example.com/new", nil, Target{}
	testkit.Diff(t, want, got)
}

func TestISODurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"PT1M": time.Minute, "P1D": 24 * time.Hour, "P7D": 168 * time.Hour, "P1W": 168 * time.Hour, "P1DT2H3M4S": 26*time.Hour + 3*time.Minute + 4*time.Second,
		"pt0.5s": 500 * time.Millisecond, "PT1.5H": 90 * time.Minute, "PT90S": 90 * time.Second, "P1W2D": 216 * time.Hour,
	} {
		got, ok := parseISODuration(text)
		if !ok || got != want {
			t.Errorf("%s: got %v, %v", text, got, ok)
		}
		if again, ok := parseISODuration(isoDuration(want)); !ok || again != want {
			t.Errorf("%s: written %s", text, isoDuration(want))
		}
	}
	for _, bad := range []string{"", "P", "PT", "1D", "P1", "P1Y", "P1M", "PT1D", "P1H", "PT1S1M", "P-1D", "P1DT", "P1.2.3D", "PT99999999999999999999H", "PTS", "P 1D", "P1D2D"} {
		if got, ok := parseISODuration(bad); ok {
			t.Errorf("%s: got %v", bad, got)
		}
	}
	testkit.Equal(t, isoDuration(0), "PT0S")
}

// What was read is written such that it is read as the same, for all durations that are allowed.
func FuzzISODuration(f *testing.F) {
	for _, seed := range []string{"P1DT2H3M4.005S", "PT0S", "P1W", "PT", "P9999999999999D", "PT0.0000000001S"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, ok := parseISODuration(text)
		if !ok || d > 365*24*time.Hour {
			return
		}
		if again, ok := parseISODuration(isoDuration(d)); !ok || d < 0 || (again-d).Abs() > 100 { // nanoseconds that a float has not
			t.Errorf("%q is %v, written as %s, read as %v", text, d, isoDuration(d), again)
		}
	})
}

func FuzzParseTopicARM(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"name":"a","tags":{"a":null},"properties":{"inputSchema":"CustomEventSchema","inputSchemaMapping":{"properties":{"id":{"sourceField":"x"}}}}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		cfg, err := ParseTopicARM(body)
		if err != nil {
			testkit.ErrorIs(t, err, ErrInvalid)
			return
		}
		if cfg.Schema == "" {
			cfg.Schema = schema.EventGrid
		}
		text, err := json.Marshal(RenderTopicARM(cfg.Topic, "https://x"))
		testkit.Must(t, err)
		again, err := ParseTopicARM(text)
		if err != nil || again.Name != cfg.Name || again.Schema != cfg.Schema || again.Mapping != cfg.Mapping || again.DisableKeys != cfg.DisableKeys || len(again.Tags) != len(cfg.Tags) {
			t.Errorf("%+v was read again as %+v, %v", cfg, again, err)
		}
	})
}

// What strangers send is refused or read, and what was read and is shown and written back changes
// nothing.
func FuzzParseSubscriptionARM(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"properties":{"destination":{"endpointType":"WebHook","properties":{"endpointUrl":"https://x?y","maxEventsPerBatch":3,"deliveryAttributeMappings":[{"name":"a","type":"Static","properties":{"value":"b","isSecret":true}}]}}}}`,
		`{"properties":{"destination":{"endpointType":"EventHub","properties":{"resourceId":"/a/b"}},"retryPolicy":{"maxDeliveryAttempts":3,"eventTimeToLiveInMinutes":7},"labels":["x"]}}`,
		`{"properties":{"deliveryConfiguration":{"deliveryMode":"Queue","queue":{"eventTimeToLive":"PT1.5M"}},"filtersConfiguration":{"filters":[{"operatorType":"a","key":"b","values":[1]}]}}}`,
		`{"properties":{"deadLetterDestination":{"endpointType":"StorageBlob","properties":{"resourceId":"https://a?b","blobContainerName":"c"}},"expirationTimeUtc":"2030-01-01","eventDeliverySchema":"custominputschema"}}`,
		`{"properties":{"destination":{"endpointType":"EventHub","properties":{"resourceId":"/a/b"}},"deadLetterDestination":{"endpointType":"StorageBlob","properties":{"resourceId":"/x/storageAccounts/acct","blobContainerName":"dead"}}}}`,
		`{"properties":{"filter":{"subjectBeginsWith":"a","advancedFilters":[{"operatorType":"NumberIn","key":"k","values":[1]}]}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := ParseSubscriptionARM(body, Settings{})
		if err != nil {
			testkit.ErrorIs(t, err, ErrInvalid)
			return
		}
		if s.Webhook == nil && s.Hub == "" && s.Pull == nil || s.checkHeaders() != nil || s.checkBatches() != nil {
			return // nothing that could be stored
		}
		// Defaults that reads show in full.
		s.Output = "eventgrid"
		shown := Subscription{Name: "a", Resource: TopicResource("yard", "t"), State: Active, Settings: s}
		text, err := json.Marshal(RenderSubscriptionARM(shown))
		if err != nil {
			return // a time or a filter that cannot be stored either
		}
		again, err := ParseSubscriptionARM(text, s)
		testkit.Must(t, err, "%s", text)
		twice, err := ParseSubscriptionARM(text, again)
		if err != nil || !twice.equal(again) {
			t.Errorf("%s was read as %+v and then %+v, %v", text, again, twice, err)
		}
		if (s.Webhook == nil) != (again.Webhook == nil) || s.Webhook != nil && s.Webhook.URL != again.Webhook.URL || s.Hub != again.Hub || (s.Pull == nil) != (again.Pull == nil) ||
			s.DeadLetter != again.DeadLetter || len(s.Headers) != len(again.Headers) || !s.Expires.Equal(again.Expires) {
			t.Errorf("%s: %+v was read again as %+v", text, s, again)
		}
	})
}

// A hub's name may have slashes in it, and so has the end of its resource id then.
func TestHubsByTheirResource(t *testing.T) {
	for resource, want := range map[string]string{
		HubResource("yard", "sensors"): "sensors", HubResource("yard", "sensors/cellar"): "sensors/cellar", "/x/EventHubs/a": "a", "/x/y": "y", "z": "z",
	} {
		got := parseARM(t, `{"destination":{"endpointType":"EventHub","properties":{"resourceId":"`+resource+`"}}}`, Settings{})
		testkit.Equal(t, got.Hub, want, "%s", resource)
	}
}

// What belongs to webhooks alone does not stand in the way of who turns one into something else.
func TestAWebhookCanBecomeAnotherKindOfEndpoint(t *testing.T) {
	y := newYard(t)
	y.Hub(t, "sensors", 1)
	k := y.open(t, Config{}, "orders")
	for i, properties := range []string{
		`{"destination":{"endpointType":"EventHub","properties":{"eventHub":"sensors"}}}`,
		`{"deliveryConfiguration":{"deliveryMode":"Queue"}}`,
	} {
		s := full(t).Settings
		s.Output, s.Binary = schema.CloudEvents, true
		s.Retry.NoRetry, s.Retry.Floors = []int{}, map[int]time.Duration{503: time.Second}
		name := "sub-" + string(rune('a'+i))
		mustCreate(t, k, topic("orders"), name, s)
		testkit.Check(t, testkit.Err(k.Ensure(t.Context(), topic("orders"), name, parseARM(t, properties, s))), "%s", properties)
	}
}
