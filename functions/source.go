package functions

import (
	"context"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/processor"
)

// Namespace is where a host finds hubs by name. A *hub.Client gives one by Dialed; a yard has
// another for the functions in its own process, and so have tests.
type Namespace interface{ Hub(name string) Source }

// Source is a hub that can be read by a processor and written to by numbered producers.
type Source interface {
	processor.Hub
	Producer(cfg hub.ProducerConfig) Producer
}

// Producer is what a host needs of *hub.Producer, whose contract holds.
type Producer interface {
	Send(ctx context.Context, number int32, ev event.Event) error
	Close(ctx context.Context) error
}

// Dialed is a client's namespace.
func Dialed(client *hub.Client) Namespace { return dialed{client} }

type dialed struct{ client *hub.Client }

func (d dialed) Hub(name string) Source { return realHub{d.client.Hub(name)} }

type realHub struct{ *hub.Hub }

// Unwrap lets a processor find the yard's store.
func (h realHub) Unwrap() *hub.Hub { return h.Hub }

func (h realHub) Producer(cfg hub.ProducerConfig) Producer { return h.Hub.Producer(cfg) }
