package server

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
)

// outside is a yard that others can reach, beside a listener on loopback for the test.
func outside(cfg Config) Config {
	cfg.AMQPS, cfg.Host = "0.0.0.0:0", "yard.example.com"
	return cfg
}

// What others call the yard says nothing about whether its key could be read, nor does the file's
// loss: only development renews keys.
func TestTheKeyStaysBeyondLoopback(t *testing.T) {
	testengine.NeedsFiles(t)
	for _, host := range []string{"yard.example.com", "localhost", "127.0.0.1", ""} {
		cfg := outside(quick(t))
		cfg.Host = host
		for i := range 3 {
			r := start(t, cfg)
			if reported := r.Access(); reported.Renewed {
				t.Errorf("host %q, start %d: told %+v", host, i, reported)
			}
			r.shutdown()
			if err := os.Remove(r.Access().File); err != nil {
				t.Error(err)
			}
		}
	}
}

// While every listener was on loopback whoever knew the well-known key could read the root
// policy's: keys that others are kept out by are not those.
func TestKeysOfDevelopmentEndBeyondLoopback(t *testing.T) {
	cfg := quick(t)
	cfg.Hubs = []Hub{{Name: "h", Partitions: 1}}
	here := start(t, cfg)
	here.want(201, "POST", "/api/v1/policies", `{"name":"reports","rights":["Listen"]}`)
	here.want(201, "POST", "/api/v1/hubs/h/policies", `{"name":"till","rights":["Send"]}`)
	here.want(201, "POST", "/api/v1/topics", `{"name":"shop"}`)
	cfg.Topics = []Topic{{Name: "made-later"}}
	if here.Access().ServedOthers {
		t.Error("a fresh yard is said to have served others")
	}
	root, reports := here.policy("/api/v1/policies/"+auth.RootPolicy), here.policy("/api/v1/policies/reports")
	here.shutdown()

	for i := range 2 {
		r := start(t, outside(cfg))
		reported, kept := r.Access(), r.kept()
		if reported.Renewed != (i == 0) || reported.ConnectionString != kept.String() {
			t.Errorf("start %d told %+v", i, reported)
		}
		if i == 0 && !slices.EqualFunc(reported.Readable, []Policy{{Name: "reports"}, {Name: "till", Hub: "h"}}, samePolicy) || i == 1 && reported.Readable != nil {
			t.Errorf("start %d: the policies that stay are %+v", i, reported.Readable)
		}
		if i == 0 && !slices.Equal(reported.ReadableTopics, []string{"shop"}) || i == 1 && reported.ReadableTopics != nil {
			t.Errorf("start %d: the topics with keys that could be read are %q", i, reported.ReadableTopics)
		}
		for _, key := range []string{root.PrimaryKey, root.SecondaryKey, auth.DevelopmentKey} {
			testkit.Equal(t, r.status(auth.RootPolicy, key), http.StatusUnauthorized,
				"start %d: a key of development is answered", i)
		}
		testkit.Equal(t, r.status(auth.RootPolicy, kept.Key), http.StatusOK,
			"start %d: the key that is kept is answered", i)
		if got := r.status("reports", reports.PrimaryKey); got == http.StatusUnauthorized {
			t.Errorf("start %d: another policy's key is answered %d", i, got)
		}
		r.shutdown()
	}

	if here.Access().File == "" {
		return // nodes that share a yard do not go back
	}
	for i := range 2 { // and back, and forth
		back := start(t, cfg)
		if reported := back.Access(); reported.ServedOthers != (i == 0) {
			t.Errorf("start %d back on loopback told %+v", i, reported)
		}
		back.shutdown()
	}
	r := start(t, outside(cfg))
	if reported := r.Access(); !reported.Renewed || len(reported.Readable) != 2 {
		t.Errorf("the second time told %+v", reported)
	}
	r.shutdown()
}

func samePolicy(a, b Policy) bool {
	return a.Name == b.Name && a.Hub == b.Hub && a.PrimaryKey == b.PrimaryKey && a.SecondaryKey == b.SecondaryKey
}

// Nobody needs to be warned of a policy whose keys the configuration has replaced.
func TestReadablePoliciesAreThoseThatStay(t *testing.T) {
	cfg := quick(t)
	cfg.Policies = []Policy{
		{Name: "both", Rights: []string{"send"}, PrimaryKey: "the-one-key-of-both", SecondaryKey: "the-other-key-of-both"},
		{Name: "one", Rights: []string{"send"}, PrimaryKey: "one-key-of-the-one"},
	}
	start(t, cfg).shutdown()
	for i := range cfg.Policies {
		cfg.Policies[i].PrimaryKey = "another-key-altogether"
	}
	cfg.Policies[0].SecondaryKey = "yet-another-key-altogether"
	cfg.Policies = append(cfg.Policies, Policy{Name: "new", Rights: []string{"send"}})
	r := start(t, outside(cfg))
	if reported := r.Access(); len(reported.Readable) != 1 || reported.Readable[0].Name != "one" {
		t.Errorf("told %+v", reported)
	}
	r.shutdown()
}

// A start that fails has shown nothing: the next one does. Keys that nobody could read are not made anew, and
// nobody is warned of them.
func TestAStartThatFailsShowsNothing(t *testing.T) {
	for _, development := range []bool{true, false} { // before
		cfg := quick(t)
		if development {
			start(t, cfg).shutdown()
		}
		bad := outside(cfg)
		bad.TLS = TLS{CertFile: "nowhere.pem", KeyFile: "nowhere.pem"}
		s, err := New(onEngine(t, bad))
		testkit.Must(t, err)
		if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "nowhere.pem") {
			t.Fatalf("error is %v", err)
		}
		r := start(t, outside(cfg))
		reported := r.Access()
		testkit.Equal(t, reported.Renewed, development, "keys are made anew after development %t", development)
		testkit.That(t, reported.Renewed || reported.Show || reported.File != "", "after development %t: told %+v", development, reported)
		r.shutdown()
	}
}

// A yard without listeners lets nobody read its keys.
func TestAYardWithoutListenersIsNotInDevelopment(t *testing.T) {
	cfg := outside(quick(t))
	first := start(t, cfg)
	key := first.kept().Key
	first.shutdown()
	closed := cfg
	closed.AMQPS, closed.HTTP = Off, Off
	start(t, closed).shutdown()
	r := start(t, cfg)
	if reported := r.Access(); reported.Renewed || r.kept().Key != key {
		t.Errorf("told %+v", reported)
	}
	r.shutdown()
}
