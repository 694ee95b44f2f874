package v1

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/processor"
)

// Groups is what the listener asks of the registry of leases and checkpoints. All methods may be
// called by many goroutines at once.
type Groups interface {
	Table(ctx context.Context, hub, group string) (groups.Table, error)
	Checkpoints(ctx context.Context, g processor.Group) ([]processor.Checkpoint, error)
	Positions(ctx context.Context, g processor.Group) (map[string]processor.Checkpoint, error)
	Move(ctx context.Context, hub, group string, steps []groups.Step, cfg groups.MoveConfig) ([]groups.Moved, error)
	Release(ctx context.Context, hub, group, partition string) (groups.Released, error)
	Forget(ctx context.Context, hub, group, instance string) error
	Watch(ctx context.Context, g processor.Group, ready func(), changed chan<- struct{}) error
	Lags(ctx context.Context, match func(hub string) bool, most int) (all []groups.GroupLag, more bool)
}

var _ Groups = (*groups.Registry)(nil)

// showTable shows the table of a group (P6).
func showTable(t groups.Table, target int) admin.Ownership {
	shown := admin.Ownership{
		Namespace: t.Namespace, Hub: t.Hub, Group: t.Group, At: admin.Time{Time: t.At},
		Partitions: make([]admin.OwnedPartition, len(t.Partitions)), Instances: make([]admin.Instance, len(t.Instances)),
		LagEvents: t.TotalLag(), Recommended: admin.Recommended{Instances: t.Recommended(target), Target: target},
	}
	for i, row := range t.Partitions {
		shown.Partitions[i] = showRow(row)
	}
	for i, in := range t.Instances {
		shown.Instances[i] = admin.Instance{
			ID: in.ID, Alive: in.Alive, Present: in.Present, Partitions: in.Partitions,
			Seen: showTimeIfAny(in.Seen), Started: showTimeIfAny(in.Started),
		}
	}
	return shown
}

func showRow(row groups.Row) admin.OwnedPartition {
	shown := admin.OwnedPartition{
		Partition: row.Partition, Owner: row.Lease.Owner, Alive: row.Alive, Epoch: row.Lease.Epoch,
		Acquired: showTimeIfAny(row.Lease.Acquired), Renewed: showTimeIfAny(row.Lease.Renewed),
		Next: row.Next, First: row.First, Last: row.Last, BeyondEnd: row.Beyond,
		Container: row.Container, Readers: make([]admin.Reader, len(row.Readers)),
	}
	if row.Checkpoint != nil {
		shown.Checkpoint = new(showCheckpoint(*row.Checkpoint))
	}
	if row.Lag != nil {
		shown.LagEvents, shown.LagSeconds = &row.Lag.Events, new(row.Lag.Oldest.Seconds())
	}
	for i, r := range row.Readers {
		shown.Readers[i] = admin.Reader{Name: r.Name, Epoch: r.Epoch}
	}
	return shown
}

// ownershipQuery is what a request for the table asks for.
type ownershipQuery struct {
	hub, group string
	target     int
	watch      bool
	rows       part
}

// shownOwnership is a table with some of its rows, or some of each.
type shownOwnership struct {
	admin.Ownership
	Partitions []any `json:"partitions"`
}

// show gives what is wanted of a table.
func (q ownershipQuery) show(t groups.Table) (shownOwnership, error) {
	shown := shownOwnership{Ownership: showTable(t, q.target)}
	names := make([]string, len(t.Partitions))
	for i, row := range t.Partitions {
		names[i] = row.Partition
	}
	from, to, next, err := q.rows.window(names)
	if err != nil {
		return shown, err
	}
	shown.Next, shown.Partitions = next, make([]any, 0, to-from)
	for _, row := range shown.Ownership.Partitions[from:to] {
		shown.Partitions = append(shown.Partitions, q.rows.choose(row))
	}
	return shown, nil
}

// defaultTarget is how many events one instance is trusted with if nobody says.
const defaultTarget = 1000

