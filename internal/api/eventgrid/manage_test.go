package eventgrid

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// grid is where the resource manager has topics.
const grid = manager + "/providers/Microsoft.EventGrid"

// shownTopic is what tests look at of a topic.
type shownTopic struct {
	ID, Name, Type string
	Tags           map[string]string
	Properties     struct {
		Endpoint, InputSchema, ProvisioningState string
		DisableLocalAuth                         bool
	}
}

// shownSubscription is what tests look at of a subscription.
type shownSubscription struct {
	ID, Name   string
	Properties struct {
		ProvisioningState, EventDeliverySchema string
		Labels                                 []string
		Destination                            struct {
			EndpointType string
			Properties   struct{ EndpointBaseURL, EndpointURL, EventHub string }
		}
		Filter                struct{ SubjectBeginsWith string }
		RetryPolicy           struct{ MaxDeliveryAttempts, EventTimeToLiveInMinutes int }
		DeliveryConfiguration struct{ DeliveryMode string }
	}
}

// changedStatus is what a change is answered: the resource manager's clients take nothing but 201.
func changedStatus(path string) int {
	if strings.HasPrefix(path, manager) {
		return 201
	}
	return 200
}

// G12: a topic is made, shown, changed and deleted by either API, in the same shape.
func TestTopicsByManagement(t *testing.T) {
	for _, base := range []string{"/topics", grid + "/topics"} {
		t.Run(base, func(t *testing.T) {
			y := newRealYard(t)
			const body = `{"location":"westus","tags":{"team":"a"},"properties":{"inputSchema":"CloudEventSchemaV1_0"}}`
			var made shownTopic
			y.ask("PUT", base+"/Orders?api-version=2022-06-15", body, asRoot).want(201).json(&made)
			if made.Name != "Orders" || made.Type != "Microsoft.EventGrid/topics" || made.Tags["team"] != "a" || made.Properties.InputSchema != "CloudEventSchemaV1_0" ||
				made.Properties.ProvisioningState != "Succeeded" || made.Properties.Endpoint != y.server.URL+"/topics/Orders/api/events" || !strings.HasSuffix(made.ID, "/providers/Microsoft.EventGrid/topics/Orders") {
				t.Errorf("made %+v", made)
			}
			before, err := y.topicRegistry.Topic("orders")
			testkit.Must(t, err)
			got := y.ask("GET", base+"/orders", "", asRoot).want(200)
			if strings.Contains(got.text, before.Key1) || strings.Contains(got.text, before.Key2) {
				t.Errorf("a key is shown: %s", got.text)
			}
			var changed shownTopic
			y.ask("PUT", base+"/orders", `{"properties":{"disableLocalAuth":true}}`, asRoot).want(changedStatus(base)).json(&changed)
			after, err := y.topicRegistry.Topic("orders")
			testkit.Must(t, err)
			if !changed.Properties.DisableLocalAuth || len(changed.Tags) != 0 || after.Key1 != before.Key1 || after.Schema != schema.CloudEvents {
				t.Errorf("changed to %+v", after)
			}
			y.ask("PUT", base+"/orders", `{"properties":{"inputSchema":"EventGridSchema"}}`, asRoot).refused(400, "InvalidRequest")
			y.ask("PUT", base+"/plain", "", asRoot).want(201)
			y.ask("HEAD", base+"/plain", "", asRoot).want(200)
			y.listed(base, "Orders plain yard-events")
		})
	}
}

// listed fails unless the names in a list are those; the resource manager's is framed.
func (y *realYard) listed(path, want string) {
	y.t.Helper()
	type named struct{ Name string }
	var list []named
	got := y.ask("GET", path, "", asRoot).want(200)
	if strings.HasPrefix(path, "/subscriptions") {
		var frame struct{ Value []named }
		got.json(&frame)
		list = frame.Value
	} else {
		got.json(&list)
	}
	if list == nil {
		y.t.Errorf("the list is %s", got.text)
	}
	var all []string
	for _, n := range list {
		all = append(all, n.Name)
	}
	testkit.Equal(y.t, strings.Join(all, " "), want, "%s lists", path)
}

