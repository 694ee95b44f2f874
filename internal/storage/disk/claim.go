package disk

import (
	"context"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Claim fences nobody, since nobody else writes these files, and asks for nothing of batches: what
// the process appends for one producer it has to order itself; see eventlog.Partition.
func (p *partition) Claim(ctx context.Context, producer int64) (eventlog.Claim, error) {
	b, err := p.Bounds(ctx)
	return eventlog.Claim{Next: b.Next}, err
}

// Sole holds because the data folder is locked; see eventlog.Partition.
func (p *partition) Sole() bool { return true }
