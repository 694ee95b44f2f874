package v1

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// A key of the tests, and another.
const (
	topicKey1 = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	topicKey2 = "MTEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
)

func (y *gridYard) topic(name string) (t admin.Topic) {
	y.t.Helper()
	y.want(200, "GET", "/api/v1/topics/"+name, nil).json(y.t, &t)
	return t
}

// G12: a topic is shown with all that a publisher needs; in a list without its keys.
func TestATopicIsShownWithWhatAPublisherNeeds(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		made := y.want(201, "POST", "/api/v1/topics", `{"name":"Orders","schema":"cloudevents","key1":"`+topicKey1+`"}`)
		testkit.Equal(t, made.header.Get("Location"), "/api/v1/topics/Orders", "it is at")
		got := y.topic("orders") // in any case
		want := admin.Topic{
			Name: "Orders", Schema: "cloudevents", Endpoint: "http://localhost/topics/Orders/api/events",
			SecureEndpoint: "https://localhost:8443/topics/Orders/api/events", Keys: &admin.TopicKeys{Key1: topicKey1, Key2: got.Keys.Key2},
			Resource: "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/eventyard/providers/Microsoft.EventGrid/topics/Orders",
			Created:  got.Created, Bytes: got.Bytes,
		}
		if diff := cmp.Diff(want, got); diff != "" || got.Created.IsZero() || auth.CheckKey(got.Keys.Key2) != nil {
			t.Error(diff)
		}
		y.subscribe("Orders", "one", `"pull":{}`)
		list := y.want(200, "GET", "/api/v1/topics", nil)
		if strings.Contains(string(list.body), "key") {
			t.Errorf("the list has keys: %s", list.body)
		}
		var shown struct{ Topics []admin.Topic }
		if list.json(t, &shown); len(shown.Topics) != 2 || shown.Topics[0].Subscriptions != 1 || shown.Topics[1].Name != topics.YardEvents {
			t.Errorf("listed are %+v", shown)
		}
	})
}

// A topic's events are counted.
func TestATopicShowsHowManyEventsItKeeps(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.subscribe("orders", "one", `"pull":{}`)
		y.publish("orders", "1", "2", "3")
		if got := y.topic("orders"); got.Events != 3 || got.Bytes == 0 || got.Subscriptions != 1 {
			t.Errorf("got %+v", got)
		}
	})
}

// What a change does not mention stays, in our shape and in Event Grid's.
func TestTopicsAreChangedInPart(t *testing.T) {
	mapping := `{"subject":{"sourceField":"path"}}`
	for _, tt := range []struct {
		what, body  string
		mapping     string
		disabled    bool
		first, last string
	}{
		{"nothing", `{}`, mapping, true, topicKey1, topicKey2},
		{"its own name, in another case", `{"name":"ORDERS"}`, mapping, true, topicKey1, topicKey2},
		{"the schema it has", `{"schema":"custom"}`, mapping, true, topicKey1, topicKey2},
		{"keys are good again", `{"disableKeys":false}`, mapping, false, topicKey1, topicKey2},
		{"one key", `{"key1":"` + topicKey2 + `"}`, mapping, true, topicKey2, topicKey2},
		{"another mapping", `{"mapping":{"id":{"sourceField":"nr"}}}`, `{"id":{"sourceField":"nr"}}`, true, topicKey1, topicKey2},
		{"no mapping", `{"mapping":{}}`, "", true, topicKey1, topicKey2},
		{"no mapping, by null", `{"mapping":null}`, "", true, topicKey1, topicKey2},
		{"an empty shape of Event Grid's", `{"properties":{}}`, mapping, true, topicKey1, topicKey2},
		{"keys are good again, in that shape", `{"properties":{"disableLocalAuth":false}}`, mapping, false, topicKey1, topicKey2},
		{"another mapping, in that shape", `{"properties":{"inputSchemaMapping":{"inputSchemaMappingType":"Json","properties":{"id":{"sourceField":"nr"}}}}}`, `{"id":{"sourceField":"nr"}}`, true, topicKey1, topicKey2},
		{"what stands beside that shape", `{"properties":{"disableLocalAuth":true},"disableKeys":false}`, mapping, false, topicKey1, topicKey2},
	} {
		t.Run(tt.what, func(t *testing.T) {
			withGrid(t, func(t *testing.T, y *gridYard) {
				y.want(201, "POST", "/api/v1/topics", `{"name":"orders","schema":"custom","mapping":`+mapping+`,"key1":"`+topicKey1+`","key2":"`+topicKey2+`","disableKeys":true}`)
				got := read[admin.Topic](t, y.want(200, "PATCH", "/api/v1/topics/orders", tt.body))
				if string(got.Mapping) != tt.mapping || got.DisableKeys != tt.disabled || *got.Keys != (admin.TopicKeys{Key1: tt.first, Key2: tt.last}) || got.Schema != "custom" {
					t.Errorf("it is now %+v, mapping %s, keys %+v", got, got.Mapping, got.Keys)
				}
			})
		})
	}
}

// A change does not put back a key that was made anew while it was on its way.
func TestAChangeLeavesKeysThatItDoesNotMention(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.want(201, "POST", "/api/v1/topics", `{"name":"orders"}`)
		old := y.topic("orders").Keys.Key1
		y.handler.cfg.Grid.Topics = regenerating{y.topics}
		y.want(200, "PATCH", "/api/v1/topics/orders", `{"disableKeys":true}`)
		y.handler.cfg.Grid.Topics = y.topics
		if y.topic("orders").Keys.Key1 == old {
			t.Error("the old key is good again")
		}
	})
}

