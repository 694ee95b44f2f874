package console

import "github.com/eventyard/eventyard/admin"

// storageView is what the yard consists of.
type storageView struct {
	admin.Cluster
	// Ill says what is not well; empty: everything is.
	Ill string
}

var storagePage = page{template: "storage", load: loadStorage}

func loadStorage(v *visit) (*screen, error) {
	c, err := v.api.Cluster(v.ctx)
	if err != nil {
		return nil, err
	}
	view := storageView{Cluster: c, Ill: illOf(c)}
	state := "All is well."
	if view.Ill != "" {
		state = view.Ill
	}
	return &screen{Title: "Storage", Section: "storage", Crumbs: []crumb{{Name: "Storage"}}, View: view, State: state}, nil
}

// illOf says what is wrong with a yard, the worst first.
func illOf(c admin.Cluster) string {
	lost := 0
	for _, n := range c.Nodes {
		if n.State == admin.NodeLost {
			lost++
		}
	}
	switch {
	case c.Streams != nil && c.Streams.Leaderless > 0:
		return plural(c.Streams.Leaderless, "stream has no leader, and stores nothing.", "streams have no leader, and store nothing.")
	case c.Scrub != nil && c.Scrub.Findings > 0:
		return "The last scrub has " + plural(c.Scrub.Findings, "finding", "findings") + ": " + c.Scrub.First + ". To see all of them, run eventyard cluster scrub."
	case c.Streams != nil && c.Streams.Offline > 0:
		return plural(c.Streams.Offline, "stream has a replica whose server is gone.", "streams have a replica whose server is gone.")
	case lost > 0:
		return plural(lost, "node is lost.", "nodes are lost.")
	case c.UnheldShards > 0:
		return plural(c.UnheldShards, "shard of the grid waits for a node.", "shards of the grid wait for a node.")
	case len(c.Problems) > 0:
		return c.Problems[0]
	}
	return ""
}
