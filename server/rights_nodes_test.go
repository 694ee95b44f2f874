package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/api/peer"
	"github.com/eventyard/eventyard/internal/cluster/clustertest"
	"github.com/eventyard/eventyard/internal/grid/forward"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/caller"
	"github.com/eventyard/eventyard/internal/testkit"
)

// pair is two nodes of a yard: one asks the other, on behalf of callers with every kind of
// credential.
type pair struct {
	t            *testing.T
	asks, judges *yard
	subscription string
	callers      map[string]*caller.Caller // by column of the table; nil: nobody
}

func newPair(t *testing.T) *pair {
	t.Helper()
	s := newShared(t)
	s.wire = &clustertest.Network{}
	configs := []Config{s.config(), s.config()}
	configs[0].Node, configs[1].Node = "node-1", "node-2"
	nodes := s.startAll(configs...)
	p := &pair{t: t}
	for i, y := range []**yard{&p.asks, &p.judges} {
		*y = testkit.Value(nodes[i].enter(t.Context()))(t).yard
	}
	p.define()
	return p
}

// define makes one of everything through the node that asks, and waits until the other has heard of the
// topic's subscription.
func (p *pair) define() {
	t, ctx, y := p.t, p.t.Context(), p.asks
	for _, name := range []string{"orders", "other"} {
		testkit.Must(t, testkit.Err(y.broker.CreateHub(ctx, broker.HubConfig{Name: name, Partitions: 1})))
	}
	grant := func(hub, name string, rights auth.Rights) *caller.Caller {
		made := testkit.Value(y.access.Create(ctx, access.Policy{Hub: hub, Name: name, Rights: rights}))(t)
		return &caller.Caller{Grant: testkit.Value(y.access.Key(ctx, name, made.Primary))(t)}
	}
	key := func(name string) *caller.Caller {
		made := testkit.Value(y.topics.CreateTopic(ctx, topics.TopicConfig{Topic: topics.Topic{Name: name}}))(t)
		return &caller.Caller{Topic: &caller.TopicKey{Topic: made.Name, Subscription: "jobs", Key: caller.Digest(made.Key1)}}
	}
	p.callers = map[string]*caller.Caller{
		"none":    nil,
		"cookie":  nil, // which is nothing but at the console
		"send":    grant("", "sender", auth.Send),
		"listen":  grant("", "listener", auth.Listen),
		"manage":  grant("", "manager", auth.Manage),
		"metrics": grant("", "scraper", auth.Metrics),
		"ownHub":  grant("orders", "own", auth.Manage), "otherHub": grant("other", "other", auth.Manage),
		"topicKey": key("invoices"), "otherTopic": key("receipts"),
	}
	expired := *p.callers["manage"]
	expired.Grant.Expires = time.Now().Add(-time.Hour)
	root := testkit.Value(y.access.Key(ctx, auth.RootPolicy, testkit.Value(y.access.Policy("", auth.RootPolicy))(t).Primary))(t)
	root.Scopes = slices.Clone(root.Scopes)
	root.Scopes[0].Basis.Key = caller.Digest(y.access.Account().Primary)
	p.callers["expired"], p.callers["blobKey"] = &expired, &caller.Caller{Grant: root}
	p.subscription = testkit.Value(y.topics.Create(ctx, topics.Source{Topic: "invoices"}, "jobs", topics.Settings{Pull: &topics.Pull{}}))(t).ID
	testkit.Eventually(t, "the other node knows the subscription", func() bool {
		return p.judges.topics.Snapshot().Subscriptions.Get(p.subscription) != nil
	})
}

// questions are those of kinds that are about no subscription: about the hub orders.
var questions = map[string]string{
	"series.read":     `{"keys":[{"of":"published","hub":"orders"}]}`,
	"keys.count":      `{"hub":"orders","partitions":["0"]}`,
	"overview.health": `{}`,
}

// ask asks for one kind of request, for a caller, and gives what came of it: LetIn, or the status by
// which the listener of the caller tells that it was refused.
func (p *pair) ask(k peer.Kind, c *caller.Caller) string {
	p.t.Helper()
	body, enveloped := []byte("[]"), strings.HasPrefix(k.Subject, "grid.") || k.Own == "" // or receivers of slots
	if enveloped {
		envelope, about := map[string]any{"subscription": p.subscription}, auth.Entity{}
		if q, ok := questions[k.Subject]; ok {
			envelope, about = map[string]any{"question": json.RawMessage(q)}, auth.At("orders")
		}
		if c != nil {
			envelope["grant"] = json.RawMessage(c.Encode(about))
		}
		body = testkit.Value(json.Marshal(envelope))(p.t)
	}
	answer, err := p.asks.nodes.Ask(p.t.Context(), p.judges.nodes.Self(), k.Subject, body)
	testkit.Must(p.t, err)
	if enveloped {
		err = forward.ErrorIn(answer)
	}
	wire := frame.Problem
	if len(k.Routes) > 0 && strings.HasPrefix(k.Routes[0], "eventgrid ") {
		wire = frame.EventGrid
	}
	if err == nil {
		return LetIn
	}
	switch status := frame.Judge(wire, err).Status; status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Sprint(status)
	}
	return LetIn
}

