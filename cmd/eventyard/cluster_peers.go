package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/server"
	"github.com/spf13/cobra"
)

const clusterInitHelp = `Make a cluster of three or five machines, on which the yard keeps everything: a bundle for each
of them, which is one file with its certificate and key, the names and addresses of all, and the
key that seals the yard's secrets. No yard is asked, and no other file is needed.

Copy each bundle to its machine, by a way that nobody else can read, and start a node there:

  eventyard serve --cluster-bundle node-1.bundle --data /var/lib/eventyard

Each node then runs one of the yard's NATS servers inside. A peer is HOST, HOST:PORT or
NAME=HOST:PORT, at which the other machines reach it; the port is 6222 unless it is given. On one
machine, to try it out, give three ports of 127.0.0.1.

With --nodes NAME,NAME there are bundles for further nodes, which have no server and keep nothing:
they connect to those inside the peers, at a port 2000 below (4222), by the same command without --data.

Whoever has a bundle can read and change all that is stored: keep a copy of one in a safe place,
for without its key the secrets of the yard are lost, and remove the others from here.

With --renew the bundles of a cluster are made anew, with other certificates: after a bundle got
into wrong hands, before certificates end, with --peers where machines have other addresses, or with --nodes for others.
The peers know each other by them, so all nodes are stopped first, and started with theirs.`

func (c clusterCommands) init() *cobra.Command {
	var peers, nodes, yard, out, renew string
	cmd := &cobra.Command{
		Use: "init", Short: "Make the bundles of a cluster of three or five machines", Long: clusterInitHelp,
		Example: `  eventyard cluster init --peers 10.0.0.1,10.0.0.2,10.0.0.3
  eventyard cluster init --peers a=a.example.com,b=b.example.com,c=c.example.com --yard shop --out shop
  eventyard cluster init --peers 127.0.0.1:6222,127.0.0.1:6223,127.0.0.1:6224
  eventyard cluster init --renew a.bundle --out new`,
		Args: wantArgs,
		RunE: func(*cobra.Command, []string) error {
			if peers == "" && renew == "" {
				return &advisedError{"no peers are named", "name three machines, as by: eventyard cluster init --peers 10.0.0.1,10.0.0.2,10.0.0.3"}
			}
			if renew != "" && yard != "" {
				return &advisedError{"the yard's name stays when bundles are renewed", "leave out --yard"}
			}
			made, err := makeBundles(out, yard, peers, renew, strings.FieldsFunc(nodes, func(r rune) bool { return r == ',' || r == ' ' }))
			if err != nil {
				return err
			}
			return c.sayMade(made, renew != "")
		},
	}
	cmd.Flags().StringVar(&peers, "peers", "", "the machines, as HOST, HOST:PORT or NAME=HOST:PORT with commas between")
	cmd.Flags().StringVar(&nodes, "nodes", "", "names of further nodes, without a server, with commas between")
	cmd.Flags().StringVar(&yard, "yard", "", "name of the yard (default eventyard)")
	cmd.Flags().StringVar(&out, "out", "eventyard-cluster", "folder for the bundles, which is made")
	cmd.Flags().StringVar(&renew, "renew", "", "a bundle of the cluster whose bundles are renewed")
	return cmd
}

func makeBundles(out, yard, peers, renew string, nodes []string) ([]server.BundlePeer, error) {
	if renew == "" {
		return server.NewBundles(out, yard, peers, nodes...)
	}
	old, err := server.ReadBundle(renew)
	if err != nil {
		return nil, err
	}
	return old.Renew(out, peers, nodes...)
}

func (c clusterCommands) sayMade(made []server.BundlePeer, anew bool) error {
	t := newTable(c.stdout, "PEER", "ADDRESS", "BUNDLE")
	for _, p := range made {
		t.row(p.Name, cmp.Or(p.Address, "no server"), p.File)
	}
	if err := t.flush(); err != nil {
		return err
	}
	next := "Copy each bundle to its machine, and start a node there:"
	if anew {
		next = "Stop all nodes, copy each bundle to its machine, and start a node there:"
	}
	return c.printf("\n%s\n  eventyard serve --cluster-bundle %s.bundle --data /var/lib/eventyard\nKeep a copy of one bundle in a safe place. Who has one can read all that is stored.\n", next, made[0].Name)
}

// showPeers shows servers that run inside nodes.
func (c clusterCommands) showPeers(s admin.NATSServers) error {
	leader := "no leader"
	if s.Leader != "" {
		leader = "leader " + oneLine(s.Leader)
	}
	fmt.Fprintf(c.stdout, "\nyard %s on NATS servers inside %d nodes, %s, %s\n", s.Yard, len(s.Known), counted(s.Replicas, "replica"), leader)
	t := newTable(c.stdout, "SERVER", "ADDRESS", "VERSION", "SYNC", "REACHED")
	for _, one := range s.Known {
		reached := "yes"
		switch {
		case len(one.Connections) > 0:
			reached = "this node's"
		case one.Unreached:
			reached = "no"
		}
		version := "-" // that of others is not known here
		if one.Version != "" {
			version = oneLine(one.Version)
		}
		t.row(oneLine(one.Name), oneLine(one.Address), version, one.Sync, reached)
	}
	if err := t.flush(); err != nil {
		return err
	}
	c.showWarnings(s)
	return nil
}

// peerConfig reads the bundle that makes this node a peer; without one it is none.
func peerConfig(cfg config.Config) (server.Peer, error) {
	if cfg.Cluster.Bundle == "" {
		return server.Peer{}, nil
	}
	b, err := server.ReadBundle(cfg.Cluster.Bundle)
	if errors.Is(err, fs.ErrNotExist) {
		return server.Peer{}, &advisedError{err.Error(), "name this machine's bundle with --cluster-bundle; bundles are made by: eventyard cluster init --peers HOST,HOST,HOST"}
	}
	if err != nil {
		return server.Peer{}, err
	}
	if cfg.Cluster.Peers != "" {
		if err := b.CheckPeers(cfg.Cluster.Peers); err != nil {
			return server.Peer{}, err
		}
	}
	return server.Peer{
		Bundle: b, Listen: cfg.Cluster.Listen, ListenNodes: cfg.Cluster.ListenNodes, Replicas: cfg.Replicas,
		MaxStoreBytes: int64(cfg.Cluster.MaxStore), MaxMemoryBytes: int64(cfg.Cluster.MaxMemory),
		HubStreams: cfg.HubStreams, StreamBytes: int64(cfg.StreamBytes),
	}, nil
}
