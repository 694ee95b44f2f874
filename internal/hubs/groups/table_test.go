package groups

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// P6: ownership is a table: owner, times, checkpoint, lag, who is next, who reads.
func TestTheTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, nil)
		g := y.group(t, "Orders", "billing", 4)
		y.publish(t, "orders", "0", 10)
		time.Sleep(30 * time.Second)
		y.publish(t, "orders", "0", 5)
		y.publish(t, "orders", "1", 7)

		l := y.own(t, g, "0", "one", 2)
		y.checkpointAt(t, g, l, 9, "9")
		foreign := y.own(t, g, "2", "elsewhere", 1)
		y.checkpointAt(t, g, foreign, -1, "not:a:number")
		y.put(t, g, "presence/one", `{"nonce":"x","started":"2026-11-15T08:00:00Z","version":1}`)
		y.put(t, g, "presence/two", `{"nonce":"y"}`)
		y.put(t, g, "next/0", `{"instance":"two"}`)
		reader, err := y.broker.Receive(t.Context(), broker.ReceiverConfig{
			Hub: "orders", Group: "billing", Partition: "0", At: eventlog.Earliest(), Epoch: new(int64(2)), Name: "one",
		})
		testkit.Must(t, err)
		defer reader.Cursor.Close()
		defer reader.Close()
		time.Sleep(20 * time.Second)

		table, err := y.Table(t.Context(), "orders", "billing")
		testkit.Must(t, err)
		if table.Hub != "Orders" || table.Group != "billing" || table.Namespace != "eventyard" || len(table.Partitions) != 4 {
			t.Errorf("the table is of %+v", table)
		}
		row := table.Partitions[0]
		if row.Lease.Owner != "one" || row.Lease.Epoch != 2 || !row.Alive || row.Next != "two" || row.Last != 14 {
			t.Errorf("partition 0: %+v", row)
		}
		if row.Checkpoint == nil || row.Checkpoint.Sequence != 9 || *row.Lag != (Lag{Events: 5, Oldest: 20 * time.Second}) {
			t.Errorf("partition 0: checkpoint %+v, lag %+v", row.Checkpoint, row.Lag)
		}
		if len(row.Readers) != 1 || row.Readers[0].Name != "one" || *row.Readers[0].Epoch != 2 {
			t.Errorf("partition 0 is read by %+v", row.Readers)
		}
		if row := table.Partitions[1]; row.Checkpoint != nil || row.Lag.Events != 7 || row.Lease.Version != "" || len(row.Readers) != 0 {
			t.Errorf("partition 1, without a checkpoint: %+v", row)
		}
		if row := table.Partitions[2]; row.Checkpoint == nil || row.Lag != nil {
			t.Errorf("partition 2, whose offset tells nothing: %+v", row)
		}
		if row := table.Partitions[3]; row.Lag.Events != 0 || row.Last != -1 {
			t.Errorf("partition 3, empty: %+v", row)
		}
		if table.TotalLag() != 12 || table.Recommended(6) != 2 || table.Recommended(1) != 4 || table.Recommended(1000) != 1 {
			t.Errorf("lag %d, recommended %d, %d, %d", table.TotalLag(), table.Recommended(6), table.Recommended(1), table.Recommended(1000))
		}
	})
}