func TestTopicsThatCannotBeMade(t *testing.T) {
	y := newRealYard(t)
	for _, test := range []struct {
		what, name, body string
		status           int
		code             string
	}{
		{"a name that is too short", "ab", "", 400, "InvalidRequest"},
		{"a name with a slash in it", "a%2Fb", "", 400, "InvalidRequest"},
		{"the yard's own beginning", "Microsoft-x", "", 400, "InvalidRequest"},
		{"a schema that there is not", "orders", `{"properties":{"inputSchema":"XML"}}`, 400, "InvalidRequest"},
		{"no JSON", "orders", `{`, 400, "InputJsonInvalid"},
		{"no object", "orders", `[]`, 400, "InputJsonInvalid"},
		{"null", "orders", `null`, 400, "InputJsonInvalid"},
		{"properties of another kind", "orders", `{"properties":1}`, 400, "InvalidRequest"},
		{"too much", "orders", `{"x":"` + strings.Repeat("x", maxManageBytes) + `"}`, 413, "PayloadTooLarge"},
	} {
		t.Run(test.what, func(t *testing.T) {
			y.in(t).ask("PUT", "/topics/"+test.name, test.body, asRoot).refused(test.status, test.code)
		})
	}
	text := y.ask("PUT", "/topics/orders", strings.Repeat(" ", maxManageBytes+1), asRoot).refused(413, "PayloadTooLarge")
	if !strings.Contains(text, "at most 1048576 bytes") || strings.Contains(text, "events") {
		t.Errorf("told %s", text)
	}
	y.listed("/topics", "yard-events")
}

// Deleting says whether there was something on the short paths; for the resource manager what is
// not there is deleted. The yard's own topic stays.
func TestTopicsAreDeleted(t *testing.T) {
	y := newRealYard(t)
	for _, name := range []string{"one", "two"} {
		y.topic(name, schema.EventGrid)
		y.ask("POST", "/topics/"+name+"/api/events", "["+event("a")+"]", withKey).want(200)
	}
	y.ask("DELETE", "/topics/one", "", asRoot).want(200)
	y.ask("DELETE", "/topics/one", "", asRoot).refused(404, "ResourceNotFound")
	y.ask("DELETE", grid+"/topics/two", "", asRoot).want(204)
	y.ask("DELETE", grid+"/topics/two", "", asRoot).want(204)
	y.ask("DELETE", grid+"/topics/yard-events", "", asRoot).refused(409, "ResourceReserved")
	y.listed("/topics", "yard-events")
	testkit.Equal(t, y.counted(y.handler.metrics.published, "one", stored), 0,
		"events of a deleted topic are still counted")
}

// PATCH changes what it mentions.
func TestTopicsAreUpdated(t *testing.T) {
	y := newRealYard(t)
	y.ask("PUT", grid+"/topics/orders", `{"tags":{"a":"1"},"properties":{"inputSchema":"CloudEventSchemaV1_0","disableLocalAuth":true}}`, asRoot).want(201)
	before, err := y.topicRegistry.Topic("orders")
	testkit.Must(t, err)
	var shown shownTopic
	y.ask("PATCH", grid+"/topics/orders", `{"tags":{"b":"2"}}`, asRoot).want(200).json(&shown)
	if shown.Tags["b"] != "2" || len(shown.Tags) != 1 || !shown.Properties.DisableLocalAuth {
		t.Errorf("changed to %+v", shown)
	}
	y.ask("PATCH", grid+"/topics/orders", `{"properties":{"disableLocalAuth":false}}`, asRoot).want(200).json(&shown)
	after, err := y.topicRegistry.Topic("orders")
	testkit.Must(t, err)
	if after.DisableKeys || after.Tags["b"] != "2" || after.Key1 != before.Key1 || after.Schema != schema.CloudEvents {
		t.Errorf("changed to %+v", after)
	}
	// What is read in any case is mentioned in any: who closes a topic to keys must not find it
	// open.
	y.ask("PATCH", grid+"/topics/orders", `{"Properties":{"disablelocalauth":true}}`, asRoot).want(200).json(&shown)
	if after, err = y.topicRegistry.Topic("orders"); err != nil || !after.DisableKeys || !shown.Properties.DisableLocalAuth {
		t.Errorf("changed to %+v, %v", after, err)
	}
	y.ask("PATCH", grid+"/topics/none", `{}`, asRoot).refused(404, "ResourceNotFound")
}

