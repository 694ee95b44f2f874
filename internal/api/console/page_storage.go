package console

import (
	"cmp"
	"strings"

	"github.com/eventyard/eventyard/admin"
)

// storageView is what the yard consists of.
type storageView struct {
	admin.Cluster
	Disks disks
	// Ill says what is not well; empty: everything is.
	Ill string
}

// Leads is how many streams a server leads; a dash where the servers do not say.
func (s storageView) Leads(server string) string {
	if s.Streams == nil {
		return "–"
	}
	return number(s.Streams.Leaders[server])
}

var storagePage = page{template: "storage", load: loadStorage}

func loadStorage(v *visit) (*screen, error) {
	c, err := v.api.Cluster(v.ctx)
	if err != nil {
		return nil, err
	}
	view := storageView{Cluster: c, Disks: loadDisks(v), Ill: illOf(c, saying(v.overview(), "disk-full", "disk-low", "write-failed", "damage"))}
	return &screen{Title: "Storage", Section: "storage", Crumbs: []crumb{{Name: "Storage"}}, View: view, State: cmp.Or(view.Ill, "All is well.")}, nil
}

// illOf says what is wrong with a yard, the worst first: what its disks need before all else. Of nodes that are
// lost it says which, and all that is known of what they leave behind.
func illOf(c admin.Cluster, disks []string) string {
	lost, harms := lostOf(c.Nodes), append(disks, harmsOf(c)...)
	switch {
	case len(lost) > 0:
		return lostWords(lost) + " " + cmp.Or(strings.Join(harms, " "), "The other nodes have taken what was done there.")
	case len(harms) > 0:
		return harms[0]
	}
	return ""
}

func lostOf(nodes []admin.ClusterNode) (names []string) {
	for _, n := range nodes {
		if n.State == admin.NodeLost {
			names = append(names, n.Name)
		}
	}
	return names
}

func lostWords(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return "Node " + names[0] + " is lost."
	}
	return "Nodes " + strings.Join(names[:last], ", ") + " and " + names[last] + " are lost."
}

// harmsOf is what does not work, or not as it should, the worst first.
func harmsOf(c admin.Cluster) (harms []string) {
	add := func(n int, one, many string) {
		if n > 0 {
			harms = append(harms, plural(n, one, many))
		}
	}
	streams := cmp.Or(c.Streams, &admin.Streams{})
	add(streams.Leaderless, "stream has no leader, and stores nothing.", "streams have no leader, and store nothing.")
	if c.Scrub != nil && c.Scrub.Findings > 0 {
		harms = append(harms, "The last scrub has "+plural(c.Scrub.Findings, "finding", "findings")+": "+c.Scrub.First+". To see all of them, run eventyard cluster scrub.")
	}
	add(streams.Offline, "stream has a replica whose server is gone.", "streams have a replica whose server is gone.")
	add(waitingShards(c), "shard of the grid waits for a node.", "shards of the grid wait for a node.")
	return append(harms, c.Problems[:min(len(c.Problems), 1)]...)
}

// waitingShards are those that nobody holds, or a node that is lost.
func waitingShards(c admin.Cluster) int {
	n := c.UnheldShards
	for _, node := range c.Nodes {
		if node.State == admin.NodeLost {
			n += node.Shards
		}
	}
	return n
}