// P6: who keeps checkpoints in the yard's blobs is as far as these say, and of who keeps them elsewhere
// it is not known.
func TestTheTableOfOtherLibraries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, nil)
		stale := time.Now().Add(-time.Hour)
		g := y.group(t, "orders", "billing", 5)
		for _, partition := range []string{"0", "1", "2", "3", "4"} {
			y.publish(t, "orders", partition, 10)
		}
		time.Sleep(time.Second)
		saved := func(partition string, sequence int64, at time.Time) Foreign {
			return Foreign{Container: "box", Checkpoint: processor.Checkpoint{Partition: partition, Sequence: sequence, Updated: at}}
		}
		y.foreign = func(_ context.Context, hub, group string) ([]Foreign, error) {
			if hub != "orders" || group != "billing" {
				return nil, nil
			}
			return []Foreign{saved("0", 3, time.Now()), saved("0", 7, time.Now().Add(time.Minute)), saved("0", 5, time.Now()),
				saved("1", 4, time.Now()), saved("2", 6, stale), saved("9", 1, time.Now())}, nil
		}
		y.checkpointAt(t, g, y.own(t, g, "1", "one", 1), 8, "8")
		reader, err := y.broker.Receive(t.Context(), broker.ReceiverConfig{Hub: "orders", Group: "billing", Partition: "3", At: eventlog.Earliest()})
		testkit.Must(t, err)
		defer reader.Cursor.Close()
		defer reader.Close()

		table, err := y.Table(t.Context(), "orders", "billing")
		testkit.Must(t, err)
		lags := make([]int64, len(table.Partitions))
		for i, row := range table.Partitions {
			if lags[i] = -1; row.Lag != nil {
				lags[i] = row.Lag.Events
			}
		}
		testkit.Slices(t, lags, []int64{2, 1, 10, -1, 10}, "the newest; the yard's own; of a hub before; read, and not known; not begun")
		testkit.Equal(t, table.Partitions[0].Container+table.Partitions[1].Container, "box")
		positions, err := y.Positions(t.Context(), g)
		testkit.Must(t, err)
		testkit.That(t, len(positions) == 3 && positions["0"].Sequence == 7 && positions["1"].Sequence == 8, "positions are %+v", positions)
		used, err := y.used(t.Context(), broker.Hub{Name: "orders"})
		testkit.Must(t, err)
		testkit.Slices(t, used, []string{"billing"})

		y.foreign = func(context.Context, string, string) ([]Foreign, error) { return nil, errors.New("a blob is damaged") }
		table, err = y.Table(t.Context(), "orders", "billing")
		testkit.Must(t, err, "the rest is known without blobs")
		testkit.Equal(t, table.Partitions[1].Lag.Events, 1, "the yard's own")
	})
}

func (y *yard) put(t testing.TB, g processor.Group, key, value string) processor.Entry {
	t.Helper()
	f := testkit.Value(y.Put(t.Context(), g, processor.Entry{Key: key, Value: []byte(value)}))(t)
	return f
}

// P6: instances are those that show themselves and those that own something.
func TestInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, nil)
		g := y.group(t, "orders", "billing", 4)
		y.own(t, g, "0", "dead", 1)
		y.own(t, g, "3", "freed", 1)
		y.own(t, g, "3", "", 1)
		time.Sleep(2 * AliveWithin)
		y.own(t, g, "1", "one", 1)
		y.own(t, g, "2", "one", 1)
		y.put(t, g, "presence/one", `{"started":"2026-11-15T08:00:00Z"}`)
		y.put(t, g, "presence/idle", `no JSON`)
		table := testkit.Value(y.Table(t.Context(), "orders", "billing"))(t)
		var got []string
		for _, i := range table.Instances {
			line := i.ID + strings.Repeat("*", i.Partitions)
			if i.Alive {
				line += " alive"
			}
			if i.Present {
				line += " present"
			}
			got = append(got, line)
		}
		testkit.Equal(t, strings.Join(got, ", "), "dead*, idle alive present, one** alive present",
			"got %q", got)
		if started := table.Instances[2].Started; started.Format(time.RFC3339) != "2026-11-15T08:00:00Z" {
			t.Errorf("started %v", started)
		}
	})
}

// P6: a checkpoint behind the end is told, and counts as no lag; what retention removed is
// not waited for.
func TestLagAtTheEdges(t *testing.T) {
	info := func(first, last eventlog.Sequence) broker.PartitionInfo {
		return broker.PartitionInfo{First: first, Last: last}
	}
	for _, tt := range []struct {
		name string
		done int64
		info broker.PartitionInfo
		want int64
	}{
		{"never used", -1, info(-1, -1), 0},
		{"nothing done", -1, info(0, 9), 10},
		{"some done", 3, info(0, 9), 6},
		{"all done", 9, info(0, 9), 0},
		{"beyond the end", 30, info(0, 9), 0},
		{"older than what is kept", 3, info(8, 9), 2},
		{"all removed", 3, info(10, 9), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.Equal(t, pending(tt.done, tt.info), tt.want)
		})
	}
	y := newYard(t, nil)
	g := y.group(t, "orders", "billing", 1)
	y.publish(t, "orders", "0", 2)
	y.checkpointAt(t, g, y.own(t, g, "0", "a", 1), 50, "50")
	table, err := y.Table(t.Context(), "orders", "billing")
	if err != nil || !table.Partitions[0].Beyond || table.Partitions[0].Lag.Events != 0 {
		t.Errorf("got %+v, %v", table, err)
	}
}

