package auth

import (
	"fmt"
	"slices"
	"strings"
)

// Rights is a set of what may be done. Manage implies the others.
type Rights uint8

const (
	Send Rights = 1 << iota
	Listen
	manage
	// Manage is everything.
	Manage = Send | Listen | manage
)

// Metrics is to read the metrics of the yard, and nothing else: a program that scrapes them needs no
// key that opens events. It is no right to any entity. Who may Listen to the namespace reads them, too,
// so that Manage need not have it.
const Metrics Rights = 1 << 3

type named struct {
	right Rights
	name  string
}

// names in the order in which rights are written.
var names = []named{{Send, "Send"}, {Listen, "Listen"}, {Manage, "Manage"}, {Metrics, "Metrics"}}

// Has reports whether all of need is there.
func (r Rights) Has(need Rights) bool { return r&need == need }

// Names gives the rights as they are written: Send, Listen, or Manage alone, which stands for all.
func (r Rights) Names() []string {
	if r.Has(Manage) {
		return []string{"Manage"}
	}
	list := []string{}
	for _, n := range names {
		if r.Has(n.right) {
			list = append(list, n.name)
		}
	}
	return list
}

func (r Rights) String() string {
	if r == 0 {
		return "none"
	}
	return strings.Join(r.Names(), ",")
}

// ParseRights reads names, in any case; at least one. Errors wrap ErrRights.
func ParseRights(list []string) (Rights, error) {
	var rights Rights
	for _, text := range list {
		i := slices.IndexFunc(names, func(n named) bool { return Fold(n.name) == Fold(text) })
		if i < 0 {
			return 0, fmt.Errorf("%w: %.64q, use Send, Listen, Manage or Metrics", ErrRights, text)
		}
		rights |= names[i].right
	}
	if rights == 0 {
		return 0, fmt.Errorf("%w: name at least one of Send, Listen, Manage and Metrics", ErrRights)
	}
	return rights, nil
}
