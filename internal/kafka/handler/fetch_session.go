package handler

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A session spares a client and us to name all its partitions in each request and answer: requests say
// what has changed, and answers only what is new. It belongs to its connection, which has one at most;
// after another the client begins anew. All here is pure, but for how many partitions all of them may keep.

// Epochs of sessions. Those between count the requests of one.
const (
	epochInitial = 0  // all partitions are named: begin a session
	epochFinal   = -1 // all partitions are named: there is to be no session
)

// maxSession is how many partitions a session may have; who asks for more goes without.
const maxSession = 65_536

// fetchKey is a partition as a client names it.
type fetchKey struct {
	topic     topic
	partition int32
}

// fetchItem is what a client wants of a partition.
type fetchItem struct {
	fetchKey
	offset      int64
	maxBytes    int32
	leaderEpoch int32
	// end and start are what the client has last heard of the partition's; -1 before.
	end, start int64
}

// fetchSession is what a connection's client wants, from one request to the next.
type fetchSession struct {
	// kept is how many partitions it may keep; nil: any number.
	kept *claim
	// id is 0 where there is no session.
	id, epoch int32
	byID      bool
	// items are in the order in which they have their turns.
	items []*fetchItem
	byKey map[fetchKey]*fetchItem
}

// fetchTurn is what a request asks for.
type fetchTurn struct {
	// items are in the order in which they have their turns.
	items []*fetchItem
	// sessionID is that of the answer; 0: there is no session.
	sessionID int32
	// incremental: only what is new is to be answered.
	incremental bool
	// code is that of the whole answer.
	code int16
}

// open applies a request.
func (s *fetchSession) open(r *kmsg.FetchRequest) fetchTurn {
	if r.Version < 7 || r.SessionEpoch == epochFinal || r.SessionEpoch == epochInitial {
		return s.begin(r)
	}
	switch {
	case s.id == 0 || r.SessionID != s.id:
		return fetchTurn{code: codeSessionNotFound}
	case r.SessionEpoch != s.epoch:
		return fetchTurn{code: codeSessionEpoch}
	case s.byID != (r.Version >= 13):
		return fetchTurn{code: codeSessionTopicID}
	}
	if s.epoch == math.MaxInt32 {
		s.epoch = 0
	}
	s.epoch++
	s.change(r)
	if items := s.items; len(items) == 0 || len(items) > maxSession || !s.kept.set(len(items)) {
		s.end()
		return fetchTurn{items: items}
	}
	return fetchTurn{items: s.items, sessionID: s.id, incremental: true}
}

// begin is for a request that names all partitions.
func (s *fetchSession) begin(r *kmsg.FetchRequest) fetchTurn {
	fresh := fetchSession{kept: s.kept, byID: r.Version >= 13, byKey: make(map[fetchKey]*fetchItem)}
	fresh.change(r)
	keeps := r.Version >= 7 && r.SessionEpoch == epochInitial && len(fresh.items) > 0 && len(fresh.items) <= maxSession &&
		s.kept.set(len(fresh.items))
	switch {
	case keeps:
		fresh.id, fresh.epoch = 1+rand.Int32N(math.MaxInt32), 1
		*s = fresh
	case r.Version < 7 || r.SessionID == 0 || r.SessionID == s.id: // one of which nobody speaks any more
		s.end()
	}
	return fetchTurn{items: fresh.items, sessionID: fresh.id}
}

// end forgets everything.
func (s *fetchSession) end() {
	s.kept.set(0)
	*s = fetchSession{kept: s.kept}
}

// change takes in the partitions that a request names, and lets those go that it forgets.
func (s *fetchSession) change(r *kmsg.FetchRequest) {
	for _, t := range r.ForgottenTopics {
		for _, n := range t.Partitions {
			s.forget(fetchKey{topic{t.Topic, t.TopicID, s.byID}, n})
		}
	}
	for i := range r.Topics {
		t := &r.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			key := fetchKey{topic{t.Topic, t.TopicID, s.byID}, p.Partition}
			item := s.byKey[key]
			if item == nil {
				item = &fetchItem{fetchKey: key, end: -1, start: -1}
				s.byKey[key] = item
				s.items = append(s.items, item)
			}
			item.offset, item.maxBytes, item.leaderEpoch = p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch
		}
	}
	s.items = slices.DeleteFunc(s.items, func(i *fetchItem) bool { return s.byKey[i.fetchKey] != i })
}

func (s *fetchSession) forget(key fetchKey) { delete(s.byKey, key) }

// served has those take their turn last that were given something, so that a busy partition does not
// keep others from being heard.
func (s *fetchSession) served(given func(*fetchItem) bool) {
	slices.SortStableFunc(s.items, func(x, y *fetchItem) int { return turn(given(x)) - turn(given(y)) })
}

func turn(given bool) int {
	if given {
		return 1
	}
	return 0
}
