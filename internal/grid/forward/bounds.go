package forward

import (
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

// Bounds of what another node may ask for, whatever it says: those that listeners keep, or above them.
const (
	maxRequestBytes = 2 << 20
	maxReceive      = 1000
	maxWait         = 2 * time.Minute
	maxTokens       = 1000
	maxDelay        = time.Hour
	maxList         = 1000
)

// A bound makes a question that may have come from anywhere one that can be answered, or says why it
// cannot be.

func noBound[Q any](q Q) (Q, error) { return q, nil }

func boundReceiving(q receiving) (receiving, error) {
	q.Max, q.Wait = min(max(q.Max, 0), maxReceive), min(max(q.Wait, 0), maxWait)
	if q.MaxBytes <= 0 || q.MaxBytes > receiveBytes {
		q.MaxBytes = receiveBytes
	}
	return q, nil
}

func boundSettling(q settling) (settling, error) {
	if len(q.Tokens) > maxTokens {
		return q, fmt.Errorf("%w: %d lock tokens, at most %d are allowed", topics.ErrInvalid, len(q.Tokens), maxTokens)
	}
	if q.How < delivery.Acknowledge || q.How > delivery.Renew {
		return q, fmt.Errorf("%w: nobody settles in way %d", topics.ErrInvalid, q.How)
	}
	q.Delay = min(max(q.Delay, 0), maxDelay)
	return q, nil
}

func boundTokens(tokens []string) ([]string, error) {
	q, err := boundSettling(settling{How: delivery.Release, Tokens: tokens})
	return q.Tokens, err
}

func boundListing(q deadletter.Query) (deadletter.Query, error) {
	q.Limit = min(q.Limit, maxList)
	if q.MaxBytes <= 0 || q.MaxBytes > listBytes {
		q.MaxBytes = listBytes
	}
	return boundQuery(q)
}

func boundQuery(q deadletter.Query) (deadletter.Query, error) {
	if q.From < 0 || q.Limit < 0 {
		return q, fmt.Errorf("%w: %d letters from number %d", topics.ErrInvalid, q.Limit, q.From)
	}
	return q, nil
}

func boundTracing(q tracing) (tracing, error) {
	if q.Partition < 0 || q.Number < 0 {
		return q, fmt.Errorf("%w: event %d of partition %d", topics.ErrInvalid, q.Number, q.Partition)
	}
	return q, nil
}

func boundRedriving(q redriving) (redriving, error) {
	if q.Options.Rate < 0 {
		return q, fmt.Errorf("%w: a rate of %v", topics.ErrInvalid, q.Options.Rate)
	}
	_, err := boundQuery(q.Query)
	return q, err
}
