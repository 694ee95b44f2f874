package broker

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R4: who begins to wait for the end of a transaction is not kept by storage that does not answer.
func TestBeginningToWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opens := func(ctx context.Context, _ eventlog.Position) (eventlog.Cursor, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		c := &committed{open: opens, held: true, fates: newFates(opens)}
		woken := false
		c.Await(func() { woken = true })()
		testkit.That(t, woken, "who reads on does not hear of it")
	})
}
