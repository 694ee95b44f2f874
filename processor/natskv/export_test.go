package natskv

import (
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/processor"
)

// Through gives the store with another way to its bucket.
func Through(s processor.Store, wrap func(jetstream.KeyValue) jetstream.KeyValue) processor.Store {
	other := *s.(*store)
	other.kv = wrap(other.kv)
	return &other
}
