package scrub

import (
	"context"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
)

// Pace bounds how many bytes are read in a second, over all copies, so that reading leaves the servers
// and the network to those who use the yard. One goroutine uses it. The zero value has no bound.
type Pace struct {
	// Rate is in bytes a second; 0 means no bound.
	Rate int64

	free time.Time // when what was read is paid for
}

// wait waits until so much may have been read.
func (p *Pace) wait(ctx context.Context, bytes int64) error {
	if p == nil || p.Rate <= 0 {
		return context.Cause(ctx)
	}
	now := time.Now()
	if p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(time.Duration(float64(bytes) / float64(p.Rate) * float64(time.Second)))
	return sleep.For(ctx, p.free.Sub(now), nil)
}
