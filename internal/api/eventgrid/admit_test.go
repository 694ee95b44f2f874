package eventgrid

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

func signed(t testing.TB, resource, key string, until time.Duration) string {
	t.Helper()
	token, err := topickey.Sign(resource, key, time.Now().Add(until))
	testkit.Must(t, err)
	return token
}

// G12: whoever shows a key, a token or a policy in any of the documented ways publishes, and
// nobody else.
func TestWhoMayPublish(t *testing.T) {
	y := newYard(t)
	here := y.server.URL
	const path = "/topics/orders/api/events"
	token := func(resource string) string { return signed(t, resource, key1, time.Hour) }
	policy := func(name, resource string) string {
		return auth.Sign(resource, name, policyKey(name), time.Now().Add(time.Hour))
	}
	for _, test := range []struct {
		what    string
		path    string
		request func(*http.Request)
		status  int
		code    string
	}{
		{"key1", path, header("aeg-sas-key", key1), 200, ""},
		{"key2", path, header("aeg-sas-key", key2), 200, ""},
		{"a key in the query", path + "?aeg-sas-key=" + url.QueryEscape(key1), nil, 200, ""},
		{"a key of another", path, header("aeg-sas-key", topickey.New()), 401, "Unauthorized"},
		{"a wrong key in the query", path + "?aeg-sas-key=x", nil, 401, "Unauthorized"},
		{"a key that is cut", path, header("aeg-sas-key", key1[:43]), 401, "Unauthorized"},
		{"an empty key", path, header("aeg-sas-key", ""), 400, "InvalidSas"},
		{"an empty key in the query", path + "?aeg-sas-key=", nil, 400, "InvalidSas"},
		{"nothing", path, nil, 401, "Unauthorized"},

		{"a token for the endpoint", path, header("aeg-sas-token", token(here+path)), 200, ""},
		{"a token with the version in it", path, header("aeg-sas-token", token(here+path+"?apiVersion=2018-01-01")), 200, ""},
		{"a token for the topic", path, header("aeg-sas-token", token(here+"/topics/orders")), 200, ""},
		{"a token for the host", path, header("aeg-sas-token", token(here)), 200, ""},
		{"a token in another case", path, header("aeg-sas-token", token(strings.ToUpper(here+path))), 200, ""},
		{"a token for the other path of it", "/topics/orders/events", header("aeg-sas-token", token(here+path)), 200, ""},
		{"a token by the second key", path, header("aeg-sas-token", signed(t, here+path, key2, time.Hour)), 200, ""},
		{"a token in Authorization", path, header("Authorization", "SharedAccessSignature "+token(here+path)), 200, ""},
		{"a token for another topic", path, header("aeg-sas-token", token(here+"/topics/others/api/events")), 401, "Unauthorized"},
		{"a token for another host", path, header("aeg-sas-token", token("https://elsewhere.example"+path)), 401, "Unauthorized"},
		{"a token for a name that begins alike", path, header("aeg-sas-token", token(here+"/topics/order")), 401, "Unauthorized"},
		{"a token for pulling", path, header("aeg-sas-token", token(here+"/topics/orders/eventsubscriptions/jobs")), 401, "Unauthorized"},
		{"a token by another key", path, header("aeg-sas-token", signed(t, here+path, topickey.New(), time.Hour)), 401, "Unauthorized"},
		{"a token of yesterday", path, header("aeg-sas-token", signed(t, here+path, key1, -time.Hour)), 401, "Unauthorized"},
		{"a token that is none", path, header("aeg-sas-token", "what"), 401, "InvalidSas"},
		{"an empty token", path, header("aeg-sas-token", ""), 401, "InvalidSas"},
		{"a key where a token belongs", path, header("Authorization", "SharedAccessSignature "+key1), 401, "InvalidSas"},

		{"a signature of a policy that may send", path, header("Authorization", policy("sender", "sb://yard/")), 200, ""},
		{"a signature of one that may manage", path, header("Authorization", policy("manager", "https://yard")), 200, ""},
		{"a signature of one that may listen", path, header("Authorization", policy("listener", "sb://yard/")), 403, "InsufficientRights"},
		{"a signature for one hub", path, header("Authorization", policy("sender", "sb://yard/orders")), 403, "InsufficientRights"},
		{"a signature with the wrong key", path, header("Authorization", auth.Sign("sb://yard/", "sender", "wrong", time.Now().Add(time.Hour))), 401, "Unauthorized"},
		{"a signature of yesterday", path, header("Authorization", auth.Sign("sb://yard/", "sender", policyKey("sender"), time.Now().Add(-time.Hour))), 401, "Unauthorized"},
		{"a policy's name and key", path, asPolicy("sender"), 200, ""},
		{"a policy's name and key that may not send", path, asPolicy("listener"), 403, "InsufficientRights"},
		{"a policy's name and a wrong key", path, func(r *http.Request) { r.SetBasicAuth("sender", "wrong") }, 401, "Unauthorized"},
		{"the root policy", path, asRoot, 200, ""},
		{"Basic that is none", path, header("Authorization", "Basic %%%"), 401, "Unauthorized"},
		{"a bearer token", path, header("Authorization", "Bearer any"), 200, ""},
		{"a bearer token that is empty", path, header("Authorization", "Bearer"), 401, "Unauthorized"},
		{"a scheme that nobody knows", path, header("Authorization", "Digest x"), 401, "Unauthorized"},
		{"a topic's key as a namespace's", path, header("Authorization", "SharedAccessKey "+key1), 200, ""},
		{"the namespace's own key", path, header("Authorization", "SharedAccessKey "+auth.DevelopmentKey), 200, ""},
		{"a key that is neither", path, header("Authorization", "SharedAccessKey wrong"), 401, "Unauthorized"},
		{"two Authorizations", path, func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer a", "Bearer b"} }, 401, "Unauthorized"},
		{"a good key beside a bad token", path, func(r *http.Request) { withKey(r); r.Header.Set("aeg-sas-token", "what") }, 200, ""},

		{"a key to a topic without keys", "/topics/closed/api/events", withKey, 401, "Unauthorized"},
		{"a token to a topic without keys", "/topics/closed/api/events", header("aeg-sas-token", token(here)), 401, "Unauthorized"},
		{"its key as a namespace's", "/topics/closed/api/events", header("Authorization", "SharedAccessKey "+key1), 401, "Unauthorized"},
		{"a policy to a topic without keys", "/topics/closed/api/events", asPolicy("sender"), 200, ""},
		{"a topic that is not there", "/topics/nowhere/api/events", withKey, 401, "Unauthorized"},
		{"a topic that is not there, and a policy", "/topics/nowhere/api/events", asPolicy("sender"), 404, "ResourceNotFound"},
		{"a topic that is not there, and nothing shown", "/topics/nowhere/api/events", nil, 401, "Unauthorized"},
	} {
		t.Run(test.what, func(t *testing.T) {
			if test.request == nil {
				test.request = func(*http.Request) {}
			}
			got := y.in(t).ask("POST", test.path, "[]", test.request)
			if test.status == 200 {
				got.want(200)
				return
			}
			message := got.refused(test.status, test.code)
			for _, secret := range []string{key1, key2, policyKey("sender")} {
				if strings.Contains(message, secret) {
					t.Errorf("a key is told: %s", message)
				}
			}
			if challenged := got.Header.Get("Www-Authenticate") != ""; challenged != (test.status == 401) {
				t.Errorf("the challenge is %q", got.Header["Www-Authenticate"])
			}
		})
	}
}

// A yard behind another name takes tokens for that one, which is what clients are told.
func TestTokensForThePublicName(t *testing.T) { // G12
	y := newYard(t, func(c *Config) {
		c.Endpoint = func(_ *http.Request, topic string) string { return "https://" + topic + ".grid.example/api/events" }
	})
	ask := func(resource string) reply {
		return y.ask("POST", "/topics/orders/api/events", "[]", header("aeg-sas-token", signed(t, resource, key1, time.Hour)))
	}
	ask("https://orders.grid.example/api/events").want(200)
	ask("https://others.grid.example/api/events").refused(401, "Unauthorized")
	pull := func(resource string) reply {
		return y.ask("POST", jobs+":acknowledge", `{"lockTokens":["a"]}`, header("aeg-sas-token", signed(t, resource, key1, time.Hour)))
	}
	pull("https://clouds.grid.example/eventsubscriptions/jobs").want(200)
	pull("https://clouds.grid.example/api/events").refused(401, "Unauthorized")
}

// Pulling takes the right to listen, and managing that to manage; a topic's key is good for the
// first.
func TestWhoMayDoTheRest(t *testing.T) {
	y := newYard(t)
	here := y.server.URL
	const pull, manage = "/topics/clouds/eventsubscriptions/jobs:acknowledge", "/topics/clouds"
	for _, test := range []struct {
		what, method, path string
		request            func(*http.Request)
		want               int
	}{
		{"the topic's key pulls", "POST", pull, withKey, 200},
		{"the namespace's key pulls", "POST", pull, header("Authorization", "SharedAccessKey "+key1), 200},
		{"who may listen pulls", "POST", pull, asPolicy("listener"), 200},
		{"who may send does not", "POST", pull, asPolicy("sender"), 403},
		{"a bearer pulls", "POST", pull, header("Authorization", "Bearer any"), 200},
		{"a token for the subscription pulls", "POST", pull, header("aeg-sas-token", signed(t, here+"/topics/clouds/eventsubscriptions/jobs", key1, time.Hour)), 200},
		{"a token for the topic pulls", "POST", pull, header("aeg-sas-token", signed(t, here+"/topics/clouds", key1, time.Hour)), 200},
		{"a token for publishing does not", "POST", pull, header("aeg-sas-token", signed(t, here+"/topics/clouds/api/events", key1, time.Hour)), 401},
		{"a token for another subscription does not", "POST", pull, header("aeg-sas-token", signed(t, here+"/topics/clouds/eventsubscriptions/job", key1, time.Hour)), 401},
		{"nobody pulls without anything", "POST", pull, func(*http.Request) {}, 401},

		{"the topic's key does not manage", "GET", manage, withKey, 401},
		{"nor as a namespace's", "GET", manage, header("Authorization", "SharedAccessKey "+key1), 401},
		{"nor a token of the topic's", "GET", manage, header("Authorization", "SharedAccessSignature "+signed(t, here, key1, time.Hour)), 401},
		{"who may send does not manage", "GET", manage, asPolicy("sender"), 403},
		{"who may listen does not manage", "GET", manage, asPolicy("listener"), 403},
		{"who may manage does", "GET", manage, asPolicy("manager"), 200},
		{"by a signature, too", "GET", manage, header("Authorization", auth.Sign("sb://yard", "manager", policyKey("manager"), time.Now().Add(time.Hour))), 200},
		{"nobody manages without anything", "GET", manage, func(*http.Request) {}, 401},
	} {
		t.Run(test.what, func(t *testing.T) {
			if got := y.in(t).ask(test.method, test.path, `{"lockTokens":["a"]}`, test.request); got.StatusCode != test.want {
				t.Errorf("answered %d: %s", got.StatusCode, got.text)
			}
		})
	}
}

// Who is not let in on a yard of one's own is told the key that everybody knows; elsewhere not.
func TestHowToEnter(t *testing.T) {
	y := newYard(t)
	if text := y.ask("GET", "/topics", "").refused(401, "Unauthorized"); !strings.Contains(text, "curl -u "+auth.RootPolicy+":"+auth.DevelopmentKey) {
		t.Errorf("told %s", text)
	}
	public := newYard(t, func(c *Config) { c.Access = notInDevelopment{c.Access} })
	if text := public.ask("GET", "/topics", "").refused(401, "Unauthorized"); strings.Contains(text, auth.DevelopmentKey) {
		t.Errorf("told %s", text)
	}
}

type notInDevelopment struct{ Access }

func (notInDevelopment) Development() bool { return false }

// definitions can be embedded beside the method Topics.
type definitions = Topics

// behind is the definitions of a node that has not heard of a topic, or of its new key, until it looks.
type behind struct {
	definitions
	known topics.Topic // empty: it knows no topic
	looks atomic.Int32
}

func (b *behind) Topic(name string) (topics.Topic, error) {
	switch {
	case b.looks.Load() > 0:
		return b.definitions.Topic(name)
	case b.known.Name == "":
		return topics.Topic{}, topics.ErrTopicNotFound
	}
	return b.known, nil
}

func (b *behind) LookUpTopic(_ context.Context, name string) (topics.Topic, error) {
	b.looks.Add(1)
	return b.Topic(name)
}

// looking may look at the store, or not.
type looking struct {
	Access
	may bool
}

func (l looking) MayLook(context.Context) bool { return l.may }

// C3: a topic, or a key of it, that another node has just made is good here, unless its address is
// refused too often already.
func TestTopicsOfAnotherNode(t *testing.T) {
	const path = "/topics/orders/api/events"
	for what, known := range map[string]topics.Topic{"a new topic": {}, "a new key": {Name: "orders", Key1: "before", Key2: "before, too"}} {
		for _, may := range []bool{true, false} {
			t.Run(fmt.Sprint(what, " ", may), func(t *testing.T) {
				b := &behind{known: known}
				y := newYard(t, func(c *Config) {
					b.definitions, c.Topics, c.Access = c.Topics, b, looking{c.Access, may}
				})
				shows := map[string]func(*http.Request){
					"key": withKey, "token": header("aeg-sas-token", signed(t, y.server.URL+path, key1, time.Hour)),
				}
				if known.Name == "" {
					shows["policy"] = asPolicy("sender")
				}
				for name, show := range shows {
					b.looks.Store(0)
					got := y.ask("POST", path, "[]", show)
					testkit.Equal(t, got.StatusCode == 200, may, "by %s it is answered %d", name, got.StatusCode)
					testkit.Equal(t, b.looks.Load() > 0, may, "it looks by %s", name)
				}
				b.looks.Store(1)
				y.ask("POST", path, "[]", withKey).want(200)
				testkit.Equal(t, b.looks.Load(), 1, "looks for what is known")
			})
		}
	}
}
