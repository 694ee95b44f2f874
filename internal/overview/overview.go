// Package overview decides what somebody should look at in a yard. It is pure: findings, which listeners and
// nodes gather, become needs, each with a sentence and what helps (needs.go).
package overview

import "time"

// Findings are what is known of a yard at one moment.
type Findings struct {
	Now           time.Time
	Circuits      []Circuit
	Subscriptions []Subscription
	Groups        []Group
	// Nodes is what those that answered know of themselves, Members all that the yard has, and Silent those
	// that did not answer.
	Nodes   []Node
	Members []Member
	Silent  []string
}

// Circuit is that of a function, wherever it runs.
type Circuit struct {
	Function, Hub, Group string
	State                string // closed, half-open, open or held
	Since                time.Time
	By, Reason           string
	// Failures are those that opened it; Waiting the events at its checkpoints, -1 where that is unknown.
	Failures int
	Waiting  int64
}

// Subscription is a definition's state.
type Subscription struct {
	Name, Topic, DomainTopic, Hub string
	State                         string // pending, failed, paused or disabled; of others nothing is needed
	Why                           string
	Since, Until                  time.Time
}

// Group is how far a consumer group is behind.
type Group struct {
	Hub, Group string
	Events     int64
	Oldest     time.Duration
	Alive      int
	Seen       time.Time // when an instance last was; zero: never
	// Unowned partitions have events that wait, and nobody who reads them.
	Unowned int
}

// Node is what a node knows of itself, in the form in which nodes tell each other.
type Node struct {
	Name string `json:"name"`
	// Free and Total are bytes of the disk that it keeps its data on; zero: it keeps none.
	Free  int64 `json:"free,omitempty"`
	Total int64 `json:"total,omitempty"`
	// Peer: the disk is that of one of several servers, and what it has no room for the others take.
	Peer bool `json:"peer,omitempty"`
	// Refused, Fenced and Corrupt are counted since its start: writes refused for want of room, writes or
	// syncs that failed, and times that damaged bytes were met.
	Refused int64 `json:"refused,omitempty"`
	Fenced  int64 `json:"fenced,omitempty"`
	Corrupt int64 `json:"corrupt,omitempty"`
	// Certificate is when that of its TLS listeners ends; zero: there is none.
	Certificate time.Time `json:"certificate,omitzero"`
	// Unusable is why the certificate in its files cannot be used, so that the one before goes on; empty: it is in use.
	Unusable string `json:"unusable,omitempty"`
	// Scrub is the last that it has made of the NATS servers; zero: there was none since its start.
	Scrub Scrub `json:"scrub,omitzero"`
	// Streams are those of the yard, where it is for this node to look at them; nil elsewhere.
	Streams *Streams `json:"streams,omitempty"`
	// Lanes are the subscriptions that it delivers and that are not well.
	Lanes []Lane `json:"lanes,omitempty"`
}

// Streams are those that NATS servers keep for the yard and that are not well.
type Streams struct {
	// Lost are not there although a log has them; FirstLost names one, with what it is of.
	Lost      int    `json:"lost,omitempty"`
	FirstLost string `json:"firstLost,omitempty"`
	// Leaderless are those in which nothing can be stored now.
	Leaderless int `json:"leaderless,omitempty"`
}

// Scrub is what one has found.
type Scrub struct {
	Ended    time.Time `json:"ended"`
	Findings int       `json:"findings,omitempty"`
	// First is what it found first, in words.
	First string `json:"first,omitempty"`
}

// LastScrub is the newest that nodes have made, and by which: all of them read the same servers, so that it
// counts for the yard.
func LastScrub(nodes []Node) (by string, last Scrub) {
	for _, n := range nodes {
		if n.Scrub.Ended.After(last.Ended) {
			by, last = n.Name, n.Scrub
		}
	}
	return by, last
}

// Lane is a subscription as its deliveries go.
type Lane struct {
	Name        string `json:"name"`
	Topic       string `json:"topic,omitempty"`
	DomainTopic string `json:"domainTopic,omitempty"`
	Hub         string `json:"hub,omitempty"`
	// Probation: its endpoint is asked only now and then, since and until then, after so many failures in a
	// row, the last of which was Last.
	Probation bool      `json:"probation,omitempty"`
	Failures  int       `json:"failures,omitempty"`
	Last      string    `json:"last,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Until     time.Time `json:"until,omitzero"`
	Waiting   int64     `json:"waiting,omitempty"`
	// Dead is how many events became dead letters within DeadWithin, and Dropped how many were given up.
	Dead    int64 `json:"dead,omitempty"`
	Dropped int64 `json:"dropped,omitempty"`
}

// Member is a node as the others see it.
type Member struct {
	Name        string
	Lost, Quiet bool
	Seen        time.Time
}

// DeadWithin is how far back new dead letters are told of.
const DeadWithin = 15 * time.Minute

// When there is something to tell.
const (
	// FailingAfter is after how many failures in a row an endpoint is told of: a request or two fail at
	// times.
	FailingAfter = 3

	behindFor     = 10 * time.Minute // a group whose oldest event has waited for so long
	expiresWithin = 14 * 24 * time.Hour
)

// Room is how much of a disk is left, for whoever tells of it: status, the console and doctor.
type Room int

// From most to least.
const (
	Enough Room = iota
	Low
	Full
)

// JudgeRoom takes the bytes that are free and those of the whole disk. A twentieth is low, and so is one GiB.
func JudgeRoom(free, total int64) Room {
	const lowBytes, lowShare, fullBytes = 1 << 30, 20, 64 << 20
	switch {
	case free < fullBytes:
		return Full
	case free < lowBytes || free < total/lowShare:
		return Low
	}
	return Enough
}
