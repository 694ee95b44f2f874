package cluster

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// nodesPrefix is that of the entries by which nodes are seen.
const nodesPrefix = "nodes/"

// presence is what a node writes about itself.
type presence struct {
	Incarnation string `json:"incarnation"`
	// Counter rises with each write, from 1.
	Counter uint64    `json:"counter"`
	Started time.Time `json:"started"`
	Version string    `json:"version,omitempty"`
	// Endpoints is where the node serves clients at present. Programs from before there were any say nothing.
	Endpoints Endpoints `json:"endpoints,omitzero"`
	// Formats is what the program writes and knows. Programs from before they had numbers say nothing.
	Formats
}

// Endpoints are where clients find a node that have to know each node by itself: HOST:PORT for each of
// its listeners, and nothing where there is none.
type Endpoints struct {
	// Kafka is without TLS, Kafkas with it.
	Kafka  string `json:"kafka,omitempty"`
	Kafkas string `json:"kafkas,omitempty"`
}

func (p presence) encode() []byte {
	encoded, _ := json.Marshal(p) // such a struct always can be
	return encoded
}

func decodePresence(e meta.Entry) (Node, presence, error) {
	var p presence
	if err := json.Unmarshal(e.Value, &p); err != nil {
		return Node{}, p, fmt.Errorf("read %s: %w", e.Key, err)
	}
	return Node{strings.TrimPrefix(e.Key, nodesPrefix), p.Incarnation}, p, nil
}

// sighting is what this node has seen of another.
type sighting struct {
	presence
	// since is when the counter was first seen as it is, by our clock; of a node that was never
	// seen, when it was first asked for.
	since time.Time
	// listed: it has an entry now, as far as we know.
	listed bool
	dead   bool
}

// roster is what a node has seen of all others, and what follows from it. It does no I/O and has
// no lock. Times are those of this node's clock alone.
type roster map[Node]*sighting

// observe takes in all entries as they were read; now is when the reading had ended. It reports
// whether the set of the living has changed.
func (r roster) observe(now time.Time, found map[Node]presence) (changed bool) {
	for node, p := range found {
		s := r[node]
		if s == nil {
			s = &sighting{since: now}
			r[node] = s
		}
		changed = changed || !s.listed
		if p.Counter > s.Counter {
			changed = changed || s.dead
			s.since, s.dead = now, false
		}
		p.Counter = max(p.Counter, s.Counter)
		s.presence, s.listed = p, true
	}
	ids := make(map[string]bool, len(found))
	for node := range found {
		ids[node.ID] = true
	}
	for node, s := range r {
		if _, there := found[node]; there {
			continue
		}
		// A node takes its own entry away when it has nothing left; one that another process of the
		// same ID has replaced said nothing, and is waited for.
		if s.listed && !ids[node.ID] && !s.dead {
			s.dead, s.since, changed = true, now, true
		}
		s.listed = false
	}
	return changed
}

// suspects reports whether somebody has been unchanged for so long that a look at the store, as
// fresh as it can be, has to decide.
func (r roster) suspects(now time.Time) bool {
	for _, s := range r {
		if !s.dead && now.Sub(s.since) >= DeadAfter {
			return true
		}
	}
	return false
}

// bury declares dead, and gives, who is unchanged in what was read last, which is at least as new as
// asked.
func (r roster) bury(asked time.Time) (dead []Node) {
	for node, s := range r {
		if !s.dead && asked.Sub(s.since) >= DeadAfter {
			s.dead = true
			dead = append(dead, node)
		}
	}
	return dead
}

// forget drops who has been dead for long, and gives those whose entries are to be removed.
func (r roster) forget(now time.Time) (left []Node) {
	for node, s := range r {
		if !s.dead || now.Sub(s.since) < ForgetAfter {
			continue
		}
		if s.listed {
			left = append(left, node)
		} else {
			delete(r, node)
		}
	}
	return left
}

// alive reports whether a node lives, as far as is known, of which we have read elsewhere that it
// was in a term. That is as good as its entry, which may not have reached us: a node that nobody here
// has heard of, or not of that term, lives until nothing has changed for as long as of any other.
func (r roster) alive(now time.Time, node Node, term uint64) bool {
	s := r[node]
	if s == nil {
		s = &sighting{since: now}
		r[node] = s
	}
	if term > s.Counter {
		s.Counter, s.since, s.dead = term, now, false
	}
	return !s.dead
}

// standing is how long a node may act.
type standing struct {
	// term is the counter of the write that began the span of time in which it can act without a
	// break. Zero: nothing was written.
	term uint64
	// from is when the last successful write began, wall the same by the wall clock alone.
	from, wall time.Time
}

// mayAct asks two clocks. The one that never goes back stands still while a virtual machine is paused,
// and others do not; the wall clock is set right after that.
func (s standing) mayAct(now time.Time) bool {
	return s.term > 0 && now.Sub(s.from) < QuietAfter && now.Round(0).Sub(s.wall) < QuietAfter
}

// wrote is the standing after a write of the counter that began at from and was acknowledged at now.
func (s standing) wrote(counter uint64, from, now time.Time) standing {
	if !s.mayAct(now) { // also where it became quiet while it waited
		s.term = counter
	}
	s.from, s.wall = from, from.Round(0)
	return s
}
