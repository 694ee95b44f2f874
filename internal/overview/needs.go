package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config/quantity"
)

// Needs are what somebody should look at: what is broken first, and of these what has been so for longest.
func Needs(f Findings) []admin.Need {
	needs := []admin.Need{}
	add := func(n admin.Need, there bool) {
		if there {
			needs = append(needs, n)
		}
	}
	for _, c := range f.Circuits {
		add(ofCircuit(c))
	}
	for _, s := range f.Subscriptions {
		add(ofSubscription(s))
	}
	for _, g := range f.Groups {
		add(ofGroup(g, f.Now))
	}
	for _, n := range f.Nodes {
		for _, l := range n.Lanes {
			add(ofProbation(l, f.Now))
			add(ofFailing(l))
			add(ofDropped(l))
			add(ofDead(l))
		}
		add(ofDisk(n))
		add(ofFences(n))
		add(ofDamage(n))
		add(ofCertificate(n, f.Now))
		if s := n.Streams; s != nil {
			add(ofLost(n.Name, *s))
			add(ofLeaderless(n.Name, *s))
		}
	}
	add(ofScrub(LastScrub(f.Nodes)))
	for _, m := range f.Members {
		add(ofMember(m))
	}
	for _, name := range f.Silent {
		add(node("node-silent", admin.SeverityWarning, name, time.Time{},
			fmt.Sprintf("Node %s does not answer: what it has counted is missing here.", name), "eventyard cluster status"), true)
	}
	slices.SortStableFunc(needs, func(x, y admin.Need) int {
		return cmp.Or(cmp.Compare(x.Severity, y.Severity), since(x).Compare(since(y)))
	})
	return needs
}

// since sorts what is not known to have a beginning behind the rest.
func since(n admin.Need) time.Time {
	if n.Since == nil {
		return time.Unix(1<<40, 0)
	}
	return n.Since.Time
}

func timeIfAny(t time.Time) *admin.Time {
	if t.IsZero() {
		return nil
	}
	return &admin.Time{Time: t}
}

func ofCircuit(c Circuit) (admin.Need, bool) {
	n := admin.Need{
		Object: admin.NeedObject{Kind: "function", Name: c.Function, Hub: c.Hub, Group: c.Group}, Since: timeIfAny(c.Since),
		Severity: admin.SeverityBroken, Action: "resume", Command: command("circuit close", c.Function, "--hub", c.Hub, "--group", c.Group),
	}
	waits := ""
	if c.Waiting > 0 {
		waits = fmt.Sprintf(" %s at the checkpoint; nothing is lost.", events(c.Waiting, "waits", "wait"))
	}
	switch c.State {
	case "open":
		n.Kind = "circuit-open"
		n.Sentence = fmt.Sprintf("The circuit of %s is open: %s.%s", c.Function, cmp.Or(c.Reason, fmt.Sprintf("%d failures opened it", c.Failures)), waits)
	case "held":
		n.Kind, n.Severity = "circuit-held", admin.SeverityWarning
		n.Sentence = fmt.Sprintf("%s is stopped by %s%s.%s", c.Function, cmp.Or(c.By, "an operator"), because(c.Reason), waits)
	case "half-open":
		n.Kind, n.Severity, n.Action, n.Command = "circuit-half-open", admin.SeverityWarning, "look", command("circuit show", c.Function, "--hub", c.Hub, "--group", c.Group)
		n.Sentence = fmt.Sprintf("%s is being tried with single events after its circuit was open.%s", c.Function, waits)
	default:
		return n, false
	}
	return n, true
}

// subscription is what all needs of one have in common.
func subscription(kind, severity, name, topic, domainTopic, hub, action, verb string) admin.Need {
	return admin.Need{
		Kind: kind, Severity: severity, Action: action, Command: command(verb, name, "--topic", topic, "--domain-topic", domainTopic, "--source-hub", hub),
		Object: admin.NeedObject{Kind: "subscription", Name: name, Topic: topic, DomainTopic: domainTopic, Hub: hub},
	}
}

func ofSubscription(s Subscription) (admin.Need, bool) {
	of := func(kind, severity, action, verb, sentence string) (admin.Need, bool) {
		n := subscription(kind, severity, s.Name, s.Topic, s.DomainTopic, s.Hub, action, verb)
		n.Since, n.Sentence = timeIfAny(s.Since), sentence
		return n, true
	}
	switch s.State {
	case "pending":
		return of("validation-pending", admin.SeverityWarning, "validate", "subscription show",
			fmt.Sprintf("Subscription %s gets nothing yet: its endpoint has to agree, until %s.", s.Name, s.Until.UTC().Format("2006-01-02 15:04 MST")))
	case "failed":
		return of("validation-failed", admin.SeverityBroken, "update", "subscription update",
			fmt.Sprintf("Subscription %s gets nothing: its endpoint did not agree%s.", s.Name, because(s.Why)))
	case "disabled":
		return of("subscription-disabled", admin.SeverityBroken, "resume", "subscription resume",
			fmt.Sprintf("Subscription %s is disabled%s.", s.Name, because(s.Why)))
	case "paused":
		return of("subscription-paused", admin.SeverityWarning, "resume", "subscription resume",
			fmt.Sprintf("Subscription %s is paused: its events wait, and their time to live runs on.", s.Name))
	}
	return admin.Need{}, false
}

