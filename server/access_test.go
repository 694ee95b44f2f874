package server

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
)

// kept is the connection string in the data folder.
func (r *running) kept() auth.ConnectionString {
	r.t.Helper()
	testengine.NeedsFiles(r.t)
	text, err := os.ReadFile(r.Access().File)
	testkit.Must(r.t, err)
	c, err := auth.ParseConnectionString(string(text))
	testkit.Must(r.t, err)
	return c
}

// status asks for the hubs with a policy's key.
func (r *running) status(policy, key string) int {
	r.t.Helper()
	request := r.request("GET", "/api/v1/hubs", nil)
	request.SetBasicAuth(policy, key)
	response, err := http.DefaultClient.Do(request)
	testkit.Must(r.t, err)
	response.Body.Close()
	return response.StatusCode
}

// H9: on loopback the key that everybody knows is good, and so is the yard's own.
func TestDevelopmentMode(t *testing.T) {
	r := start(t, everyListener(t))
	reported := r.Access()
	want := "Endpoint=sb://" + r.host("amqp") + "/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
	if !reported.Development || reported.ConnectionString != want {
		t.Errorf("told %+v", reported)
	}
	kept := r.kept()
	if kept.Key == auth.DevelopmentKey || len(kept.Key) < 20 || !kept.Emulator || kept.Host() != r.host("amqp") {
		t.Errorf("kept %s", kept)
	}
	for _, key := range []string{auth.DevelopmentKey, kept.Key} {
		testkit.Equal(t, r.status(auth.RootPolicy, key), 200, "key %s is answered", key)
	}
	if info, err := os.Stat(reported.File); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	r.shutdown()
}

// Beyond loopback only real keys are valid. They stay.
func TestBeyondLoopback(t *testing.T) {
	cfg := outside(quick(t))
	key := ""
	for i := range 2 {
		r := start(t, cfg)
		reported, kept := r.Access(), r.kept()
		if i == 0 {
			key = kept.Key
		}
		if reported.Development || reported.ConnectionString != kept.String() {
			t.Errorf("start %d told %+v", i, reported)
		}
		_, port, err := net.SplitHostPort(r.host("amqps"))
		if err != nil || kept.Key != key || kept.Emulator || kept.Host() != "yard.example.com:"+port {
			t.Errorf("start %d kept %s, %v", i, kept, err)
		}
		testkit.Equal(t, r.status(auth.RootPolicy, auth.DevelopmentKey), http.StatusUnauthorized,
			"the well-known key is answered … at the listener on loopback")
		testkit.Equal(t, r.status(auth.RootPolicy, key), 200, "the yard's own key is answered")
		r.shutdown()
	}
}

func TestAYardThatBeginsBeyondLoopbackReportsItsKey(t *testing.T) {
	cfg := quick(t)
	cfg.HTTP, cfg.AMQP, cfg.AllowPlaintext = "0.0.0.0:0", "0.0.0.0:0", true
	r := start(t, cfg)
	if reported := r.Access(); reported.Development || !strings.Contains(reported.ConnectionString, "UseDevelopmentEmulator=true") {
		t.Errorf("told %+v", reported)
	}
	r.shutdown()
}

// The host's name may lead anywhere: what counts is what the listeners are bound to.
func TestTheAddressOfThisMachineIsBeyondLoopback(t *testing.T) {
	address := outsideAddress(t)
	cfg := quick(t)
	cfg.HTTPS = net.JoinHostPort(address, "0")
	r := start(t, cfg)
	if reported := r.Access(); reported.Development || !strings.Contains(reported.ConnectionString, "sb://"+r.host("https")+"/") {
		t.Errorf("told %+v", reported)
	}
	r.shutdown()
}

// outsideAddress is one that others may reach this machine by.
func outsideAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	testkit.Must(t, err)
	for _, a := range addresses {
		if network, ok := a.(*net.IPNet); ok && !network.IP.IsLoopback() && network.IP.To4() != nil {
			return network.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback")
	return ""
}

// H9: declared policies exist before the listeners open, as they are declared.
func TestConfiguredPolicies(t *testing.T) {
	cfg := everyListener(t)
	cfg.Hubs = []Hub{{Name: "h", Partitions: 1}}
	cfg.Policies = []Policy{
		{Name: "till", Hub: "h", Rights: []string{"send"}, PrimaryKey: "one-key-of-the-till", SecondaryKey: "two-key-of-the-till"},
		{Name: "all", Rights: []string{"Manage"}},
	}
	first := start(t, cfg)
	testkit.Check(t, send(t.Context(), first.session("amqp", "till", "two-key-of-the-till"), "h", "x"))
	made := first.policy("/api/v1/policies/all")
	first.shutdown()

	cfg.Policies[0].PrimaryKey, cfg.Policies[0].Rights = "three-key-of-the-till", []string{"send", "listen"}
	second := start(t, cfg)
	till := second.policy("/api/v1/hubs/h/policies/till")
	if till.PrimaryKey != "three-key-of-the-till" || till.SecondaryKey != "two-key-of-the-till" || !slices.Equal(till.Rights, []string{"Send", "Listen"}) {
		t.Errorf("till is %+v", till)
	}
	if all := second.policy("/api/v1/policies/all"); all.PrimaryKey != made.PrimaryKey || made.PrimaryKey == "" {
		t.Error("a key that nobody declared has changed")
	}
	second.shutdown()
}

// A declared key that undoes what was made at run time is logged; one that changes nothing is not.
func TestADeclaredKeyThatReplacesAnotherIsLogged(t *testing.T) {
	cfg := quick(t)
	cfg.Policies = []Policy{{Name: "p", Rights: []string{"send"}, PrimaryKey: "the-declared-key-of-p"}}
	first := start(t, cfg)
	first.want(200, "POST", "/api/v1/policies/p/regenerate", `{"key":"secondary"}`) // which nobody declared
	first.shutdown()
	for _, want := range []bool{false, true, false} {
		var log bytes.Buffer
		cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		r := start(t, cfg)
		if !want {
			r.want(200, "POST", "/api/v1/policies/p/regenerate", `{"key":"primary"}`)
		}
		r.shutdown()
		text, reported := log.String(), false
		for line := range strings.Lines(text) {
			reported = reported || strings.Contains(line, "level=WARN") && strings.Contains(line, "policy=p")
		}
		if reported != want || strings.Contains(text, "policy replaced") != want {
			t.Errorf("want told %v, the log is:\n%s", want, text)
		}
	}
}

// policy is one as the HTTP listener shows it.
func (r *running) policy(path string) (p struct {
	Rights                   []string
	PrimaryKey, SecondaryKey string
}) {
	r.t.Helper()
	testkit.Must(r.t, json.Unmarshal([]byte(r.want(200, "GET", path, "")), &p))
	return p
}

func TestAPolicyOfAHubThatIsNotThere(t *testing.T) {
	cfg := quick(t)
	cfg.Policies = []Policy{{Name: "till", Hub: "nowhere", Rights: []string{"send"}}}
	s, err := New(onEngine(t, cfg))
	testkit.Must(t, err)
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "configured policy till") {
		t.Errorf("error is %v", err)
	}
}

