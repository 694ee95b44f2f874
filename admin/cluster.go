package admin

import (
	"context"
	"net/http"
)

// Cluster is what a yard consists of, as the node that answers knows it. A yard on one machine is one
// node and has no servers.
type Cluster struct {
	// Node is the one that answers.
	Node string `json:"node"`
	// Engine is what keeps the events: disk or nats.
	Engine string        `json:"engine"`
	Nodes  []ClusterNode `json:"nodes"`
	// UnheldShards is how many of the grid's shards no node holds just now: what is in them waits.
	UnheldShards int `json:"unheldShards,omitempty"`
	// Servers are absent on one machine.
	Servers *NATSServers `json:"servers,omitempty"`
	// Streams are absent on one machine, and where the servers did not say: Problems says why.
	Streams *Streams `json:"streams,omitempty"`
	// Scrub is the last scrub that a node has made since it started; absent: there was none.
	Scrub *ClusterScrub `json:"scrub,omitempty"`
	// Problems are what could not be found out.
	Problems []string `json:"problems,omitempty"`
}

// ClusterScrub is what a scrub of the servers has found.
type ClusterScrub struct {
	// Node has made it.
	Node  string `json:"node"`
	Ended Time   `json:"ended"`
	// Findings is how many there were; a new scrub lists them. First is the first of them, in words.
	Findings int    `json:"findings"`
	First    string `json:"first,omitempty"`
}

// The states of a node.
const (
	// NodeLive: it has shown that it lives.
	NodeLive = "live"
	// NodeQuiet: it could not show for some seconds that it lives, and does not use what only one node
	// may use.
	NodeQuiet = "quiet"
	// NodeLost: others take what it had.
	NodeLost = "lost"
)

// ClusterNode is one process of a yard.
type ClusterNode struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// State is NodeLive, NodeQuiet or NodeLost.
	State   string `json:"state"`
	Started Time   `json:"started"`
	// Seen is when it last showed that it lives.
	Seen Time `json:"seen"`
	// Shards is how many of the grid's 64 shards it holds; always 0 on one machine, where nothing is
	// shared.
	Shards int `json:"shards"`
}

// NATSServers are the servers that keep a yard's events.
type NATSServers struct {
	// Yard is the yard's name at the servers, Replicas how many of them keep each event.
	Yard     string `json:"yard"`
	Replicas int    `json:"replicas"`
	// Known are those that the node was connected to at its start, is connected to now, or knows by
	// their monitoring. There may be more.
	Known []NATSServer `json:"known"`
	// Addresses are all that the node would connect to.
	Addresses []string `json:"addresses"`
	// Warnings are what the node found when it started.
	Warnings []string `json:"warnings,omitempty"`
	// Inside: the servers run inside nodes. Leader is the one that decides on new streams then; empty:
	// none, as most are out of reach.
	Inside bool   `json:"inside,omitempty"`
	Leader string `json:"leader,omitempty"`
}

// What is known of when a server syncs.
const (
	SyncAlways  = "always"
	SyncLater   = "later"
	SyncUnknown = "unknown"
)

// NATSServer is one server.
type NATSServer struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// MaxPayload is the largest message that it takes, in bytes; 0: not known.
	MaxPayload int64 `json:"maxPayload,omitempty"`
	// Sync is SyncAlways where it syncs what it acknowledges, SyncLater or SyncUnknown.
	Sync string `json:"sync"`
	// Connections are those that the node has to it now: publish, read, control.
	Connections []string `json:"connections,omitempty"`
	// Address is where other servers reach one that runs inside a node. Unreached: that of the node that
	// tells does not.
	Address   string `json:"address,omitempty"`
	Unreached bool   `json:"unreached,omitempty"`
}

// Streams sums up the streams of a yard.
type Streams struct {
	Count    int   `json:"count"`
	Messages int64 `json:"messages"`
	Bytes    int64 `json:"bytes"`
	// Leaderless cannot store anything; Offline have a replica whose server is gone, Lagging one that
	// is behind.
	Leaderless int `json:"leaderless"`
	Offline    int `json:"offline"`
	Lagging    int `json:"lagging"`
	// Leaders is how many streams each server leads.
	Leaders map[string]int `json:"leaders,omitempty"`
	// Worst are up to ten streams that are not well, the worst first.
	Worst []Stream `json:"worst,omitempty"`
	// Lost are those that are not there although a log is that uses them: what they held is gone.
	Lost []LostStream `json:"lost,omitempty"`
}

// LostStream is a stream that is not there.
type LostStream struct {
	Name string `json:"name"`
	// Log is one that uses it, Hub the hub whose log that is, if it is one's.
	Log string `json:"log"`
	Hub string `json:"hub,omitempty"`
}

// Stream is one that is not well.
type Stream struct {
	Name string `json:"name"`
	// Leader is absent where there is none.
	Leader   string `json:"leader,omitempty"`
	Messages int64  `json:"messages"`
	Bytes    int64  `json:"bytes"`
	// Replicas are those that are not well.
	Replicas []StreamReplica `json:"replicas,omitempty"`
}

// StreamReplica is a server's copy of a stream.
type StreamReplica struct {
	Server  string `json:"server"`
	Offline bool   `json:"offline"`
	// Lag is how many changes it is behind, where that is known.
	Lag int64 `json:"lag"`
}

// Cluster shows the nodes of the yard, and the servers that keep its events. Where the servers do not
// answer it takes some seconds, and says so.
func (c *Client) Cluster(ctx context.Context) (Cluster, error) {
	return one[Cluster](ctx, c, request{method: http.MethodGet, path: []string{"cluster"}})
}
