package overview

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

var now = time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) time.Time { return now.Add(-d) }

// R6: each fact that somebody should know of becomes one need, with its sentence and what helps; what is
// well becomes none.
func TestNeeds(t *testing.T) {
	well := Node{Name: "a", Free: 500 << 30, Total: 1 << 40, Certificate: now.Add(60 * 24 * time.Hour)}
	with := func(change func(*Node)) Findings {
		n := well
		change(&n)
		return Findings{Nodes: []Node{n}}
	}
	lane := func(l Lane) Findings {
		l.Name, l.Topic = "mailer", "alarms"
		return with(func(n *Node) { n.Lanes = []Lane{l} })
	}
	for name, tt := range map[string]struct {
		findings                          Findings
		kind, severity, sentence, command string
	}{
		"all is well": {findings: Findings{
			Nodes: []Node{well}, Members: []Member{{Name: "a"}}, Circuits: []Circuit{{State: "closed"}}, Subscriptions: []Subscription{{State: "active"}, {State: "expired"}},
			Groups: []Group{{Events: 0}, {Events: 5, Alive: 1, Oldest: time.Minute}, {Events: 5, Oldest: time.Minute}},
		}},
		"an open circuit": {Findings{Circuits: []Circuit{{Function: "score", Hub: "odd", Group: "g", State: "open", Failures: 101, Waiting: 48211}}},
			"circuit-open", admin.SeverityBroken, "The circuit of score is open: 101 failures opened it. 48,211 events wait at the checkpoint; nothing is lost.",
			"eventyard circuit close score --hub odd --group g"},
		"one with a reason": {Findings{Circuits: []Circuit{{Function: "score", State: "open", Reason: "5 failures within 10s", Waiting: -1}}},
			"circuit-open", admin.SeverityBroken, "The circuit of score is open: 5 failures within 10s.", "eventyard circuit close score"},
		"a held circuit": {Findings{Circuits: []Circuit{{Function: "score", State: "held", By: "operator (ops)", Reason: "drill"}}},
			"circuit-held", admin.SeverityWarning, "score is stopped by operator (ops): drill.", "eventyard circuit close score"},
		"a half-open circuit": {Findings{Circuits: []Circuit{{Function: "score", State: "half-open"}}},
			"circuit-half-open", admin.SeverityWarning, "score is being tried with single events after its circuit was open.", "eventyard circuit show score"},
		"a pending validation": {Findings{Subscriptions: []Subscription{{Name: "mailer", Topic: "alarms", State: "pending", Until: now}}},
			"validation-pending", admin.SeverityWarning, "Subscription mailer gets nothing yet: its endpoint has to agree, until 2026-11-17 12:00 UTC.",
			"eventyard subscription show mailer --topic alarms"},
		"a failed one": {Findings{Subscriptions: []Subscription{{Name: "mailer", Hub: "orders", State: "failed", Why: "it answered 404."}}},
			"validation-failed", admin.SeverityBroken, "Subscription mailer gets nothing: its endpoint did not agree: it answered 404.",
			"eventyard subscription update mailer --source-hub orders"},
		"a disabled subscription": {Findings{Subscriptions: []Subscription{{Name: "mailer", Topic: "shop", DomainTopic: "sales", State: "disabled", Why: "410 Gone"}}},
			"subscription-disabled", admin.SeverityBroken, "Subscription mailer is disabled: 410 Gone.", "eventyard subscription resume mailer --topic shop --domain-topic sales"},
		"a paused one": {Findings{Subscriptions: []Subscription{{Name: "mailer", State: "paused"}}},
			"subscription-paused", admin.SeverityWarning, "Subscription mailer is paused: its events wait, and their time to live runs on.", "eventyard subscription resume mailer"},
		"a group without instances": {Findings{Groups: []Group{{Hub: "orders", Group: "billing", Events: 1, Unowned: 1, Seen: before(3 * time.Hour)}}},
			"group-idle", admin.SeverityBroken, "1 event waits for group billing of hub orders, and its last instance was seen 3h ago.", "eventyard group show orders billing"},
		"one that never had any": {Findings{Groups: []Group{{Hub: "orders", Group: "billing", Events: 1200, Unowned: 2}}},
			"group-idle", admin.SeverityBroken, "1,200 events wait for group billing of hub orders, and no instance has ever been seen.", "eventyard group show orders billing"},
		"a group that is behind": {Findings{Groups: []Group{{Hub: "orders", Group: "billing", Events: 7, Alive: 2, Oldest: time.Hour}}},
			"group-behind", admin.SeverityWarning, "Group billing of hub orders is 1h behind: 7 events wait.", "eventyard group show orders billing"},
		"an endpoint on probation": {lane(Lane{Probation: true, Failures: 10, Last: "503", Waiting: 1224, Until: now.Add(38 * time.Second)}),
			"probation", admin.SeverityWarning, "The endpoint of mailer is on probation after 10 failures in a row: 503. 1,224 events wait; the next probe is in 38s.",
			"eventyard subscription probe mailer --topic alarms"},
		"an endpoint that fails": {lane(Lane{Failures: 4, Last: "503", Waiting: 1}),
			"endpoint-failing", admin.SeverityWarning, "The endpoint of mailer has failed 4 times in a row: 503. 1 event waits for another try.",
			"eventyard subscription attempts mailer --topic alarms"},
		"events that are dropped": {lane(Lane{Dropped: 2}),
			"events-dropped", admin.SeverityBroken, "2 events were dropped within 15m, because mailer keeps no dead letters.",
			"eventyard subscription update mailer --topic alarms --dead-letter yard"},
		"dead letters": {lane(Lane{Dead: 12}),
			"dead-letters", admin.SeverityWarning, "12 events became dead letters of mailer within 15m.", "eventyard dead list mailer --topic alarms"},
		"a full disk": {with(func(n *Node) { n.Free = 1 << 20 }),
			"disk-full", admin.SeverityBroken, "The disk of node a is full: 1 MiB of 1 TiB are left, and what is sent is refused.", "eventyard doctor"},
		"that of a peer": {with(func(n *Node) { n.Free, n.Peer = 1<<20, true }),
			"disk-full", admin.SeverityBroken, "The disk of node a is full: 1 MiB of 1 TiB are left, and its server stops storing, while those of the others go on.", "eventyard doctor"},
		"a disk that is nearly full": {with(func(n *Node) { n.Free = 40 << 30 }),
			"disk-low", admin.SeverityWarning, "The disk of node a is nearly full: 40 GiB of 1 TiB are left.", "eventyard doctor"},
		"a failed write": {with(func(n *Node) { n.Fenced = 1 }),
			"write-failed", admin.SeverityBroken, "A write or sync of node a failed, once since it started: look at its disk.", "eventyard doctor"},
		"damage": {with(func(n *Node) { n.Corrupt = 3 }),
			"damage", admin.SeverityBroken, "Node a has met damaged events, 3 times since it started.", "eventyard doctor"},
		"what a scrub found": {Findings{Nodes: []Node{{Name: "a", Scrub: Scrub{Ended: before(time.Hour)}}, {Name: "b", Scrub: Scrub{Ended: before(time.Minute), Findings: 2, First: "hub orders, partition 0: it is gone"}}}},
			"scrub-findings", admin.SeverityBroken, "The last scrub of the NATS servers, by node b, has 2 findings, the first: hub orders, partition 0: it is gone.", "eventyard cluster scrub"},
		"what a later one did not find": {findings: Findings{Nodes: []Node{{Name: "a", Scrub: Scrub{Ended: before(time.Minute)}}, {Name: "b", Scrub: Scrub{Ended: before(time.Hour), Findings: 1}}}}},
		"a lost stream": {with(func(n *Node) { n.Streams = &Streams{Lost: 1, FirstLost: "Y_shop_l=h-o-0 of hub orders"} }),
			"streams-lost", admin.SeverityBroken, "1 stream is not there any more, as node a sees it, and what was in there is gone: Y_shop_l=h-o-0 of hub orders.",
			"eventyard cluster status"},
		"streams without a leader": {with(func(n *Node) { n.Streams = &Streams{Leaderless: 3} }),
			"streams-leaderless", admin.SeverityBroken, "3 streams have no leader, as node a sees it: nothing can be stored there before most of the servers that keep it run and reach each other.",
			"eventyard cluster status"},
		"streams that are well": {findings: with(func(n *Node) { n.Streams = &Streams{} })},
		"a certificate that ends": {with(func(n *Node) { n.Certificate = now.Add(50 * time.Hour) }),
			"certificate", admin.SeverityWarning, "The certificate of node a ends in 2d: replace its file.", "eventyard cert show"},
		"one that cannot be used": {with(func(n *Node) { n.Certificate, n.Unusable = now.Add(50*time.Hour), "the key is another's" }),
			"certificate", admin.SeverityWarning, "The new certificate of node a cannot be used: the key is another's. The one before goes on for 2d.", "eventyard doctor"},
		"one that has ended": {with(func(n *Node) { n.Certificate = before(time.Hour) }),
			"certificate", admin.SeverityBroken, "The certificate of node a has ended, and clients refuse it: replace its file.", "eventyard cert show"},
		"a lost node": {Findings{Members: []Member{{Name: "b", Lost: true, Seen: before(time.Minute)}}},
			"node-lost", admin.SeverityBroken, "Node b is lost: the others have taken what it did.", "eventyard cluster status"},
		"a quiet node": {Findings{Members: []Member{{Name: "b", Quiet: true}}},
			"node-quiet", admin.SeverityBroken, "Node b cannot show that it lives, and does nothing that needs it.", "eventyard cluster status"},
		"a silent node": {Findings{Silent: []string{"b"}},
			"node-silent", admin.SeverityWarning, "Node b does not answer: what it has counted is missing here.", "eventyard cluster status"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.findings.Now = now
			got := Needs(tt.findings)
			if tt.kind == "" {
				testkit.Equal(t, len(got), 0, got)
				return
			}
			testkit.Equal(t, len(got), 1, got)
			n := got[0]
			testkit.Equal(t, n.Kind+" "+n.Severity, tt.kind+" "+tt.severity, "kind")
			testkit.Equal(t, n.Sentence, tt.sentence, "sentence")
			testkit.Equal(t, n.Command, tt.command, "command")
			testkit.That(t, n.Object.Kind != "" && n.Object.Name != "" && n.Action != "", "it is %+v", n)
		})
	}
}

// R6: what is broken comes first, what has been so for longest before the rest.
func TestNeedsAreInOrder(t *testing.T) {
	got := Needs(Findings{
		Now:           now,
		Subscriptions: []Subscription{{Name: "paused", State: "paused", Since: before(time.Hour)}, {Name: "new", State: "disabled", Since: before(time.Minute)}, {Name: "old", State: "disabled", Since: before(time.Hour)}},
		Nodes:         []Node{{Name: "a", Corrupt: 1}},
	})
	var names string
	for _, n := range got {
		names += n.Object.Name + " "
	}
	testkit.Equal(t, names, "old new a paused ", "order")
}
