package transactions

import (
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/kafka/groups"
	"github.com/eventyard/eventyard/internal/kafka/transactions/txn"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// end is the number that the next event of a partition will get.
func (l *life) end(partition string) eventlog.Sequence {
	l.y.t.Helper()
	_, next, err := l.broker.Span(l.y.t.Context(), "orders", partition)
	testkit.Must(l.y.t, err)
	return next
}

// K3: what cannot be the id of a group is refused before it is part of a transaction, and one that is all the same does not
// keep it from ending.
func TestAGroupThatCannotBe(t *testing.T) {
	l := newYard(t).begin()
	by := l.init("app")
	testkit.Must(t, l.add("app", by))
	for _, group := range []string{"", strings.Repeat("g", 300)} {
		testkit.ErrorIs(t, l.AddGroup(t.Context(), "app", by, group, nil), groups.ErrInvalidID)
	}
	one := testkit.Value(l.Describe(t.Context(), "app", nil))(t)
	testkit.Equal(t, len(one.Groups), 0, "groups that are part of it")
	testkit.Must(t, testkit.Err(l.change(t.Context(), "app", func(now txn.Transaction) (txn.Transaction, error) {
		return now.Add(by, nil, strings.Repeat("g", 300), time.Now())
	})))
	testkit.Must(t, l.put("app", by, 0, "a"))
	testkit.Must(t, l.End(t.Context(), "app", by, true, nil))
	testkit.Equal(t, testkit.Value(l.Describe(t.Context(), "app", nil))(t).State, txn.CompleteCommit)
	testkit.Slices(t, l.read(), []string{"a", "", ""})
	l.stop()
}
