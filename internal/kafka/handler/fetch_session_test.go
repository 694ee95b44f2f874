package handler

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/testkit"
)

// sessionFetch is a request in a session.
func sessionFetch(id, epoch int32, wanted ...at) *kmsg.FetchRequest {
	r := fetchRequest(wanted...)
	r.Version, r.SessionID, r.SessionEpoch = 18, id, epoch
	return r
}

// forget has a request forget a partition.
func forget(r *kmsg.FetchRequest, hub broker.Hub, partition int32) *kmsg.FetchRequest {
	f := kmsg.NewFetchRequestForgottenTopic()
	f.Topic, f.TopicID, f.Partitions = hub.Name, hub.ID, []int32{partition}
	r.ForgottenTopics = append(r.ForgottenTopics, f)
	return r
}

// asked are the partitions and offsets of a turn.
func asked(turn fetchTurn) string {
	var all []string
	for _, i := range turn.items {
		all = append(all, fmt.Sprintf("%d@%d", i.partition, i.offset))
	}
	return strings.Join(all, " ")
}

// A session keeps what its client has named, until it is changed or forgotten.
func TestSessionsKeepPartitions(t *testing.T) {
	var s fetchSession
	hub := broker.Hub{ID: [16]byte{7}}
	first := s.open(sessionFetch(0, epochInitial, at{hub, 0, 5}, at{hub, 1, 6}))
	testkit.Equal(t, asked(first), "0@5 1@6", "all are named")
	testkit.That(t, first.sessionID > 0 && !first.incremental, "there is no session")
	id := first.sessionID
	testkit.Equal(t, asked(s.open(sessionFetch(id, 1))), "0@5 1@6", "none is named")
	testkit.Equal(t, asked(s.open(sessionFetch(id, 2, at{hub, 1, 9}, at{hub, 3, 1}))), "0@5 1@9 3@1", "one is changed, one is new")
	testkit.Equal(t, asked(s.open(forget(sessionFetch(id, 3), hub, 1))), "0@5 3@1", "one is forgotten")
	s.served(func(i *fetchItem) bool { return i.partition == 0 })
	turn := s.open(sessionFetch(id, 4))
	testkit.Equal(t, asked(turn), "3@1 0@5", "one was served")
	testkit.That(t, turn.incremental && turn.sessionID == id, "the session is over")
	turn = s.open(forget(forget(sessionFetch(id, 5), hub, 0), hub, 3))
	testkit.Equal(t, turn.sessionID, int32(0), "the id when all are forgotten")
	testkit.Equal(t, s.open(sessionFetch(id, 6)).code, codeSessionNotFound, "code when all are forgotten")
}

func TestSessionsThatAreNotContinued(t *testing.T) {
	hub := broker.Hub{Name: "orders", ID: [16]byte{7}}
	begin := func() (*fetchSession, int32) {
		var s fetchSession
		return &s, s.open(sessionFetch(0, epochInitial, at{hub, 0, 0})).sessionID
	}
	s, id := begin()
	testkit.Equal(t, s.open(sessionFetch(id, 2)).code, codeSessionEpoch, "an epoch that is not next")
	testkit.Equal(t, s.open(sessionFetch(id, 1)).code, codeNone, "the one that is, afterwards")
	testkit.Equal(t, s.open(sessionFetch(id, 1)).code, codeSessionEpoch, "the same once more")
	testkit.Equal(t, s.open(sessionFetch(id^1, 2)).code, codeSessionNotFound, "another id")
	old := sessionFetch(id, 2)
	old.Version = 12
	testkit.Equal(t, s.open(old).code, codeSessionTopicID, "names where there were ids")

	s, id = begin()
	testkit.Equal(t, s.open(sessionFetch(id, epochFinal, at{hub, 0, 0})).sessionID, int32(0), "the last one")
	testkit.Equal(t, s.open(sessionFetch(id, 1)).code, codeSessionNotFound, "after the last one")

	s, id = begin()
	another := s.open(sessionFetch(id, epochInitial, at{hub, 1, 0}))
	testkit.That(t, another.sessionID != id, "a new session has the old id")
	testkit.Equal(t, s.open(sessionFetch(id, 1)).code, codeSessionNotFound, "the old one")
	testkit.Equal(t, s.open(sessionFetch(another.sessionID, 1)).code, codeNone, "the new one")

	s, id = begin()
	s.epoch = math.MaxInt32
	testkit.Equal(t, s.open(sessionFetch(id, math.MaxInt32)).code, codeNone, "the last epoch")
	testkit.Equal(t, s.open(sessionFetch(id, 1)).code, codeNone, "the one behind the last")

	var none fetchSession
	ancient := fetchRequest(at{hub, 0, 0})
	ancient.Version, ancient.SessionEpoch = 6, epochInitial
	testkit.Equal(t, none.open(ancient).sessionID, int32(0), "before there were sessions")
}

// K1: answers in a session have what is new, and nothing else.
func TestAnswersInASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		hub := y.hub("orders", 3)
		c := y.client()
		fetch := func(r *kmsg.FetchRequest) (*kmsg.FetchResponse, string) {
			answer := ask[*kmsg.FetchResponse](c, 18, r)
			var all []string
			for _, topic := range answer.Topics {
				for _, p := range topic.Partitions {
					all = append(all, fmt.Sprintf("%d to %d: %v", p.Partition, p.HighWatermark, recordsOf(t, p.RecordBatches)))
				}
			}
			return answer, strings.Join(all, ", ")
		}
		y.publish("orders", "1", "a")
		first, said := fetch(sessionFetch(0, epochInitial, at{hub, 0, 0}, at{hub, 1, 0}, at{hub, 2, 0}))
		testkit.Equal(t, said, "0 to 0: [], 1 to 1: [0:a], 2 to 0: []", "the first answer")
		id := first.SessionID

		r := sessionFetch(id, 1, at{hub, 1, 1})
		r.MaxWaitMillis = 500
		start := time.Now()
		_, said = fetch(r)
		testkit.Equal(t, said, "", "nothing is new")
		testkit.Equal(t, time.Since(start), 500*time.Millisecond, "it waited")

		r = sessionFetch(id, 2)
		r.MaxWaitMillis = 500
		c.send(18, r)
		synctest.Wait()
		y.publish("orders", "2", "b")
		testkit.Equal(t, len(c.receive(r).(*kmsg.FetchResponse).Topics), 1, "topics")
		_, said = fetch(sessionFetch(id, 3, at{hub, 2, 1}))
		testkit.Equal(t, said, "", "nothing is new again")

		y.publish("orders", "1", "c")
		_, said = fetch(sessionFetch(id, 4))
		testkit.Equal(t, said, "1 to 2: [1:c]", "what came between two fetches")
		_, said = fetch(sessionFetch(id, 5, at{hub, 1, 9}))
		testkit.Equal(t, said, "1 to -1: []", "an offset that there is not")
		_, said = fetch(forget(sessionFetch(id, 6), hub, 1))
		testkit.Equal(t, said, "", "it is forgotten")
		_, said = fetch(sessionFetch(id, 7, at{hub, 1, 2}))
		testkit.Equal(t, said, "1 to 2: []", "it is named again")
		wrong, _ := fetch(sessionFetch(id, 7))
		testkit.Equal(t, wrong.ErrorCode, codeSessionEpoch, "a bad epoch")
		wrong, _ = fetch(sessionFetch(id^1, 8))
		testkit.Equal(t, wrong.ErrorCode, codeSessionNotFound, "another session")
	})
}
