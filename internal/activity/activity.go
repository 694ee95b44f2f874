// Package activity says what a change of state is, for all who make one: a definition that was
// changed, a partition that has another owner, an endpoint on probation. Services note it where it
// happens; package journal keeps it.
//
// A note costs whoever makes it nothing but the making: it is put into a queue, and never waits.
package activity

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Kind is what happened: WHAT.HAPPENED, such as hub.created. What comes before the dot is a family, by
// which people choose.
type Kind string

// The kinds that are more than created, changed and deleted. Of definitions (hub, group, policy, topic,
// subscription, function) there are these three; see Notes.Define.
const (
	KeyRegenerated Kind = "key.regenerated"
	KeyRevealed    Kind = "key.revealed"

	OwnershipMoved    Kind = "ownership.moved"
	InstanceCame      Kind = "instance.came"
	InstanceWent      Kind = "instance.went"
	InstanceForgotten Kind = "instance.forgotten"
	CheckpointMoved   Kind = "checkpoint.moved"
	// CheckpointForgotten: an operator has removed what a Kafka group has committed.
	CheckpointForgotten Kind = "checkpoint.forgotten"
	PartitionReleased   Kind = "partition.released"

	ProbationBegan Kind = "probation.began"
	ProbationEnded Kind = "probation.ended"
	DeadRedriven   Kind = "dead.redriven"
	DeadPurged     Kind = "dead.purged"
	PoisonRedriven Kind = "poison.redriven"

	SubscriptionValidated Kind = "subscription.validated"
	SubscriptionDisabled  Kind = "subscription.disabled"
	SubscriptionFailed    Kind = "subscription.failed"
	SubscriptionExpired   Kind = "subscription.expired"

	CircuitOpened   Kind = "circuit.opened"
	CircuitHalfOpen Kind = "circuit.half-open"
	CircuitClosed   Kind = "circuit.closed"
	CircuitHeld     Kind = "circuit.held"
	CircuitResumed  Kind = "circuit.resumed"

	NodeCame    Kind = "node.came"
	NodeLeft    Kind = "node.left"
	NodeLost    Kind = "node.lost"
	DiskFull    Kind = "disk.full"
	DiskFree    Kind = "disk.free"
	BackupTaken Kind = "backup.taken"
	// CertificateReplaced: a node serves with the new one of its files, be it by a signal or found by itself.
	CertificateReplaced Kind = "certificate.replaced"
	// ReplicasChanged: each event is kept by another number of servers.
	ReplicasChanged Kind = "replicas.changed"
	// Dropped: so many changes could not be kept.
	Dropped Kind = "activity.dropped"
)

// defined is what there are definitions of, and made what can become of one.
var (
	defined = []string{"blob-account", "function", "group", "hub", "policy", "subscription", "topic"}
	made    = []string{"created", "changed", "deleted"}
)

// special are the kinds that are more than that.
var special = []Kind{
	KeyRegenerated, KeyRevealed,
	OwnershipMoved, InstanceCame, InstanceWent, InstanceForgotten, CheckpointMoved, CheckpointForgotten, PartitionReleased,
	ProbationBegan, ProbationEnded, DeadRedriven, DeadPurged, PoisonRedriven,
	SubscriptionValidated, SubscriptionDisabled, SubscriptionFailed, SubscriptionExpired,
	CircuitOpened, CircuitHalfOpen, CircuitClosed, CircuitHeld, CircuitResumed,
	NodeCame, NodeLeft, NodeLost, DiskFull, DiskFree, BackupTaken, CertificateReplaced, ReplicasChanged, Dropped,
}

// Families are all kinds: what can happen, by what it happens to.
func Families() map[string][]string {
	all := map[string][]string{}
	for _, what := range defined {
		all[what] = slices.Clone(made)
	}
	for _, k := range special {
		_, happened, _ := strings.Cut(string(k), ".")
		all[k.Family()] = append(all[k.Family()], happened)
	}
	return all
}

// IsKind tells whether there is such a kind, or a family of kinds.
func IsKind(name string) bool {
	family, happened, one := strings.Cut(name, ".")
	members := Families()[family]
	return members != nil && (!one || slices.Contains(members, happened))
}

// Family is what the kind is about.
func (k Kind) Family() string { family, _, _ := strings.Cut(string(k), "."); return family }