func TestKeysByManagement(t *testing.T) { // G12
	y := newRealYard(t)
	y.topic("orders", schema.EventGrid)
	var shown keys
	y.ask("POST", grid+"/topics/orders/listKeys", "", asRoot).want(200).json(&shown)
	testkit.Equal(t, shown, (keys{key1, key2}), "the keys")
	y.ask("POST", grid+"/topics/orders/regenerateKey", `{"keyName":"key2"}`, asRoot).want(200).json(&shown)
	if shown.Key1 != key1 || shown.Key2 == key2 || shown.Key2 == "" {
		t.Errorf("the keys are %+v", shown)
	}
	y.ask("POST", "/topics/orders/api/events", "[]", header("aeg-sas-key", shown.Key2)).want(200)
	for _, body := range []string{"", "{}", `{"keyName":"key3"}`, `{"keyName":1}`} {
		y.ask("POST", grid+"/topics/orders/regenerateKey", body, asRoot).refused(400, "InvalidRequest")
	}
	y.ask("POST", grid+"/topics/none/listKeys", "", asRoot).refused(404, "ResourceNotFound")
	y.ask("POST", grid+"/topics/none/regenerateKey", `{"keyName":"key1"}`, asRoot).refused(404, "ResourceNotFound")
	y.ask("POST", grid+"/topics/orders/listKeys", "", withKey).refused(401, "Unauthorized")
}

const hook = `{"properties":{"destination":{"endpointType":"WebHook","properties":{"endpointUrl":"https://mail.example/hook?code=hush",` +
	`"deliveryAttributeMappings":[{"name":"X-Secret","type":"Static","properties":{"value":"hush","isSecret":true}},{"name":"X-Id","type":"Dynamic","properties":{"sourceField":"data.id"}}]}},` +
	`"filter":{"subjectBeginsWith":"/a"},"labels":["l"],"retryPolicy":{"maxDeliveryAttempts":5,"eventTimeToLiveInMinutes":60}}}`

// G12: a subscription is made, shown, replaced and deleted by all three forms of its path, and
// what is secret is shown by nothing but the calls that are made for it.
func TestSubscriptionsByManagement(t *testing.T) {
	for _, base := range []string{"/topics/orders/eventSubscriptions", grid + "/topics/orders/eventSubscriptions", grid + "/topics/orders/providers/Microsoft.EventGrid/eventSubscriptions"} {
		t.Run(base, func(t *testing.T) {
			y := newRealYard(t)
			y.topic("orders", schema.EventGrid)
			path := base + "/mailer"
			var shown shownSubscription
			got := y.ask("PUT", path, hook, asRoot).want(201)
			got.json(&shown)
			p := shown.Properties
			if shown.Name != "mailer" || p.ProvisioningState != "Succeeded" || p.Destination.Properties.EndpointBaseURL != "https://mail.example/hook" || p.Filter.SubjectBeginsWith != "/a" || p.RetryPolicy.MaxDeliveryAttempts != 5 {
				t.Errorf("made %s", got.text)
			}
			again := y.ask("GET", path, "", asRoot).want(200)
			if strings.Contains(got.text+again.text, "hush") {
				t.Errorf("a secret is shown: %s", again.text)
			}
			if full := y.ask("POST", path+"/getFullUrl", "", asRoot).want(200); full.text != `{"endpointUrl":"https://mail.example/hook?code=hush"}`+"\n" {
				t.Errorf("the full URL is %s", full.text)
			}
			attributes := y.ask("POST", path+"/getDeliveryAttributes", "", asRoot).want(200)
			if want := `{"value":[{"name":"X-Secret","type":"Static","properties":{"value":"hush","isSecret":true}},{"name":"X-Id","type":"Dynamic","properties":{"sourceField":"data.id"}}]}` + "\n"; attributes.text != want {
				t.Errorf("the attributes are %s", attributes.text)
			}
			y.writtenBack(path, again.text)
			y.listed(base, "mailer")
			y.ask("DELETE", path, "", asRoot)
			y.listed(base, "")
			y.ask("GET", path, "", asRoot).refused(404, "ResourceNotFound")
		})
	}
}

