package transactions

import (
	"fmt"
	"strings"
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

// K3, R1: what transactions write to takes memory at every node; there is so much of it for all, and half of that for an
// account, until they have ended.
func TestPartitionsOfAllTransactionsAreBounded(t *testing.T) {
	l := newYard(t).begin()
	l.cfg.MaxPartitions, l.cfg.MaxIDs = 2*partitions+2, 10
	begin := func(account, id string) (txn.Claim, error) {
		by := testkit.Value(l.Init(For(t.Context(), account), id, txn.None, 15*time.Minute, nil))(t)
		return by, l.add(id, by)
	}
	by, err := begin("greedy", "g0")
	testkit.Must(t, err)
	testkit.ErrorIs(t, testkit.Err(begin("greedy", "g1")), ErrTooManyPartitions)
	testkit.Must(t, l.add("g0", by), "what it has already")
	testkit.Must(t, testkit.Err(begin("modest", "m0")))
	testkit.ErrorIs(t, testkit.Err(begin("third", "t0")), ErrTooManyPartitions)
	testkit.Must(t, l.End(t.Context(), "g0", by, true, nil))
	testkit.Must(t, testkit.Err(begin("greedy", "g1")), "when the other has ended")
	l.stop()
	l.weights.mu.Lock()
	defer l.weights.mu.Unlock()
	testkit.Equal(t, l.weights.all, 2*partitions+1, "what is counted: two that go on, and the hub of one that has ended")
}

// K3, K6: groups of transactions take room as partitions do, and more where their names are long: each has an entry for its
// offsets beside its name.
func TestGroupsOfAllTransactionsAreBounded(t *testing.T) {
	l := newYard(t).begin()
	l.cfg.MaxPartitions, l.cfg.MaxIDs = 10*groupWeight, 10 // of which an account has half
	begin := func(account, id string) txn.Claim {
		return testkit.Value(l.Init(For(t.Context(), account), id, txn.None, 15*time.Minute, nil))(t)
	}
	greedy, modest := begin("greedy", "g"), begin("modest", "m")
	for i := range 5 {
		testkit.Must(t, l.AddGroup(t.Context(), "g", greedy, fmt.Sprint("readers-", i), nil))
	}
	testkit.Must(t, l.AddGroup(t.Context(), "g", greedy, "readers-1", nil), "one that it has already")
	testkit.ErrorIs(t, l.AddGroup(t.Context(), "g", greedy, "readers-6", nil), ErrTooManyPartitions)
	for _, long := range []string{"a", "b"} {
		testkit.Must(t, l.AddGroup(t.Context(), "m", modest, strings.Repeat(long, 255), nil))
	}
	testkit.ErrorIs(t, l.AddGroup(t.Context(), "m", modest, strings.Repeat("c", 255), nil), ErrTooManyPartitions, "of a long name")
	testkit.Must(t, l.End(t.Context(), "g", greedy, true, nil))
	testkit.Must(t, l.AddGroup(t.Context(), "g", greedy, "readers-6", nil), "when the others have ended")
	l.stop()
}
