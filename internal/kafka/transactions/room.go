package transactions

import (
	"context"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/kafka/transactions/txn"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// An account may have half of all transactional ids, so that none can take all of them. Who wants one more than there may be
// gets the place of the one that was unused longest: one of the account's own, where it has as many as it may have.

// restTime is how long an id must have been unused until another may take its place.
const restTime = time.Hour

type accountKey struct{}

// For says whose account asks in what follows: transactional ids that come into being are counted for it.
func For(ctx context.Context, account string) context.Context {
	return context.WithValue(ctx, accountKey{}, account)
}

func accountOf(ctx context.Context) string {
	account, _ := ctx.Value(accountKey{}).(string)
	return account
}

// share is how many one account may have.
func (c Config) share() int { return max(c.MaxIDs/2, 1) }

// full: one more would be too many, for all or for the account.
func (c *Coordinator) full(account string) bool {
	items := c.table.Items()
	return len(items) >= c.cfg.MaxIDs || ofAccount(items, account) >= c.cfg.share()
}

// ofAccount counts an account's; who has none has no share.
func ofAccount(items []mirror.Item[txn.Transaction], account string) (n int) {
	if account == "" {
		return 0
	}
	for _, item := range items {
		if item.Value.By == account {
			n++
		}
	}
	return n
}

// makeRoom forgets the id that was unused longest, if there is one that may be forgotten.
func (c *Coordinator) makeRoom(ctx context.Context, account string) bool {
	items := c.table.Items()
	own := ofAccount(items, account) >= c.cfg.share()
	var oldest mirror.Item[txn.Transaction]
	for _, item := range items {
		t := item.Value
		if t.State.Open() || own && t.By != account || time.Since(t.Changed) < restTime {
			continue
		}
		if !oldest.Exists() || t.Changed.Before(oldest.Value.Changed) {
			oldest = item
		}
	}
	if !oldest.Exists() {
		return false
	}
	err := c.table.Delete(ctx, oldest)
	return err == nil || mirror.GoneOrChanged(err)
}

// weights counts the partitions, hubs and groups that stand in the entries of transactions: these are in memory, at every node.
// The zero value works.
type weights struct {
	mu  sync.Mutex
	all int            // guarded by mu
	by  map[string]int // by account; guarded by mu
}

const (
	// groupWeight is what a group counts, besides its name: it has an entry of its own for the offsets in the transaction.
	groupWeight = 8
	// nameWeight is how many bytes of a group's name count as one partition.
	nameWeight = 32
)

// weight is how much a transaction has, in partitions.
func weight(t txn.Transaction) int {
	n := len(t.Partitions) + len(t.Logs)
	for _, group := range t.Groups {
		n += groupWeight + len(group)/nameWeight
	}
	return n
}

// follow counts what has changed.
func (p *weights) follow(updates []mirror.Update[txn.Transaction]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil {
		p.by = make(map[string]int)
	}
	for _, u := range updates {
		p.addLocked(u.Old.Value, -1)
		p.addLocked(u.New.Value, 1)
	}
}

func (p *weights) addLocked(t txn.Transaction, times int) {
	n := times * weight(t)
	p.all += n
	if p.by[t.By] += n; p.by[t.By] == 0 {
		delete(p.by, t.By)
	}
}

// room: there may be so many more of an account, which has half of them at most.
func (p *weights) room(account string, more, most int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return more <= 0 || p.all+more <= most && (account == "" || p.by[account]+more <= max(most/2, 1))
}
