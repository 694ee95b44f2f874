package frame

import (
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/series"
)

// SeriesNeed is what who wants to see some series has to show, and for what: of hubs what their other
// figures ask for, to the one hub or to the namespace, and of all else, the whole yard included, Manage to
// the namespace.
func SeriesNeed(keys ...series.Key) (Need, auth.Entity) {
	reach, rights, of := Hub, []auth.Rights{auth.Send, auth.Listen}, auth.Entity{}
	for _, k := range keys {
		if k.Hub == "" || k.Subscription != "" {
			return Of(Namespace, auth.Manage), auth.Entity{}
		}
		if k.Hub != keys[0].Hub {
			reach = Namespace
		}
		switch k.Of {
		case series.Published, series.Bytes:
		case series.Read, series.Lag, series.LagSeconds:
			rights = []auth.Rights{auth.Listen}
		default:
			return Of(Namespace, auth.Manage), auth.Entity{}
		}
	}
	if len(keys) == 0 {
		return Of(Namespace, auth.Manage), auth.Entity{}
	}
	if reach == Hub {
		of = auth.At(keys[0].Hub)
	}
	return Of(reach, rights...), of
}