func ofGroup(g Group, now time.Time) (admin.Need, bool) {
	n := admin.Need{
		Kind: "group-idle", Severity: admin.SeverityBroken, Action: "start", Command: command("group show", g.Hub+" "+g.Group),
		Object: admin.NeedObject{Kind: "group", Name: g.Group, Hub: g.Hub, Group: g.Group},
	}
	switch {
	case g.Events > 0 && g.Alive == 0 && g.Unowned > 0:
		n.Since = timeIfAny(g.Seen)
		gone := "no instance has ever been seen"
		if !g.Seen.IsZero() {
			gone = "its last instance was seen " + ago(now.Sub(g.Seen))
		}
		n.Sentence = fmt.Sprintf("%s for group %s of hub %s, and %s.", events(g.Events, "waits", "wait"), g.Group, g.Hub, gone)
	case g.Events > 0 && g.Oldest >= behindFor:
		n.Kind, n.Severity, n.Action = "group-behind", admin.SeverityWarning, "scale"
		n.Since = timeIfAny(now.Add(-g.Oldest))
		n.Sentence = fmt.Sprintf("Group %s of hub %s is %s behind: %s.", g.Group, g.Hub, span(g.Oldest), events(g.Events, "waits", "wait"))
	default:
		return n, false
	}
	return n, true
}

func ofProbation(l Lane, now time.Time) (admin.Need, bool) {
	n := subscription("probation", admin.SeverityWarning, l.Name, l.Topic, l.DomainTopic, l.Hub, "probe", "subscription probe")
	n.Since = timeIfAny(l.Since)
	next := "the next event decides"
	if wait := l.Until.Sub(now); wait > 0 {
		next = "the next probe is in " + span(wait)
	}
	n.Sentence = fmt.Sprintf("The endpoint of %s is on probation after %d failures in a row%s. %s; %s.",
		l.Name, l.Failures, because(l.Last), events(l.Waiting, "waits", "wait"), next)
	return n, l.Probation
}

func ofFailing(l Lane) (admin.Need, bool) {
	n := subscription("endpoint-failing", admin.SeverityWarning, l.Name, l.Topic, l.DomainTopic, l.Hub, "look", "subscription attempts")
	n.Sentence = fmt.Sprintf("The endpoint of %s has failed %d times in a row%s. %s for another try.",
		l.Name, l.Failures, because(l.Last), events(l.Waiting, "waits", "wait"))
	return n, !l.Probation && l.Failures >= FailingAfter && l.Waiting > 0
}

func ofDropped(l Lane) (admin.Need, bool) {
	n := subscription("events-dropped", admin.SeverityBroken, l.Name, l.Topic, l.DomainTopic, l.Hub, "update", "subscription update")
	n.Command += " --dead-letter yard"
	n.Sentence = fmt.Sprintf("%s within %s, because %s keeps no dead letters.", events(l.Dropped, "was dropped", "were dropped"), span(DeadWithin), l.Name)
	return n, l.Dropped > 0
}

func ofDead(l Lane) (admin.Need, bool) {
	n := subscription("dead-letters", admin.SeverityWarning, l.Name, l.Topic, l.DomainTopic, l.Hub, "redrive", "dead list")
	n.Sentence = fmt.Sprintf("%s of %s within %s.", events(l.Dead, "became a dead letter", "became dead letters"), l.Name, span(DeadWithin))
	return n, l.Dead > 0
}

// node is what all needs of one have in common.
func node(kind, severity, name string, since time.Time, sentence, command string) admin.Need {
	return admin.Need{
		Kind: kind, Severity: severity, Object: admin.NeedObject{Kind: "node", Name: name}, Since: timeIfAny(since),
		Sentence: sentence, Action: "look", Command: command,
	}
}

func ofDisk(n Node) (admin.Need, bool) {
	if n.Total == 0 {
		return admin.Need{}, false
	}
	left := fmt.Sprintf("%s of %s are left", size(n.Free), size(n.Total))
	switch JudgeRoom(n.Free, n.Total) {
	case Full:
		then := "what is sent is refused"
		if n.Peer {
			then = "its server stops storing, while those of the others go on"
		}
		need := node("disk-full", admin.SeverityBroken, n.Name, time.Time{},
			fmt.Sprintf("The disk of node %s is full: %s, and %s.", n.Name, left, then), "eventyard doctor")
		need.Action = "free"
		return need, true
	case Low:
		need := node("disk-low", admin.SeverityWarning, n.Name, time.Time{}, fmt.Sprintf("The disk of node %s is nearly full: %s.", n.Name, left), "eventyard doctor")
		need.Action = "free"
		return need, true
	}
	return admin.Need{}, false
}

