package broker

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/amqp/message"
	kafka "github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// yard is storage that brokers can be opened on, also several, also again.
type yard struct{ *storagetest.Storage }

func newYard(t *testing.T) yard {
	t.Helper()
	return yard{storagetest.Open(t, storagetest.Config{SegmentBytes: 16 << 10})}
}

func (y yard) open(t *testing.T) *Broker {
	t.Helper()
	return open(t, Config{Engine: y.Engine, Meta: y.Meta, Translators: kafka.Translators()})
}

// node is the yard with doubles of its own, for one broker among several.
func (y yard) node() yard { return yard{y.Node()} }

func open(t *testing.T, cfg Config) *Broker {
	t.Helper()
	cfg.Log = testkit.Quiet()
	b := testkit.Value(Open(t.Context(), cfg))(t)
	return b
}

func mustCreate(t *testing.T, b *Broker, name string, partitions int, groups ...string) Hub {
	t.Helper()
	h := testkit.Value(b.CreateHub(t.Context(), HubConfig{Name: name, Partitions: partitions}))(t)
	for _, group := range groups {
		testkit.Must(t, testkit.Err(b.CreateGroup(t.Context(), name, group)))
	}
	return h
}

func mustPublish(t *testing.T, b *Broker, hub string, to Target, messages ...string) Published {
	t.Helper()
	p := testkit.Value(b.Publish(t.Context(), hub, to, events(messages...)))(t)
	return p
}

func events(messages ...string) []eventlog.Event { return storagetest.Events(messages...) }

// readAll gives what a hub holds, by partition.
func readAll(t *testing.T, b *Broker, hub string) [][]string {
	t.Helper()
	h := testkit.Value(b.Hub(hub))(t)
	all := make([][]string, h.Partitions)
	for i := range all {
		all[i] = read(t, b, hub, DefaultGroup, i, eventlog.Earliest())
	}
	return all
}

// read gives the messages of a partition from a position to the end.
func read(t *testing.T, b *Broker, hub, group string, partition int, at eventlog.Position) []string {
	t.Helper()
	c := testkit.Value(b.Cursor(t.Context(), hub, group, strconv.Itoa(partition), at))(t)
	all := storagetest.ReadAll(t, c)
	for i, m := range all {
		if body, ok := message.Body([]byte(m)); ok { // of a frame
			all[i] = string(body)
		}
	}
	return all
}

func isNotFound(err error, kind string) bool {
	var missing *NotFoundError
	return errors.As(err, &missing) && missing.Kind == kind
}

// wantNotFound reports an error that does not say that something of a kind is missing.
func wantNotFound(t testing.TB, err error, kind string, what ...any) {
	t.Helper()
	if !isNotFound(err, kind) {
		testkit.ErrorIs(t, err, &NotFoundError{Kind: kind}, what...)
	}
}

// faults decides which step of a course of changes fails. From then on all do, as if
// the process had died there.
type faults struct {
	mu      sync.Mutex
	step    int // the step that fails, counted from 1; 0: none. Guarded by mu.
	taken   int // guarded by mu
	removed []string
	// answerLost: the step is taken, but nobody learns of it.
	answerLost bool
}

var errCrashed = errors.New("the process died here")

// next takes a step or fails; unheard makes an error that takes it all the same.
func (f *faults) next(unheard func(error) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken++
	switch {
	case f.step == 0 || f.taken < f.step:
		return nil
	case f.taken == f.step && f.answerLost:
		return unheard(errCrashed)
	}
	return errCrashed
}

// set changes which step fails: the one that comes then after those taken so far; 0: none.
func (f *faults) set(step int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.step = step; step > 0 {
		f.step += f.taken
	}
}

// fail lets the changes of entries and the removals of logs be the steps.
func (y yard) fail(f *faults) yard {
	y.Meta.Inject(func(op metatest.Op) error {
		if !op.Changes() {
			return nil
		}
		return f.next(metatest.Unheard)
	})
	return y.failRemovals(f)
}

func (y yard) failRemovals(f *faults) yard {
	y.Engine.Inject(func(op logtest.Op) error {
		if op.Kind != logtest.OpRemove {
			return nil
		}
		err := f.next(logtest.Unheard)
		if !errors.Is(err, errCrashed) {
			f.removed = append(f.removed, op.ID.Log)
		}
		return err
	})
	return y
}

// nth is an injection for the operation of a kind with a number.
func nth(kind logtest.OpKind, n int, err error) func(logtest.Op) error {
	return func(op logtest.Op) error {
		if op.Kind == kind && op.N == n {
			return err
		}
		return nil
	}
}

// hold keeps receipts waiting, from that of a submission on, until release is closed.
func (y yard) hold(from int) (release chan struct{}) {
	release = make(chan struct{})
	y.Engine.Inject(func(op logtest.Op) error {
		if op.Kind == logtest.OpWait && op.N >= from {
			<-release
		}
		return nil
	})
	return release
}

// atZero is what a producer says that has stored nothing and begins at 0.
var atZero = new(int32(-1))

func mustBegin(t *testing.T, b *Broker, hub string, cfg ProducerConfig) *Producer {
	t.Helper()
	p := testkit.Value(b.Producer(t.Context(), hub, "0", cfg))(t)
	return p
}

func mustSubmit(t *testing.T, p *Producer, first int32, messages ...string) *Pending {
	t.Helper()
	pending := testkit.Value(p.Submit(t.Context(), first, events(messages...)))(t)
	return pending
}

// mustStore submits and waits.
func mustStore(t *testing.T, p *Producer, first int32, messages ...string) Published {
	t.Helper()
	stored := testkit.Value(mustSubmit(t, p, first, messages...).Wait(t.Context()))(t)
	return stored
}

// store submits and waits.
func store(ctx context.Context, p *Producer, first int32, messages ...string) (Published, error) {
	pending, err := p.Submit(ctx, first, events(messages...))
	if err != nil {
		return Published{}, err
	}
	return pending.Wait(ctx)
}
