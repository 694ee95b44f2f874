package handler

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/testkit"
)

// spelled is a hub under another name.
func spelled(hub broker.Hub, name string) broker.Hub {
	hub.Name = name
	return hub
}

// K6: a partition has one reader, however its hub is spelled: else a client could have as many as there are
// spellings. One fetch cannot name it twice so.
func TestSpellingsHaveOneReader(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 2)
	c := y.client()
	testkit.MustEqual(t, c.produce(hub, 0, values("a", "b")).ErrorCode, codeNone)
	for _, name := range []string{"orders", "Orders", "ORDERS", "oRdErS"} {
		wantRecords(t, c.fetchBy(12, fetchRequest(at{spelled(hub, name), 0, 0})), "0:a", "1:b")
	}
	testkit.Eventually(t, "one reader is kept", func() bool { return y.handler.kept.used.Load() == 1 })

	r := fetchRequest(at{spelled(hub, "ORDERS"), 0, 0}, at{hub, 0, 1}, at{hub, 1, 0})
	got := ask[*kmsg.FetchResponse](c, 12, r).Topics
	wantRecords(t, got[0].Partitions[0], "0:a", "1:b")
	testkit.Equal(t, got[1].Partitions[0].ErrorCode, codeInvalidRequest, "code by the second name")
	testkit.Equal(t, got[1].Partitions[1].ErrorCode, codeNone, "code of another partition")
	testkit.Must(t, c.conn.Close())
	testkit.Eventually(t, "nothing is kept", func() bool { return y.handler.kept.used.Load() == 0 })
}

// K6: where too much is kept for others, fetches go on without: no session, and no reader that stays.
func TestFetchingWhereNothingCanBeKept(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 6)
	c, other := y.client(), y.client()
	testkit.MustEqual(t, c.produce(hub, 0, values("a")).ErrorCode, codeNone)
	y.handler.kept.limit = 5

	begin := func(c *client, parts ...at) *kmsg.FetchResponse {
		r := fetchRequest(parts...)
		r.SessionEpoch = epochInitial
		return ask[*kmsg.FetchResponse](c, 18, r)
	}
	testkit.That(t, begin(c, at{hub, 0, 0}, at{hub, 1, 0}).SessionID > 0, "there is no session, although there is room")
	testkit.Eventually(t, "two partitions and two readers are kept", func() bool { return y.handler.kept.used.Load() == 4 })
	got := begin(other, at{hub, 0, 0}, at{hub, 1, 0}, at{hub, 2, 0})
	testkit.Equal(t, got.SessionID, int32(0), "the session for which there is no room")
	wantRecords(t, got.Topics[0].Partitions[0], "0:a")
	wantRecords(t, other.fetch(hub, 0, 0), "0:a")
	testkit.Must(t, c.conn.Close())
	testkit.Eventually(t, "there is room again", func() bool { return y.handler.kept.used.Load() <= 1 })

	id := begin(other, at{hub, 0, 0}).SessionID
	testkit.That(t, id > 0, "there is no session, although there is room again")
	var all []at
	for i := range int32(6) {
		all = append(all, at{hub, i, 0})
	}
	more := ask[*kmsg.FetchResponse](other, 18, sessionFetch(id, 1, all...))
	testkit.Equal(t, more.ErrorCode, codeNone, "code of a request by which the session becomes too large")
	testkit.Equal(t, more.SessionID, int32(0), "its session")
	answered := 0
	for _, t := range more.Topics {
		answered += len(t.Partitions)
	}
	testkit.Equal(t, answered, 6, "partitions")
}