func ofFences(n Node) (admin.Need, bool) {
	return node("write-failed", admin.SeverityBroken, n.Name, time.Time{},
		fmt.Sprintf("A write or sync of node %s failed, %s since it started: look at its disk.", n.Name, times(n.Fenced)), "eventyard doctor"), n.Fenced > 0
}

func ofDamage(n Node) (admin.Need, bool) {
	return node("damage", admin.SeverityBroken, n.Name, time.Time{},
		fmt.Sprintf("Node %s has met damaged events, %s since it started.", n.Name, times(n.Corrupt)), "eventyard doctor"), n.Corrupt > 0
}

func ofScrub(by string, s Scrub) (admin.Need, bool) {
	findings := "1 finding"
	if s.Findings != 1 {
		findings = thousands(int64(s.Findings)) + " findings, the first"
	}
	need := node("scrub-findings", admin.SeverityBroken, by, s.Ended,
		fmt.Sprintf("The last scrub of the NATS servers, by node %s, has %s%s.", by, findings, because(s.First)), "eventyard cluster scrub")
	need.Action = "scrub"
	return need, s.Findings > 0
}

func ofLost(by string, s Streams) (admin.Need, bool) {
	lost := "1 stream is"
	if s.Lost != 1 {
		lost = thousands(int64(s.Lost)) + " streams are"
	}
	need := node("streams-lost", admin.SeverityBroken, by, time.Time{},
		fmt.Sprintf("%s not there any more, as node %s sees it, and what was in there is gone: %s.", lost, by, s.FirstLost), "eventyard cluster status")
	need.Action = "restore"
	return need, s.Lost > 0
}

func ofLeaderless(by string, s Streams) (admin.Need, bool) {
	have := "1 stream has"
	if s.Leaderless != 1 {
		have = thousands(int64(s.Leaderless)) + " streams have"
	}
	return node("streams-leaderless", admin.SeverityBroken, by, time.Time{},
		fmt.Sprintf("%s no leader, as node %s sees it: nothing can be stored there before most of the servers that keep it run and reach each other.", have, by),
		"eventyard cluster status"), s.Leaderless > 0
}

func ofCertificate(n Node, now time.Time) (admin.Need, bool) {
	left := n.Certificate.Sub(now)
	if n.Unusable != "" && left > 0 {
		need := node("certificate", admin.SeverityWarning, n.Name, time.Time{},
			fmt.Sprintf("The new certificate of node %s cannot be used%s. The one before goes on for %s.", n.Name, because(n.Unusable), span(left)), "eventyard doctor")
		need.Action = "replace"
		return need, true
	}
	if n.Certificate.IsZero() || left > expiresWithin {
		return admin.Need{}, false
	}
	need := node("certificate", admin.SeverityWarning, n.Name, time.Time{},
		fmt.Sprintf("The certificate of node %s ends in %s: replace its file.", n.Name, span(left)), "eventyard cert show")
	if need.Action = "replace"; left <= 0 {
		need.Severity, need.Since = admin.SeverityBroken, timeIfAny(n.Certificate)
		need.Sentence = fmt.Sprintf("The certificate of node %s has ended, and clients refuse it: replace its file.", n.Name)
	}
	return need, true
}

func ofMember(m Member) (admin.Need, bool) {
	const see = "eventyard cluster status"
	switch {
	case m.Lost:
		need := node("node-lost", admin.SeverityBroken, m.Name, m.Seen, fmt.Sprintf("Node %s is lost: the others have taken what it did.", m.Name), see)
		need.Action = "start"
		return need, true
	case m.Quiet:
		return node("node-quiet", admin.SeverityBroken, m.Name, m.Seen, fmt.Sprintf("Node %s cannot show that it lives, and does nothing that needs it.", m.Name), see), true
	}
	return admin.Need{}, false
}

// command is one to type; flags and their values stand behind it, those without a value are left out.
func command(verb, name string, flags ...string) string {
	line := "eventyard " + verb + " " + name
	for i := 0; i < len(flags); i += 2 {
		if flags[i+1] != "" {
			line += " " + flags[i] + " " + flags[i+1]
		}
	}
	return line
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + strings.TrimSuffix(why, ".")
}

// events is so many of them, with the verb that goes with it.
func events(n int64, one, many string) string {
	if n == 1 {
		return "1 event " + one
	}
	return thousands(n) + " events " + many
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return thousands(n) + " times"
}

func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// ago says since when.
func ago(d time.Duration) string { return span(d) + " ago" }

// span is a duration as all commands write it, in whole seconds.
func span(d time.Duration) string { return quantity.FormatSpan(d.Truncate(time.Second)) }

func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.3g %s", value, units[unit])
}
