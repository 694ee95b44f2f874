// Package box finds, shows and redrives the poison events that lie in a yard's hubs. It reads them
// as any reader would, disturbing none, and remembers which of them were redriven.
//
// The newest poison events are what people look for, so a hub is read from its end, in steps that
// grow (newest.go). Redriving begins with the oldest (oldest.go, redrive.go). What was redriven is
// remembered as setaside does it, by the poison hub's own sequence numbers, in entries that belong
// to one incarnation of the hub (marks.go).
package box

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/functions/poison"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/setaside"
	"github.com/eventyard/eventyard/internal/setaside/ranges"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// What callers branch on.
var (
	// ErrNoPoisonEvent: there is no such poison event in the hub.
	ErrNoPoisonEvent = errors.New("no such poison event")
	// ErrLoop: it was redriven as often as is allowed already.
	ErrLoop = errors.New("redriven too often")
	// ErrNotKept: the poison event is without its event, which was too large, and the hub does not
	// keep that any more.
	ErrNotKept = errors.New("the event is not kept any more")
)

// Defaults and bounds.
const (
	defaultLimit = 100
	// maxCountLooked is how many events Count looks at, and maxCountBytes what they may measure: it
	// is asked for every function of a list.
	maxCountLooked = 20_000
	maxCountBytes  = 4 << 20
	// maxListBytes is how much of bodies a list keeps.
	maxListBytes = 16 << 20
)

// Broker is what a box needs. *broker.Broker is one.
type Broker interface {
	Hub(name string) (broker.Hub, error)
	Partition(ctx context.Context, hub, partition string) (broker.PartitionInfo, error)
	Cursor(ctx context.Context, hub, group, partition string, at eventlog.Position) (eventlog.Cursor, error)
	Publish(ctx context.Context, hub string, to broker.Target, events []eventlog.Event) (broker.Published, error)
}

// Config is a box's.
type Config struct {
	Broker Broker
	Meta   meta.Store
	// MaxRedrives is how often one event is redriven unless forced; 0: 3.
	MaxRedrives int
	Log         *slog.Logger
}

// Box lists, shows and redrives the poison events of a yard's hubs. All methods may be called by
// many goroutines at once. It has no goroutines of its own, and nothing to close.
type Box struct {
	cfg Config

	mu        sync.Mutex
	redriving map[string]setaside.Turn // by hub: taken while its poison events are redriven; guarded by mu
}

// New makes a box.
func New(cfg Config) *Box {
	cfg.MaxRedrives = cmp.Or(cfg.MaxRedrives, setaside.MaxRedrives)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	return &Box{cfg: cfg, redriving: make(map[string]setaside.Turn)}
}

// Entry is a poison event and where it lies.
type Entry struct {
	poison.Record
	// Hub, Partition and Sequence in the poison hub.
	PoisonHub       string
	PoisonPartition string
	PoisonSequence  int64
	// WasRedriven: it was since it was put away, at RedrivenAt.
	WasRedriven bool
	RedrivenAt  time.Time
	// Bodiless: the event's body was left out, since a list has no room for all; Show has it.
	Bodiless bool
}

// Query selects poison events.
type Query struct {
	Function string    // empty: all
	Source   string    // the hub they came from, whatever its case; empty: all, and for Redrive the one that all name
	IDs      []string  // empty: all
	Since    time.Time // in the poison hub since; zero: all
	Until    time.Time // in the poison hub before; zero: all
	// Redriven: also those that were redriven.
	Redriven bool
	Limit    int // 0: 100; for Redrive no limit
}

// late says of a poison event that was put away at a time whether that is too late.
func (q *Query) late(at time.Time) bool { return !q.Until.IsZero() && !at.Before(q.Until) }

// chooses says whether a poison event is one of those asked for.
func (q *Query) chooses(l *poison.Record) bool {
	return (q.Function == "" || q.Function == l.Function) && (q.Source == "" || auth.Fold(q.Source) == auth.Fold(l.Hub)) &&
		(len(q.IDs) == 0 || slices.Contains(q.IDs, l.ID))
}

