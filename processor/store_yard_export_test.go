package processor

import (
	"context"
	"errors"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/hubs/groupwire"
)

// YardStore is what a processor uses that is given no store: over a *hub.Hub, or a hub of a test.
func YardStore(h any) Store {
	if h, ok := h.(*hub.Hub); ok {
		return newYard(h)
	}
	return &yard{hub: h.(caller), namespace: "test", process: processSecret()}
}

// YardStoreOfProcess is the store of another process.
func YardStoreOfProcess(h *hub.Hub, name string) Store {
	y := newYard(h)
	y.process = []byte(name)
	return y
}

// YardStoreOf is the store of another process, at a hub "h" that hears of all calls and fails.
func YardStoreOf(hear func(groupwire.Call), process string) Store {
	return &yard{hub: hearing(hear), namespace: "test", process: []byte(process)}
}

type hearing func(groupwire.Call)

func (hearing) Name() string { return "h" }

func (h hearing) Call(_ context.Context, c groupwire.Call) ([]byte, error) {
	h(c)
	return nil, errors.New("it fails")
}
