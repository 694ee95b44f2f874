package v1

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/processor"
)

// Groups is what the listener asks of the registry of leases and checkpoints. All methods may be
// called by many goroutines at once.
type Groups interface {
	Table(ctx context.Context, hub, group string) (groups.Table, error)
	Checkpoints(ctx context.Context, g processor.Group) ([]processor.Checkpoint, error)
	Move(ctx context.Context, hub, group string, steps []groups.Step, cfg groups.MoveConfig) ([]groups.Moved, error)
	Watch(ctx context.Context, g processor.Group, ready func(), changed chan<- struct{}) error
}

var _ Groups = (*groups.Registry)(nil)

// withGroups is for routes that need the registry, which a yard may do without.
func (d *Handler) withGroups(serve handler) handler {
	if d.cfg.Groups != nil {
		return serve
	}
	return func(http.ResponseWriter, *http.Request) error {
		return &frame.Refusal{
			Status: http.StatusNotImplemented,
			Code:   "not-kept-here",
			Title:  "This yard keeps no leases and checkpoints",
			Detail: "what consumer groups own and have done is not kept by this yard",
			Next:   "look into the store that the group's processors use",
		}
	}
}

// ownershipJSON is the table of a group (P6).
type ownershipJSON struct {
	Namespace  string          `json:"namespace"`
	Hub        string          `json:"hub"`
	Group      string          `json:"group"`
	At         string          `json:"at,omitempty"`
	Partitions []ownedJSON     `json:"partitions"`
	Instances  []instanceJSON  `json:"instances"`
	LagEvents  int64           `json:"lagEvents"`
	Advice     recommendedJSON `json:"recommended"`
}

// recommendedJSON is how many instances the lag is worth, and by what measure.
type recommendedJSON struct {
	Instances int `json:"instances"`
	Target    int `json:"target"`
}

type ownedJSON struct {
	Partition  string          `json:"partition"`
	Owner      string          `json:"owner,omitempty"`
	Alive      bool            `json:"alive"`
	Epoch      int64           `json:"epoch,omitempty"`
	Acquired   string          `json:"acquired,omitempty"`
	Renewed    string          `json:"renewed,omitempty"`
	Next       string          `json:"next,omitempty"`
	Checkpoint *checkpointJSON `json:"checkpoint,omitempty"`
	First      int64           `json:"first"`
	Last       int64           `json:"last"`
	LagEvents  *int64          `json:"lagEvents,omitempty"`
	LagSeconds *float64        `json:"lagSeconds,omitempty"`
	BeyondEnd  bool            `json:"beyondEnd,omitempty"`
	Readers    []readerJSON    `json:"readers"`
}

type readerJSON struct {
	Name  string `json:"name,omitempty"`
	Epoch *int64 `json:"epoch,omitempty"`
}

type instanceJSON struct {
	ID         string `json:"id"`
	Alive      bool   `json:"alive"`
	Present    bool   `json:"present"`
	Partitions int    `json:"partitions"`
	Seen       string `json:"seen,omitempty"`
	Started    string `json:"started,omitempty"`
}

func showTable(t groups.Table, target int) ownershipJSON {
	shown := ownershipJSON{
		Namespace: t.Namespace, Hub: t.Hub, Group: t.Group, At: showTime(t.At),
		Partitions: make([]ownedJSON, len(t.Partitions)), Instances: make([]instanceJSON, len(t.Instances)),
		LagEvents: t.TotalLag(), Advice: recommendedJSON{Instances: t.Recommended(target), Target: target},
	}
	for i, row := range t.Partitions {
		shown.Partitions[i] = showRow(row)
	}
	for i, in := range t.Instances {
		shown.Instances[i] = instanceJSON{
			ID: in.ID, Alive: in.Alive, Present: in.Present, Partitions: in.Partitions,
			Seen: showTimeIfAny(in.Seen), Started: showTimeIfAny(in.Started),
		}
	}
	return shown
}