// List gives the newest poison events of a poison hub that match, newest first. Of those that do
// not fit into some megabytes together it leaves out the bodies.
//
// Errors: *broker.NotFoundError, the hub's, the store's.
func (b *Box) List(ctx context.Context, hub string, q Query) ([]Entry, error) {
	limit := cmp.Or(q.Limit, defaultLimit)
	var list []Entry
	bytes := 0
	err := b.newest(ctx, hub, q, func(e Entry) bool {
		if bytes += len(e.Event.Body); bytes > maxListBytes {
			e.Event.Body, e.Event.Value, e.Bodiless = nil, nil, true
		}
		list = append(list, e)
		return len(list) < limit
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("list poison events of hub %q: %w", hub, err)
	}
	return list, nil
}

// Count gives how many poison events of a function are in the hub and not redriven. At most limit
// are counted, and not all are looked at where they are many or large: more says that there may be
// more.
func (b *Box) Count(ctx context.Context, hub, function string, limit int) (n int, more bool, err error) {
	looked, bytes := 0, 0
	err = b.newest(ctx, hub, Query{Function: function}, func(Entry) bool {
		n++
		return true
	}, func(size int) bool {
		more = n >= limit || looked >= maxCountLooked || bytes >= maxCountBytes
		looked, bytes = looked+1, bytes+size
		return !more
	})
	if err != nil {
		return 0, false, fmt.Errorf("count poison events of hub %q: %w", hub, err)
	}
	return n, more, nil
}

// Show gives one poison event by its id (the newest with it). ErrNoPoisonEvent.
func (b *Box) Show(ctx context.Context, hub, id string) (Entry, error) {
	h, err := b.cfg.Broker.Hub(hub)
	if err != nil {
		return Entry{}, err
	}
	// It is most likely where hosts put it.
	for _, some := range [][]string{{likely(h, id)}, h.PartitionIDs()} {
		var found *Entry
		err := b.newestOf(ctx, h, some, Query{IDs: []string{id}, Redriven: true}, func(e Entry) bool {
			found = &e
			return false
		}, nil)
		if err != nil {
			return Entry{}, fmt.Errorf("look for poison event %q in hub %q: %w", id, hub, err)
		}
		if found != nil {
			return *found, nil
		}
	}
	return Entry{}, fmt.Errorf("%w: %.200q is not in hub %q: `eventyard poison list` shows what is; it may be too old", ErrNoPoisonEvent, id, h.Name)
}

// likely is the partition of a poison hub where a function host puts the poison event of that id:
// the source's number, as far as there are so many.
func likely(h broker.Hub, id string) string {
	parts := strings.Split(id, "/")
	n := 0
	if len(parts) > 1 {
		n, _ = strconv.Atoi(parts[len(parts)-2])
	}
	return strconv.Itoa(max(n, 0) % h.Partitions)
}

// item is one event of a poison hub as it was read.
type item struct {
	sequence int64
	time     time.Time
	key      string
	message  []byte
}

// entry reads the poison event, which was redriven with others of a span, or not; false: it is
// none.
func (i *item) entry(hub, partition string, redriven ranges.Span) (Entry, bool) {
	ev, err := message.Decode(i.message)
	if err != nil {
		return Entry{}, false
	}
	ev.Key, ev.Partition, ev.Sequence, ev.Enqueued = i.key, partition, i.sequence, i.time
	ev.Offset = strconv.FormatInt(i.sequence, 10)
	l, ok := poison.Read(ev)
	e := Entry{Record: l, PoisonHub: hub, PoisonPartition: partition, PoisonSequence: i.sequence}
	if redriven != (ranges.Span{}) {
		e.WasRedriven, e.RedrivenAt = true, time.UnixMilli(redriven.At).UTC()
	}
	return e, ok
}

// items are the events of a run, without sharing its bytes, from first to before next.
func items(to []item, run eventlog.Run, next int64) []item {
	for i, e := range run.Events {
		if sequence := int64(run.First) + int64(i); sequence < next {
			to = append(to, item{sequence, run.Time, string(e.Key), slices.Clone(e.Message)})
		}
	}
	return to
}
