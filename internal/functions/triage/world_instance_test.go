package triage

import "github.com/eventyard/eventyard/internal/setaside/ranges"

import "fmt"

// instance does what package functions does, in steps between which it may die. Its lanes are
// worked on in turn, as chance has it; a call has two steps, so that calls of several lanes are
// under way at once.
type instance struct {
	*world
	work  Work
	lanes []*lane
	done  ranges.Set // in this life
}

// lane is the events of some keys.
type lane struct {
	queue   []int64
	todo    []Part
	calling *Unit // nil: no call is under way
	wary    bool
}

func newInstance(w *world) *instance {
	in := &instance{world: w, done: ranges.Between(0, w.checkpoint)}
	if w.checkpoint < 0 {
		in.done = nil
	}
	last := Work{}
	if w.record != nil {
		var err error
		if last, err = DecodeWork(w.record); err != nil {
			w.broken("the record cannot be read: %v", err)
		}
	}
	in.work, _ = last.Begin(w.policy, w.epoch, fmt.Sprint("i", w.epoch), w.checkpoint)
	w.note("epoch %d at %d: %v", w.epoch, w.checkpoint, in.work.show())
	in.store()
	in.deal()
	return in
}

// deal gives all events above the checkpoint to lanes by their keys.
func (in *instance) deal() {
	keys := in.keys()
	for range in.world.lanes {
		in.lanes = append(in.lanes, &lane{})
	}
	for n := in.checkpoint + 1; n < int64(len(in.events)); n++ {
		l := in.lanes[keys[in.events[n].key]]
		l.queue = append(l.queue, n)
	}
}

// run takes steps until there is nothing left.
func (in *instance) run() {
	for steps := 0; in.checkpoint < int64(len(in.events))-1; steps++ {
		if steps > 20000 {
			in.broken("an instance does not end")
		}
		if in.stops > 0 && in.random.IntN(60) == 0 {
			in.stops--
			in.stop()
		}
		if in.moves > 0 && in.random.IntN(60) == 0 {
			in.moved()
		}
		in.step(in.lanes[in.random.IntN(len(in.lanes))])
	}
}

// mayDie is between any two steps.
func (in *instance) mayDie() {
	if in.crashes > 0 && in.random.IntN(8) == 0 && in.mayKill() {
		in.crashes--
		in.note("killed from outside")
		in.die()
	}
}

// mayKill: an innocent event that is killed from outside each time it is called alone looks like a
// killer, so that happens less often than it takes.
func (in *instance) mayKill() bool {
	stored, err := DecodeWork(in.record)
	if err != nil {
		return true // there is none yet
	}
	for _, u := range stored.Units {
		if u.Calling && stored.Wary(u) && u.Events.Len() == 1 {
			ev := in.events[u.Events.First()]
			if ev.killed == aloneDeaths-1 {
				return false
			}
			ev.killed++
		}
	}
	return true
}

func (in *instance) die() { panic(end{}) }

// moved is when an operator moves the checkpoint of a living instance, which begins again from
// there.
func (in *instance) moved() {
	in.cancel()
	in.move()
	in.work, _ = in.work.Begin(in.policy, in.epoch, in.work.Instance, in.checkpoint)
	in.done, in.lanes = nil, nil
	if in.checkpoint >= 0 {
		in.done = ranges.Between(0, in.checkpoint)
	}
	in.store()
	in.deal()
}

// cancel cancels the calls under way.
func (in *instance) cancel() {
	for _, l := range in.lanes {
		if l.calling != nil {
			in.work.Put(*l.calling)
			l.calling = nil
		}
	}
}

// stop ends in good order.
func (in *instance) stop() {
	in.note("stopped")
	in.cancel()
	in.work.Passed(in.checkpoint)
	in.work.Clean = true
	in.store()
	in.die()
}

func (in *instance) store() {
	in.mayDie()
	b, err := EncodeWork(in.work)
	if err != nil {
		in.broken("the record cannot be stored: %v", err)
	}
	in.record = b
	in.mayDie()
}

func (in *instance) step(l *lane) {
	switch {
	case l.calling != nil:
		in.endCall(l)
	case len(l.todo) > 0:
		in.next(l)
	case len(l.queue) > 0:
		in.take(l)
	default:
		in.save()
	}
}

// take plans a batch, cut as chance has it.
func (in *instance) take(l *lane) {
	n := min(in.maxBatch, len(l.queue))
	if !in.even {
		n = 1 + in.random.IntN(n)
	}
	var planned ranges.Set
	for _, u := range in.work.Plan(l.queue[:n]) {
		part := Part{Unit: u, Do: Call}
		if in.work.Intended(u) || in.policy.Condemned(u) {
			part.Do = PutAway
		}
		l.todo = append(l.todo, part)
		planned = planned.Union(u.Events)
	}
	in.finish(ranges.SetOf(l.queue[:n]...).Minus(planned))
	l.queue = l.queue[n:]
}

// next does what comes first.
func (in *instance) next(l *lane) {
	switch part := l.todo[0]; part.Do {
	case Finish:
		l.todo = l.todo[1:]
		in.finish(part.Events)
	case PutAway:
		in.putAway(part.Unit)
		l.todo = l.todo[1:]
		in.finish(part.Events)
	case Call:
		in.beginCall(l, part.Unit)
	}
}

func (in *instance) putAway(u Unit) {
	intent := in.work.Intend(u, "0", in.random.Int64N(1<<60)+1)
	in.store()
	in.send(intent)
	in.note("put away %v", u.show())
	in.mayDie()
	in.work.Sent(intent.Sequence)
	in.store()
}

// finish is told of events that are done; what is done from the first on moves the checkpoint.
func (in *instance) finish(events ranges.Set) {
	in.done = in.done.Union(events)
	if !in.lazy || in.random.IntN(4) == 0 {
		in.save()
	}
}

func (in *instance) save() {
	if len(in.done) == 0 || in.done[0].First != 0 || in.done[0].Last == in.checkpoint {
		return
	}
	in.mayDie()
	in.checkpoint = in.done[0].Last
	in.mayDie()
	in.work.Passed(in.checkpoint)
}

// beginCall begins one, unless it or another has to be alone.
func (in *instance) beginCall(l *lane, u Unit) {
	wary := in.work.Wary(u)
	for _, other := range in.lanes {
		if other.calling != nil && (wary || other.wary) {
			return
		}
	}
	l.calling, l.wary = &u, wary
	if in.work.Recorded(u) {
		begun := u
		begun.Calling = true
		in.work.Put(begun)
		in.store()
	}
}

func (in *instance) endCall(l *lane) {
	in.mayDie()
	u := *l.calling
	in.calls++
	in.note("call %v", u.show())
	whole, each := in.answer(in, numbers(u.Events))
	in.mayDie()
	l.calling = nil
	recorded := in.work.Recorded(u)
	parts := in.policy.After(u, whole, each, in.random.Float64())
	in.work.Settle(parts)
	if recorded || len(in.work.Units) > 0 {
		in.store()
	}
	l.todo = append(parts, l.todo[1:]...)
}
