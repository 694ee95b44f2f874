package delivery

import (
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/webhook"
)

// send makes one request for items, and does with them what the answer says. The first of a
// batch that was too large for the receiver is as good as any: it is halved, and no attempt is
// counted, before a single event is given up for its size.
func (b *batch) send(items []*item) {
	result := b.deliver(items)
	now := time.Now()
	b.report(result, now)
	switch {
	case result.Outcome == retry.Canceled:
		b.cancel(items, now)
	case result.Outcome == retry.PayloadTooLarge && len(items) > 1:
		b.note(items[0], result, len(items), time.Time{})
		b.split(items)
	default:
		b.judge(items, result, now)
	}
}

// cancel takes items back that were not sent after all, and no attempt is counted. That is when
// the yard stops; if ever it is not, they wait a moment.
func (b *batch) cancel(items []*item, now time.Time) {
	if b.shift.taking.Err() != nil {
		b.back = append(b.back, items...)
		return
	}
	for _, it := range items {
		it.Due = now.Add(firstPause)
	}
	b.again = append(b.again, items...)
}

func (b *batch) deliver(items []*item) webhook.Result {
	b.deliveries = b.deliveries[:0]
	for _, it := range items {
		b.deliveries = append(b.deliveries, &it.Delivery)
	}
	return b.lane.s.cfg.Sender.Deliver(b.shift.sending, b.terms.order, b.deliveries)
}

// report tells the endpoint's health, and the definitions where the receiver wants no more.
func (b *batch) report(result webhook.Result, now time.Time) {
	b.endpoint.report(b.lane, b.probe, result.Outcome, now)
	b.probe = false // what else of the batch is sent is no probe
	if !result.Disable || b.terms.sub.Webhook == nil {
		return
	}
	l := b.lane
	err := l.s.cfg.Topics.DisableAt(b.shift.keeping, l.id, b.terms.sub.Webhook.URL, "the endpoint asked for no more events")
	if err != nil {
		l.s.log.Warn("subscription cannot be disabled as its endpoint wants", "subscription", b.terms.sub.Name, "error", err)
	}
}

// split sends the halves, one after the other, while the endpoint may be sent to.
func (b *batch) split(items []*item) {
	half := len(items) / 2
	for _, part := range [][]*item{items[:half], items[half:]} {
		if b.shift.taking.Err() != nil || b.endpoint.gate(b.lane, time.Now()) != open {
			b.back = append(b.back, part...)
			continue
		}
		b.send(part)
	}
}

// fate is what becomes of some items of a batch.
type fate struct {
	verdict retry.Verdict
	items   []*item
}

// judge decides on each item by its own attempts, and carries it out: one answer for all of
// them (G2), but some may have been tried before.
func (b *batch) judge(items []*item, result webhook.Result, now time.Time) {
	if result.Outcome == retry.Delivered && !result.Abort {
		b.note(items[0], result, len(items), time.Time{})
		b.tally.delivered += int64(len(items))
		b.finish(items...)
		return
	}
	var fates []fate
	for _, it := range items {
		it.Attempts++
		it.LastAttempt, it.LastOutcome, it.LastStatus = result.Began, result.Outcome, result.Status
		fates = addFate(fates, b.verdict(it, result), it)
	}
	var again []key
	for _, f := range fates {
		b.carryOut(f, now)
		if f.verdict.Do == retry.Again {
			again = appendKeys(again, f.items)
		}
	}
	if result.Late != nil && len(again) > 0 {
		b.lane.s.awaitLate(again, result.Late)
	}
	next := time.Time{}
	if fates[0].verdict.Do == retry.Again {
		next = items[0].Due
	}
	b.note(items[0], result, len(items), next)
}

func (b *batch) verdict(it *item, r webhook.Result) retry.Verdict {
	if r.Abort {
		return retry.Verdict{Do: retry.GiveUp, Reason: retry.ReasonRefused}
	}
	return retry.Judge(b.terms.policy, retry.Attempt{
		Number: it.Attempts, Status: r.Status, Outcome: r.Outcome, RetryAfter: r.RetryAfter,
	})
}

// addFate groups items of the same fate: mostly there is one.
func addFate(fates []fate, v retry.Verdict, it *item) []fate {
	for i := range fates {
		if fates[i].verdict == v {
			fates[i].items = append(fates[i].items, it)
			return fates
		}
	}
	return append(fates, fate{verdict: v, items: []*item{it}})
}

func (b *batch) carryOut(f fate, now time.Time) {
	if f.verdict.Do == retry.Again {
		b.tryAgain(f, now)
		return
	}
	b.giveUp(f.items, f.verdict.Reason)
}

// tryAgain puts items into the retry log of their wait. In ordered mode they wait in place, and
// hold back those of the same key; and so does what is too large for a retry log: the source's
// log has it.
func (b *batch) tryAgain(f fate, now time.Time) {
	b.tally.fail(f.items[0].LastOutcome, len(f.items))
	inPlace := f.items
	if !b.terms.ordered {
		inPlace = b.store(f.items, "put events into a retry log", func(ps []pending.Delivery) error {
			return b.lane.s.cfg.RetryLogs.Put(b.shift.keeping, f.verdict.Wait, ps)
		})
	}
	for _, it := range inPlace {
		it.Due = now.Add(f.verdict.Wait)
	}
	b.again = append(b.again, inPlace...)
}

// giveUpOld puts away what has outlived its time.
func (b *batch) giveUpOld() {
	for _, it := range b.items {
		if b.held || it.LastOutcome == "" { // it was not even tried
			it.LastOutcome = retry.OnProbation
		}
	}
	b.giveUp(b.items, retry.ReasonAge)
}

// giveUp puts items where the dead letters go, or drops and counts them.
func (b *batch) giveUp(items []*item, reason string) {
	if b.job == jobSend {
		b.tally.fail(items[0].LastOutcome, len(items))
	}
	if !b.terms.deadTarget {
		b.tally.drop(reason, len(items))
		b.finish(items...)
		return
	}
	for _, it := range items {
		it.Reason = reason
	}
	tooLarge := b.store(items, "put events into the dead letters", func(ps []pending.Delivery) error {
		return b.lane.s.cfg.Dead.Put(b.shift.keeping, b.terms.sub, ps)
	})
	b.tally.bury(reason, len(items)-len(tooLarge))
	if len(tooLarge) > 0 {
		b.lane.s.log.Error("events are too large to be dead letters and are dropped",
			"subscription", b.terms.sub.Name, "events", len(tooLarge), "reason", reason)
		b.tally.drop(reason, len(tooLarge))
		b.finish(tooLarge...)
	}
}
