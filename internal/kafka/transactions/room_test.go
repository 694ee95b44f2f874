package transactions

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/kafka/transactions/txn"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K3, R1: no account takes all transactional ids, and one that nobody has used for long makes room for another.
func TestAnAccountHasAShareOfIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newYard(t).begin()
		synctest.Wait()
		l.cfg.MaxIDs, l.cfg.Retention = 6, 24*time.Hour
		init := func(account, id string) error {
			return testkit.Err(l.Init(For(t.Context(), account), id, txn.None, 15*time.Minute, nil))
		}
		for i := range 3 {
			testkit.Must(t, init("greedy", fmt.Sprint("g", i)))
			time.Sleep(time.Second)
		}
		testkit.ErrorIs(t, init("greedy", "g3"), ErrTooMany)
		testkit.Must(t, init("greedy", "g0"), "one that it has")
		testkit.Must(t, init("modest", "m0"))
		time.Sleep(restTime + time.Minute)
		by := l.init("g1")
		testkit.Must(t, l.add("g1", by)) // it is open
		testkit.Must(t, init("greedy", "g3"))
		ids := ""
		for _, d := range testkit.Value(l.List(t.Context(), nil))(t) {
			ids += d.ID + " "
		}
		testkit.Equal(t, ids, "g0 g1 g3 m0 ", "without the account's that was unused longest")
		l.stop()
	})
}
