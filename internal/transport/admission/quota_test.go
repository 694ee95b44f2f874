package admission

import (
	"errors"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// R2: nobody has more than its own share, nor all together more than all.
func TestQuota(t *testing.T) {
	q := NewQuota("readers", 3, 5)
	take := func(holder string, n int) func() {
		t.Helper()
		return testkit.Value(q.Take(holder, n))(t)
	}
	refused := func(holder string, n int, want QuotaError) {
		t.Helper()
		_, err := q.Take(holder, n)
		got, ok := errors.AsType[*QuotaError](err)
		testkit.MustEqual(t, ok, true, "the error is %v", err)
		testkit.Equal(t, *got, want)
	}
	a, b := take("a", 2), take("b", 3)
	refused("a", 2, QuotaError{What: "readers", Limit: 3, Holder: "a"})
	refused("c", 1, QuotaError{What: "readers", Limit: 5})
	b()
	b()
	c := take("c", 3)
	a()
	c()
	testkit.Equal(t, q.used, 0)
	testkit.Equal(t, len(q.byHolder), 0, "holders are remembered for ever")
}