// C4, R1: every kind of request that nodes ask each other, on behalf of callers with every kind of
// credential, is done for whom testdata/rights.txt says, and for nobody else. A kind that is not in it
// fails, and so does a handler that no kind declares.
func TestRightsBetweenNodes(t *testing.T) {
	want, columns := ReadRights(t, func(api string) bool { return api == "nodes" }) // before the nodes are elsewhere
	p := newPair(t)
	testkit.Equal(t, len(columns), len(p.callers), "columns of rights.txt: each credential has one")
	var declared []string
	for _, k := range peer.Kinds {
		declared = append(declared, k.Subject)
		name := "nodes ASK " + k.Subject
		if k.Own != "" {
			name = "nodes OWN " + k.Subject
		}
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, column := range columns {
				c, known := p.callers[column]
				testkit.MustThat(t, known, "rights.txt has a column %q, and there is no such credential", column)
				got = append(got, p.ask(k, c))
			}
			expected, found := want[name]
			delete(want, name)
			if !found {
				t.Errorf("it is not in testdata/rights.txt. Say there for whom it is done; at present:\n%s", RightsLine(name, got))
			} else if !slices.Equal(got, expected) {
				t.Errorf("it is not done for whom it should\n%s\nwant\n%s\ngot\n%s", RightsLine("", columns), RightsLine(name, expected), RightsLine(name, got))
			}
		})
	}
	for name := range want {
		t.Errorf("testdata/rights.txt has %s, and there is no such kind", name)
	}
	slices.Sort(declared)
	testkit.Slices(t, p.judges.nodes.Subjects(), declared, "what a node answers, and what is declared")
}

// C4: a right that has ended at the node that answers has ended, whatever the node that asks believes.
func TestRightsThatHaveEndedElsewhere(t *testing.T) {
	p := newPair(t)
	ctx, y := t.Context(), p.judges
	receive := peer.Kinds[slices.IndexFunc(peer.Kinds, func(k peer.Kind) bool { return k.Subject == "grid.receive" })]
	testkit.Equal(t, p.ask(receive, p.callers["listen"]), LetIn, "before")
	testkit.Equal(t, p.ask(receive, p.callers["topicKey"]), LetIn, "before, by the topic's key")
	testkit.Must(t, y.storage.Meta.Fresh(ctx, "")) // or it might know too little to change anything
	testkit.Must(t, testkit.Err(y.access.Regenerate(ctx, "", "listener", access.PrimaryKey)))
	testkit.Must(t, y.access.Delete(ctx, "", "manager"))
	testkit.Must(t, testkit.Err(y.topics.RegenerateKey(ctx, "invoices", topics.Key1)))
	for _, column := range []string{"listen", "manage", "topicKey"} {
		testkit.Equal(t, p.ask(receive, p.callers[column]), "401", "a caller by %s after it has ended", column)
	}
}

// C4: a kind needs what the routes need by which it is caused.
func TestKindsNeedWhatRoutesNeed(t *testing.T) {
	cfg := everyListener(t)
	cfg.DataDir = filepath.Join(t.TempDir(), "routes")
	needs := map[string]frame.Need{}
	for _, rt := range testkit.Value(Routes(t.Context(), cfg))(t) {
		needs[rt.API+" "+rt.Method+" "+rt.Path] = rt.Need
	}
	for _, k := range peer.Kinds {
		testkit.Equal(t, len(k.Routes) > 0, k.Own == "", "%s is caused by routes, or nodes ask it by themselves", k.Subject)
		for _, name := range k.Routes {
			need, found := needs[name]
			testkit.That(t, found, "%s is caused by %s, and there is no such route", k.Subject, name)
			more := k.Need.Reach == frame.Any && need.Reach != frame.Nobody // each question is judged by itself
			testkit.That(t, more || reflect.DeepEqual(need, k.Need), "%s needs %s, and %s %s", k.Subject, k.Need, name, need)
		}
	}
}
