package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/amqp"
	"github.com/eventyard/eventyard/internal/grid/forward"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/kafka"
)

// connections tells operators who is connected, to this node and to all.
type connections struct {
	node    string
	started time.Time
	access  *access.Registry
	every   *forward.Every[connectionQuery, nodeConnections]

	mu sync.Mutex
	// by is nil before the listeners are there. Guarded by mu.
	by *listeners
}

type connectionQuery struct {
	After string `json:"after,omitempty"`
	Limit int    `json:"limit"`
}

// nodeConnections is what one node knows.
type nodeConnections struct {
	Connections []admin.Connection `json:"connections"`
	Total       int                `json:"total"`
	Keys        []admin.KeyUse     `json:"keys"`
	Started     time.Time          `json:"started"`
}

func (y *yard) newConnections() *connections {
	c := &connections{node: y.nodes.Self().ID, started: time.Now().UTC(), access: y.access}
	c.every = forward.NewEvery(y.everyNode(), "connections.list", c.here)
	return c
}

// serving says which listeners there are.
func (c *connections) serving(by *listeners) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by = by
}

// maxListed is how many connections one node tells another of at once.
const maxListed = 1000

// here is what this node knows: of connections a page, by id.
func (c *connections) here(_ context.Context, q connectionQuery) (nodeConnections, error) {
	all := c.all()
	found := nodeConnections{Total: len(all), Started: c.started, Keys: []admin.KeyUse{}}
	for _, u := range c.access.LastUses() {
		found.Keys = append(found.Keys, admin.KeyUse{Policy: u.Policy, Primary: timeIfAny(u.Primary), Secondary: timeIfAny(u.Secondary)})
	}
	found.Connections = pageOf(all, q)
	return found, nil
}

// all lists the connections to every listener of this node.
func (c *connections) all() []admin.Connection {
	c.mu.Lock()
	by := c.by
	c.mu.Unlock()
	all := []admin.Connection{}
	if by == nil {
		return all
	}
	for _, one := range by.amqp.Connections() {
		all = append(all, c.showAMQP(one))
	}
	for _, one := range by.kafka.Connections() {
		all = append(all, c.showKafka(one))
	}
	return append(all, by.visitors.list(c.node)...)
}

// pageOf gives those behind an id, in the order of ids.
func pageOf(all []admin.Connection, q connectionQuery) []admin.Connection {
	all = slices.DeleteFunc(all, func(one admin.Connection) bool { return one.ID <= q.After })
	slices.SortFunc(all, func(a, b admin.Connection) int { return cmp.Compare(a.ID, b.ID) })
	return all[:min(len(all), max(q.Limit, 1), maxListed)]
}

// list is a page of the connections to all nodes.
func (c *connections) list(ctx context.Context, after string, limit int) (admin.Connections, error) {
	q := connectionQuery{After: after, Limit: limit}
	answers, unanswered, err := c.every.Ask(ctx, q)
	if err != nil {
		return admin.Connections{}, err
	}
	page := admin.Connections{Connections: []admin.Connection{}, Keys: []admin.KeyUse{}}
	uses := map[string]*admin.KeyUse{}
	for _, a := range answers {
		page.Connections = append(page.Connections, a.Connections...)
		page.Total += a.Total
		if a.Started.After(page.Since.Time) {
			page.Since.Time = a.Started
		}
		for _, u := range a.Keys {
			addUse(uses, u)
		}
	}
	page.Connections = pageOf(page.Connections, q)
	if n := len(page.Connections); n == limit {
		page.Next = page.Connections[n-1].ID
	}
	for _, u := range uses {
		page.Keys = append(page.Keys, *u)
	}
	slices.SortFunc(page.Keys, func(a, b admin.KeyUse) int { return cmp.Compare(a.Policy, b.Policy) })
	page.Unanswered = nodeNames(unanswered)
	return page, nil
}

// addUse takes in what a node knows of a policy's keys: the latest of all counts.
func addUse(uses map[string]*admin.KeyUse, u admin.KeyUse) {
	known := uses[u.Policy]
	if known == nil {
		uses[u.Policy] = &u
		return
	}
	known.Primary, known.Secondary = later(known.Primary, u.Primary), later(known.Secondary, u.Secondary)
}

func later(a, b *admin.Time) *admin.Time {
	if a == nil || b != nil && b.After(a.Time) {
		return b
	}
	return a
}

func timeIfAny(t time.Time) *admin.Time {
	if t.IsZero() {
		return nil
	}
	return &admin.Time{Time: t}
}

func (c *connections) showAMQP(i amqp.ConnInfo) admin.Connection {
	protocol := admin.ProtocolAMQP
	if i.WebSocket {
		protocol = admin.ProtocolWebSocket
	}
	return admin.Connection{
		ID: connectionID(c.node, "amqp", i.ID), Node: c.node, Protocol: protocol, Holder: holderName(i.Holder), Address: i.Remote,
		Since: admin.Time{Time: i.Began.UTC()}, Links: i.Links, ReceivedBytes: i.Received, SentBytes: i.Sent,
	}
}

func (c *connections) showKafka(i kafka.ConnInfo) admin.Connection {
	return admin.Connection{
		ID: connectionID(c.node, "kafka", i.ID), Node: c.node, Protocol: admin.ProtocolKafka, Holder: holderName(i.Holder), Address: i.Remote,
		Since: admin.Time{Time: i.Began.UTC()}, Requests: i.Requests, ReceivedBytes: i.Received, SentBytes: i.Sent,
	}
}

// list gives the connections of the HTTP server.
func (v *visitors) list(node string) (all []admin.Connection) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, at := range v.all {
		one := admin.Connection{
			ID: connectionID(node, "http", at.id), Node: node, Protocol: admin.ProtocolHTTP, Address: at.remote,
			Since: admin.Time{Time: at.began.UTC()}, Requests: at.requests.Load(),
		}
		if holder := at.holder.Load(); holder != nil {
			one.Holder = holderName(*holder)
		}
		all = append(all, one)
	}
	return all
}

// connectionID sorts by node, listener and age.
func connectionID(node, listener string, number uint64) string {
	return fmt.Sprintf("%s/%s/%012d", node, listener, number)
}

// holderName is a policy as the API names it, of what accounts name it by: policies/namespace/NAME, or
// policies/hubs/HUB/CREATED/NAME. Subjects of tokens are as they are.
func holderName(account string) string {
	if name, ok := strings.CutPrefix(account, "policies/namespace/"); ok {
		return "policies/" + name
	}
	if rest, ok := strings.CutPrefix(account, "policies/hubs/"); ok {
		if parts := strings.Split(rest, "/"); len(parts) == 3 {
			return "hubs/" + parts[0] + "/policies/" + parts[2]
		}
	}
	return account
}
