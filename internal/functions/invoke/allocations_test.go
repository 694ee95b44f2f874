//go:build !race

package invoke

import (
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// With the race detector pools drop what they are given, at random.
func TestWritingAllocatesNothingPerEvent(t *testing.T) {
	call := hundred()
	for _, f := range []Format{CloudEvents, EventHubs} {
		p := &page{}
		allocations := testing.AllocsPerRun(20, func() {
			p.body = p.body[:0]
			testkit.Check(t, p.write(f, &call))
		})
		testkit.That(t, allocations <= 5, "%s: %v allocations for %d events", f, allocations, len(call.Events))
	}
}
