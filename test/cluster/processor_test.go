package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/testkit/history"
	"github.com/eventyard/eventyard/processor"
)

const (
	workersGroup = "workers"
	// leaseTime is that of the processor's instances: as long as functions have it.
	leaseTime = 10 * time.Second
)

// workers are instances of the processor, as many as nodes, that share the partitions of a load's hub.
type workers struct {
	cancel context.CancelFunc
	all    sync.WaitGroup
	errs   errorList // what was passed by, and what instances ended with
	// saves is by partition which epoch has saved checkpoints when.
	saves [partitions]history.Receivers

	mu      sync.Mutex
	next    [partitions]int64           // guarded by mu: the number behind all that were handled
	handled map[string]int              // guarded by mu: how often, by the text of the event
	again   int                         // guarded by mu: how many events came again
	saved   [partitions]map[int64]int64 // guarded by mu: by epoch, the newest checkpoint that was saved
}

// process starts the instances, each at a node of its own or all behind the balancer.
func (y *yard) process(t testing.TB, name string) *workers {
	t.Helper()
	manage(t, "create the group", func(ctx context.Context) error {
		return testkit.Err(y.nodes[0].admin(t).CreateGroup(ctx, name, workersGroup))
	})
	ctx, cancel := context.WithCancel(t.Context())
	w := &workers{cancel: cancel, handled: map[string]int{}}
	for p := range w.saved {
		w.saved[p] = map[int64]int64{}
	}
	t.Cleanup(w.stop)
	for i, n := range y.nodes {
		client := testkit.Value(hub.Dial(t.Context(), y.connection(cmp.Or(y.balancer, n.amqp)), hub.Config{Log: testkit.Quiet()}))(t)
		w.all.Go(func() {
			defer client.Close()
			p := processor.New(client.Hub(name), processor.Config{
				Group: workersGroup, ID: fmt.Sprintf("worker%d", i), Lease: leaseTime, Stop: 5 * time.Second, OnError: func(error) {}, Log: testkit.Quiet(),
				MinBatch: 50, MaxWait: 250 * time.Millisecond, // a checkpoint for each event would be most of the load
			})
			err := p.Run(ctx, w.handle)
			if err != nil && !errors.Is(err, processor.ErrNotHandedOver) { // its node may be away
				w.errs.add(fmt.Errorf("an instance of the processor ended: %w", err))
			}
		})
	}
	return w
}

// handle notes what an instance is given, and has a checkpoint saved.
func (w *workers) handle(ctx context.Context, b *processor.Batch) error {
	p, err := strconv.Atoi(b.Partition.ID())
	if err != nil {
		return err
	}
	w.note(p, b.Partition.Epoch(), b.Events)
	begun := w.saves[p].Now()
	if err := b.Checkpoint(ctx); err != nil {
		return err
	}
	w.record(p, begun, b.Partition.Epoch(), b.Events[len(b.Events)-1].Sequence)
	return nil
}

// record records a checkpoint that was saved since begun. One that was saved before is not written again.
func (w *workers) record(p int, begun history.Moment, epoch, sequence int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch before, known := w.saved[p][epoch]; {
	case !known:
		w.saves[p].TakeOver(begun, epoch)
	case sequence > before:
		w.saves[p].Receive(begun, epoch)
	default:
		return
	}
	w.saved[p][epoch] = sequence
}

// note notes events that an instance is given. Each is the one behind those that were given before, or comes again.
func (w *workers) note(p int, epoch int64, events []event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ev := range events {
		switch {
		case ev.Sequence == w.next[p]:
			w.next[p]++
		case ev.Sequence > w.next[p]:
			w.errs.add(fmt.Errorf("the processor is given number %d of partition %d under epoch %d, and was not given %d", ev.Sequence, p, epoch, w.next[p]))
			w.next[p] = ev.Sequence + 1
		default:
			w.again++
		}
		w.handled[string(ev.Body)]++
	}
}

// repeats is how many events came again so far.
func (w *workers) repeats() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.again
}

// goesOn waits until each partition gets on.
func (w *workers) goesOn(t testing.TB, when string) {
	t.Helper()
	now := func() [partitions]int64 {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.next
	}
	before := now()
	for p := range partitions {
		eventually(t, fmt.Sprintf("the processor is given nothing more of partition %d %s", p, when), func() bool { return now()[p] > before[p] })
	}
}

// stop ends the instances.
func (w *workers) stop() {
	w.cancel()
	w.all.Wait()
}

// judge waits until all that was acknowledged was handled. Nothing was passed by, and no checkpoint was saved under an
// epoch when a higher one had saved one.
func (w *workers) judge(t testing.TB, records []*record) {
	t.Helper()
	eventually(t, "the processor is not given all that was acknowledged", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return missing(records, w.handled) == ""
	})
	w.stop()
	for _, err := range w.errs.list() {
		t.Error(err)
	}
	calls, epochs := 0, 0
	for p := range w.saves {
		testkit.Check(t, w.saves[p].Check(), "checkpoints of partition %d", p)
		calls += w.saves[p].Len()
		epochs += len(w.saved[p])
	}
	t.Logf("processor: %d events came again; a history of %d checkpoints under %d epochs", w.repeats(), calls, epochs)
}
