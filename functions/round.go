package functions

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/triage"
	"github.com/eventyard/eventyard/internal/setaside/ranges"
	"github.com/eventyard/eventyard/processor"
)

// round is the work on one batch that is not plain: something of it has failed, or is known from
// before. It goes through the batch's parts from left to right until none is left; each step does
// one thing with the first of them.
//
//	Call     wait ─▶ gate ─▶ call ─▶ the parts that package triage makes of it take its place
//	PutAway  the circuit gives leave ─▶ poison event ─▶ done
//	Finish   done
//
// What is done from the left is checkpointed after each step.
type round struct {
	w     *worker
	id    int64           // among those that make calls
	ctx   context.Context // of ProcessEvents, which it does not outlive
	b     *processor.Batch
	stop  <-chan struct{} // as stopping says
	parts []part
	done  []bool // by place in the batch
	low   int    // all events before this place are done,
	mark  int    // and those before this one are checkpointed
	term  int64  // of the circuit, at the last call; -1: there was none
	tried int    // probes that have failed
	stale int64  // the store still has a call for events up to here that is over; -1: it has none
}

// part is some events of the batch and what is to be done with them.
type part struct {
	triage.Part
	err      error        // of the last call; nil: there was none in this process
	since    triage.Since // when that ended
	allowed  bool         // the circuit has given leave to put it away,
	term     int64        // in this term
	intended bool         // its poison event was about to be written when somebody stopped
}

func newRound(ctx context.Context, w *worker, b *processor.Batch, stop <-chan struct{}) *round {
	r := &round{w: w, id: w.fn.needs.begin(), ctx: ctx, b: b, stop: stop, done: make([]bool, len(b.Events)), term: -1, stale: -1}
	r.plan()
	return r
}

// plan divides the batch. What is away, or was redriven for other functions, is in no part and so
// is done. What was about to be put away comes first: whether its poison event is written is not
// known, and the sooner that is over the better.
func (r *round) plan() {
	numbers := make([]int64, 0, len(r.b.Events))
	for i := range r.b.Events {
		if r.w.fn.ours(&r.b.Events[i]) {
			numbers = append(numbers, r.b.Events[i].Sequence)
		}
	}
	work := r.w.record.look()
	var intended, others []part
	var todo ranges.Set
	for _, u := range work.Plan(numbers) {
		todo = todo.Union(u.Events)
		switch p := (part{Part: triage.Part{Unit: u, Do: triage.Call}}); {
		case work.Intended(u):
			p.Do, p.intended = triage.PutAway, true
			intended = append(intended, p)
		case r.w.fn.policy.Condemned(u):
			p.Do = triage.PutAway
			others = append(others, p)
		default:
			others = append(others, p)
		}
	}
	r.parts = append(intended, others...)
	for i := range r.b.Events {
		r.done[i] = !todo.Has(r.b.Events[i].Sequence)
	}
	r.advance()
}

// run works until every event is done, or the partition is to be given up.
func (r *round) run() error {
	for len(r.parts) > 0 {
		var err error
		switch p := &r.parts[0]; p.Do {
		case triage.Call:
			err = r.call(p)
		case triage.PutAway:
			err = r.putAway(p)
		default:
			r.finish()
		}
		if err == nil {
			err = r.progress()
		}
		if err != nil {
			return r.leave(err)
		}
	}
	if r.mark < len(r.b.Events) {
		if err := r.w.checkpoint(r.ctx, r.b); err != nil {
			return err
		}
	}
	if err := r.tidy(); err != nil {
		return undone(err)
	}
	r.w.prune(r.ctx)
	return nil
}

// finish is done with the first part.
func (r *round) finish() {
	p := r.parts[0]
	r.parts = r.parts[1:]
	n := p.Events.Len()
	if p.Skipped {
		r.w.fn.counts.skipped.Add(n)
	} else if p.Do == triage.Finish {
		r.w.fn.counts.done.Add(n)
	}
	r.settled(p.Events)
}

// settled marks events as done.
func (r *round) settled(events ranges.Set) {
	for _, span := range events {
		for i := r.indexOf(span.First); i < len(r.done) && r.b.Events[i].Sequence <= span.Last; i++ {
			r.done[i] = true
		}
	}
	r.advance()
}

func (r *round) advance() {
	for r.low < len(r.done) && r.done[r.low] {
		r.low++
	}
}

// progress writes down how far the batch is done.
func (r *round) progress() error {
	if r.low > r.mark && r.low < len(r.done) && !r.w.fn.open.Load() {
		if err := r.b.CheckpointAt(r.ctx, r.b.Events[r.low-1]); err != nil {
			return err
		}
		r.mark = r.low
	}
	if p := r.parts; len(p) == 0 || p[0].Do != triage.Call || p[0].Wait > 0 || r.w.record.look().Recorded(p[0].Unit) {
		return nil // at the end it is tidied up anyway, and otherwise the work is stored before the next thing is done
	}
	return r.tidy()
}

// tidy sees to it that the store has no call as begun that is over: it would count as a death if
// this instance died later.
func (r *round) tidy() error {
	if r.stale < 0 || r.w.part.Status().Saved >= r.stale {
		r.stale = -1
		return nil
	}
	return r.persist()
}

// leave gives the batch back. What is done is checkpointed, even while the circuit is not closed:
// the next owner shall not do it again.
func (r *round) leave(err error) error {
	r.w.fn.circuit.GaveUp()
	if r.low > r.mark {
		_ = r.b.CheckpointAt(r.ctx, r.b.Events[r.low-1]) // in vain if the lease is lost or the checkpoint was moved
	}
	return undone(err)
}

// notify reports what was carried on from, unless it is the end.
func (r *round) notify(doing string, err error) error {
	if err == nil {
		return nil
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	r.w.report(doing, err)
	return nil
}

func (r *round) sample(u triage.Unit, err error) breaker.Sample {
	s := breaker.Sample{At: time.Now(), Partition: r.w.part.ID(), Sequence: u.Events.First(), Error: u.Reason}
	if err != nil {
		s.Error = reason(err)
	}
	return s
}

func (r *round) persist() error {
	r.stale = -1
	return r.w.persist(r.ctx, r.b.Leaving())
}

// events are those of a set, which is a part of the batch. They are copied only where others are in
// between.
func (r *round) events(set ranges.Set) []event.Event {
	from, n := r.indexOf(set.First()), int(set.Len())
	if end := from + n; end <= len(r.b.Events) && r.b.Events[end-1].Sequence == set.Last() {
		return r.b.Events[from:end:end]
	}
	list := make([]event.Event, 0, n)
	for i := from; i < len(r.b.Events) && len(list) < n; i++ {
		if set.Has(r.b.Events[i].Sequence) {
			list = append(list, r.b.Events[i])
		}
	}
	return list
}

// indexOf finds an event by its number, or the first behind it.
func (r *round) indexOf(sequence int64) int {
	i, _ := slices.BinarySearchFunc(r.b.Events, sequence, func(ev event.Event, seq int64) int { return cmp.Compare(ev.Sequence, seq) })
	return i
}