// reads counts the cursors that a registry opens.
type reads struct {
	Broker
	opened atomic.Int64
}

func (r *reads) Cursor(ctx context.Context, hub, group, partition string, at eventlog.Position) (eventlog.Cursor, error) {
	r.opened.Add(1)
	return r.Broker.Cursor(ctx, hub, group, partition, at)
}

// P6: to tell how long a group lags costs a read only where its oldest event has changed, and it is told
// rightly, whatever was told before.
func TestLagReadsWhatHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, nil)
		counted := &reads{Broker: y.broker}
		y.Registry.broker = counted
		g := y.group(t, "orders", "billing", 4)
		for _, partition := range []string{"0", "1", "2"} {
			y.publish(t, "orders", partition, 3)
		}
		lease := y.own(t, g, "0", "a", 1)
		waits := func(reads int, what string) (oldest []time.Duration) {
			t.Helper()
			time.Sleep(time.Second)
			before := counted.opened.Load()
			table := testkit.Value(y.Table(t.Context(), "orders", "billing"))(t)
			for _, row := range table.Partitions {
				testkit.That(t, (row.Lag.Events > 0) == (row.Lag.Oldest > 0), "%s: partition %s lags by %+v", what, row.Partition, row.Lag)
				oldest = append(oldest, row.Lag.Oldest)
			}
			testkit.Equal(t, counted.opened.Load()-before, int64(reads), "events read %s", what)
			return oldest
		}
		first := waits(3, "at first")
		testkit.That(t, waits(0, "while nothing changes")[1] >= first[1], "what waits becomes younger")
		y.publish(t, "orders", "1", 5)
		waits(0, "while more come")
		c := y.checkpointAt(t, g, lease, 0, "0")
		waits(1, "after a checkpoint")
		c.Sequence, c.Offset = 2, "2"
		testkit.Must(t, testkit.Err(y.Save(t.Context(), g, lease, c)))
		waits(0, "when one has caught up")
		y.publish(t, "orders", "0", 1)
		waits(1, "when it is behind again")
	})
}

// P6: lag and ownership are metrics, for groups that have checkpoints.
func TestMetrics(t *testing.T) {
	y := newYard(t, nil)
	registry := prometheus.NewRegistry()
	testkit.Must(t, testkit.Err(New(Config{Meta: y.meta, Broker: y.broker, Log: testkit.Quiet(), Metrics: registry})))
	g := y.group(t, "Orders", "billing", 2)
	begun := y.group(t, "Orders", "unused", 2)
	y.publish(t, "orders", "0", 10)
	l := y.own(t, g, "0", "one", 2)
	y.checkpointAt(t, g, l, 3, "3")
	testkit.Must(t, testkit.Err(y.Begin(t.Context(), begun, y.own(t, begun, "0", "one", 1))))
	want := `
# HELP eventyard_group_lag_events Events of a partition behind the checkpoint of a consumer group.
# TYPE eventyard_group_lag_events gauge
eventyard_group_lag_events{group="billing",hub="Orders",partition="0"} 6
eventyard_group_lag_events{group="billing",hub="Orders",partition="1"} 0
# HELP eventyard_group_partitions_omitted Partitions of consumer groups whose lag is not told because there are too many.
# TYPE eventyard_group_partitions_omitted gauge
eventyard_group_partitions_omitted 0
# HELP eventyard_group_partitions_owned Partitions that an instance owns for a consumer group.
# TYPE eventyard_group_partitions_owned gauge
eventyard_group_partitions_owned{group="billing",hub="Orders",owner="one"} 1
`
	err := testutil.GatherAndCompare(registry, strings.NewReader(want),
		"eventyard_group_lag_events", "eventyard_group_partitions_owned", "eventyard_group_partitions_omitted")
	testkit.Check(t, err)
	if n, err := testutil.GatherAndCount(registry, "eventyard_group_lag_seconds"); err != nil || n != 2 {
		t.Errorf("%d series of seconds, %v", n, err)
	}
}
