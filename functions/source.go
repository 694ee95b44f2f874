package functions

import (
	"context"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/processor"
)

// namespace is what a host needs of a client: hubs by name. Tests have another.
type namespace interface{ Hub(name string) source }

// source is a hub that can be read by a processor and written to by numbered producers.
type source interface {
	processor.Hub
	Producer(cfg hub.ProducerConfig) producer
}

// producer is *hub.Producer.
type producer interface {
	Send(ctx context.Context, number int32, ev event.Event) error
	Close(ctx context.Context) error
}

// dialed is a real client's namespace.
type dialed struct{ client *hub.Client }

func (d dialed) Hub(name string) source { return realHub{d.client.Hub(name)} }

// realHub has all methods of the client's hub, among them those by which a processor finds the yard's store.
type realHub struct{ *hub.Hub }

func (h realHub) Producer(cfg hub.ProducerConfig) producer { return h.Hub.Producer(cfg) }
