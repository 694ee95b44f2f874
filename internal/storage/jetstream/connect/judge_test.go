package connect

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/testkit"
)

// C8: what a server has to be, with the line to write.
func TestJudge(t *testing.T) {
	good := Server{Name: "n0", Version: "2.15.2", MaxPayload: 8 << 20, Sync: true, SyncKnown: true}
	with := func(change func(*Server)) Report {
		s := good
		change(&s)
		return Report{Servers: []Server{good, s}}
	}
	for name, tt := range map[string]struct {
		found    Report
		replicas int
		problem  string // part of what is said; empty: none
		risky    bool
		warning  string
	}{
		"good":                  {found: Report{Servers: []Server{good}}},
		"an old version":        {found: with(func(s *Server) { s.Version = "2.14.9" }), problem: "2.15 or later", risky: true},
		"a newer version":       {found: with(func(s *Server) { s.Version = "3.0.0-beta" })},
		"a version that is not": {found: with(func(s *Server) { s.Version = "nightly" }), problem: "2.15 or later", risky: true},
		"small messages":        {found: with(func(s *Server) { s.MaxPayload = 1 << 20 }), problem: "max_payload: 8MB"},
		"medium messages":       {found: with(func(s *Server) { s.MaxPayload = 4 << 20 }), warning: "max_payload: 8MB"},
		"syncs later":           {found: with(func(s *Server) { s.Sync = false }), problem: "jetstream { sync_interval: always }", risky: true},
		"sync is not known":     {found: with(func(s *Server) { s.Sync, s.SyncKnown = false, false }), warning: "sync_interval: always"},
		"one was not asked":     {found: Report{Servers: []Server{good}, known: 2}, warning: "1 of 2 NATS servers could not be asked"},
		"no JetStream":          {found: Report{Servers: []Server{good}, NoJetStream: "off"}, problem: "jetstream { store_dir"},
		"too few servers":       {found: Report{Servers: []Server{good}, NoReplicas: "no peers"}, problem: "replicas=1"},
		"one replica":           {found: Report{Servers: []Server{good}}, replicas: 1, warning: "a lost server loses"},
	} {
		t.Run(name, func(t *testing.T) {
			problems, warnings := tt.found.judge(Settings{Replicas: cmp.Or(tt.replicas, 3)})
			refused, _ := verdict(problems, false)
			said := strings.Join(refused, "; ")
			testkit.Equal(t, said != "", tt.problem != "", "refused: %s", said)
			testkit.Equal(t, strings.Join(warnings, "") != "", tt.warning != "", "warned: %q", warnings)
			testkit.That(t, strings.Contains(strings.Join(warnings, ""), tt.warning), "warned: %q", warnings)
			testkit.That(t, strings.Contains(said, tt.problem), "it says %s", said)
			testkit.Equal(t, strings.Contains(said, "--nats-unsafe"), tt.risky, "it offers to go on: %s", said)
			refused, risks := verdict(problems, true)
			testkit.Equal(t, len(refused) > 0, tt.problem != "" && !tt.risky, "refused although unsafe: %q", refused)
			testkit.Equal(t, len(risks) > 0, tt.risky, "warned: %q", risks)
		})
	}
}

// C5, C8: servers without a leader, as a moment after one was lost, are waited for; what they are not is noted; and
// what is not known is an error that waiting does not change.
func TestWhyNoStreamWasMade(t *testing.T) {
	for _, tt := range []struct {
		status int
		code   jetstream.ErrorCode
		want   Report
		waits  bool
		fails  bool
	}{
		{status: 503, code: 10008, waits: true, fails: true},
		{status: 503, code: 10076, want: Report{NoJetStream: "why"}},
		{status: 400, code: 10005, want: Report{NoReplicas: "why"}},
		{status: 400, code: 10052, fails: true},
	} {
		var r Report
		err := r.refused("s", &jetstream.APIError{Code: tt.status, ErrorCode: tt.code, Description: "why"})
		testkit.Equal(t, err != nil, tt.fails, "%d: it fails with %v", tt.code, err)
		testkit.Equal(t, errors.Is(err, ErrUnavailable), tt.waits, "%d: it is waited for (%v)", tt.code, err)
		testkit.Deep(t, r, tt.want)
	}
}
