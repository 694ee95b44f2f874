package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// formatKey is the entry that says what the nodes of the yard have written so far.
const formatKey = "server/format"

// ErrVersions: this program and others of the yard, or what these have stored, do not understand each
// other. The text says which is to be upgraded.
var ErrVersions = errors.New("nodes of these versions cannot share a yard")

// Formats are the forms of what nodes share, by number: each later one may hold what a program that
// does not know it would misread. Zero means 1.
type Formats struct {
	// Writes is the latest that this program writes, Knows the latest that it can read. A release that
	// knows a new form comes before the one that writes it, so that nodes can be upgraded one by one.
	Writes int `json:"writes,omitempty"`
	Knows  int `json:"knows,omitempty"`
}

// numbers gives both, without zeros.
func (f Formats) numbers() (writes, knows int) { return max(f.Writes, 1), max(f.Knows, f.Writes, 1) }

// clash says why this node cannot work beside another; empty: it can.
func (f Formats) clash(version string, other Formats, id, otherVersion string) string {
	writes, knows := f.numbers()
	theirWrites, theirKnows := other.numbers()
	switch {
	case theirWrites > knows:
		return fmt.Sprintf("node %s (version %s) writes form %d, and this program (version %s) knows forms up to %d: "+
			"start this node with version %s or later", id, otherVersion, theirWrites, version, knows, otherVersion)
	case writes > theirKnows:
		return fmt.Sprintf("this program (version %s) writes form %d, and node %s (version %s) knows forms up to %d: "+
			"upgrade that node first, to the last version before this one that knows form %d, or stop it", version, writes, id, otherVersion, theirKnows, writes)
	}
	return ""
}

// clashes gives those of the nodes that this one cannot work beside, with the reasons.
func (n *Nodes) clashes(found map[Node]presence) map[Node]string {
	reasons := map[Node]string{}
	for node, p := range found {
		if why := n.cfg.Formats.clash(n.cfg.Version, p.Formats, node.ID, p.Version); why != "" && node.ID != n.self.ID {
			reasons[node] = why
		}
	}
	return reasons
}

func refusal(reasons map[Node]string) error {
	var all []string
	for _, why := range reasons {
		all = append(all, why)
	}
	slices.Sort(all)
	return fmt.Errorf("%w: %s", ErrVersions, strings.Join(all, "; "))
}

// agree refuses to join nodes that this one cannot work beside, and a yard with content that it cannot
// read. The entry of a node that has died stays for a while: it counts only if the node answers, or if
// the entry changes. It gives the entries that did not count.
func (n *Nodes) agree(ctx context.Context) (dead map[Node]presence, err error) {
	if err := n.cfg.Store.Fresh(ctx, ""); err != nil {
		return nil, err
	}
	if _, err := n.written(ctx); err != nil {
		return nil, err
	}
	dead, err = n.read(ctx)
	if err != nil {
		return nil, err
	}
	reasons := n.clashes(dead)
	if len(reasons) == 0 {
		return nil, nil
	}
	for node := range reasons {
		asking, cancel := context.WithTimeout(ctx, pingTimeout)
		_, err := n.cfg.Wire.Ask(asking, Request{From: n.self, To: node, Subject: pingSubject})
		cancel()
		if err == nil {
			return nil, refusal(reasons)
		}
	}
	if err := sleep.For(ctx, returnTime, nil); err != nil {
		return nil, err
	}
	return dead, n.disagree(ctx, dead)
}

// disagree looks for nodes that this one cannot work beside, but for those whose entries are as they
// were when they did not count.
func (n *Nodes) disagree(ctx context.Context, dead map[Node]presence) error {
	if err := n.cfg.Store.Fresh(ctx, nodesPrefix); err != nil {
		return err
	}
	found, err := n.read(ctx)
	if err != nil {
		return err
	}
	maps.DeleteFunc(found, func(node Node, p presence) bool { return dead[node] == p })
	if reasons := n.clashes(found); len(reasons) > 0 {
		return refusal(reasons)
	}
	return nil
}

// formatEntry is the latest form that was written, and by which version first.
type formatEntry struct {
	Written int    `json:"written"`
	Version string `json:"version,omitempty"`
}

// written reads what the yard has; ErrVersions where this program does not know it.
func (n *Nodes) written(ctx context.Context) (meta.Entry, error) {
	entry, err := n.cfg.Store.Get(ctx, formatKey)
	if errors.Is(err, meta.ErrNotFound) {
		return meta.Entry{}, nil
	}
	if err != nil {
		return meta.Entry{}, err
	}
	var there formatEntry
	if err := json.Unmarshal(entry.Value, &there); err != nil {
		return meta.Entry{}, fmt.Errorf("read %s: %w", formatKey, err)
	}
	if _, knows := n.cfg.Formats.numbers(); there.Written > knows {
		return meta.Entry{}, fmt.Errorf("%w: what is stored has form %d since version %s was started, and this program (version %s) knows forms up to %d: start version %s or later",
			ErrVersions, there.Written, there.Version, n.cfg.Version, knows, there.Version)
	}
	return entry, nil
}

// note raises the entry to what this program writes. The first form needs no entry.
func (n *Nodes) note(ctx context.Context) error {
	writes, _ := n.cfg.Formats.numbers()
	value, err := json.Marshal(formatEntry{writes, n.cfg.Version})
	if err != nil {
		return err
	}
	for {
		entry, err := n.written(ctx)
		if err != nil {
			return err
		}
		there := formatEntry{Written: 1}
		if entry.Revision != 0 {
			if err := json.Unmarshal(entry.Value, &there); err != nil {
				return err
			}
		}
		if there.Written >= writes {
			return nil
		}
		if _, err := n.cfg.Store.CompareAndSet(ctx, formatKey, entry.Revision, value); !errors.Is(err, meta.ErrConflict) {
			return err
		}
	}
}