// writtenBack: what was read may be written, and changes nothing.
func (y *realYard) writtenBack(path, text string) {
	y.t.Helper()
	before, err := y.topicRegistry.Find(topics.Source{Topic: "orders"}, "mailer")
	testkit.Must(y.t, err)
	y.ask("PUT", path, text, asRoot).want(changedStatus(path))
	after, err := y.topicRegistry.Find(topics.Source{Topic: "orders"}, "mailer")
	testkit.Must(y.t, err)
	// TLS of 1.2 at least is what is done by itself, too.
	same := cmp.Options{cmpopts.IgnoreFields(topics.Subscription{}, "Updated"), cmpopts.IgnoreFields(egress.Endpoint{}, "MinTLS")}
	testkit.Diff(y.t, before, after, same)
}

// PUT replaces all that the JSON has words for, PATCH what it mentions; signing keys and the like,
// for which it has none, stay.
func TestSubscriptionsAreReplacedAndUpdated(t *testing.T) {
	y := newRealYard(t)
	y.topic("orders", schema.EventGrid)
	source, path := topics.Source{Topic: "orders"}, grid+"/topics/orders/eventSubscriptions/mailer"
	signing, err := signature.New(signature.HMAC)
	testkit.Must(t, err)
	_, err = y.topicRegistry.Create(t.Context(), source, "mailer", topics.Settings{
		Webhook: &egress.Endpoint{URL: "https://mail.example/hook?code=hush"}, Keys: []signature.Key{signing}, Timeout: 7 * time.Second, Labels: []string{"l"},
		Output: schema.CloudEvents, Retry: retry.Policy{MaxAttempts: 5, TimeToLive: time.Hour}, Expires: time.Now().Add(time.Hour), DeadLetter: topics.Target{Kind: topics.TargetYard},
	})
	testkit.Must(t, err)
	find := func() topics.Subscription {
		s, err := y.topicRegistry.Find(source, "mailer")
		testkit.Must(t, err)
		return s
	}
	y.ask("PATCH", path, `{"labels":["m"]}`, asRoot).want(201)
	if s := find(); s.Labels[0] != "m" || s.Retry.MaxAttempts != 5 || s.Output != schema.CloudEvents || s.DeadLetter.Kind != topics.TargetYard {
		t.Errorf("PATCH made it %+v", s)
	}
	y.ask("PATCH", path, `{"properties":{"labels":["n"]}}`, asRoot).want(201)
	if s := find(); s.Labels[0] != "n" || s.Retry.MaxAttempts != 5 {
		t.Errorf("a framed PATCH made it %+v", s)
	}
	y.ask("PATCH", path, `{"Properties":{"Labels":["o"]}}`, asRoot).want(201)
	if s := find(); s.Labels[0] != "o" || s.Retry.MaxAttempts != 5 {
		t.Errorf("a PATCH in capitals made it %+v", s)
	}
	y.ask("PUT", path, `{"properties":{"destination":{"endpointType":"WebHook","properties":{"endpointBaseUrl":"https://mail.example/hook"}}}}`, asRoot).want(201)
	s := find()
	if len(s.Labels) != 0 || s.Retry.MaxAttempts == 5 || s.Retry.TimeToLive == time.Hour || s.Output != schema.EventGrid || !s.Expires.IsZero() || s.DeadLetter != (topics.Target{}) {
		t.Errorf("PUT made it %+v", s)
	}
	if s.Webhook.URL != "https://mail.example/hook?code=hush" || len(s.Keys) != 1 || s.Keys[0].Text != signing.Text || s.Timeout != 7*time.Second {
		t.Errorf("PUT took away what it has no words for: %+v", s)
	}
	y.ask("PATCH", grid+"/topics/orders/eventSubscriptions/none", `{}`, asRoot).refused(404, "ResourceNotFound")
}

