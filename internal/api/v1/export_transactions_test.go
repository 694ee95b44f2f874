package v1

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// always says that a transaction goes on.
func always(context.Context) error { return nil }

// transact stores an event in a transaction of a producer in partition 0.
func (y *yard) transact(hub string, id int64, first int32, value string) {
	y.t.Helper()
	batch := record.Begin(nil, 0, time.Now().UnixMilli())
	batch.Add(&record.Record{Timestamp: time.Now().UnixMilli(), Value: []byte(value)})
	frame := testkit.Value(record.Check(batch.End()))(y.t)
	frame.Form, frame.Producer = eventlog.FormTransaction, eventlog.Producer{ID: id, First: first, Set: true}
	p := testkit.Value(y.broker.SubmitFrames(y.t.Context(), hub, broker.FrameTarget{Verify: always}, []eventlog.Batch{frame}))(y.t)
	testkit.Must(y.t, testkit.Err(p.Wait(y.t.Context())))
}

// decide ends the transaction.
func (y *yard) decide(hub string, id int64, commit bool) {
	y.t.Helper()
	log := broker.LogOf(y.broker, testkit.Value(y.broker.Hub(hub))(y.t).ID)
	testkit.Must(y.t, y.broker.EndTransaction(y.t.Context(), log, 0, record.Marker(id, 0, commit, time.Now()), always))
}

// outdated is a broker that took what cannot be read for the newest event when it was first asked.
type outdated struct {
	watched
	first *bool
}

func (b outdated) Partition(ctx context.Context, hub, partition string) (broker.PartitionInfo, error) {
	info, err := b.Broker.Partition(ctx, hub, partition)
	if *b.first {
		info.Last, *b.first = info.Next-1, false
	}
	return info, err
}

// H4, K3: lines end where nothing more can be read, though there are numbers behind it: the end of a transaction, what was
// aborted, what is not decided.
func TestLinesEndAtTheEndOfATransaction(t *testing.T) {
	for _, wrong := range []bool{false, true} {
		y := newYard(t, func(c *Config) {
			c.Broker = outdated{watched{Broker: c.Broker.(*broker.Broker)}, &wrong}
		})
		y.hub("orders", 1)
		y.send("orders", "0", "a")
		for _, step := range []struct {
			what string
			do   func()
			want string
		}{
			{"behind a commit", func() { y.transact("orders", 5, 0, "b"); y.decide("orders", 5, true) }, "0/0=a 0/1=b"},
			{"behind what was aborted", func() { y.transact("orders", 5, 1, "no"); y.decide("orders", 5, false) }, "0/0=a 0/1=b"},
			{"before what is not decided", func() { y.transact("orders", 5, 2, "later"); y.send("orders", "0", "c") }, "0/0=a 0/1=b"},
			{"when it is", func() { y.decide("orders", 5, true) }, "0/0=a 0/1=b 0/5=later 0/6=c"},
		} {
			step.do()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			resp := y.open(ctx, "GET", "/api/v1/hubs/orders/events", nil)
			got, _ := lines(t, resp.Body)
			testkit.Equal(t, positions(got), step.want, step.what)
			_ = resp.Body.Close()
			cancel()
		}
		resp := y.open(t.Context(), "GET", "/api/v1/hubs/orders/events?from=8", nil)
		testkit.Equal(t, resp.StatusCode, 200, "from behind the last word")
		testkit.Must(t, testkit.Err(io.Copy(io.Discard, resp.Body)))
		_ = resp.Body.Close()
	}
}
