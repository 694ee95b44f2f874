package circuit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/processor"
)

// Status is a circuit as an operator sees it.
type Status struct {
	Group    processor.Group
	Function string
	Record   breaker.Record
	Version  processor.Version
	// Failures are those of all instances' tallies as they were written, under the record's term;
	// Total those since they started.
	Failures int
	Total    int64
	Tallies  map[string]breaker.Tally // by instance
}

// Read gives the circuits of a group (function empty: all) by function, from any store. There is
// one for each function that has a record or a tally, closed where it has no record; one that never
// had trouble is there while an instance runs. A record that cannot be read is an error, with which
// the other circuits are given; a tally that cannot be read is left out.
func Read(ctx context.Context, s processor.Store, g processor.Group, function string) ([]Status, error) {
	records, err := s.Entries(ctx, g, Prefix)
	if err != nil {
		return nil, fmt.Errorf("read the circuits of %s/%s: %w", g.Hub, g.Group, err)
	}
	counts, err := s.Entries(ctx, g, tallies(function))
	if err != nil {
		return nil, fmt.Errorf("read the failures of %s/%s: %w", g.Hub, g.Group, err)
	}
	found := map[string]*Status{} // by function
	of := func(name string) *Status {
		if found[name] == nil {
			found[name] = &Status{Group: g, Function: name, Record: breaker.Record{State: breaker.Closed}, Tallies: map[string]breaker.Tally{}}
		}
		return found[name]
	}
	for _, f := range counts {
		name, instance, _ := strings.Cut(strings.TrimPrefix(f.Key, TallyPrefix), "/")
		if t, err := breaker.DecodeTally(f.Value); err == nil && instance != "" {
			s := of(name)
			s.Tallies[instance] = t
			s.Total += t.Total
		}
	}
	var unread error
	for _, f := range records {
		name := strings.TrimPrefix(f.Key, Prefix)
		if function != "" && name != function {
			continue
		}
		r, err := decode(f)
		if err != nil {
			unread = errors.Join(unread, err)
			delete(found, name)
			continue
		}
		s := of(name)
		s.Record, s.Version = r, f.Version
	}
	var all []Status
	for _, name := range slices.Sorted(maps.Keys(found)) {
		s := found[name]
		for _, t := range s.Tallies {
			if t.Term == s.Record.Term {
				s.Failures += t.Count()
			}
		}
		all = append(all, *s)
	}
	return all, unread
}
