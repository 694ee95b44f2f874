package broker

import (
	"fmt"
	"testing"
	"time"

	kafka "github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K3, R1: what readers wait for is told of until it is decided; a partition that cannot be looked at is said, and keeps
// nobody from hearing of the others.
func TestHoldups(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 2)
	for n := range 2 {
		to := FrameTarget{Partition: n, Verify: always}
		p := testkit.Value(b.SubmitFrames(t.Context(), "orders", to, []eventlog.Batch{inTransaction(5, 0, 0, "a")}))(t)
		testkit.Must(t, testkit.Err(p.Wait(t.Context())))
		read(t, b, "orders", DefaultGroup, n, eventlog.Earliest())
	}
	waiting := func() (string, error) {
		all, err := b.Holdups(t.Context(), 0)
		names := map[string]bool{}
		for _, h := range all {
			names[fmt.Sprintf("%d from %d", h.Partition, h.Frame.First)] = true
		}
		return fmt.Sprint(names), err
	}
	got, err := waiting()
	testkit.Must(t, err)
	testkit.Equal(t, got, "map[0 from 0:true 1 from 0:true]")

	y.Engine.Inject(func(op logtest.Op) error {
		if op.Kind == logtest.OpNext && op.ID.Number == 1 {
			return eventlog.ErrUnavailable
		}
		return nil
	})
	got, err = waiting()
	testkit.ErrorIs(t, err, eventlog.ErrUnavailable)
	testkit.Equal(t, got, "map[0 from 0:true]", "while the other cannot be looked at")
	y.Engine.Inject(nil)

	testkit.Must(t, b.EndTransaction(t.Context(), logOf(t, b), 1, kafka.Marker(5, 0, true, time.Now()), always))
	got, err = waiting()
	testkit.Must(t, err)
	testkit.Equal(t, got, "map[0 from 0:true]", "when the other is decided")
}
