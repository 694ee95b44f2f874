package delivery

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// brokenPartition is a broker one of whose partitions cannot be read.
type brokenPartition struct {
	Broker
	partition string
	broken    *atomic.Bool
}

func (b brokenPartition) Cursor(ctx context.Context, hub, group, partition string, at eventlog.Position) (eventlog.Cursor, error) {
	if partition == b.partition && b.broken.Load() {
		return nil, errTest
	}
	return b.Broker.Cursor(ctx, hub, group, partition, at)
}

// G1: a partition that cannot be read does not keep a subscription from catching up in others.
func TestABrokenPartitionHoldsUpNoOther(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.stop()
		var broken atomic.Bool
		y.config = func(c *Config) { c.Broker = brokenPartition{c.Broker, "0", &broken} }
		y.start()
		y.hub("readings", 2)
		source := topics.Source{Hub: "readings"}
		y.subscribeTo(source, "receiver", func(s *topics.Settings) { s.Paused = true })
		wait()
		var want []string
		for i := range 5 {
			y.publishHub("readings", 0, "{}")
			y.publishHub("readings", 1, "{}")
			want = append(want, fmt.Sprintf("yard/readings/1/%d", i))
		}
		wait()
		broken.Store(true)
		_, err := y.topics.Update(t.Context(), source, "receiver", func(s *topics.Settings) error {
			s.Paused = false
			return nil
		})
		testkit.Must(t, err)
		after(time.Minute)
		wantIDs(t, "of the other partition", y.sender.delivered(""), want)
	})
}
