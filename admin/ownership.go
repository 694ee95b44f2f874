package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Ownership is who owns what in a group, and how far each has come.
type Ownership struct {
	Namespace  string           `json:"namespace"`
	Hub        string           `json:"hub"`
	Group      string           `json:"group"`
	At         time.Time        `json:"at"`
	Partitions []OwnedPartition `json:"partitions"`
	Instances  []Instance       `json:"instances"`
	// LagEvents is over all partitions whose lag is known.
	LagEvents   int64       `json:"lagEvents"`
	Recommended Recommended `json:"recommended"`
}

// Recommended is how many instances the lag is worth, with so many events for each.
type Recommended struct {
	Instances int `json:"instances"`
	Target    int `json:"target"`
}

// OwnedPartition is one row of the table.
type OwnedPartition struct {
	Partition string `json:"partition"`
	// Owner is empty if nobody has the partition; Alive tells whether it renewed lately.
	Owner    string     `json:"owner,omitempty"`
	Alive    bool       `json:"alive"`
	Epoch    int64      `json:"epoch,omitempty"`
	Acquired *time.Time `json:"acquired,omitempty"`
	Renewed  *time.Time `json:"renewed,omitempty"`
	// Next is the instance that has asked for it.
	Next       string      `json:"next,omitempty"`
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	First      int64       `json:"first"`
	Last       int64       `json:"last"`
	// LagEvents and LagSeconds are nil where the checkpoint does not tell the event.
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
	ID         string     `json:"id"`
	Alive      bool       `json:"alive"`
	Present    bool       `json:"present"`
	Partitions int        `json:"partitions"`
	Seen       *time.Time `json:"seen,omitempty"`
	Started    *time.Time `json:"started,omitempty"`
}

// Ownership asks for the table. target is how many events of lag one instance is trusted with;
// 0 leaves it to the yard.
func (c *Client) Ownership(ctx context.Context, hub, group string, target int) (Ownership, error) {
	return one[Ownership](ctx, c, ownershipRequest(hub, group, target))
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
	if notice == nil {
		notice = func(Notice) {}
	}
	return func(yield func(Ownership, error) bool) {
		w := &ownershipWatch{stream: stream{client: c, notice: notice}, request: ownershipRequest(hub, group, target), yield: yield}
		w.request.query.Set("watch", "true")
		if err := w.run(ctx, w.watch); err != nil {
			yield(Ownership{}, err)
		}
	}
}

// ownershipWatch is one WatchOwnership under way, in the goroutine of whoever ranges over it.
type ownershipWatch struct {
	stream
	request request
	yield   func(Ownership, error) bool
}

// watch asks once and gives what comes until it ends. Its error says why.
func (w *ownershipWatch) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(w.client.cfg.Silence, func() { cancel(errSilent) })
	defer silence.Stop()
	response, err := w.client.do(ctx, w.request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	events := &sseReader{lines: bufio.NewReaderSize(response.Body, 64<<10), heard: func() { silence.Reset(w.client.cfg.Silence) }}
	for {
		ev, err := events.next()
		if err != nil {
			if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
				err = cause
			} else if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF // it says when it ends
			}
			return w.client.unreachable(err)
		}
		if err := w.take(ev); err != nil {
			return err
		}
	}
}

func (w *ownershipWatch) take(ev sseEvent) error {
	switch ev.kind {
	case "ownership":
		return w.give(ev.data)
	case "end":
		return w.end(ev.data)
	default:
		return nil // something of a later yard for a later client
	}
}

func (w *ownershipWatch) give(data []byte) error {
	var o Ownership
	if err := json.Unmarshal(data, &o); err != nil {
		return &StrangerError{Server: w.client.cfg.Server}
	}
	if w.lost {
		w.notice(Notice{})
	}
	w.ever, w.lost, w.failures = true, false, 0
	if !w.yield(o, nil) {
		return errDone
	}
	return nil
}

// end judges why the yard ended the watch.
func (w *ownershipWatch) end(data []byte) error {
	var end struct{ Reason, Detail string }
	if err := json.Unmarshal(data, &end); err != nil {
		return fmt.Errorf("read the end of a watch: %w", err)
	}
	switch end.Reason {
	case "expired":
		w.client.signer.renew()
		return errResume
	case "deleted":
		return &Problem{
			Type: "urn:eventyard:problem:not-found", Title: "It does not exist", Status: http.StatusNotFound,
			Detail: end.Detail, Next: "create the group, or its hub, first",
		}
	default:
		return errors.New(end.Detail)
	}
}
