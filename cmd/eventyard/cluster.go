package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

// clusterCommands are those of `eventyard cluster`.
type clusterCommands struct{ *cli }

func (c clusterCommands) command() *cobra.Command {
	backups := backupCommands{c.cli} // which work with and without servers, and stand at the top as well
	return family(&cobra.Command{Use: "cluster", Short: "Show and maintain the nodes of the yard, and the servers that keep its events"},
		c.init(), c.status(), c.scrub(), c.replicas(), backups.command(), backups.restore())
}

const clusterStatusHelp = `Show the nodes of the yard and the NATS servers that keep its events, as the node that answers
knows them: which nodes live and how many of the grid's shards each holds, what that node found at
the servers when it started, and how the yard's streams are kept. A yard on one machine is one node
and has no servers.`

func (c clusterCommands) status() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Show nodes, servers and streams", Long: clusterStatusHelp,
		Example: "  eventyard cluster status --server http://node-2:8080\n  eventyard cluster status -o json",
	}
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, _ []string) (admin.Cluster, error) {
		return client.Cluster(cmd.Context())
	}, c.show)
}

func (c clusterCommands) show(s admin.Cluster) error {
	if err := c.printf("engine %s, reported by node %s\n\n", s.Engine, oneLine(s.Node)); err != nil {
		return err
	}
	t := newTable(c.stdout, "NODE", "VERSION", "STATE", "STARTED", "SEEN", "SHARDS")
	for _, n := range s.Nodes {
		held := "-"
		if s.Servers != nil {
			held = fmt.Sprint(n.Shards)
		}
		t.row(oneLine(n.Name), oneLine(n.Version), n.State, showTime(n.Started), showAgo(time.Now(), n.Seen.Time), held)
	}
	if err := t.flush(); err != nil {
		return err
	}
	if s.UnheldShards > 0 {
		fmt.Fprintf(c.stdout, "%s held by no node: what is to be delivered from there waits\n", counted(s.UnheldShards, "shard"))
	}
	if s.Servers != nil {
		if err := c.showServers(*s.Servers); err != nil {
			return err
		}
	}
	if s.Streams != nil {
		if err := c.showStreams(*s.Streams); err != nil {
			return err
		}
	}
	if s.Scrub != nil {
		fmt.Fprintf(c.stdout, "\nlast scrub: %s, by node %s, %s\n", showTime(s.Scrub.Ended), oneLine(s.Scrub.Node), scrubResult(*s.Scrub))
	}
	for _, problem := range s.Problems {
		fmt.Fprintf(c.stdout, "\nproblem: %s\n", oneLine(problem))
	}
	return nil
}

// scrubResult is what a scrub has found, and where all of it is listed.
func scrubResult(s admin.ClusterScrub) string {
	if s.Findings == 0 {
		return "nothing is wrong"
	}
	return counted(s.Findings, "finding") + ": " + oneLine(s.First) + "\n  see all of them, and what to do, with: eventyard cluster scrub"
}

func (c clusterCommands) showServers(s admin.NATSServers) error {
	if s.Inside {
		return c.showPeers(s)
	}
	fmt.Fprintf(c.stdout, "\nyard %s on NATS servers, %s, known at %s\n", s.Yard, counted(s.Replicas, "replica"), oneLine(strings.Join(s.Addresses, ", ")))
	t := newTable(c.stdout, "SERVER", "VERSION", "SYNC", "MAX PAYLOAD", "CONNECTIONS")
	for _, one := range s.Known {
		payload, connections := "-", "-"
		if one.MaxPayload > 0 {
			payload = roughBytes(one.MaxPayload)
		}
		if len(one.Connections) > 0 {
			connections = strings.Join(one.Connections, ", ")
		}
		t.row(oneLine(one.Name), oneLine(one.Version), one.Sync, payload, connections)
	}
	if err := t.flush(); err != nil {
		return err
	}
	c.showWarnings(s)
	return nil
}

func (c clusterCommands) showWarnings(s admin.NATSServers) {
	for _, warning := range s.Warnings {
		fmt.Fprintf(c.stdout, "warning: %s\n", oneLine(warning))
	}
}

func (c clusterCommands) showStreams(s admin.Streams) error {
	fmt.Fprintf(c.stdout, "\n%s, %s, %s; without a leader %d, with an offline replica %d, with one that lags %d\n",
		counted(s.Count, "stream"), counted(s.Messages, "message"), roughBytes(s.Bytes), s.Leaderless, s.Offline, s.Lagging)
	for _, lost := range s.Lost {
		of := "log " + oneLine(lost.Log)
		if lost.Hub != "" {
			of = "hub " + oneLine(lost.Hub)
		}
		fmt.Fprintf(c.stdout, "lost: stream %s of %s is not there: look at the servers' logs for why it is gone, and restore a backup\n", oneLine(lost.Name), of)
	}
	if len(s.Worst) == 0 {
		return nil
	}
	t := newTable(c.stdout, "STREAM", "LEADER", "MESSAGES", "BYTES", "REPLICAS")
	for _, one := range s.Worst {
		var replicas []string
		for _, r := range one.Replicas {
			state := "not heard of"
			switch {
			case r.Offline:
				state = "offline"
			case r.Lag > 0:
				state = "behind by " + thousands(r.Lag)
			}
			replicas = append(replicas, oneLine(r.Server)+" "+state)
		}
		leader := "none"
		if one.Leader != "" {
			leader = oneLine(one.Leader)
		}
		t.row(oneLine(one.Name), leader, thousands(one.Messages), roughBytes(one.Bytes), strings.Join(replicas, ", "))
	}
	return t.flush()
}
