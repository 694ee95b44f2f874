package triage

import "slices"

// Begin gives the record with which a new owner starts, from the last one (the zero Work where
// there is none): a unit whose call was under way when its instance died has one death more, and
// owners that died three times without moving the checkpoint put everything that comes first under
// suspicion: Suspect is true then until the checkpoint moves, and calls are recorded before they
// are made. due are events that are to be put away when they come (Policy.Condemned says the same
// of a unit); they stay recorded until then.
//
//   - The last owner ended Clean: nobody died, whatever was under way was cancelled.
//   - The record is of a higher epoch, or of this one by another: it is given as it is, which Owned
//     shows. The caller has lost the lease.
//   - It is of this owner: nobody died; the checkpoint may have been moved.
//   - The checkpoint is higher than the record's: what it has passed is forgotten, whoever moved
//     it. An Intent among that is abandoned.
//   - It is lower: an operator has rewound it, or the hub is another one of that name. Then
//     everything is to be done again, and what is known of events, which may be others, is
//     forgotten: attempts, what is away, and the Intent. What fails again is put away again, under
//     the same id.
func (w Work) Begin(p Policy, epoch int64, instance string, checkpoint int64) (next Work, due []Part) {
	switch {
	case w.Epoch == 0 && w.Instance == "": // there is no record yet
		return Work{Epoch: epoch, Instance: instance, Begun: checkpoint}, nil
	case w.Epoch > epoch || w.Epoch == epoch && w.Instance != instance:
		return w, nil
	case w.Epoch == epoch:
		next = w.movedTo(checkpoint)
	default:
		next = w.succeeded(p, checkpoint)
	}
	next.Epoch, next.Instance, next.Clean = epoch, instance, false
	for _, u := range next.Units {
		if p.Condemned(u) {
			due = append(due, Part{Unit: u, Do: PutAway})
		}
	}
	return next, due
}

// Owned says whether the record is this owner's.
func (w Work) Owned(epoch int64, instance string) bool {
	return w.Epoch == epoch && w.Instance == instance
}

// movedTo is the record at the checkpoint as it is now.
func (w Work) movedTo(checkpoint int64) Work {
	if checkpoint >= w.Begun {
		w.Passed(checkpoint)
		return w
	}
	if w.Intent != nil {
		w.abandon()
	}
	w.Units, w.Away, w.Waiting, w.Begun, w.Stalls = nil, nil, nil, checkpoint, 0
	return w
}

// succeeded is the record for another owner. Whom a death is held against is seen before the
// checkpoint takes anybody out of the company.
func (w Work) succeeded(p Policy, checkpoint int64) Work {
	stalled := !w.Clean && checkpoint == w.Begun
	next := w
	next.Units = nil
	for _, u := range w.Units {
		if u.Calling && !w.Clean {
			next.Units = append(next.Units, p.died(u, w.Wary(u))...)
			continue
		}
		u.Calling = false
		next.Units = append(next.Units, u)
	}
	next.Units = byFirst(slices.DeleteFunc(next.Units, Unit.blank))
	next = next.movedTo(checkpoint)
	if stalled {
		next.Stalls = min(next.Stalls+1, maxCount)
	}
	return next
}

const diedReason = "the instance died in the call"

// died is what becomes of a unit whose call was begun by an instance that died. In a call that was
// not wary others ran beside it, and the death may be theirs: it is known from then on, so that the
// next call is alone, but not held against it. At the policy's limit several are divided, and one
// further death of several divides them again; one event is Condemned (for Retries for ever too: an
// instance that dies is worse than an event put away).
func (p Policy) died(u Unit, wary bool) []Unit {
	u.Deaths, u.Ended, u.Calling, u.Reason = min(u.Deaths+1, maxCount), 0, false, diedReason
	if wary {
		u.Counted = min(u.Counted+1, maxCount)
	}
	limit := p.deaths()
	if u.Counted < limit || u.Events.Len() == 1 {
		return []Unit{u}
	}
	var halves []Unit
	for _, half := range u.divide() {
		half.Counted = limit - 1
		if half.Events.Len() == 1 { // it has to be found guilty alone
			half.Counted = limit - aloneDeaths
		}
		halves = append(halves, half.Unit)
	}
	return halves
}
