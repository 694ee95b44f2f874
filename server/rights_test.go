package server_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/server"
	"github.com/eventyard/eventyard/servertest"
)

// R1: every route of the yard, asked with every kind of credential, lets in whom
// testdata/rights.txt says, and nobody else. The file is written by hand, so that a route that
// declares too little does not decide by itself what is right; a route that is not in it fails.
func TestRightsOverHTTP(t *testing.T) {
	newRightsYard(t).compare(t, func(api string) bool { return api != "nodes" && api != "console" })
}

// compare asks every route of some APIs with every credential.
func (y *rightsYard) compare(t *testing.T, of func(api string) bool) {
	t.Helper()
	want, columns := server.ReadRights(t, of)
	for _, column := range columns {
		if y.credentials[column] == nil {
			t.Fatalf("rights.txt has a column %q, and there is no such credential", column)
		}
	}
	testkit.Equal(t, len(columns), len(y.credentials), "columns of rights.txt: each credential has one")
	for _, rt := range y.routes(of) {
		t.Run(name(rt), func(t *testing.T) {
			var got []string
			for _, column := range columns {
				got = append(got, y.ask(t, rt, column))
			}
			expected, found := want[name(rt)]
			delete(want, name(rt))
			if !found {
				t.Errorf("it is not in testdata/rights.txt. Say there whom it lets in; at present:\n%s", server.RightsLine(name(rt), got))
			} else if !slices.Equal(got, expected) {
				t.Errorf("it does not let in whom it should\n%s\nwant\n%s\ngot\n%s", server.RightsLine("", columns), server.RightsLine(name(rt), expected), server.RightsLine(name(rt), got))
			}
		})
	}
	for name := range want {
		t.Errorf("testdata/rights.txt has %s, and there is no such route", name)
	}
}

// routes are those of some APIs; what deletes comes last.
func (y *rightsYard) routes(of func(api string) bool) []frame.Route {
	y.t.Helper()
	cfg := y.Config
	cfg.DataDir, cfg.Node = filepath.Join(y.t.TempDir(), "routes"), "routes"
	routes := testkit.Value(server.Routes(y.t.Context(), cfg))(y.t)
	routes = slices.DeleteFunc(routes, func(rt frame.Route) bool { return !of(rt.API) })
	slices.SortFunc(routes, func(a, b frame.Route) int { return strings.Compare(rank(a)+name(a), rank(b)+name(b)) })
	return routes
}

func name(rt frame.Route) string { return rt.API + " " + rt.Method + " " + rt.Path }

// What rank gives.
const keeps, deletes = "1", "2"

func rank(rt frame.Route) string {
	if rt.Method == http.MethodDelete || strings.HasSuffix(rt.Path, "/delete") && rt.Method == http.MethodPost {
		return deletes
	}
	return keeps
}

// The keys of every topic and policy of the yard, which survive being deleted.
var (
	topicKeys  = map[string]string{"invoices": key("topic invoices"), "receipts": key("topic receipts")}
	policyKeys = map[string]string{"sender": key("sender"), "listener": key("listener"), "manager": key("manager"), "scraper": key("scraper"), "own": key("own"), "other": key("other")}
)

