package circuit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	// Failures are those of all instances' tallies as they were written, under the record's term; Total those since they started.
	Failures int
	Total    int64
	Tallies  map[string]breaker.Tally // by instance
}

// Read gives the circuits of a group (function empty: all) by function, from any store. There is one for each function that
// has a record or a tally, closed where it has no record; one that never had trouble is there while an instance runs. A record that cannot be
// read is an error, with which the other circuits are given; a tally that cannot be read is left out.
func Read(ctx context.Context, s processor.Store, g processor.Group, function string) ([]Status, error) {
	records, err := s.Entries(ctx, g, Prefix)
	if err != nil {
		return nil, fmt.Errorf("read the circuits of %s/%s: %w", g.Hub, g.Group, err)
	}
	counts, err := s.Entries(ctx, g, tallies(function))
	if err != nil {
		return nil, fmt.Errorf("read the failures of %s/%s: %w", g.Hub, g.Group, err)
	}
	b := board{group: g, all: map[string]*Status{}}
	for _, f := range counts {
		b.tally(f)
	}
	err = nil
	for _, f := range records {
		if name := strings.TrimPrefix(f.Key, Prefix); function == "" || name == function {
			err = errors.Join(err, b.record(name, f))
		}
	}
	return b.list(), err
}

// board gathers the entries of circuits.
type board struct {
	group processor.Group
	all   map[string]*Status // by function
}

func (b *board) of(function string) *Status {
	s := b.all[function]
	if s == nil {
		s = &Status{Group: b.group, Function: function, Record: breaker.Record{State: breaker.Closed}, Tallies: map[string]breaker.Tally{}}
		b.all[function] = s
	}
	return s
}

func (b *board) tally(f processor.Entry) {
	function, instance := ofTally(f.Key)
	if t, err := breaker.DecodeTally(f.Value); err == nil && instance != "" {
		s := b.of(function)
		s.Tallies[instance] = t
		s.Total += t.Total
	}
}

func (b *board) record(function string, f processor.Entry) error {
	r, err := decode(f)
	if err != nil {
		delete(b.all, function)
		return err
	}
	s := b.of(function)
	s.Record, s.Version = r, f.Version
	return nil
}

func (b *board) list() []Status {
	var all []Status
	for _, s := range b.all {
		for _, t := range s.Tallies {
			if t.Term == s.Record.Term {
				s.Failures += t.Count()
			}
		}
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Status) int { return cmp.Compare(a.Function, b.Function) })
	return all
}
