// Package stores is what the processor's stores have in common.
package stores

import (
	"errors"
	"fmt"
	"sync"

	"github.com/eventyard/eventyard/processor"
)

// Claim writes each lease by itself, so many at once. It gives those that were written, in the
// order given, and the errors of those of which nothing is known.
func Claim(leases []processor.Lease, atOnce int, write func(processor.Lease) (processor.Lease, error)) ([]processor.Lease, error) {
	written, errs := make([]processor.Lease, len(leases)), make([]error, len(leases))
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, l := range leases {
		slots <- struct{}{}
		all.Go(func() {
			written[i], errs[i] = write(l)
			<-slots
		})
	}
	all.Wait()
	won, err := written[:0], error(nil)
	for i, e := range errs {
		switch {
		case e == nil:
			won = append(won, written[i])
		case !errors.Is(e, processor.ErrConflict):
			err = errors.Join(err, fmt.Errorf("claim partition %s: %w", leases[i].Partition, e))
		}
	}
	return won, err
}

// MayFollow reports whether a lease may be written over the recorded one: another owner needs a
// higher epoch.
func MayFollow(recorded, l processor.Lease) bool {
	if l.Owner != "" && l.Owner != recorded.Owner {
		return l.Epoch > recorded.Epoch
	}
	return l.Epoch >= recorded.Epoch
}

// Notify reports a change to a watcher, without waiting for it.
func Notify(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default: // it has yet to hear of an earlier one and will read both
	}
}
