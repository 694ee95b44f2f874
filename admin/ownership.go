package admin

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"
)

// Ownership is who owns what in a group, and how far each has come.
type Ownership struct {
	Namespace  string           `json:"namespace"`
	Hub        string           `json:"hub"`
	Group      string           `json:"group"`
	At         Time             `json:"at"`
	Partitions []OwnedPartition `json:"partitions"`
	Instances  []Instance       `json:"instances"`
	// LagEvents is over all partitions whose lag is known.
	LagEvents   int64       `json:"lagEvents"`
	Recommended Recommended `json:"recommended"`
	// Next is the After of the page behind this one; empty: there is none.
	Next string `json:"next,omitempty"`
}

// Recommended is how many instances the lag is worth, with so many events for each.
type Recommended struct {
	Instances int `json:"instances"`
	Target    int `json:"target"`
}

// OwnedPartition is one row of the table.
type OwnedPartition struct {
	Partition string `json:"partition"`
	// Owner is empty if nobody has the partition; Alive: it renewed lately.
	Owner    string `json:"owner,omitempty"`
	Alive    bool   `json:"alive"`
	Epoch    int64  `json:"epoch,omitempty"`
	Acquired *Time  `json:"acquired,omitempty"`
	Renewed  *Time  `json:"renewed,omitempty"`
	// Next is the instance that has asked for it.
	Next       string      `json:"next,omitempty"`
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	First      int64       `json:"first"`
	Last       int64       `json:"last"`
	// Container is the one of the yard's blobs that a processor of another library has the checkpoint
	// in; empty: the yard keeps it itself.
	Container string `json:"container,omitempty"`
	// LagEvents and LagSeconds are nil where they are not known: the checkpoint does not name the
	// event, or somebody reads whose checkpoint is elsewhere.
	LagEvents  *int64   `json:"lagEvents,omitempty"`
	LagSeconds *float64 `json:"lagSeconds,omitempty"`
	// BeyondEnd: the checkpoint cannot be right.
	BeyondEnd bool     `json:"beyondEnd,omitempty"`
	Readers   []Reader `json:"readers"`
}

// Reader reads a partition now; Epoch nil: without one.
type Reader struct {
	Name  string `json:"name,omitempty"`
	Epoch *int64 `json:"epoch,omitempty"`
}

// Instance is a processor, or an owner of another kind.
type Instance struct {
	ID         string `json:"id"`
	Alive      bool   `json:"alive"`
	Present    bool   `json:"present"`
	Partitions int    `json:"partitions"`
	Seen       *Time  `json:"seen,omitempty"`
	Started    *Time  `json:"started,omitempty"`
}

// Released is what a partition was taken from.
type Released struct {
	Partition string `json:"partition"`
	// Owner is empty if nobody had the partition; Epoch is that of the lease.
	Owner string `json:"owner,omitempty"`
	Epoch int64  `json:"epoch,omitempty"`
	// Disconnected is how many readers with an epoch were.
	Disconnected int `json:"disconnected"`
}

// ReleasePartition takes a partition from its owner: the lease is removed, epochs begin at 1
// again, and readers with an epoch are disconnected. The checkpoint's position stays.
func (c *Client) ReleasePartition(ctx context.Context, hub, group, partition string) (Released, error) {
	return one[Released](ctx, c, request{method: http.MethodDelete, path: []string{"hubs", hub, "groups", group, "ownership", partition}})
}

// Ownership asks for the table. target is how many events of lag one instance is trusted with;
// 0 leaves it to the yard.
func (c *Client) Ownership(ctx context.Context, hub, group string, target int) (Ownership, error) {
	return one[Ownership](ctx, c, ownershipRequest(hub, group, target))
}

// OwnershipPage asks for some partitions of the table, or some of what it tells of each; all else is as in
// the whole.
func (c *Client) OwnershipPage(ctx context.Context, hub, group string, target int, q PageQuery) (Ownership, error) {
	r := ownershipRequest(hub, group, target)
	q.addTo(r.query)
	return one[Ownership](ctx, c, r)
}

func ownershipRequest(hub, group string, target int) request {
	r := request{method: http.MethodGet, path: []string{"hubs", hub, "groups", group, "ownership"}, query: url.Values{}}
	if target > 0 {
		r.query.Set("target", strconv.Itoa(target))
	}
	return r
}

// WatchOwnership gives the table and then each that differs, until ctx ends, the group is
// deleted or the yard refuses. A connection that breaks off is made again; notice, if not nil,
// hears of it. Only the first attempt may fail.
func (c *Client) WatchOwnership(ctx context.Context, hub, group string, target int, notice func(Notice)) iter.Seq2[Ownership, error] {
	return func(yield func(Ownership, error) bool) {
		w := &ownershipWatch{stream: newStream(c, notice), asked: ownershipRequest(hub, group, target), yield: yield}
		w.asked.query.Set("watch", "true")
		if err := w.run(ctx, w); err != nil {
			yield(Ownership{}, err)
		}
	}
}

// ownershipWatch is one WatchOwnership under way, in the goroutine of whoever ranges over it.
type ownershipWatch struct {
	*stream
	asked request
	yield func(Ownership, error) bool
}

func (w *ownershipWatch) request() request { return w.asked }

func (w *ownershipWatch) take(ev sseEvent) error {
	if ev.kind != "ownership" {
		return nil // something of a later yard for a later client
	}
	var o Ownership
	if err := json.Unmarshal(ev.data, &o); err != nil {
		return &StrangerError{Server: w.client.cfg.Server}
	}
	w.back()
	w.failures = 0
	if !w.yield(o, nil) {
		return errDone
	}
	return nil
}

func (w *ownershipWatch) ended(end streamEnd) error {
	if end.Reason != "deleted" {
		return nil
	}
	return &Problem{
		Type: problemPrefix + "not-found", Title: "It does not exist", Status: http.StatusNotFound,
		Detail: end.Detail, Next: "create the group, or its hub, first",
	}
}
