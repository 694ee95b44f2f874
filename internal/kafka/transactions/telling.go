package transactions

import (
	"time"

	"github.com/eventyard/eventyard/internal/kafka/transactions/txn"
)

// telling is what became of a decision that could not be carried out at once. Who tries again tells those alone that do
// not know: each control frame stays in its log for as long as that keeps it. It is in memory, since after a crash telling
// twice does no harm.
//
// Who carries a decision out has it, and of one id there is one at a time; again and err are guarded by the coordinator's
// mu.
type telling struct {
	number int64
	state  txn.State
	// partitions and groups are those that know.
	partitions map[Place]bool
	groups     map[string]bool
	// again is not before when it is tried again, wait how long it was since the last try, err what that failed with.
	again time.Time
	wait  time.Duration
	err   error
}

// How long it takes until a decision is tried again that could not be carried out: longer each time.
const (
	firstWait   = time.Second
	longestWait = 30 * time.Second
)

// knowing gives who knows of a decision, or the error of the last try where it is too early for another.
func (c *Coordinator) knowing(id string, t txn.Transaction) (*telling, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	know := c.telling[id]
	if know == nil || know.number != t.Number || know.state != t.State {
		return &telling{number: t.Number, state: t.State, partitions: make(map[Place]bool), groups: make(map[string]bool)}, nil
	}
	if time.Now().Before(know.again) {
		return nil, know.err
	}
	return know, nil
}

// remember notes who knows by now; errs are of the partitions, and of the groups behind them.
func (c *Coordinator) remember(id string, know *telling, t txn.Transaction, errs []error) {
	for i, p := range t.Partitions {
		if errs[i] == nil {
			know.partitions[Place{p.Log, p.Number}] = true
		}
	}
	for i, group := range t.Groups {
		if errs[len(t.Partitions)+i] == nil {
			know.groups[group] = true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	know.wait = min(max(2*know.wait, firstWait), longestWait)
	know.again = time.Now().Add(know.wait)
	for _, err := range errs {
		if err != nil {
			know.err = err
			break
		}
	}
	if know.err == nil { // all know, and that could not be stored
		know.err = txn.ErrConcurrent
	}
	c.telling[id] = know
}

func (c *Coordinator) forgetKnown(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.telling, id)
}

// forgetEnded forgets what others have carried out.
func (c *Coordinator) forgetEnded() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, know := range c.telling {
		if item, there := c.table.Get(keyOf(id)); !there || item.Value.State != know.state || item.Value.Number != know.number {
			delete(c.telling, id)
		}
	}
}
