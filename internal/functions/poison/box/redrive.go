package box

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/functions/poison"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/setaside"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Redriven is what came of one.
type Redriven struct {
	Entry
	Err error // nil: it is published
}

// RedriveConfig says which and how.
type RedriveConfig struct {
	// Query's Limit, where it is not 0, ends it when so many were published.
	Query
	// Force goes past the loop guard. PerSecond limits the rate; 0: no limit.
	Force     bool
	PerSecond int
	// DryRun: those that would be published are counted and given to Each, and that is all.
	DryRun bool
	// Each is called with every poison event as it is done; nil: nothing is.
	Each func(Redriven)
}

const (
	// redriveBytes is what is published and marked together.
	redriveBytes = 1 << 20
	// maxFailed ends a redrive in which nearly nothing goes well.
	maxFailed = 10_000
)

// Redrive publishes poison events again to the hub they came from, oldest first: by their key, else
// to the partition they came from. It is at least once: a poison event is marked after it was
// published. Errors: *SourcesError, ctx's, the hub's, the store's; what fails of single poison
// events is reported to Each, and they can be redriven again: ErrLoop, ErrNotKept,
// *broker.NotFoundError where the hub is gone they came from, and whatever the hub says.
//
// Poison events of one hub are redriven by one caller at a time; a second one waits, and finds what
// is left.
func (b *Box) Redrive(ctx context.Context, hub string, cfg RedriveConfig) (done, failed int, err error) {
	h, err := b.cfg.Broker.Hub(hub)
	if err != nil {
		return 0, 0, err
	}
	name := auth.Fold(h.Name)
	b.mu.Lock()
	if b.redriving[name] == nil {
		b.redriving[name] = setaside.NewTurn()
	}
	turn := b.redriving[name]
	b.mu.Unlock()
	give, err := turn.Take(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer give()
	r := &redrive{box: b, hub: h, cfg: cfg}
	if err := r.run(ctx); err != nil {
		return r.done, r.failed, fmt.Errorf("redrive poison events of hub %q: %w", hub, err)
	}
	return r.done, r.failed, nil
}

// redrive is one under way.
type redrive struct {
	box   *Box
	hub   broker.Hub
	cfg   RedriveConfig
	at    int64 // what poison events are marked with: none is younger
	marks *marks

	done, failed int
}

func (r *redrive) run(ctx context.Context) (err error) {
	if r.marks, err = r.box.marks(ctx, r.hub); err != nil {
		return err
	}
	if err := r.findSource(ctx); err != nil {
		return err
	}
	ways, err := r.box.waysOn(ctx, r.hub, r.cfg.Query, r.marks)
	if err != nil {
		return err
	}
	defer ways.close()
	r.at = max(time.Now().UnixMilli(), ways.newest.UnixMilli())
	if !r.cfg.DryRun {
		r.marks.tidy(ctx, ways.first)
	}
	out := setaside.NewRedrive(float64(r.cfg.PerSecond), redriveBytes, r.send)
	for r.failed < maxFailed && (r.cfg.Limit == 0 || r.done+out.Len() < r.cfg.Limit) {
		partition, i, more, err := ways.next(ctx)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		e, chosen := r.chosen(partition, i)
		switch most := r.box.cfg.MaxRedrives; {
		case !chosen:
			continue
		case e.Record.Redriven >= most && !r.cfg.Force: // it would go round for ever
			r.notify(e, fmt.Errorf("%w: %d times, and %d are allowed: mend what is wrong, then force it", ErrLoop, e.Record.Redriven, most))
			continue
		case r.cfg.DryRun:
			r.notify(e, nil)
			continue
		}
		bytes := len(i.message)
		if e.Reference {
			bytes = redriveBytes // which is about what it refers to
		}
		if err := out.Add(ctx, e, bytes); err != nil {
			return err
		}
	}
	return out.Flush(ctx)
}

func (r *redrive) chosen(partition string, i item) (Entry, bool) {
	redriven, wasRedriven := r.marks.of(partition).Marks().Redriven(i.sequence, i.time)
	if wasRedriven && !r.cfg.Redriven || r.cfg.late(i.time) {
		return Entry{}, false
	}
	e, ok := i.entry(r.hub.Name, partition, redriven)
	return e, ok && r.cfg.chooses(&e.Record)
}

// send publishes poison events, then marks them.
func (r *redrive) send(ctx context.Context, batch []Entry) error {
	errs := make([]error, len(batch))
	for _, p := range r.deliveries(batch, errs) {
		r.publish(ctx, p, batch, errs)
	}
	numbers := map[string][]int64{}
	for i, e := range batch {
		if errs[i] == nil {
			numbers[e.PoisonPartition] = append(numbers[e.PoisonPartition], e.PoisonSequence)
		}
	}
	var failed error
	for partition, some := range numbers {
		failed = errors.Join(failed, r.marks.of(partition).Redriven(ctx, some, r.at))
	}
	for i, e := range batch {
		if errs[i] == nil || ctx.Err() == nil {
			r.notify(e, errs[i])
		}
	}
	return errors.Join(failed, context.Cause(ctx))
}

// delivery is poison events of a batch that go to one partition, in order.
type delivery struct {
	hub          string
	partition    string
	poisonEvents []int // indexes in the batch
}

// deliveries divides a batch by where its poison events go. What is wrong with single ones is
// noted.
func (r *redrive) deliveries(batch []Entry, errs []error) (all []*delivery) {
	for i := range batch {
		l := &batch[i].Record
		h, err := r.box.cfg.Broker.Hub(l.Hub)
		if err != nil {
			errs[i] = err
			continue
		}
		to := delivery{hub: h.Name, partition: l.Partition}
		if l.Event.Key != "" {
			to.partition = strconv.Itoa(broker.PartitionForKey(l.Event.Key, h.Partitions))
		}
		at := slices.IndexFunc(all, func(p *delivery) bool { return p.hub == to.hub && p.partition == to.partition })
		if at < 0 {
			at, all = len(all), append(all, &to)
		}
		all[at].poisonEvents = append(all[at].poisonEvents, i)
	}
	return all
}

// publish publishes a delivery whole, or, where that is refused, each poison event by
// itself: one that is must not keep the others.
func (r *redrive) publish(ctx context.Context, p *delivery, batch []Entry, errs []error) {
	err := r.publishSome(ctx, p, p.poisonEvents, batch)
	if err == nil {
		return
	}
	for _, i := range p.poisonEvents {
		errs[i] = err
		if len(p.poisonEvents) > 1 && ctx.Err() == nil {
			errs[i] = r.publishSome(ctx, p, []int{i}, batch)
		}
	}
}

func (r *redrive) publishSome(ctx context.Context, p *delivery, poisonEvents []int, batch []Entry) error {
	events := make([]eventlog.Event, len(poisonEvents))
	for n, i := range poisonEvents {
		l, err := r.whole(ctx, batch[i].Record)
		if err != nil {
			return err
		}
		ev := l.Redrive()
		encoded, err := message.Append(nil, ev)
		if err != nil {
			return err
		}
		events[n] = eventlog.Event{Key: []byte(ev.Key), Message: encoded}
	}
	for {
		_, err := r.box.cfg.Broker.Publish(ctx, p.hub, broker.Target{Partition: p.partition}, events)
		full, throttled := errors.AsType[*quota.Error](err)
		if !throttled {
			return err
		}
		if err := sleep.For(ctx, full.Pause(), nil); err != nil {
			return err
		}
	}
}

func (r *redrive) notify(e Entry, err error) {
	if err != nil {
		r.failed++
	} else {
		r.done++
	}
	if err == nil && !r.cfg.DryRun {
		e.WasRedriven, e.RedrivenAt = true, time.UnixMilli(r.at).UTC()
	}
	if r.cfg.Each != nil {
		r.cfg.Each(Redriven{Entry: e, Err: err})
	}
}

// whole gives a poison event with its event, which is read from where it is if the poison event had
// no room for it. What a hub keeps under the same number since another time is another event: the
// hub was made anew.
func (r *redrive) whole(ctx context.Context, l poison.Record) (poison.Record, error) {
	if !l.Reference {
		return l, nil
	}
	gone := fmt.Errorf("%w: it was too large to be put away, and hub %q had it as event %d of partition %s", ErrNotKept, l.Hub, l.Sequence, l.Partition)
	cursor, err := r.box.cfg.Broker.Cursor(ctx, l.Hub, broker.DefaultGroup, l.Partition, eventlog.At(eventlog.Sequence(l.Sequence)))
	if ahead := (*eventlog.PositionError)(nil); errors.As(err, &ahead) {
		return l, gone
	}
	if err != nil {
		return l, err
	}
	defer cursor.Close()
	run, err := cursor.TryNext(ctx)
	if err != nil {
		return l, err
	}
	if len(run.Events) == 0 || int64(run.First) != l.Sequence || !run.Time.Equal(l.Enqueued) {
		return l, gone
	}
	ev, err := message.Decode(run.Events[0].Message)
	ev.Key = string(run.Events[0].Key)
	l.Event = ev
	return l, err
}

// SourcesError: poison events that were to be redriven together come from several hubs. Whoever may
// send to a poison hub chooses what its poison events say; so who redrives says which hub is meant.
type SourcesError struct {
	// Hubs are those that poison events name, by name; no more than ten.
	Hubs []string
}

func (e *SourcesError) Error() string {
	names := make([]string, len(e.Hubs))
	for i, name := range e.Hubs {
		names[i] = fmt.Sprintf("%.64q", name)
	}
	return "they come from several hubs (" + strings.Join(names, ", ") + "): name the one whose events are to be redriven"
}

// maxSources is how many hubs are named to who has to choose one.
const maxSources = 10

// findSource finds the hub that the poison events came from, where none was named: all have to name
// the same. Those that come meanwhile and name another are left.
func (r *redrive) findSource(ctx context.Context) error {
	if r.cfg.Source != "" {
		return nil
	}
	ways, err := r.box.waysOn(ctx, r.hub, r.cfg.Query, r.marks)
	if err != nil {
		return err
	}
	defer ways.close()
	hubs := map[string]bool{}
	for len(hubs) < maxSources {
		partition, i, more, err := ways.next(ctx)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if e, chosen := r.chosen(partition, i); chosen {
			hubs[auth.Fold(e.Hub)] = true
		}
	}
	names := slices.Sorted(maps.Keys(hubs))
	switch len(names) {
	case 0:
	case 1:
		r.cfg.Source = names[0]
	default:
		return &SourcesError{names}
	}
	return nil
}
