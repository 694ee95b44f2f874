package schema

import (
	"maps"
	"slices"

	"github.com/eventyard/eventyard/internal/amqp/amqpjson"
)

// appendValue writes as JSON the body of a hub's event that is an AMQP value and no bytes.
// Types that JSON does not have become text; so does what a number there cannot express.
func appendValue(dst []byte, v any) []byte { return amqpjson.AppendValue(dst, v, amqpjson.Plain) }

// appendScalar writes a value that has no parts; it says false for others, and writes
// nothing.
func appendScalar(dst []byte, v any) ([]byte, bool) {
	return amqpjson.AppendScalar(dst, v, amqpjson.Plain)
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
