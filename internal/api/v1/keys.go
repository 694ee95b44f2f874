package v1

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/broker"
)

const (
	defaultBusyKeys = 16
	maxBusyKeys     = 256
)

// Keys gives what all nodes have counted of the keys of some partitions, in their order, on behalf of the
// caller of the request whose context it gets. missing are the nodes that did not answer.
type Keys func(ctx context.Context, hub string, partitions []string) (tallies []broker.KeyTally, missing []string, err error)

// listKeys shows the busiest keys of a hub. Whoever sees them sees a part of the events: it takes the right
// to read these, which other figures of a hub do not.
func (d *Handler) listKeys(w http.ResponseWriter, r *http.Request) error {
	hub, err := d.cfg.Broker.LookUp(r.Context(), r.PathValue("hub"))
	if err != nil {
		return err
	}
	query := r.URL.Query()
	partitions, err := choosePartitions(query["partition"], hub)
	if err != nil {
		return err
	}
	most, err := positive(query, "limit", defaultBusyKeys)
	if err != nil {
		return err
	}
	tallies, missing, err := d.cfg.Keys(r.Context(), hub.Name, partitions)
	if err != nil {
		return err
	}
	shown := showKeys(tallies, min(most, maxBusyKeys))
	shown.Hub, shown.Unanswered = hub.Name, missing
	return writeJSON(w, http.StatusOK, shown)
}

// showKeys gives the busiest of all partitions. A key in two of them is there twice: how many events it has
// in all others is not known of any.
func showKeys(tallies []broker.KeyTally, most int) admin.BusyKeys {
	shown := admin.BusyKeys{Keys: []admin.BusyKey{}}
	for i, t := range tallies {
		if i == 0 || t.Since.Before(shown.Since.Time) {
			shown.Since.Time = t.Since
		}
		shown.Events, shown.Keyed = shown.Events+t.Events, shown.Keyed+t.Keyed
		for _, k := range t.Keys {
			shown.Keys = append(shown.Keys, admin.BusyKey{
				Partition: t.Partition, Key: k.Key, Events: k.Count, Error: k.Excess, Share: math.Round(1e4*float64(k.Count)/float64(t.Events)) / 1e4,
			})
		}
	}
	slices.SortStableFunc(shown.Keys, func(a, b admin.BusyKey) int { return cmp.Compare(b.Events, a.Events) })
	shown.Keys = shown.Keys[:min(len(shown.Keys), most)]
	return shown
}
