//go:build linux

package reliable

import (
	"fmt"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// tick is how often a partition gets events.
const tick = 80 * time.Millisecond

// load publishes so many events a second over all partitions, in batches; on a machine that cannot
// carry so many, as many as it can. It gives what was sent of each partition.
func (r *trial) load(rate int, lasting time.Duration, body func(partition, n int) string) {
	r.t.Helper()
	began := time.Now()
	var senders sync.WaitGroup
	for partition := range r.sent {
		senders.Go(func() {
			testkit.Check(r.t, r.loadPartition(partition, rate, lasting, body))
		})
	}
	senders.Wait()
	var total int64
	for i := range r.sent {
		total += r.sent[i].Load()
	}
	r.t.Logf("%s: sent %d events, %.0f a second of %d", r.name, total, float64(total)/time.Since(began).Seconds(), rate)
}

func (r *trial) loadPartition(partition, rate int, lasting time.Duration, body func(partition, n int) string) error {
	size := max(1, int(float64(rate)*tick.Seconds()/float64(len(r.sent))+0.5))
	began := time.Now()
	for n, batch := 0, 0; batch < int(lasting/tick); batch++ {
		bodies := make([]string, size)
		for i := range bodies {
			bodies[i] = body(partition, n)
			n++
		}
		if err := r.send(partition, bodies...); err != nil {
			return err
		}
		select {
		case <-time.After(time.Until(began.Add(time.Duration(batch+1) * tick))):
		case <-r.t.Context().Done():
			return r.t.Context().Err()
		}
	}
	return nil
}

func fine(partition, n int) string { return fmt.Sprintf("%d/%d fine", partition, n) }

// breaking makes bodies of which those in the list are broken.
func breaking(broken map[int][]int) func(partition, n int) string {
	return func(partition, n int) string {
		for _, bad := range broken[partition] {
			if n == bad {
				return fmt.Sprintf("%d/%d broken", partition, n)
			}
		}
		return fine(partition, n)
	}
}