// Entry is one change of state, as it is stored.
type Entry struct {
	At   time.Time `json:"at"`
	Kind Kind      `json:"kind"`
	// Object is what has changed, as a path of the API: hubs/orders/groups/billing.
	Object string `json:"object"`
	// By is the policy, or the subject of the token, that asked for it, or an instance; empty: the yard
	// itself. Address is where that came from.
	By      string `json:"by,omitempty"`
	Address string `json:"address,omitempty"`
	// Node is where it happened.
	Node string `json:"node,omitempty"`
	// Detail is for people.
	Detail string `json:"detail,omitempty"`
	// Fields are those of a definition that have changed. Values are not kept: there are secrets among
	// them.
	Fields []string `json:"fields,omitempty"`
	// Count is of how many, where there can be many.
	Count int `json:"count,omitempty"`
	// Moves are the partitions that changed their owner, of OwnershipMoved.
	Moves []Move `json:"moves,omitempty"`

	// Silent: it is not published, because something else tells of it there, or because that would
	// lead to the next.
	Silent bool `json:"-"`
}

// Move is partitions that went from one owner to another; empty: nobody.
type Move struct {
	At         time.Time `json:"at"`
	From       string    `json:"from,omitempty"`
	To         string    `json:"to,omitempty"`
	Partitions []string  `json:"partitions"`
}

// Notes takes changes. It never waits, whatever becomes of them. nil takes none.
type Notes func(ctx context.Context, e Entry)

// Note hands a change over. Who did it is taken from ctx, where the change does not say.
func (n Notes) Note(ctx context.Context, e Entry) {
	if n == nil {
		return
	}
	if e.By == "" {
		who := whoFrom(ctx)
		e.By, e.Address = who.by, who.address
	}
	if e.At.IsZero() {
		e.At = time.Now()
	}
	e.At = e.At.UTC().Round(0)
	n(ctx, e)
}

// Definition is what has become of a definition.
type Definition struct {
	// What it is: hub. Object is which, and Detail says more.
	What, Object, Detail string
	// Before and After are its stored forms, as JSON; nil: there was, or is, none. One that says that it
	// is being deleted is as good as gone.
	Before, After []byte
	// Keys are the fields that hold keys, and Leave those whose change is not worth a word.
	Keys, Leave []string
	// Silent is that of the entries.
	Silent bool
}

// Define notes that a definition was created, changed or deleted, and that keys of it were made anew.
func (n Notes) Define(ctx context.Context, d Definition) {
	if n == nil {
		return
	}
	was, is := fieldsOf(d.Before), fieldsOf(d.After)
	e := Entry{Object: d.Object, Detail: d.Detail, Silent: d.Silent}
	switch {
	case was == nil && is == nil:
	case was == nil:
		e.Kind = Kind(d.What + ".created")
	case is == nil:
		e.Kind = Kind(d.What + ".deleted")
	default:
		keys, others := divide(changed(was, is, d.Leave), d.Keys)
		if len(keys) > 0 {
			n.Note(ctx, Entry{Kind: KeyRegenerated, Object: d.Object, Fields: keys, Silent: d.Silent})
		}
		if len(others) > 0 {
			e.Kind, e.Fields = Kind(d.What+".changed"), others
		}
	}
	if e.Kind != "" {
		n.Note(ctx, e)
	}
}

// divide tells names that are among some from the others.
func divide(names, some []string) (among, others []string) {
	for _, name := range names {
		if slices.Contains(some, name) {
			among = append(among, name)
		} else {
			others = append(others, name)
		}
	}
	return among, others
}

// fieldsOf reads the fields of a stored form; nil: there is none.
func fieldsOf(stored []byte) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(stored, &fields) != nil || string(fields["deleting"]) == "true" || string(fields["state"]) == `"deleting"` {
		return nil
	}
	return fields
}

// changed names the fields that differ.
func changed(was, is map[string]json.RawMessage, leave []string) (names []string) {
	all := maps.Clone(was)
	maps.Copy(all, is)
	for name := range all {
		if !bytes.Equal(was[name], is[name]) && !slices.Contains(leave, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Path joins the parts of an object's path: hubs, orders, groups, billing.
func Path(parts ...string) string {
	escaped := make([]string, len(parts))
	for i, part := range parts {
		escaped[i] = url.PathEscape(part)
	}
	return strings.Join(escaped, "/")
}

// who is whom a change is put down to.
type who struct{ by, address string }

type whoKey struct{}

// By gives a context of what somebody asks for, from an address.
func By(ctx context.Context, by, address string) context.Context {
	return context.WithValue(ctx, whoKey{}, who{by, address})
}

func whoFrom(ctx context.Context) who {
	w, _ := ctx.Value(whoKey{}).(who)
	return w
}
