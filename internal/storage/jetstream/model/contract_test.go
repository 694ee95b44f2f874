package model_test

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streamstest"
)

// The contract, without faults and with those that it allows while nothing fails.
func TestContract(t *testing.T) {
	for name, faults := range map[string]model.Faults{
		"at once": {},
		"delayed": {Delay: time.Millisecond},
		"lagging": {Delay: time.Millisecond, Lag: 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			streamstest.Run(t, func(t *testing.T) (a, b streams.Storage) {
				c := model.New(1, faults)
				return c.Node("a"), c.Node("b")
			})
		})
	}
}
