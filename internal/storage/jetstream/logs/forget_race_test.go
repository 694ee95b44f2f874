package logs

import (
	"context"
	"errors"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// lateStore does something between a look that finds nothing and the answer.
type lateStore struct {
	meta.Store
	meanwhile func()
}

func (s *lateStore) Get(ctx context.Context, key string) (meta.Entry, error) {
	e, err := s.Store.Get(ctx, key)
	if do := s.meanwhile; errors.Is(err, meta.ErrNotFound) && do != nil {
		s.meanwhile = nil
		do()
	}
	return e, err
}

// C1, C2: who looks for a log before it is provided, and hears that there is none afterwards, does not take
// the new one for removed.
func TestALogIsProvidedWhileItIsLookedFor(t *testing.T) {
	inYard(t, model.Faults{}, asItIs, func(t *testing.T, y *yard) {
		e := y.open(t, "a")
		store := &lateStore{Store: e.cfg.Store}
		e.cfg.Store = store
		p := testkit.Value(e.Partition(eventlog.PartitionID{Log: "orders"}))(t)
		store.meanwhile = func() { testkit.Must(t, e.Provide(t.Context(), "orders", orders)) }
		testkit.Must(t, testkit.Err(p.Bounds(t.Context())), "at the first look")
		mustAppend(t, p, "a")
		testkit.Slices(t, readAll(t, p, eventlog.Earliest()), []string{"a"})
	})
}