func showRow(row groups.Row) ownedJSON {
	shown := ownedJSON{
		Partition: row.Partition, Owner: row.Lease.Owner, Alive: row.Alive, Epoch: row.Lease.Epoch,
		Acquired: showTimeIfAny(row.Lease.Acquired), Renewed: showTimeIfAny(row.Lease.Renewed),
		Next: row.Next, First: row.First, Last: row.Last, BeyondEnd: row.Beyond,
		Readers: make([]readerJSON, len(row.Readers)),
	}
	if row.Checkpoint != nil {
		shown.Checkpoint = new(showCheckpoint(*row.Checkpoint))
	}
	if row.Lag != nil {
		shown.LagEvents, shown.LagSeconds = &row.Lag.Events, new(row.Lag.Oldest.Seconds())
	}
	for i, r := range row.Readers {
		shown.Readers[i] = readerJSON{Name: r.Name, Epoch: r.Epoch}
	}
	return shown
}

func showTimeIfAny(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return showTime(t)
}

// ownershipQuery is what a request for the table asks for.
type ownershipQuery struct {
	hub, group string
	target     int
	watch      bool
}

// defaultTarget is how many events one instance is trusted with if nobody says.
const defaultTarget = 1000

func parseOwnership(r *http.Request) (q ownershipQuery, err error) {
	query := r.URL.Query()
	q = ownershipQuery{hub: r.PathValue("hub"), group: r.PathValue("group")}
	if q.target, err = positive(query, "target", defaultTarget); err != nil {
		return q, err
	}
	q.watch, err = parseWatch(query, r.Header.Get("Accept"))
	return q, err
}

func parseWatch(query url.Values, accept string) (bool, error) {
	switch text := query.Get("watch"); text {
	case "":
		return strings.Contains(accept, "text/event-stream"), nil
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	default:
		return false, badRequest("watch is true or false", "watch cannot be %.64q", text)
	}
}

// showOwnership gives the table, once or again and again.
func (d *Handler) showOwnership(w http.ResponseWriter, r *http.Request) error {
	q, err := parseOwnership(r)
	if err != nil {
		return err
	}
	t, err := d.cfg.Groups.Table(r.Context(), q.hub, q.group)
	if err != nil {
		return err
	}
	if !q.watch {
		return writeJSON(w, http.StatusOK, showTable(t, q.target))
	}
	return d.watchOwnership(w, r, q, t)
}

// How often the table is looked at without being told of a change, since lag and
// checkpoints change untold; and how long at least is between two looks.
const (
	ownershipEvery = time.Second
	ownershipGap   = 100 * time.Millisecond
)

// watchOwnership sends the table as server-sent events, at first and whenever it has changed, until the
// client leaves, the group is deleted, the token expires or is revoked or the yard stops. But
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
		view.sayEnd(reason, err)
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
			if v.write(": still here\n\n") != nil {
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
			return causeOf(ctx, err)
		}
		if v.send(t) != nil {
			return nil
		}
	}
}

// causeOf prefers why the context ended to what that made of a call.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// send writes the table if it has changed.
func (v *ownershipView) send(t groups.Table) error {
	shown := showTable(t, v.query.target)
	at := shown.At
	shown.At = ""
	same, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	if bytes.Equal(same, v.sent) {
		return nil
	}
	v.sent = same
	shown.At = at
	data, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	return v.write("event: ownership\ndata: " + string(data) + "\n\n")
}

func (v *ownershipView) write(text string) error {
	if err := v.out.write([]byte(text)); err != nil {
		return err
	}
	return v.out.flush()
}

func (v *ownershipView) sayEnd(reason string, err error) {
	data, _ := json.Marshal(struct {
		Reason string `json:"reason"`
		Detail string `json:"detail"`
	}{reason, frame.Words(err)})
	_ = v.write("event: end\ndata: " + string(data) + "\n\n")
}
