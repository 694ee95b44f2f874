package groups

import (
	"context"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/testkit"
)

// P4, K3: a group that has had all events is behind by none, though a number comes after them that ends a transaction.
func TestTheEndOfATransactionIsNoLag(t *testing.T) {
	y := newYard(t, nil)
	g := y.group(t, "orders", "billing", 1)
	y.publish(t, "orders", "0", 3)
	log := broker.LogOf(y.broker, testkit.Value(y.broker.Hub("orders"))(t).ID)
	word := record.Marker(5, 0, true, time.Now())
	testkit.Must(t, y.broker.EndTransaction(t.Context(), log, 0, word, func(context.Context) error { return nil }))
	y.checkpointAt(t, g, y.own(t, g, "0", "worker", 1), 2, "2")
	row := testkit.Value(y.Table(t.Context(), "orders", "billing"))(t).Partitions[0]
	testkit.Equal(t, row.Last, 2)
	testkit.Equal(t, row.Lag.Events, 0)
	testkit.That(t, !row.Beyond, "its checkpoint is beyond the end")
	moved := testkit.Value(y.move(t, g, Target{Time: new(time.Now().Add(time.Hour))}, MoveConfig{Force: true}))(t)
	testkit.Equal(t, moved[0].To.Sequence, 2, "where a checkpoint is moved behind all")
}
