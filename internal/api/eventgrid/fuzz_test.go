package eventgrid

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/testkit"
)

// FuzzPath: whatever is found in a path comes back when it is written again, and a name holds
// neither what ends it nor nothing.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{
		"/", "/topics", "/topics/orders/api/events", "/topics/orders:publish", "/topics/a%3Apublish", "/topics/a:b:publish", "/topics//events", "/TOPICS/%2e%2e/events",
		"/topics/a/eventSubscriptions/b:receive", "/topics/a/eventsubscriptions/b%3arenewLock/", "/topics/a/validate", "/topics/%ff", "/topics/%zz", "/api/events/", "//", "/topics/:publish",
		manager + "/providers/Microsoft.EventGrid/topics/a/eventSubscriptions/b/getFullUrl",
		manager + "/providers/Microsoft.EventHub/namespaces/n/eventhubs/a%2Fb/providers/Microsoft.EventGrid/eventSubscriptions/c",
	} {
		f.Add(seed)
	}
	all := routes(Config{})
	f.Fuzz(func(t *testing.T, escaped string) {
		path, err := splitPath(escaped)
		if err != nil {
			return
		}
		for _, rt := range all {
			found, ok := rt.pattern.match(path)
			if !ok {
				continue
			}
			if !utf8.ValidString(found.topic + found.subscription + found.hub) {
				t.Fatalf("%q names %+v", escaped, found)
			}
			again, err := splitPath(rt.pattern.write(t, found))
			testkit.Must(t, err, "%+v cannot be written", found)
			if back, ok := rt.pattern.match(again); !ok || back != found {
				t.Fatalf("%+v came back as %+v", found, back)
			}
		}
	})
}

// write is the path of a pattern with names in it.
func (p pattern) write(t *testing.T, n names) string {
	var b strings.Builder
	for _, s := range p {
		b.WriteByte('/')
		name := map[string]string{
			"topic": n.topic, "subscription": n.subscription, "hub": n.hub, "account": n.account, "group": n.group,
			"namespace": n.namespace, "location": n.location, "topicType": n.topicType,
		}[s.name]
		switch {
		case s.name == "":
			b.WriteString(s.word)
			continue
		case name != "":
		case s.name == "topic" || s.name == "subscription" || s.name == "hub":
			t.Fatalf("%s is empty", s.name)
		default:
			name = "any"
		}
		b.WriteString(url.PathEscape(name))
		if s.verb != "" {
			b.WriteString(":" + s.verb)
		}
	}
	return b.String()
}

// FuzzLockTokens: what is read as tokens is some, not too many, and comes back.
func FuzzLockTokens(f *testing.F) {
	for _, seed := range []string{`{"lockTokens":["a","b"]}`, `{"LOCKTOKENS":["a"]}`, `{"lockTokens":[null]}`, `{"lockTokens":"a"}`, `[]`, ``, `{"lockTokens":["\ud800"],"x":1}`, `{"lockTokens":["a"]}{}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		tokens, err := parseLockTokens(text)
		if err != nil {
			if said := (&call{}).Judge(err); said.Status != 400 {
				t.Fatalf("refused as %d", said.Status)
			}
			return
		}
		if len(tokens) == 0 || len(tokens) > maxTokens {
			t.Fatalf("%d tokens", len(tokens))
		}
		written, err := json.Marshal(map[string]any{"lockTokens": tokens})
		testkit.Must(t, err)
		again, err := parseLockTokens(written)
		if err != nil || strings.Join(again, "\n") != strings.Join(tokens, "\n") {
			t.Fatalf("%q came back as %q, %v", tokens, again, err)
		}
	})
}

// FuzzRequest sends any request at all through the whole listener: it is answered, errors have
// their form, and nothing panics. Nobody is let in without a key.
func FuzzRequest(f *testing.F) {
	y := newYard(f)
	f.Add("POST", "/topics/orders/api/events", "api-version=2018-01-01", "aeg-sas-key", key1, "["+event("a")+"]", "localhost")
	f.Add("POST", "/topics/orders/events", "aeg-sas-key=x", "Content-Type", "application/json", "[]", "orders.localhost")
	f.Add("POST", "/topics/clouds:publish", "", "Authorization", "SharedAccessKey "+key1, cloud("a"), "localhost")
	f.Add("POST", jobs+":acknowledge", "", "Authorization", "SharedAccessKey "+key1, `{"lockTokens":["a"]}`, "localhost")
	f.Add("POST", jobs+":release", "releaseDelayInSeconds=9", "aeg-sas-token", "r=a&e=b&s=c", `{"lockTokens":["a"]}`, "127.0.0.1:1")
	f.Add("POST", "/", "api-version=2018-01-01", "Authorization", "SharedAccessSignature r=a&e=b&s=c", "", "orders.localhost:443")
	f.Add("GET", "/topics/orders/validate", "id=a&token=b", "Accept", "text/html", "", "[::1]")
	f.Add("OPTIONS", "/topics/mapped/api/events", "%zz", "Authorization", "SharedAccessSignature sr=a&sig=b", "", "")
	f.Add("DELETE", "/topics/orders", "", "Authorization", "Basic eDp5", "", "localhost")
	f.Fuzz(func(t *testing.T, method, path, query, name, value, body, host string) {
		lower := strings.ToLower(value)
		if strings.HasPrefix(strings.TrimSpace(lower), "bearer") || strings.HasSuffix(strings.ToLower(path), "receive") {
			return // any is good here, and may manage; and nobody waits in these tests
		}
		r := httptest.NewRequest("GET", "/", strings.NewReader(body))
		r.Method, r.URL, r.Host = method, &url.URL{Path: path, RawQuery: query}, host
		r.Header = http.Header{http.CanonicalHeaderKey(name): {value}}
		w := httptest.NewRecorder()
		y.frame.ServeHTTP(w, r)
		_ = Serves(r)
		text, _ := io.ReadAll(w.Body)
		if w.Code == 500 {
			t.Fatalf("answered %s", text)
		}
		if w.Code >= 400 && method != "HEAD" && !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			var document errorDocument
			if err := json.Unmarshal(text, &document); err != nil || document.Error.Code == "" || len(document.Error.Details) != 1 {
				t.Fatalf("answered %d %s", w.Code, text)
			}
		}
		shown := strings.Contains(value+query, key1[:20]) || strings.Contains(value+query, key2[:20]) || strings.Contains(value, "Basic")
		if w.Code == 200 && !shown && w.Header().Get("Allow") == "" && !strings.HasSuffix(strings.TrimSuffix(strings.ToLower(path), "/"), "/validate") && !strings.Contains(lower, "sharedaccesskey") {
			t.Fatalf("%s %s was let in", method, path)
		}
	})
}
