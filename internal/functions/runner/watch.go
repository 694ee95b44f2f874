package runner

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/internal/functions/notify"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
	"github.com/eventyard/eventyard/processor"
)

// Watch, Circuit, Resume, Targets and Lag are for notices.

// Watch tells the circuits of all groups as they are, and then each change, until ctx ends. One
// whose function was deleted is told as one that never was open. A watch that is lost, or whose
// store is out of reach, begins anew; what happened meanwhile is told as one change. It returns early where the store cannot be watched
// at all.
func (k *circuits) Watch(ctx context.Context, report func(notify.Circuit)) error {
	noted := func(c notify.Circuit) {
		k.changes.add(c, time.Now())
		report(c)
	}
	w := watcher{log: k.log, report: noted, seen: map[functionKey]notify.Circuit{}}
	err := mirror.Follow(ctx, func(ctx context.Context, begun func()) error {
		first := true
		return k.cfg.Groups.FollowEntries(ctx, circuit.Prefix, func(entries []groups.GroupEntry) {
			w.take(entries)
			if first {
				begun()
				w.dropMissing(entries)
			}
			first = false
		})
	}, func(err error) { k.log.Warn("watch of the circuits was lost, beginning anew", "error", err) })
	if err != nil {
		return fmt.Errorf("watch circuits: %w", err)
	}
	return nil
}

// watcher knows what was told, so that only changes are.
type watcher struct {
	log    *slog.Logger
	report func(notify.Circuit)
	seen   map[functionKey]notify.Circuit
}

// take tells what is new. A record that cannot be read is no change: it is not taken for a closed
// circuit.
func (w *watcher) take(entries []groups.GroupEntry) {
	for _, f := range entries {
		function := strings.TrimPrefix(f.Key, circuit.Prefix)
		if f.Gone {
			w.gone(keyFor(f.Group, function))
			continue
		}
		r, err := breaker.DecodeRecord(f.Value)
		if err != nil {
			w.log.Error("a circuit cannot be read", "hub", f.Group.Hub, "group", f.Group.Group, "function", function, "error", err)
			continue
		}
		c := notify.Circuit{Group: f.Group, Function: function, Record: closedIfNone(r)}
		if had, known := w.seen[keyFor(f.Group, function)]; known && reflect.DeepEqual(had.Record, c.Record) {
			continue
		}
		w.seen[keyFor(f.Group, function)] = c
		w.report(c)
	}
}

// gone tells of a circuit whose record was removed, as of one that never was open.
func (w *watcher) gone(key functionKey) {
	c, known := w.seen[key]
	if !known {
		return
	}
	delete(w.seen, key)
	c.Record = breaker.Record{State: breaker.Closed}
	w.report(c)
}

// dropMissing ends those that are not among all there are.
func (w *watcher) dropMissing(all []groups.GroupEntry) {
	there := make(map[functionKey]bool, len(all))
	for _, f := range all {
		there[keyFor(f.Group, strings.TrimPrefix(f.Key, circuit.Prefix))] = true
	}
	for key := range w.seen {
		if !there[key] {
			w.gone(key)
		}
	}
}

// Circuit reads one now; false: there is none.
func (k *circuits) Circuit(ctx context.Context, g processor.Group, function string) (notify.Circuit, bool, error) {
	c := notify.Circuit{Group: g, Function: function}
	all, err := circuit.Read(ctx, k.cfg.Groups, g, function)
	if unlessGone(err) != nil {
		return c, false, err
	}
	for _, s := range all {
		if s.Version != "" {
			c.Record = closedIfNone(s.Record)
			return c, true, nil
		}
	}
	return c, false, nil
}

// Resume closes a circuit for who has the link of an incident: while it lasts, and not if an
// operator holds the circuit.
func (k *circuits) Resume(ctx context.Context, g processor.Group, function, incident, by string) (notify.Circuit, bool, error) {
	c, found, err := k.Circuit(ctx, g, function)
	if err != nil || !found || incident == "" {
		return c, false, err
	}
	resumed := false
	c.Record, err = circuit.Change(ctx, k.cfg.Groups, g, function, func(r breaker.Record) (breaker.Record, bool) {
		resumed = false
		if r.Incident != incident || r.State != breaker.Open && r.State != breaker.HalfOpen {
			return r, false
		}
		r, resumed = breaker.Resume(r, by, "resumed by the link of a notice", time.Now())
		return r, resumed
	})
	if err != nil {
		return c, false, err
	}
	c.Record = closedIfNone(c.Record)
	return c, resumed, nil
}

// Targets are where notices of this function go: those of all functions, and those of its
// definition, if it is one of the yard's.
func (k *circuits) Targets(g processor.Group, function string) []string {
	targets := slices.Clone(k.cfg.Targets)
	e := k.definition(g, function)
	if e == nil {
		return targets
	}
	for _, target := range e.Notify {
		if !slices.Contains(targets, target) {
			targets = append(targets, target)
		}
	}
	return targets
}

// Own reports whether this is one of the yard's functions.
func (k *circuits) Own(g processor.Group, function string) bool {
	return k.definition(g, function) != nil
}

// definition is that of a circuit's function; nil: it is none of the yard's.
func (k *circuits) definition(g processor.Group, function string) *entry {
	if e := k.known(keyOf(function)); e != nil && e.Name == function && sameGroup(e.group(""), g) {
		return e
	}
	return nil
}

// Lag is how many events wait in a group; -1: unknown.
func (k *circuits) Lag(ctx context.Context, g processor.Group) int64 {
	t, err := k.cfg.Groups.Table(ctx, g.Hub, g.Group)
	if err != nil {
		return -1
	}
	lag, _ := lagOf(t)
	return lag
}
