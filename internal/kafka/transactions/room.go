package transactions

import (
	"context"
	"time"

	"github.com/eventyard/eventyard/internal/kafka/transactions/txn"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// An account may have half of all transactional ids, so that none can take all of them. Who wants one more than there may be
// gets the place of the one that was unused longest: one of the account's own, where it has as many as it may have.

// restTime is how long an id must have been unused until another may take its place.
const restTime = time.Hour

type accountKey struct{}

// For has the transactional ids that come into being in what follows be counted for an account.
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
