package console

import (
	"context"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/admin"
)

// busiestKey is a key that much of what a partition gets has.
type busiestKey struct {
	Key, Short, Partition, Share string
	Since                        time.Time
}

const (
	// A key is named that has so much of a partition for certain, of so many events at least.
	busyShare  = .1
	busyOfMany = 20
	// busyFor is how long an answer about keys is good: all nodes are asked for it.
	busyFor = 3 * time.Second
)

// busiestIn asks for the busiest key of a partition, which has the yard count keys for as long as somebody
// looks. Where it is not known in time, or not this reader's to see, the page is shown without it.
func busiestIn(v *visit, hub, partition string) *busiestKey {
	found, err := remembered(v, "keys of "+partition, busyFor, func() (admin.BusyKeys, error) {
		ctx, cancel := context.WithTimeout(v.ctx, v.console.figuresTime)
		defer cancel()
		return v.api.BusyKeys(ctx, hub, admin.BusyKeysQuery{Partition: partition, Limit: 1})
	})
	if err != nil {
		return nil
	}
	v.silent.add(found.Unanswered...)
	return busiestOf(found)
}

// busiestOf names the first key of one partition, if it stands out whatever its count is off by.
func busiestOf(found admin.BusyKeys) *busiestKey {
	if len(found.Keys) == 0 || found.Events < busyOfMany {
		return nil
	}
	first := found.Keys[0]
	certain := float64(first.Events-first.Error) / float64(found.Events)
	if certain < busyShare {
		return nil
	}
	share := fmt.Sprintf("%.0f %%", 100*certain)
	if first.Error > 0 {
		share = "at least " + share
	}
	return &busiestKey{Key: first.Key, Short: cutTo(first.Key, 48), Partition: first.Partition, Share: share, Since: found.Since.Time}
}
