package storage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/testkit"
)

// replicasOf counts the streams of a yard by how many replicas they have.
func (y *scrubYard) replicasOf() map[int]int {
	y.t.Helper()
	all := map[int]int{}
	for info := range y.js.ListStreams(y.t.Context(), jetstream.WithStreamListSubject("y."+y.name+".>")).Info() {
		all[info.Config.Replicas]++
	}
	return all
}

// C1, C7: the number of replicas is changed up and down while events are stored, at streams that are made
// meanwhile as well; nothing is lost, and a hub that is made later has the new number.
func TestReplicasAreChanged(t *testing.T) {
	servers := natstest.Shared(t, 3)
	y := newScrubYardOf(t, servers, 1)
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	stored := 20
	part := testkit.Value(y.Log.Partition(eventlog.PartitionID{Log: "orders", Number: 0}))(t)
	working.Go(func() {
		for ctx.Err() == nil {
			_, err := eventlog.Append(t.Context(), part, eventlog.Batch{Events: []eventlog.Event{{Message: []byte("x")}}})
			testkit.Check(t, err)
			stored++
		}
	})
	for i, want := range []int{3, 1} {
		var said []ReplicationProgress
		at := testkit.Value(y.SetReplicas(t.Context(), Replication{Replicas: want, Progress: func(p ReplicationProgress) { said = append(said, p) }}))(t)
		testkit.That(t, at.Changed == at.Streams && at.Done == at.Streams && at.Streams >= 7, "it changed %+v", at)
		testkit.That(t, len(said) > 0 || want == 1, "nothing was said")
		testkit.Must(t, y.Log.Provide(t.Context(), fmt.Sprint("later-", i), eventlog.Shape{Partitions: 1}))
		testkit.Eventually(t, "all streams have as many replicas", func() bool { return maps.Equal(y.replicasOf(), map[int]int{want: at.Streams + 1}) })
		testkit.Equal(t, y.Storage.Servers(t.Context()).Replicas, want, "replicas that are shown")
		again := testkit.Value(y.SetReplicas(t.Context(), Replication{Replicas: want}))(t)
		testkit.That(t, again.Changed == 0 && again.Done == at.Streams+1, "it changed again %+v", again)
	}
	stop()
	working.Wait()
	testkit.Equal(t, int(testkit.Value(part.Sealed(t.Context()))(t).Next), stored, "events")
}

// C7: while one node changes the number of replicas another is refused, with this number or with another, and
// may do so afterwards.
func TestReplicasAreChangedByOneNode(t *testing.T) {
	servers := natstest.Shared(t, 3)
	y := newScrubYardOf(t, servers, 1)
	settings := testkit.Value(connect.Parse(fmt.Sprintf("%s?replicas=1&yard=%s", servers.URL(), y.name)))(t)
	other := newNATSNode(settings, onServers(sealed.NewKey()))
	defer func() { testkit.Check(t, other.close()) }()
	testkit.Must(t, other.dial(t.Context()))
	testkit.Must(t, other.load(t.Context()))
	refused := 0
	testkit.Must(t, testkit.Err(y.SetReplicas(t.Context(), Replication{Replicas: 3, Progress: func(p ReplicationProgress) {
		for ; p.Done > 0 && refused < 2; refused++ { // while definitions are copied nothing may be written for seconds
			testkit.Eventually(t, "the other is refused", func() bool {
				_, err := other.setReplicas(t.Context(), Replication{Replicas: []int{1, 3}[refused]})
				testkit.MustThat(t, err != nil, "two change it at once")
				return errors.Is(err, ErrChanging)
			})
		}
	}})))
	testkit.MustEqual(t, refused, 2, "changes meanwhile")
	testkit.Equal(t, len(y.replicasOf()), 1, "numbers of replicas")
	at := testkit.Value(other.setReplicas(t.Context(), Replication{Replicas: 3}))(t)
	testkit.That(t, at.Changed == 0 && at.Done == at.Streams, "it changed %+v", at)
}

// C6: a number that the servers cannot keep, or while one of them is gone, is refused with nothing changed;
// one that is not allowed by the servers says so.
func TestReplicasAreRefused(t *testing.T) {
	t.Run("too few servers", func(t *testing.T) {
		y := newScrubYard(t, natstest.Shared(t, 1))
		_, err := y.SetReplicas(t.Context(), Replication{Replicas: 3})
		testkit.ErrorIs(t, err, ErrTooFewServers, "three")
		testkit.Equal(t, len(y.replicasOf()), 1, "numbers of replicas")
	})
	t.Run("a server is gone", func(t *testing.T) {
		servers := natstest.Shared(t, 3)
		y := newScrubYard(t, servers)
		servers.Stop(t, 2)
		testkit.Eventually(t, "the server is seen to be offline", func() bool { return y.Storage.Servers(t.Context()).Streams.Offline > 0 })
		_, err := y.SetReplicas(t.Context(), Replication{Replicas: 1})
		testkit.ErrorIs(t, err, ErrNotWell, "one")
		testkit.That(t, strings.Contains(err.Error(), "server n2 is offline"), "it says %v", err)
		testkit.Equal(t, y.replicasOf()[1], 0, "streams that were changed")
	})
	t.Run("not allowed", func(t *testing.T) {
		settings := testkit.Value(connect.Parse(limited(t, advised(t))))(t)
		n := newNATSNode(settings, onServers(sealed.NewKey()))
		defer func() { testkit.Check(t, n.close()) }()
		testkit.Must(t, n.dial(t.Context()))
		testkit.Must(t, n.load(t.Context()))
		report := testkit.Value(n.scrub(t.Context(), Scrubbing{}))(t)
		testkit.That(t, report.Findings == 0 && len(report.Problems) == 0 && report.Messages > 0, "a scrub with these permissions: %+v", report)
		definitions := testkit.Value(streamInfo(t.Context(), n.conns.Control, n.entries.Definitions()))(t)
		err := (&replication{Replication: Replication{Replicas: 1}, n: n}).update(t.Context(), definitions.Config)
		testkit.ErrorIs(t, err, ErrNotAllowed, "an update")
	})
}
