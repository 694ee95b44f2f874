//go:build !race

package invoke

import "testing"

// With the race detector pools drop what they are given, at random.
func TestWritingAllocatesNothingPerEvent(t *testing.T) {
	call := hundred()
	for _, f := range []Format{CloudEvents, EventHubs} {
		p := &page{}
		allocations := testing.AllocsPerRun(20, func() {
			p.body = p.body[:0]
			if err := p.write(f, &call); err != nil {
				t.Error(err)
			}
		})
		if allocations > 5 {
			t.Errorf("%s: %v allocations for %d events", f, allocations, len(call.Events))
		}
	}
}
