// Package member has what all kinds of Kafka's groups have in common: how members are named, what they
// subscribe to, how many a group may have, and what they are told when something cannot be done. It does
// no I/O and knows no kind of group.
package member

import (
	"crypto/rand"
	"errors"
	"strings"
	"time"
	"unicode/utf8"
)

// What bounds a group, whatever its kind. All are far from what clients do that behave.
const (
	// MaxMembers is how many members a group may have, with those that were only given an id.
	MaxMembers = 1000
	// MaxBytes is what a group's members may measure as they are stored: with everything else of the group
	// it has to fit into one entry of the store.
	MaxBytes = 352 << 10
	// MaxIDBytes is the longest id of a group, of a member or of an instance, and MaxNameBytes how much of
	// what a client calls itself is kept.
	MaxIDBytes   = 256
	MaxNameBytes = 128
	// MaxProtocols is how many ways of assigning a member may have, and MaxTopics what it may subscribe to.
	MaxProtocols = 32
	MaxTopics    = 10_000
	// MinSession and MaxSession are the session time-outs that a member may have, as with Kafka.
	MinSession = 6 * time.Second
	MaxSession = 30 * time.Minute
	// MaxRebalance is the longest that others wait for a member: what is longer is taken for it.
	MaxRebalance = time.Hour
)

// What members are told.
var (
	// ErrUnknown: the group has no member of that id. A client joins anew, without one.
	ErrUnknown = errors.New("the group has no such member: join it anew")
	// ErrFenced: another member has come for the same instance, and only that one counts.
	ErrFenced = errors.New("another member uses this group.instance.id: give each instance its own")
	// ErrGeneration: the group is in another generation than the member thinks.
	ErrGeneration = errors.New("the group is in another generation: join it anew")
	// ErrRebalancing: the members are being told to join again.
	ErrRebalancing = errors.New("the group is rebalancing: join it again")
	// ErrIDRequired: a new member is to join again with the id that it was given.
	ErrIDRequired = errors.New("a new member has to join with the id that it was given")
	// ErrProtocol: a member has no assignment protocol in common with the others, or none that can be read.
	ErrProtocol = errors.New("the group's members use other assignment protocols: use one that all of them have")
	// ErrSession: a session time-out beyond what is allowed.
	ErrSession = errors.New("session.timeout.ms has to be from 6 s to 30 min")
	// ErrTooMany: the group has as many members as it may have, or they have to say too much.
	ErrTooMany = errors.New("the group has as many members as it may have, or too much is stored of them: use another group")
	// ErrKind: members of this group use the other protocol of groups (group.protocol).
	ErrKind = errors.New("the group's members use the other group.protocol: use theirs, or wait until they have left")
)

// NewID names a new member. It begins with what the client calls itself, for those who look; the rest is
// random, and who knows it is taken for the member.
func NewID(client string) string {
	name := strings.Map(func(r rune) rune {
		if r < ' ' || r == '/' || r == utf8.RuneError {
			return '-'
		}
		return r
	}, Short(client))
	return name + "-" + strings.ToLower(rand.Text())
}

// Short cuts what a client calls itself to what is kept of it.
func Short(name string) string {
	if len(name) <= MaxNameBytes {
		return name
	}
	cut := MaxNameBytes
	for cut > 0 && !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut]
}
