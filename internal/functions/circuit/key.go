package circuit

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/eventyard/eventyard/internal/hubs/groupentry"
)

// The keys of a circuit's entries.
const (
	Prefix      = "circuit/"  // + function: a breaker.Record
	TallyPrefix = "failures/" // + function/instance: a breaker.Tally
)

// tallies is the prefix of a function's tallies; of all if it is empty.
func tallies(function string) string {
	if function == "" {
		return TallyPrefix
	}
	return TallyPrefix + function + "/"
}

// tallyKey is the instance's name, shortened where a long function leaves no room for a long
// instance.
func tallyKey(function, instance string) string {
	const hashed = 16 // digits, and a dash before them
	room := groupentry.MaxKeyBytes - len(tallies(function))
	if len(instance) > room && room > hashed {
		sum := sha256.Sum256([]byte(instance))
		instance = instance[:room-hashed-1] + "-" + hex.EncodeToString(sum[:])[:hashed]
	}
	return tallies(function) + instance
}
