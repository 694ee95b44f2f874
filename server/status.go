package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/overview"
	"github.com/eventyard/eventyard/internal/storage"
)

// status is what this node knows of the yard: the nodes, and the servers where there are some. It asks
// the servers, which may take some seconds; what they do not say is told as a problem.
func (y *yard) status(ctx context.Context) admin.Cluster {
	c := admin.Cluster{Node: y.nodes.Self().ID, Engine: y.storage.Engine}
	now := time.Now()
	var shares map[string]int
	if y.grid.placement != nil {
		var err error
		if shares, err = y.grid.placement.Shares(ctx); err != nil {
			c.Problems = append(c.Problems, err.Error())
		} else {
			c.UnheldShards = shards.Count - heldOf(shares)
		}
	}
	for _, m := range y.nodes.Members() {
		if m.Node == y.nodes.Self() {
			m.Version = y.cfg.Version
		}
		c.Nodes = append(c.Nodes, showNode(m, now, shares[nodeText(m.Node)]))
	}
	if y.storage.Servers == nil {
		return c
	}
	found := y.storage.Servers(ctx)
	c.Servers = showServers(found)
	if found.Err != nil {
		c.Problems = append(c.Problems, fmt.Sprintf("the NATS servers do not say how the streams are: %v", found.Err))
	} else {
		c.Streams = showStreams(found.Streams)
		for _, name := range slices.Sorted(maps.Keys(found.Lost)) {
			log := found.Lost[name]
			c.Streams.Lost = append(c.Streams.Lost, admin.LostStream{Name: name, Log: log, Hub: broker.HubOf(y.broker, log)})
		}
	}
	c.Scrub = y.lastScrub(ctx)
	return c
}

// lastScrub is the last that any of the nodes has made since it started, as far as they answer.
func (y *yard) lastScrub(ctx context.Context) *admin.ClusterScrub {
	nodes, _, err := y.figures.Health(ctx)
	by, last := overview.LastScrub(nodes)
	if err != nil || last.Ended.IsZero() {
		return nil
	}
	return &admin.ClusterScrub{Node: by, Ended: admin.Time{Time: last.Ended}, Findings: last.Findings, First: last.First}
}

func heldOf(shares map[string]int) (sum int) {
	for _, n := range shares {
		sum += n
	}
	return sum
}

func showNode(m cluster.Member, now time.Time, held int) admin.ClusterNode {
	return admin.ClusterNode{
		Name: m.ID, Version: m.Version, State: stateOf(m), Shards: held,
		Started: admin.Time{Time: m.Started}, Seen: admin.Time{Time: now.Add(-m.Unchanged).UTC()},
	}
}

func stateOf(m cluster.Member) string {
	switch {
	case !m.Alive:
		return admin.NodeLost
	case m.Quiet:
		return admin.NodeQuiet
	}
	return admin.NodeLive
}

func showServers(found storage.Servers) *admin.NATSServers {
	s := &admin.NATSServers{
		Yard: found.Yard, Replicas: found.Replicas, Known: []admin.NATSServer{}, Addresses: append([]string{}, found.Addresses...), Warnings: found.Warnings,
		Inside: found.Inside, Leader: found.Leader,
	}
	for _, one := range found.Known {
		sync := admin.SyncUnknown
		switch {
		case one.SyncKnown && one.Sync:
			sync = admin.SyncAlways
		case one.SyncKnown:
			sync = admin.SyncLater
		}
		s.Known = append(s.Known, admin.NATSServer{
			Name: one.Name, Version: one.Version, MaxPayload: one.MaxPayload, Sync: sync, Connections: one.Connections,
			Address: one.Address, Unreached: one.Unreached,
		})
	}
	return s
}

func showStreams(found storage.Streams) *admin.Streams {
	s := &admin.Streams{
		Count: found.Count, Messages: found.Messages, Bytes: found.Bytes,
		Leaderless: found.Leaderless, Offline: found.Offline, Lagging: found.Lagging, Leaders: found.Leaders,
	}
	for _, one := range found.Worst {
		shown := admin.Stream{Name: one.Name, Leader: one.Leader, Messages: one.Messages, Bytes: one.Bytes}
		for _, r := range one.Replicas {
			shown.Replicas = append(shown.Replicas, admin.StreamReplica(r))
		}
		s.Worst = append(s.Worst, shown)
	}
	return s
}

// authority is the certificate of the yard's own authority; nothing where it has none.
func (y *yard) authority() ([]byte, error) {
	if y.certs == nil {
		return nil, nil
	}
	return y.certs.CA()
}