func key(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// rightsYard is a real yard with one of everything.
type rightsYard struct {
	*servertest.Yard
	t           *testing.T
	client      *admin.Client
	base        *url.URL
	blobKey     string
	credentials map[string]func(*http.Request, frame.Route)
}

func newRightsYard(t *testing.T, changes ...func(*server.Config)) *rightsYard {
	t.Helper()
	y := &rightsYard{Yard: servertest.Start(t, append([]func(*server.Config){servertest.Listeners, server.AnyFailures}, changes...)...), t: t}
	base, err := url.Parse(y.Addresses()["http"])
	testkit.Must(t, err)
	base.Host = "127.0.0.1:" + base.Port()
	y.base = base
	y.client, err = admin.New(admin.Config{Server: base.String(), ConnectionString: y.Access().ConnectionString})
	testkit.Must(t, err)
	t.Cleanup(y.client.Close)
	y.restore()
	account, err := y.client.BlobAccount(t.Context())
	testkit.Must(t, err)
	y.blobKey = account.PrimaryKey
	y.credentials = map[string]func(*http.Request, frame.Route){
		"none":       func(*http.Request, frame.Route) {},
		"send":       policy("sender", "", time.Hour),
		"listen":     policy("listener", "", time.Hour),
		"manage":     policy("manager", "", time.Hour),
		"metrics":    policy("scraper", "", time.Hour),
		"ownHub":     policy("own", "orders", time.Hour),
		"otherHub":   policy("other", "other", time.Hour),
		"topicKey":   func(r *http.Request, _ frame.Route) { r.Header.Set("aeg-sas-key", topicKeys["invoices"]) },
		"otherTopic": func(r *http.Request, _ frame.Route) { r.Header.Set("aeg-sas-key", topicKeys["receipts"]) },
		"blobKey":    y.signBlob,
		"expired":    policy("manager", "", -time.Hour),
		"cookie":     y.showCookie(),
	}
	return y
}

// policy shows a signature of a policy, in the form that the route's API takes.
func policy(name, hub string, life time.Duration) func(*http.Request, frame.Route) {
	return func(r *http.Request, rt frame.Route) {
		token := auth.Sign("sb://localhost/"+hub, name, policyKeys[name], time.Now().Add(life))
		if rt.API == "azureblob" {
			token = "Bearer " + token
		}
		r.Header.Set("Authorization", token)
	}
}

// showCookie shows the cookie of a session of the policy that manages.
func (y *rightsYard) showCookie() func(*http.Request, frame.Route) {
	session := y.signIn("manager")
	return func(r *http.Request, _ frame.Route) { r.AddCookie(session) }
}

// signIn signs in at the console.
func (y *rightsYard) signIn(policy string) *http.Cookie {
	y.t.Helper()
	form := url.Values{"policy": {policy}, "key": {policyKeys[policy]}}
	r, err := http.NewRequestWithContext(y.t.Context(), http.MethodPost, y.base.JoinPath("console", "signin").String(), strings.NewReader(form.Encode()))
	testkit.Must(y.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultTransport.RoundTrip(r)
	testkit.Must(y.t, err)
	testkit.Must(y.t, response.Body.Close())
	testkit.MustEqual(y.t, len(response.Cookies()), 1, "cookies of status %d", response.StatusCode)
	return response.Cookies()[0]
}

// signBlob signs a request with the blob account's key. To others than the blob endpoint it shows
// the key as that of a policy.
func (y *rightsYard) signBlob(r *http.Request, rt frame.Route) {
	if rt.API != "azureblob" {
		r.SetBasicAuth(auth.RootPolicy, y.blobKey)
		return
	}
	secret, err := base64.StdEncoding.DecodeString(y.blobKey)
	testkit.Must(y.t, err)
	date := time.Now().UTC().Format(http.TimeFormat)
	r.Header.Set("x-ms-date", date)
	resource := "/eventyard" + r.URL.EscapedPath()
	if comp := r.URL.Query().Get("comp"); comp != "" {
		resource += "?comp=" + comp
	}
	text := r.Method + "\n\n" + r.Header.Get("Content-Type") + "\n\nx-ms-date:" + date + "\n" + resource
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	r.Header.Set("Authorization", "SharedKeyLite eventyard:"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// names are what stands in the paths of requests: what there is one of, or what there is not where
// nobody needs it to find out who is let in.
var names = strings.NewReplacer(
	"{hub}", "orders", "{group}", "billing", "{partition}", "0", "{topic}", "invoices", "{account}", "eventyard", "{container}", "checkpoints",
	"{policy}", "nobody", "{subscription}", "nobody", "{function}", "nobody", "{number}", "1", "{blob}", "nothing", "{publisher}", "till",
	"{namespace}", "yard", "{token}", "nothing", "{hash}", "0", "{file}", "console.css", "{sequence}", "0",
)

// ask sends one request and gives what became of it: LetIn, 401, 403, or an error of the yard, after which nobody
// knows whether the route works.
func (y *rightsYard) ask(t *testing.T, rt frame.Route, credential string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // streams end with it at the latest
	defer cancel()
	target, err := y.base.Parse(pathOf(rt))
	testkit.Must(t, err)
	body := "{}"
	if rt.Need.TopicKey {
		body = "[]"
	}
	if rt.Method == http.MethodGet || rt.Method == http.MethodHead || rt.Method == http.MethodDelete {
		body = ""
	}
	r, err := http.NewRequestWithContext(ctx, rt.Method, target.String(), bytes.NewReader([]byte(body)))
	testkit.Must(t, err)
	if rt.API == "eventgrid" && !strings.Contains(rt.Path, "{topic}") {
		r.Host = "invoices.localhost:" + y.base.Port()
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	y.credentials[credential](r, rt)
	response, err := http.DefaultTransport.RoundTrip(r)
	testkit.Must(t, err)
	testkit.Must(t, response.Body.Close())
	if rank(rt) == deletes && response.StatusCode < 400 {
		y.restore()
	}
	switch {
	case response.StatusCode == http.StatusUnauthorized, response.StatusCode == http.StatusForbidden:
		return fmt.Sprint(response.StatusCode)
	case strings.HasPrefix(response.Header.Get("Location"), "/console/signin?"):
		return "401" // as a browser is told
	case response.StatusCode >= http.StatusInternalServerError && !notReady(rt, response):
		return fmt.Sprint(response.StatusCode)
	}
	return server.LetIn
}

// notReady tells whether a probe was answered that the yard is not ready, as on a machine under load.
func notReady(rt frame.Route, response *http.Response) bool {
	return rt.Path == "/readyz" && response.StatusCode == http.StatusServiceUnavailable
}

// pathOf is the path of a request to a route. Of Event Grid's clients that keep only the host the
// query tells them apart.
func pathOf(rt frame.Route) string {
	if rt.API == "eventgrid" && rt.Path == "/" {
		return "/?api-version=2018-01-01"
	}
	return names.Replace(rt.Path)
}

// restore makes what there should be, of which requests may have deleted some.
func (y *rightsYard) restore() {
	y.t.Helper()
	ctx := y.t.Context()
	made := func(_ any, err error) {
		if problem, ok := errors.AsType[*admin.Problem](err); err != nil && !(ok && problem.Status == http.StatusConflict) {
			y.t.Fatal(err)
		}
	}
	for _, hub := range []string{"orders", "other"} {
		y.Hub(y.t, hub, 1, "billing")
	}
	for name, of := range map[string]struct{ hub, right string }{
		"sender": {"", "Send"}, "listener": {"", "Listen"}, "manager": {"", "Manage"}, "scraper": {"", "Metrics"}, "own": {"orders", "Manage"}, "other": {"other", "Manage"},
	} {
		made(y.client.CreatePolicy(ctx, of.hub, admin.PolicyRequest{Name: name, Rights: []string{of.right}, PrimaryKey: policyKeys[name]}))
	}
	for name, key := range topicKeys {
		made(y.client.CreateTopic(ctx, admin.TopicRequest{Name: name, Schema: "cloudevents", Key1: key}))
	}
}

// R1: nobody but the yard publishes to yard-events, by whatever credential or detour.
func TestOnlyTheYardPublishesToYardEvents(t *testing.T) {
	y := newRightsYard(t)
	own, err := y.client.Topic(t.Context(), "yard-events")
	testkit.Must(t, err)
	for what, shows := range map[string]func(*http.Request){
		"its own key": func(r *http.Request) { r.Header.Set("aeg-sas-key", own.Keys.Key1) },
		"Send":        func(r *http.Request) { r.SetBasicAuth("sender", policyKeys["sender"]) },
		"Manage":      func(r *http.Request) { r.SetBasicAuth("manager", policyKeys["manager"]) },
		"the root":    func(r *http.Request) { r.SetBasicAuth(auth.RootPolicy, auth.DevelopmentKey) },
	} {
		for _, path := range []string{"/topics/yard-events/api/events", "/topics/Yard-Events/events", "/topics/yard-events:publish"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, y.base.String()+path, strings.NewReader("[]"))
			testkit.Must(t, err)
			shows(r)
			response, err := http.DefaultClient.Do(r)
			testkit.Must(t, err)
			testkit.Must(t, response.Body.Close())
			testkit.Equal(t, response.StatusCode, http.StatusForbidden, "%s by %s", path, what)
		}
	}
	_, err = y.client.CreateFunction(t.Context(), admin.FunctionRequest{
		Name: "forger", Hub: "orders", Endpoint: new("http://127.0.0.1:1/"), Poison: new("topic:yard-events"),
	})
	if problem, ok := errors.AsType[*admin.Problem](err); !ok || problem.Status/100 != 4 {
		t.Errorf("poison is put there: %v", err)
	}
}
