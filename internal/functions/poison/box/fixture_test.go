package box

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/functions/poison"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// yard is a box on a real broker, whose hubs are where the environment has them. It works inside a synctest bubble and
// outside.
type yard struct {
	t *testing.T
	*Box
	broker *broker.Broker
	meta   *metatest.Faulty
	// read counts the events that cursors gave.
	read *atomic.Int64
}

func newYard(t *testing.T) *yard {
	t.Helper()
	s := storagetest.Open(t, storagetest.Config{SegmentBytes: 1 << 20, Sync: disk.OS})
	b := testkit.Value(broker.Open(t.Context(), broker.Config{Engine: s.Engine, Meta: s.Meta, Log: testkit.Quiet()}))(t)
	y := &yard{t: t, broker: b, meta: s.Meta, read: new(atomic.Int64)}
	y.Box = New(Config{Broker: counting{b, y.read}, Meta: s.Meta, Log: testkit.Quiet()})
	return y
}

// withHubs has a hub of poison events, and orders, where they came from.
func withHubs(t *testing.T, partitions int) *yard {
	t.Helper()
	y := newYard(t)
	y.hub("bad", partitions)
	y.hub("orders", 2)
	return y
}

// bubble is the same in virtual time.
func bubble(t *testing.T, partitions int, test func(t *testing.T, y *yard)) {
	synctest.Test(t, func(t *testing.T) { test(t, withHubs(t, partitions)) })
}

// counting is a broker whose cursors count what they give.
type counting struct {
	*broker.Broker
	read *atomic.Int64
}

func (c counting) Cursor(ctx context.Context, hub, group, partition string, at eventlog.Position) (eventlog.Cursor, error) {
	cursor, err := c.Broker.Cursor(ctx, hub, group, partition, at)
	return countingCursor{cursor, c.read}, err
}

type countingCursor struct {
	eventlog.Cursor
	read *atomic.Int64
}

func (c countingCursor) TryNext(ctx context.Context) (eventlog.Run, error) {
	run, err := c.Cursor.TryNext(ctx)
	c.read.Add(int64(len(run.Events)))
	return run, err
}

func (y *yard) hub(name string, partitions int) {
	y.t.Helper()
	testkit.Must(y.t, testkit.Err(y.broker.CreateHub(y.t.Context(), broker.HubConfig{Name: name, Partitions: partitions})))
}

// poisonEvent is one of a function that reads hub orders.
func poisonEvent(function string, n int) poison.Record {
	return poison.Record{
		ID: poison.ID(function, "orders", "1", int64(n)), Function: function, Hub: "orders", Group: "billing", Partition: "1", Sequence: int64(n),
		Reason: "no", Attempts: 4, At: time.Now().UTC().Truncate(time.Millisecond),
		Event: event.Event{Body: fmt.Appendf(nil, "body %d", n), Partition: "1", Sequence: int64(n)},
	}
}

func (y *yard) publish(hub, partition string, events ...event.Event) {
	y.t.Helper()
	var all []eventlog.Event
	for _, e := range events {
		encoded := testkit.Value(message.Append(nil, e))(y.t)
		all = append(all, eventlog.Event{Key: []byte(e.Key), Message: encoded})
	}
	testkit.Must(y.t, testkit.Err(y.broker.Publish(y.t.Context(), hub, broker.Target{Partition: partition}, all)))
}

// die puts poison events away, each by itself.
func (y *yard) die(hub, partition string, poisonEvents ...poison.Record) {
	y.t.Helper()
	for _, l := range poisonEvents {
		y.publish(hub, partition, l.Message())
	}
}

// dieMany puts away so many of function a.
func (y *yard) dieMany(n int) {
	y.t.Helper()
	var all []event.Event
	for i := range n {
		all = append(all, poisonEvent("a", i).Message())
	}
	y.publish("bad", "0", all...)
}

// events reads all of a hub, by partition.
func (y *yard) events(hub string) map[string][]event.Event {
	y.t.Helper()
	h := testkit.Value(y.broker.Hub(hub))(y.t)
	all := map[string][]event.Event{}
	for _, id := range h.PartitionIDs() {
		cursor := testkit.Value(y.broker.Cursor(y.t.Context(), hub, "$Default", id, eventlog.Earliest()))(y.t)
		for {
			run := testkit.Value(cursor.TryNext(y.t.Context()))(y.t)
			if len(run.Events) == 0 {
				break
			}
			for i, e := range run.Events {
				ev := testkit.Value(message.Decode(e.Message))(y.t)
				ev.Key, ev.Partition, ev.Sequence = string(e.Key), id, int64(run.First)+int64(i)
				all[id] = append(all[id], ev)
			}
		}
		testkit.Must(y.t, cursor.Close())
	}
	return all
}

func (y *yard) list(hub string, q Query) []Entry {
	y.t.Helper()
	list := testkit.Value(y.List(y.t.Context(), hub, q))(y.t)
	return list
}

// ids are the poison events' functions and numbers in short.
func ids(list []Entry) string {
	var all []string
	for _, e := range list {
		all = append(all, e.Function+strconv.FormatInt(e.Sequence, 10))
	}
	return strings.Join(all, " ")
}

func bodies(events []event.Event) string {
	var all []string
	for _, e := range events {
		all = append(all, strings.TrimPrefix(string(e.Body), "body "))
	}
	return strings.Join(all, " ")
}

// redrive redrives, and gives what was reported.
func (y *yard) redrive(hub string, cfg RedriveConfig) (reported []Redriven, done, failed int) {
	y.t.Helper()
	cfg.Each = func(r Redriven) { reported = append(reported, r) }
	done, failed, err := y.Redrive(y.t.Context(), hub, cfg)
	testkit.Must(y.t, err)
	return reported, done, failed
}

// wantRedriven redrives those of hub bad, and wants so many to be done and to fail.
func (y *yard) wantRedriven(cfg RedriveConfig, done, failed int) []Redriven {
	y.t.Helper()
	reported, gotDone, gotFailed := y.redrive("bad", cfg)
	testkit.Slices(y.t, []int{gotDone, gotFailed}, []int{done, failed}, "done and failed: %+v", reported)
	return reported
}

var errBroken = errors.New("broken")
