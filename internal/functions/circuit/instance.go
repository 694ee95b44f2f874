package circuit

import (
	"fmt"

	"github.com/eventyard/eventyard/internal/functions/breaker"
)

// ByInstance judges how an instance changes a circuit's entry from one value (nil: there is none)
// to another, as breaker.ByInstance does.
func ByInstance(before, after []byte) (instance string, err error) {
	var is breaker.Record
	if before != nil {
		if is, err = breaker.DecodeRecord(before); err != nil {
			return "", fmt.Errorf("what is there: %w", err)
		}
	}
	next, err := breaker.DecodeRecord(after)
	if err != nil {
		return "", err
	}
	return breaker.ByInstance(is, next)
}
