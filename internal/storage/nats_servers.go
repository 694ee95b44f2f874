package storage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/jetstream/survey"
)

// Servers is what a node knows of the servers that keep its storage.
type Servers struct {
	// Yard is the name of the storage at the servers, Replicas how many of them keep each event; zero: not known.
	Yard     string
	Replicas int
	// Known are those that were asked at the start or are connected now, by name.
	Known []Server
	// Addresses are those that the node would connect to.
	Addresses []string
	// Warnings are what the check at the start found, and a clock that has gone wrong since.
	Warnings []string
	// Inside: the servers run inside nodes. Leader is the one that decides on new streams then; empty:
	// most are out of reach.
	Inside bool
	Leader string
	// Streams is how the servers keep the streams; Err is why that could not be found out.
	Streams Streams
	Err     error
	// Lost are the streams that are not there although a log is that uses them, each with such a log: what they held
	// is gone. LostErr is why that could not be found out, which is among the warnings as well unless Err is there.
	Lost    map[string]string
	LostErr error
}

// Server is one of the servers.
type Server struct {
	connect.Server
	// Connections are those of this node that it has now: publish, read, control.
	Connections []string
	// Address is that of a server inside a node, Unreached: the server of this node does not reach it.
	Address   string
	Unreached bool
}

// Streams sums up the streams of a yard, Stream is one that is not well, with its Replicas that are
// not.
type (
	Streams = survey.Streams
	Stream  = survey.Stream
	Replica = survey.Replica
)

// servers asks for the streams, and waits for that for some seconds. Any number of goroutines may ask.
func (n *natsNode) servers(ctx context.Context) Servers {
	s := Servers{Yard: n.cfg.Yard, Warnings: slices.Clone(n.report.Warnings)}
	var err error
	if s.Replicas, err = n.replicas(ctx); err != nil {
		s.Warnings = append(s.Warnings, err.Error())
	}
	if now := n.clock.Skew(); now.Held() && !n.report.Skew.Held() { // else it is among the warnings
		s.Warnings = append(s.Warnings, now.String())
	}
	for _, found := range n.report.Servers {
		s.Known = append(s.Known, Server{Server: found})
	}
	s.connected("publish", n.conns.Publish)
	s.connected("read", n.conns.Read)
	s.connected("control", n.conns.Control)
	for _, conn := range []*nats.Conn{n.conns.Publish, n.conns.Read, n.conns.Control} {
		for _, address := range conn.Servers() {
			s.Addresses = append(s.Addresses, connect.Address(address))
		}
	}
	slices.Sort(s.Addresses)
	s.Addresses = slices.Compact(s.Addresses)
	if n.inside != nil {
		n.inside.show(&s)
	}
	slices.SortFunc(s.Known, func(x, y Server) int { return cmp.Compare(x.Name, y.Name) })
	var asking sync.WaitGroup
	asking.Go(func() { s.Lost, s.LostErr = n.lost(ctx) })
	var near []string
	asking.Go(func() { near = n.near(ctx) })
	s.Streams, s.Err = survey.Ask(ctx, n.conns.Control, n.cfg.Yard)
	if s.Streams.Gaps > maxGaps {
		s.Warnings = append(s.Warnings, fmt.Sprintf("stream %s lacks %d messages in its midst: beyond a million a server that has crashed reads it whole before it serves it", s.Streams.Gappy, s.Streams.Gaps))
	}
	if asking.Wait(); s.LostErr != nil && s.Err == nil {
		s.Warnings = append(s.Warnings, fmt.Sprintf("lost streams could not be looked for: %v", s.LostErr))
	}
	if s.Err == nil { // else nobody answers
		s.Warnings = append(s.Warnings, near...)
	}
	return s
}

// maxGaps is how many messages a stream may lack in its midst before it is warned of.
const maxGaps = 500_000

// near says which limits of the yard's account are nearly reached, or that nobody knows.
func (n *natsNode) near(ctx context.Context) []string {
	near, err := survey.Near(ctx, n.conns.Control)
	if err != nil {
		return []string{fmt.Sprintf("what the yard's account at the NATS servers may have is not known: %v: let its user publish to $JS.API.INFO", err)}
	}
	return near
}

// lostTime is how long it may take to look for lost streams, which costs the servers a write and a list of names: less
// than the survey does.
const lostTime = 3 * time.Second

// lost gives the streams that are lost, as the servers name them.
func (n *natsNode) lost(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, lostTime)
	defer cancel()
	lost, err := n.engine.LostStreams(ctx)
	named := map[string]string{}
	for stream, log := range lost {
		named[n.streams.Named(stream)] = log
	}
	return named, err
}

// connected notes where a connection is now.
func (s *Servers) connected(what string, conn *nats.Conn) {
	if !conn.IsConnected() {
		return
	}
	name := conn.ConnectedServerName()
	i := slices.IndexFunc(s.Known, func(there Server) bool { return there.Name == name })
	if i < 0 {
		i = len(s.Known)
		s.Known = append(s.Known, Server{Server: connect.Server{Name: name, Version: conn.ConnectedServerVersion(), MaxPayload: conn.MaxPayload()}})
	}
	s.Known[i].Connections = append(s.Known[i].Connections, what)
}
