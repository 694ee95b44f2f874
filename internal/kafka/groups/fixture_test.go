package groups

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/hubstest"
	"github.com/eventyard/eventyard/internal/kafka/groups/classic"
	"github.com/eventyard/eventyard/internal/kafka/groups/member"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// Whatever a coordinator has begun has ended when it has.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// yard is storage with hubs, for any number of coordinators.
type yard struct {
	*hubstest.Yard
	t   testing.TB
	log *testkit.ErrorLog
}

func newYard(t testing.TB) *yard {
	t.Helper()
	return &yard{hubstest.Open(t, storagetest.Config{}), t, testkit.NewErrorLog(t, slog.LevelDebug)}
}

// start has a coordinator run until it is stopped.
func (y *yard) start(change ...func(*Config)) (c *Coordinator, stop func()) {
	y.t.Helper()
	cfg := Config{Meta: y.Meta, Broker: y.Broker, Node: "here", Log: y.log.Logger}
	for _, f := range change {
		f(&cfg)
	}
	c = testkit.Value(New(cfg))(y.t)
	return c, testkit.Run(y.t, c.Run)
}

// partition is one of a hub.
func (y *yard) partition(hub string, number int32) Partition {
	y.t.Helper()
	h := testkit.Value(y.Broker.Hub(hub))(y.t)
	return Partition{broker.LogOf(y.Broker, h.ID), number}
}

func anything(string) bool { return true }

// wants is a member that subscribes to hubs.
func wants(id string, hubs ...string) classic.Join {
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics = hubs
	return classic.Join{
		Member: id, NewID: member.NewID("test"), Client: "test", Session: 10 * time.Second, Rebalance: time.Minute, Type: member.ConsumerProtocol,
		Protocols: []classic.Protocol{{Name: "range", Metadata: m.AppendTo(nil)}},
	}
}

// alone has one member be all of a group, with everything assigned to it.
func alone(t testing.TB, c *Coordinator, group string, hubs ...string) classic.Joined {
	t.Helper()
	joined := testkit.Value(c.Join(t.Context(), group, wants("", hubs...), anything))(t)
	synced := testkit.Value(c.Sync(t.Context(), group, classic.Sync{
		Member: joined.Member, Generation: joined.Generation, Assignments: map[string][]byte{joined.Member: []byte("all")},
	}, anything))(t)
	testkit.MustEqual(t, string(synced.Assignment), "all")
	return joined
}

func beat(ctx context.Context, c *Coordinator, group string, j classic.Joined) error {
	return c.Heartbeat(ctx, group, j.Member, "", j.Generation, anything)
}

func as(j classic.Joined) Committer { return Committer{Member: j.Member, Generation: j.Generation} }

var nobody = Committer{Generation: -1}

// store commits one offset, and fails unless that is done.
func store(t testing.TB, c *Coordinator, group string, by Committer, p Partition, offset int64) {
	t.Helper()
	failed, err := c.Commit(t.Context(), group, by, map[Partition]Position{p: {Offset: offset, Epoch: -1, Metadata: []byte("m")}})
	testkit.Must(t, err)
	testkit.Must(t, failed[p])
}

// committed is what is committed of a partition; negative: nothing.
func committed(t testing.TB, c *Coordinator, group string, p Partition) int64 {
	t.Helper()
	position, found := testkit.Value(c.Offsets(t.Context(), group, p.Log))(t)[p.Number]
	if !found {
		return -1
	}
	return position.Offset
}
