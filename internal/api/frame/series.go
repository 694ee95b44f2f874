package frame

import (
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/series"
)

// SeriesNeed is what who wants to see some series has to show, and for what: of one hub what its other
// figures ask for, and of all else, the whole yard included, Manage to the namespace.
func SeriesNeed(keys ...series.Key) (Need, auth.Entity) {
	need := Of(Hub, auth.Send, auth.Listen)
	for _, k := range keys {
		if k.Hub == "" || k.Hub != keys[0].Hub || k.Subscription != "" {
			return Of(Namespace, auth.Manage), auth.Entity{}
		}
		switch k.Of {
		case series.Published, series.Bytes:
		case series.Read, series.Lag, series.LagSeconds:
			need = Of(Hub, auth.Listen)
		default:
			return Of(Namespace, auth.Manage), auth.Entity{}
		}
	}
	if len(keys) == 0 {
		return Of(Namespace, auth.Manage), auth.Entity{}
	}
	return need, auth.At(keys[0].Hub)
}