// A pull subscription is made in the namespace's shape, and loses its dead letters by a PUT that
// does not mention them.
func TestPullSubscriptionsByManagement(t *testing.T) {
	y := newRealYard(t)
	const base = grid + "/namespaces/yard/topics/clouds"
	var topic shownTopic
	y.ask("PUT", base, `{"properties":{"publisherType":"Custom"}}`, asRoot).want(201).json(&topic)
	testkit.Equal(t, topic.Properties.InputSchema, "CloudEventSchemaV1_0", "made %+v", topic)
	put := func(status int, queue string) topics.Subscription {
		t.Helper()
		var shown shownSubscription
		y.ask("PUT", base+"/eventSubscriptions/jobs", `{"properties":{"deliveryConfiguration":{"deliveryMode":"Queue","queue":{`+queue+`}}}}`, asRoot).want(status).json(&shown)
		testkit.Equal(t, shown.Properties.DeliveryConfiguration.DeliveryMode, "Queue", "made %+v", shown)
		s, err := y.topicRegistry.Find(topics.Source{Topic: "clouds"}, "jobs")
		testkit.Must(t, err)
		return s
	}
	s := put(201, `"receiveLockDurationInSeconds":90,"eventTimeToLive":"PT30M","deadLetterDestinationWithResourceIdentity":{"deadLetterDestination":{"endpointType":"Yard"}}`)
	if s.Pull == nil || s.Pull.Lock != 90*time.Second || s.Retry.TimeToLive != 30*time.Minute || s.DeadLetter.Kind != topics.TargetYard {
		t.Errorf("made %+v", s)
	}
	if s := put(200, `"maxDeliveryCount":3`); s.Pull.MaxDeliveries != 3 || s.Pull.Lock == 90*time.Second || s.DeadLetter != (topics.Target{}) {
		t.Errorf("replaced by %+v", s)
	}
	y.ask("POST", base+"/eventSubscriptions/jobs/getFullUrl", "", asRoot).refused(400, "InvalidRequest")
	none := y.ask("POST", base+"/eventSubscriptions/jobs/getDeliveryAttributes", "", asRoot).want(200)
	testkit.Equal(t, none.text, `{"value":[]}`+"\n", "the attributes")
}

// Subscriptions of hubs are managed beneath the hub, and are among all subscriptions.
func TestHubSubscriptionsByManagement(t *testing.T) {
	y := newRealYard(t)
	y.topic("orders", schema.EventGrid)
	const base = manager + "/providers/Microsoft.EventHub/namespaces/yard/eventhubs/A%2Fb/providers/Microsoft.EventGrid/eventSubscriptions"
	y.ask("PUT", base+"/mailer", hook, asRoot).want(201)
	y.ask("PUT", "/topics/orders/eventSubscriptions/other", hook, asRoot).want(201)
	s, err := y.topicRegistry.Find(topics.Source{Hub: "a/b"}, "mailer")
	if err != nil || s.Source.Hub == "" {
		t.Errorf("made %+v, %v", s, err)
	}
	y.listed(base, "mailer")
	y.listed(grid+"/eventSubscriptions", "mailer other")
	y.listed("/subscriptions/0-1/providers/Microsoft.EventGrid/eventSubscriptions", "mailer other")
	y.ask("PUT", strings.Replace(base, "A%2Fb", "none", 1)+"/mailer", hook, asRoot).refused(404, "ResourceNotFound")
	y.ask("DELETE", base+"/mailer", "", asRoot).want(204)
	y.listed(base, "")
}