// showOwnership gives the table, once or again and again.
func (d *Handler) showOwnership(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	q := ownershipQuery{hub: r.PathValue("hub"), group: r.PathValue("group")}
	var err error
	if q.target, err = positive(query, "target", defaultTarget); err != nil {
		return err
	}
	if q.watch, err = asksToWatch(r); err != nil {
		return err
	}
	if q.rows, err = readPart[admin.OwnedPartition](query); err != nil {
		return err
	}
	t, err := d.cfg.Groups.Table(r.Context(), q.hub, q.group)
	if err != nil {
		return err
	}
	shown, err := q.show(t)
	if err != nil {
		return err
	}
	if !q.watch {
		return writeJSON(w, http.StatusOK, shown)
	}
	return d.watchOwnership(w, r, q, t)
}

// How often the table is looked at without being told of a change, since lag and
// checkpoints change untold; and how long at least is between two looks.
const (
	ownershipEvery = time.Second
	ownershipGap   = 100 * time.Millisecond
)

// watchOwnership sends the table as server-sent events, at first and whenever it has changed, until
// the client leaves, the group is deleted, the token expires or is revoked or the yard stops. But
// for the first of these, the last thing it sends is an event named end, with the reason.
func (d *Handler) watchOwnership(w http.ResponseWriter, r *http.Request, q ownershipQuery, first groups.Table) error {
	ctx, cancel, err := d.untilOver(r)
	if err != nil {
		return err
	}
	d.metrics.tails.Inc()
	defer d.metrics.tails.Dec()
	view := &ownershipView{
		query: q, groups: d.cfg.Groups, changed: make(chan struct{}, 1), heartbeat: d.cfg.Heartbeat,
		out: newStream(w, "text/event-stream", d.cfg.WriteTimeout),
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		// Its end tells nothing that the next look does not: the table is looked at anyway.
		_ = d.cfg.Groups.Watch(ctx, processor.Group{Hub: q.hub, Group: q.group}, func() {}, view.changed)
	}()
	defer func() { cancel(); <-watched }()
	if err := view.run(ctx, first); err != nil && r.Context().Err() == nil {
		reason := endReason(err)
		if reason == endFailed {
			d.logOurs("watching a group broke off", err, "hub", q.hub, "group", q.group)
		}
		view.out.sayEnd(endJSON{Reason: reason, Detail: frame.Words(err)})
	}
	return nil
}

// ownershipView is one client's live view of a group, used by the request's goroutine.
type ownershipView struct {
	query     ownershipQuery
	groups    Groups
	changed   chan struct{}
	heartbeat time.Duration
	out       *stream
	sent      []byte // the table that was sent last, without its time
}

// run sends until there is a reason to end, and gives it. A failed write ends the request,
// for the client is gone.
func (v *ownershipView) run(ctx context.Context, t groups.Table) error {
	look, beat, gap := time.NewTicker(ownershipEvery), time.NewTicker(v.heartbeat), time.NewTimer(ownershipGap)
	defer look.Stop()
	defer beat.Stop()
	defer gap.Stop()
	if v.send(t) != nil {
		return nil
	}
	var changed chan struct{} // nil for a while after each look
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-gap.C:
			changed = v.changed
			continue
		case <-beat.C:
			if v.out.send(": still here\n\n") != nil {
				return nil
			}
			continue
		case <-look.C:
		case <-changed:
		}
		changed = nil
		gap.Reset(ownershipGap)
		t, err := v.groups.Table(ctx, v.query.hub, v.query.group)
		if err != nil {
			return cmp.Or(context.Cause(ctx), err) // why the context ended says more than what that made of the call
		}
		if v.send(t) != nil {
			return nil
		}
	}
}

// send writes the table if it has changed.
func (v *ownershipView) send(t groups.Table) error {
	shown, err := v.query.show(t)
	if err != nil {
		return err
	}
	at := shown.At
	shown.At = admin.Time{}
	same, err := json.Marshal(shown)
	if err != nil || bytes.Equal(same, v.sent) {
		return err
	}
	v.sent, shown.At = same, at
	data, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	return v.out.send("event: ownership\ndata: " + string(data) + "\n\n")
}