// regenerating makes a key anew just before a change.
type regenerating struct{ *topics.Registry }

func (r regenerating) UpdateTopic(ctx context.Context, name string, change func(*topics.Topic) error) (topics.Topic, error) {
	if _, err := r.RegenerateKey(ctx, name, topics.Key1); err != nil {
		return topics.Topic{}, err
	}
	return r.Registry.UpdateTopic(ctx, name, change)
}

func TestTopicKeysAreMadeAnew(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.want(201, "POST", "/api/v1/topics", `{"name":"orders","key1":"`+topicKey1+`","key2":"`+topicKey2+`"}`)
		got := read[admin.Topic](t, y.want(200, "POST", "/api/v1/topics/orders/regenerate", `{"key":"key2"}`))
		if got.Keys.Key1 != topicKey1 || got.Keys.Key2 == topicKey2 || *y.topic("orders").Keys != *got.Keys {
			t.Errorf("keys are %+v", got.Keys)
		}
	})
}

// A topic that goes while topics are listed is no reason to list none.
func TestTopicsAreListedWhileOneIsDeleted(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.want(201, "POST", "/api/v1/topics", `{"name":"orders"}`)
		y.handler.cfg.Grid.Topics = stale{y.topics, y.topics.Topics()}
		y.want(204, "DELETE", "/api/v1/topics/orders", nil)
		var list struct{ Topics []admin.Topic }
		if y.want(200, "GET", "/api/v1/topics", nil).json(t, &list); len(list.Topics) != 1 || list.Topics[0].Name != topics.YardEvents {
			t.Errorf("listed are %+v", list)
		}
	})
}

// stale has a list of before.
type stale struct {
	*topics.Registry
	all []topics.Topic
}

func (s stale) Topics() []topics.Topic { return s.all }

// What cannot be done to a topic is refused, with what to do instead.
func TestTopicsRefused(t *testing.T) {
	withGrid(t, func(t *testing.T, y *gridYard) {
		y.want(201, "POST", "/api/v1/topics", `{"name":"orders"}`)
		for _, tt := range []struct {
			what               string
			status             int
			kind, method, path string
			body               any
			says               string
		}{
			{"a name that is taken", 409, "topic-exists", "POST", "", `{"name":"ORDERS"}`, "choose another name"},
			{"no name", 400, "invalid-definition", "POST", "", `{}`, "3 to 50"},
			{"a name that is none", 400, "invalid-definition", "POST", "", `{"name":"a b c"}`, "3 to 50"},
			{"a reserved name", 400, "invalid-definition", "POST", "", `{"name":"eventgrid-x"}`, "choose another beginning"},
			{"an unknown schema", 400, "bad-request", "POST", "", `{"name":"other","schema":"xml"}`, "eventgrid, cloudevents or custom"},
			{"an unknown schema in the other shape", 400, "invalid-definition", "POST", "", `{"name":"other","properties":{"inputSchema":"xml"}}`, "eventgrid, cloudevents or custom"},
			{"a shape that is none", 400, "invalid-definition", "POST", "", `{"name":"other","properties":5}`, "topic"},
			{"a key that is none", 400, "invalid-definition", "POST", "", `{"name":"other","key1":"short"}`, "key"},
			{"a mapping of nothing", 400, "invalid-definition", "POST", "", `{"name":"other","mapping":{"id":{"sourceField":"x"}}}`, "custom"},
			{"a misspelt mapping", 400, "bad-request", "POST", "", `{"name":"other","schema":"custom","mapping":{"eventtypo":{"sourceField":"x"}}}`, "eventtypo"},
			{"a mapping that is none", 400, "bad-request", "POST", "", `{"name":"other","schema":"custom","mapping":[]}`, "mapping"},
			{"a misspelt field", 400, "bad-request", "POST", "", `{"name":"other","shema":"custom"}`, "shema"},
			{"another schema", 400, "invalid-definition", "PATCH", "/orders", `{"schema":"custom"}`, "make another topic"},
			{"another name", 400, "bad-request", "PATCH", "/orders", `{"name":"other"}`, "cannot be renamed"},
			{"a key of another name", 400, "invalid-definition", "POST", "/orders/regenerate", `{"key":"primary"}`, "key1 and key2"},
			{"the yard's own topic", 409, "reserved-topic", "DELETE", "/yard-events", nil, "yard"},
			{"showing what is not there", 404, "topic-not-found", "GET", "/nope", nil, "nope"},
			{"changing what is not there", 404, "topic-not-found", "PATCH", "/nope", `{}`, "nope"},
			{"deleting what is not there", 404, "topic-not-found", "DELETE", "/nope", nil, "nope"},
			{"a key of what is not there", 404, "topic-not-found", "POST", "/nope/regenerate", `{"key":"key1"}`, "nope"},
		} {
			t.Log(tt.what)
			p := y.refused(tt.status, tt.kind, tt.method, "/api/v1/topics"+tt.path, tt.body)
			if !strings.Contains(p.Detail+p.Next, tt.says) {
				t.Errorf("%s: it says %q, %q", tt.what, p.Detail, p.Next)
			}
		}
		var left struct{ Topics []json.RawMessage }
		if y.want(200, "GET", "/api/v1/topics", nil).json(t, &left); len(left.Topics) != 2 {
			t.Errorf("there are %d topics now", len(left.Topics))
		}
	})
}

// A listener without a grid says so.
func TestAHandlerWithoutAGrid(t *testing.T) {
	y := newYard(t)
	for _, path := range []string{"/api/v1/topics", "/api/v1/subscriptions", "/api/v1/subscriptions/x/dead"} {
		y.refused(501, "no-grid", "GET", path, nil)
	}
}