func TestSubscriptionsThatCannotBeMade(t *testing.T) {
	y := newRealYard(t)
	y.topic("orders", schema.EventGrid)
	for _, test := range []struct {
		what, path, body string
		status           int
		code             string
	}{
		{"no topic", "/topics/none/eventSubscriptions/mailer", hook, 404, "ResourceNotFound"},
		{"a name that is too short", "/topics/orders/eventSubscriptions/ab", hook, 400, "InvalidRequest"},
		{"no destination", "/topics/orders/eventSubscriptions/mailer", `{}`, 400, "InvalidRequest"},
		{"a destination that there is not", "/topics/orders/eventSubscriptions/mailer", `{"properties":{"destination":{"endpointType":"StorageQueue"}}}`, 400, "InvalidRequest"},
		{"no JSON", "/topics/orders/eventSubscriptions/mailer", `{"properties":`, 400, "InputJsonInvalid"},
		{"a schema that does not fit", "/topics/orders/eventSubscriptions/mailer", strings.Replace(hook, `"labels"`, `"eventDeliverySchema":"CustomInputSchema","labels"`, 1), 400, "InvalidRequest"},
	} {
		t.Run(test.what, func(t *testing.T) {
			y.in(t).ask("PUT", test.path, test.body, asRoot).refused(test.status, test.code)
		})
	}
	y.asker.say(topics.Agreement{Why: "it answered 500"})
	message := y.ask("PUT", "/topics/orders/eventSubscriptions/mailer", hook, asRoot).refused(400, "EndpointValidationFailed")
	if !strings.Contains(message, "it answered 500") || strings.Contains(message, "hush") {
		t.Errorf("told %s", message)
	}
	y.listed("/topics/orders/eventSubscriptions", "")
	y.ask("GET", "/topics/none/eventSubscriptions", "", asRoot).refused(404, "ResourceNotFound")
}

// G11: one whose endpoint has yet to agree is shown as awaiting somebody.
func TestSubscriptionsThatAwaitSomebody(t *testing.T) {
	y := newRealYard(t)
	y.topic("orders", schema.EventGrid)
	y.asker.say(topics.Agreement{Awaiting: true})
	var shown shownSubscription
	y.ask("PUT", "/topics/orders/eventSubscriptions/mailer", hook, asRoot).want(201).json(&shown)
	testkit.Equal(t, shown.Properties.ProvisioningState, "AwaitingManualAction", "made %+v", shown)
	y.ask("GET", y.asker.link, "", header("Accept", "text/html")).want(200)
	y.ask("GET", "/topics/orders/eventSubscriptions/mailer", "", asRoot).want(200).json(&shown)
	testkit.Equal(t, shown.Properties.ProvisioningState, "Succeeded", "confirmed it is %+v", shown)
}

func TestSubscriptionsAreDeleted(t *testing.T) {
	y := newRealYard(t)
	y.topic("orders", schema.EventGrid)
	for _, name := range []string{"one", "two"} {
		y.ask("PUT", "/topics/orders/eventSubscriptions/"+name, hook, asRoot).want(201)
	}
	y.ask("DELETE", "/topics/orders/eventSubscriptions/one", "", asRoot).want(200)
	y.ask("DELETE", "/topics/orders/eventSubscriptions/one", "", asRoot).refused(404, "ResourceNotFound")
	y.ask("DELETE", grid+"/topics/orders/eventSubscriptions/two", "", asRoot).want(204)
	y.ask("DELETE", grid+"/topics/orders/eventSubscriptions/two", "", asRoot).want(204)
	y.ask("DELETE", grid+"/topics/none/eventSubscriptions/two", "", asRoot).want(204)
	y.ask("DELETE", "/topics/none/eventSubscriptions/two", "", asRoot).refused(404, "ResourceNotFound")
}

// A configured endpoint is what clients are told.
func TestAConfiguredEndpointIsShownToClients(t *testing.T) {
	y := newRealYard(t, func(c *Config) {
		c.Endpoint = func(_ *http.Request, topic string) string { return "https://grid.example/" + topic }
	})
	var shown shownTopic
	y.ask("PUT", "/topics/orders", "", asRoot).want(201).json(&shown)
	testkit.Equal(t, shown.Properties.Endpoint, "https://grid.example/orders", "told")
}
