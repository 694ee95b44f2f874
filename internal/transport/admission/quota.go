package admission

import (
	"fmt"
	"sync"
)

// Quota bounds how many of something there are at once: of one holder, such as a policy, and of all.
// Its methods may be called by many goroutines at once.
type Quota struct {
	what      string
	each, all int

	mu sync.Mutex
	// used and byHolder are guarded by mu.
	used     int
	byHolder map[string]int
}

// NewQuota makes one of something, in the plural, for the error.
func NewQuota(what string, each, all int) *Quota {
	return &Quota{what: what, each: each, all: all, byHolder: map[string]int{}}
}

// QuotaError: a holder, or all of them, have as many as they may.
type QuotaError struct {
	// What there are too many of, and Limit how many there may be.
	What  string
	Limit int
	// Holder has them; empty: all holders together.
	Holder string
}

func (e *QuotaError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("there are as many %s as this yard allows, which is %d", e.What, e.Limit)
	}
	return fmt.Sprintf("this policy or token has as many %s as one may have, which is %d", e.What, e.Limit)
}

// Take takes n for a holder, which giveBack returns and may be called again. The error is a
// *QuotaError, and nothing was taken then.
func (q *Quota) Take(holder string, n int) (giveBack func(), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.byHolder[holder]+n > q.each:
		return nil, &QuotaError{What: q.what, Limit: q.each, Holder: holder}
	case q.used+n > q.all:
		return nil, &QuotaError{What: q.what, Limit: q.all}
	}
	q.used += n
	q.byHolder[holder] += n
	return sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.used -= n
		if q.byHolder[holder] -= n; q.byHolder[holder] == 0 {
			delete(q.byHolder, holder)
		}
	}), nil
}
