package sim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/memory"
)

// world is everything of one simulation.
type world struct {
	plan    plan
	dice    dice
	broker  *broker.Broker
	store   processor.Store // what the instances share; a test may put a broken one here
	weather weather
	ledger  *ledger
	// body runs one instance until ctx ends; a test may put a broken one here.
	body func(ctx context.Context, r *run, h processor.Hub, cfg processor.Config) error

	applying sync.Mutex // held for one call of the store at a time
	late     sync.WaitGroup
	runs     int // of the director's goroutine
}

func newWorld(t *testing.T, p plan) *world {
	t.Helper()
	engine, err := disk.Open(disk.Config{FS: vfs.NewMem(), Sync: disk.OS, SegmentBytes: 64 << 10, Log: testkit.Quiet()})
	testkit.Must(t, err)
	t.Cleanup(func() { engine.Close() })
	b, err := broker.Open(t.Context(), broker.Config{Engine: engine, Meta: metatest.NewMemory(), Namespace: "sim", Log: testkit.Quiet()})
	testkit.Must(t, err)
	if _, err := b.EnsureHub(t.Context(), broker.HubConfig{Name: hubName, Partitions: p.partitions}, []string{"billing"}); err != nil {
		t.Fatal(err)
	}
	return &world{
		plan: p, dice: dice{p.seed}, broker: b, store: memory.New(), ledger: newLedger(leaseTime),
		body: theProcessor,
	}
}

// theProcessor is the real thing, in one of its forms.
func theProcessor(ctx context.Context, r *run, h processor.Hub, cfg processor.Config) error {
	if r.world.plan.host {
		return processor.New(h, cfg).RunHost(ctx, r.worker)
	}
	return processor.New(h, cfg).Run(ctx, r.handle)
}

func (w *world) group() processor.Group {
	return processor.Group{Namespace: "sim", Hub: hubName, Group: "billing"}
}

// wallClock shows a time as a clock does that has jumped.
func (w *world) wallClock(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(w.weather.clock())
}

// later does what is under way after a while, whatever has become of who asked for it. Now
// and then it comes when its sender's lease is long over.
func (w *world) later(d *dice, do func()) {
	delay := d.between(time.Millisecond, 8*time.Second)
	if d.chance(0.5) {
		delay = d.between(leaseTime, 4*leaseTime)
	}
	w.late.Go(func() {
		time.Sleep(delay)
		do()
	})
}

// start begins a run of an instance.
func (w *world) start(id string) *run {
	w.runs++
	r := &run{world: w, id: id, n: w.runs, dice: *w.dice.of("run "+id, w.runs), gate: newGate(), ended: make(chan struct{})}
	r.line = &line{world: w, run: r}
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(context.Background())
	cfg := w.plan.config()
	cfg.ID, cfg.Log, cfg.OnError = id, testkit.Quiet(), func(error) {}
	st := &store{world: w, run: r, calls: map[string]int{}}
	if cfg.Store = st; w.plan.watch {
		cfg.Store = watched{st}
	}
	go func() {
		defer close(r.ended)
		r.err = w.body(ctx, r, r.line, cfg)
	}()
	return r
}

// kill ends a run without any farewell. The broker notices a moment or half a minute later.
func (w *world) kill(r *run) {
	r.disturb()
	r.goes()
	r.gate.kill()
	r.cancel()
	d := r.dice.of("vanish", 0)
	delay := d.between(time.Millisecond, 30*time.Second)
	w.late.Go(func() {
		time.Sleep(delay)
		r.line.vanish()
		<-r.ended
		r.line.vanish() // and what was opened meanwhile
	})
}

// stop ends a run gracefully and checks that it was.
func (w *world) stop(r *run) {
	begun := time.Now()
	r.cancel()
	<-r.ended
	took := time.Since(begun)
	r.line.vanish()
	// One that is frozen or cut off may have to say that not everything was handed over.
	if r.err != nil && (r.isWell() || !errors.Is(r.err, processor.ErrNotHandedOver)) {
		w.ledger.breakRule(ruleStop, "%v returned %v", r, r.err)
	}
	if !r.isWell() {
		r.goes()
		return
	}
	defer r.goes()
	if took > stopTime+10*time.Second {
		w.ledger.breakRule(ruleStop, "%v took %v", r, took)
	}
	w.ledger.leftBehind(r)
}

// leftBehind checks that a run that stopped owns nothing.
func (l *ledger) leftBehind(r *run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.accounts {
		if t := a.tenures[a.held.Epoch]; a.held.Owner == r.id && t != nil && t.run == r {
			l.breakLocked(ruleStop, a, "%v has stopped and still owns it", r)
		}
	}
}

// publish appends events to partitions until ctx ends.
func (w *world) publish(ctx context.Context) {
	for n := 0; ; n++ {
		d := w.dice.of("publish", n)
		select {
		case <-time.After(d.between(w.plan.publish/2, w.plan.publish*3/2)):
		case <-ctx.Done():
			return
		}
		if err := w.publishTo(strconv.Itoa(d.below(w.plan.partitions)), 1+d.below(5)); err != nil {
			w.ledger.breakRule(ruleEvents, "%v", err)
		}
	}
}

// publishTo is called by one goroutine, so that it knows the numbers in advance.
func (w *world) publishTo(partition string, count int) error {
	w.ledger.mu.Lock()
	next := w.ledger.accountLocked(partition).last + 1
	w.ledger.mu.Unlock()
	events := make([]eventlog.Event, count)
	for i := range events {
		m, err := message.Append(nil, event.Text(body(partition, next+int64(i))))
		if err != nil {
			return err
		}
		events[i].Message = m
	}
	p, err := w.broker.Publish(context.Background(), hubName, broker.Target{Partition: partition}, events)
	if err != nil || int64(p.First) != next {
		return fmt.Errorf("published to %s: first is %d, want %d, error %v", partition, p.First, next, err)
	}
	w.ledger.published(partition, next+int64(count)-1)
	return nil
}

// body is what an event says.
func body(partition string, sequence int64) string {
	return partition + "/" + strconv.FormatInt(sequence, 10)
}
