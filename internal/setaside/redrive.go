package setaside

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

// MaxRedrives is how often one event is redriven unless it is forced: what keeps coming back would
// for ever.
const MaxRedrives = 3

// Bounds of one round of redriving, which is what one request does: the caller asks again, from
// where it ended, and can show how far it is. With a rate a round has so many as go out within
// roundTime.
const (
	MaxRound  = 1000
	roundTime = 30 * time.Second
)

// Round is how many events one round is about, of which a caller wants most; 0: as many as there
// are.
func Round(most int, perSecond float64) int {
	round := MaxRound
	if most > 0 {
		round = min(most, round)
	}
	if within := perSecond * roundTime.Seconds(); perSecond > 0 && within < float64(round) {
		round = max(int(within), 1)
	}
	return round
}

// maxBatch is how many events are sent and marked together.
const maxBatch = 100

// Redrive sends events on in batches, each in the order in which they are added, and keeps to a
// rate.
//
// Send publishes a batch and marks it, in that order: after a crash between the two its events are
// redriven twice, never not at all.
type Redrive[T any] struct {
	send     func(ctx context.Context, batch []T) error
	limit    *rate.Limiter // nil: none
	most     int           // events of a batch: no more than may go in a second
	maxBytes int

	batch []T
	bytes int
}

// NewRedrive makes one whose batches measure about maxBytes at most; perSecond 0: no limit.
func NewRedrive[T any](perSecond float64, maxBytes int, send func(ctx context.Context, batch []T) error) *Redrive[T] {
	r := &Redrive[T]{send: send, most: maxBatch, maxBytes: maxBytes}
	if perSecond > 0 {
		r.most = int(max(1, min(perSecond, maxBatch)))
		r.limit = rate.NewLimiter(rate.Limit(perSecond), r.most)
	}
	return r
}

// Add takes an event in, and sends when there are enough.
func (r *Redrive[T]) Add(ctx context.Context, one T, bytes int) error {
	r.batch, r.bytes = append(r.batch, one), r.bytes+bytes
	if len(r.batch) < r.most && r.bytes < r.maxBytes {
		return nil
	}
	return r.Flush(ctx)
}

// Len is how many were added and not sent.
func (r *Redrive[T]) Len() int { return len(r.batch) }

// Flush sends what was added.
func (r *Redrive[T]) Flush(ctx context.Context) error {
	if len(r.batch) == 0 {
		return nil
	}
	batch := r.batch
	r.batch, r.bytes = nil, 0
	if r.limit != nil {
		if err := r.limit.WaitN(ctx, len(batch)); err != nil {
			return err
		}
	}
	return r.send(ctx, batch)
}