// Who has made the root key anew finds the new one where the old one was.
func TestTheKeptConnectionStringFollowsItsKey(t *testing.T) {
	r := start(t, everyListener(t))
	old := r.kept()
	r.want(200, "POST", "/api/v1/policies/"+auth.RootPolicy+"/regenerate", `{"key":"secondary"}`)
	testkit.Equal(t, r.kept(), old, "the secondary key is not the one that is kept")
	r.want(200, "POST", "/api/v1/policies/"+auth.RootPolicy+"/regenerate", `{"key":"primary"}`)
	kept := r.kept()
	if kept.Key == old.Key || kept.Endpoint != old.Endpoint {
		t.Errorf("kept %s", kept)
	}
	if r.status(auth.RootPolicy, old.Key) != http.StatusUnauthorized || r.status(auth.RootPolicy, kept.Key) != 200 {
		t.Error("the old key is good, or the new one is not")
	}
	r.shutdown()
}

// The listener of HTTP gives out connection strings that lead to the listener of AMQP.
func TestConnectionStringsLeadToTheListener(t *testing.T) {
	cfg := everyListener(t)
	r := start(t, cfg)
	for query, listener := range map[string]string{"": "amqp", "?tls=true": "amqps"} {
		answer := r.want(200, "GET", "/api/v1/connection-string"+query, "")
		if !strings.Contains(answer, "Endpoint=sb://"+r.host(listener)+"/;") {
			t.Errorf("%q is answered %s", query, answer)
		}
	}
	r.shutdown()
}

// bearer asks for the hubs with a token that nobody signed.
func (r *running) bearer() int {
	r.t.Helper()
	request := r.request("GET", "/api/v1/hubs", nil)
	request.Header.Set("Authorization", "Bearer eyJhbGciOiJSUzI1NiJ9.e30.c2ln")
	response, err := http.DefaultClient.Do(request)
	testkit.Must(r.t, err)
	response.Body.Close()
	return response.StatusCode
}

// Bearer tokens are good only where somebody said whose.
func TestBearerTokens(t *testing.T) {
	issuer := httptest.NewServer(http.NotFoundHandler()) // one that is out of order
	defer issuer.Close()
	for name, test := range map[string]struct {
		set  func(*Config)
		want int
	}{
		"nobody's":             {func(*Config) {}, http.StatusUnauthorized},
		"everybody's":          {func(c *Config) { c.AcceptAnyJWT = true }, http.StatusOK},
		"an issuer's, ill now": {func(c *Config) { c.OIDC = OIDC{Issuer: issuer.URL, Audience: "yard"} }, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := quick(t)
			test.set(&cfg)
			r := start(t, cfg)
			testkit.Equal(t, r.bearer(), test.want, "answered")
			r.shutdown()
		})
	}
}

// A look at the issuer that is under way when the yard stops ends with it.
func TestStoppingEndsTheLookAtTheIssuer(t *testing.T) {
	asked := make(chan struct{}, 1)
	issuer := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer issuer.Close()
	cfg := quick(t)
	cfg.Grace, cfg.OIDC = -1, OIDC{Issuer: issuer.URL, Audience: "yard"}
	r := start(t, cfg)
	request := r.request("GET", "/api/v1/hubs", nil)
	request.Header.Set("Authorization", "Bearer eyJhbGciOiJSUzI1NiJ9.e30.c2ln")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
		}
	}()
	<-asked
	r.shutdown()
	<-ended
	stacks := make([]byte, 1<<20)
	if stacks = stacks[:runtime.Stack(stacks, true)]; bytes.Contains(stacks, []byte("internal/hubs/access/oidc.")) {
		t.Errorf("somebody still asks:\n%s", stacks)
	}
}
