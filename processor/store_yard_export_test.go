package processor

import "github.com/eventyard/eventyard/hub"

// YardStore is what a processor uses that is given no store: over a *hub.Hub, or a hub of a test.
func YardStore(h any) Store {
	if h, ok := h.(*hub.Hub); ok {
		return &yard{hubCaller{h}}
	}
	return &yard{h.(caller)}
}
