package groups

import (
	"testing"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/storetest"
)

func storageEntries(t *testing.T) meta.Store { return storagetest.Entries(t) }

// P8: the yard's own store keeps the contract.
func TestStore(t *testing.T) {
	for name, store := range map[string]func(t *testing.T) meta.Store{
		"chosen": storageEntries, // in memory, or as the environment asks for
		"bolt":   func(t *testing.T) meta.Store { return newBolt(t, "") },
	} {
		t.Run(name, func(t *testing.T) {
			var yards []*yard
			open := func(t *testing.T) processor.Store {
				y := newYard(t, store(t))
				yards = append(yards, y)
				return y
			}
			storetest.RunWith(t, open, storetest.Options{
				AnyNamespace: true,
				Prepare: func(t *testing.T, g processor.Group) {
					yards[len(yards)-1].group(t, g.Hub, g.Group, storetest.Partitions)
				},
				// Another node has a broker of its own over the same store.
				Peer: func(t *testing.T, s processor.Store) processor.Store {
					y := s.(*yard)
					return openYard(t, y.meta, y.engine)
				},
			})
		})
	}
}

var _ Broker = (*broker.Broker)(nil)
