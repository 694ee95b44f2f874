package circuit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/processor"
)

// maxUnsure is how often an operator's change is tried whose answers do not arrive.
const maxUnsure = 4

// Change changes a circuit by compare-and-set, as often as it takes: change is asked with the
// newest record (a closed one of term 0 where there is none) and says what it is to become, or
// false for nothing. It gives the record as it is then.
//
// Where the store does not answer, the record is read again: what was written without an answer
// counts as written. An error means that it is not known what the circuit is.
func Change(ctx context.Context, s processor.Store, g processor.Group, function string,
	change func(breaker.Record) (breaker.Record, bool)) (breaker.Record, error) {
	notKnown := func(err error) (breaker.Record, error) {
		return breaker.Record{}, fmt.Errorf("change circuit %s: %w: look at the circuit before trying again", function, err)
	}
	var unsure [][]byte // what was written without an answer
	for pause := time.Millisecond; ; pause = min(2*pause, mostPause) {
		r, version, err := load(ctx, s, g, function)
		if err != nil {
			return notKnown(err)
		}
		is := breaker.EncodeRecord(r)
		if slices.ContainsFunc(unsure, func(wrote []byte) bool { return bytes.Equal(is, wrote) }) {
			return r, nil
		}
		next, wanted := change(r)
		if !wanted {
			return r, nil
		}
		wrote := breaker.EncodeRecord(next)
		_, err = s.Put(ctx, g, processor.Entry{Key: Prefix + function, Value: wrote, Version: version})
		if err == nil {
			return breaker.DecodeRecord(wrote)
		}
		if !errors.Is(err, processor.ErrConflict) {
			unsure = append(unsure, wrote)
		}
		if len(unsure) == maxUnsure || sleep.For(ctx, pause, nil) != nil {
			return notKnown(err)
		}
	}
}
