package eventlog

import (
	"context"
	"errors"
	"slices"
)

// MaxAppends bounds how often Again appends what was certainly not stored.
const MaxAppends = 4

// MaxSubmitBytes is the most that batches submitted together may measure: the five batches that an
// idempotent producer may have under way.
const MaxSubmitBytes = 5 * MaxBatchBytes

// CheckAll refuses what no engine stores of batches that are submitted together, and measures others;
// see Batch.Check. No batches at all are ErrEmptyBatch, too many bytes ErrTooLarge.
func CheckAll(batches []Batch) (size int, err error) {
	if len(batches) == 0 {
		return 0, ErrEmptyBatch
	}
	for i := range batches {
		one, err := batches[i].Check()
		if err != nil {
			return 0, err
		}
		size += one
	}
	if size > MaxSubmitBytes {
		return 0, ErrTooLarge
	}
	return size, nil
}

// Append submits one batch and waits for it. Where the partition's writer was replaced before the
// batch got there it was certainly not stored, and is appended again, up to a limit: who waits has
// nothing else under way that it could overtake.
func Append(ctx context.Context, p Partition, b Batch) (done Appended, err error) {
	err = Again(func() error {
		receipt, err := p.Submit(ctx, b)
		if err == nil {
			done, err = receipt.Wait(ctx)
		}
		return err
	}, ErrFenced)
	return done, err
}

// Again makes an append, and makes it again while it ends in one of the errors that are to be tried
// again, up to MaxAppends times. These have to mean that nothing was stored: one that is
// ErrUncertain as well is not tried again, or the batch might be stored twice.
func Again(attempt func() error, again ...error) error {
	for try := 1; ; try++ {
		err := attempt()
		if try == MaxAppends || errors.Is(err, ErrUncertain) || !slices.ContainsFunc(again, func(one error) bool { return errors.Is(err, one) }) {
			return err
		}
	}
}
