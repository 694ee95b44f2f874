package box

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// SourcesError: poison events that were to be redriven together come from several hubs. Whoever may
// send to a poison hub chooses what its poison events say; so who redrives says which hub is meant.
type SourcesError struct {
	// Hubs are those that poison events name, by name; no more than ten.
	Hubs []string
}

func (e *SourcesError) Error() string {
	names := make([]string, len(e.Hubs))
	for i, name := range e.Hubs {
		names[i] = fmt.Sprintf("%.64q", name)
	}
	return "they come from several hubs (" + strings.Join(names, ", ") + "): name the one whose events are to be redriven"
}

// maxSources is how many hubs are named to who has to choose one.
const maxSources = 10

// findSource finds the hub that the poison events came from, where none was named: all have to name
// the same. Those that come meanwhile and name another are left.
func (r *redrive) findSource(ctx context.Context) error {
	if r.cfg.Source != "" {
		return nil
	}
	ways, err := r.box.waysOn(ctx, r.hub, r.cfg.Query, r.marks)
	if err != nil {
		return err
	}
	defer ways.close()
	hubs := map[string]bool{}
	for len(hubs) < maxSources {
		partition, i, more, err := ways.next(ctx)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if e, chosen := r.chosen(partition, i); chosen {
			hubs[auth.Fold(e.Hub)] = true
		}
	}
	names := slices.Sorted(maps.Keys(hubs))
	switch len(names) {
	case 0:
	case 1:
		r.cfg.Source = names[0]
	default:
		return &SourcesError{names}
	}
	return nil
}
