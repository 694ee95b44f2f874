package local

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// position is where the broker's cursor begins for a position of package hub, as the AMQP listener
// reads it. Offsets are sequence numbers in decimal. An error is hub.ErrOutOfRange: no hub has such
// an offset.
func position(from hub.Position) (eventlog.Position, error) {
	if t, ok := from.Time(); ok { // times are whole milliseconds, and what is wanted is later
		return eventlog.Since(time.UnixMilli(t.UnixMilli() + 1)), nil
	}
	if n, inclusive, ok := from.Sequence(); ok {
		return number(n, inclusive), nil
	}
	if offset, inclusive, ok := from.Offset(); ok {
		n, err := strconv.ParseInt(offset, 10, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) { // what is too large is past every end all the same
			return eventlog.Position{}, fmt.Errorf("%w: no hub has an offset %q", hub.ErrOutOfRange, offset)
		}
		return number(n, inclusive), nil
	}
	if from == hub.Latest {
		return eventlog.Latest(), nil
	}
	return eventlog.Earliest(), nil
}

// number: below zero there is nothing, so that everything follows.
func number(n int64, inclusive bool) eventlog.Position {
	switch {
	case n < 0:
		return eventlog.Earliest()
	case inclusive || n == math.MaxInt64:
		return eventlog.At(eventlog.Sequence(n))
	}
	return eventlog.After(eventlog.Sequence(n))
}
