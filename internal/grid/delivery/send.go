package delivery

import (
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/grid/hops"
	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// send makes one request for items, and does with them what the answer says. A batch that was too
// large for the receiver is halved, and no attempt is counted, before a single event is given up
// for its size.
func (b *batch) send(items []*item) {
	b.deliveries = b.deliveries[:0]
	for _, it := range items {
		b.deliveries = append(b.deliveries, &it.Delivery)
	}
	result := b.lane.s.cfg.Sender.Deliver(b.shift.sending, b.terms.order, b.deliveries)
	now, probe := time.Now(), b.probe
	b.report(result, now)
	switch {
	case result.Outcome == retry.Canceled && b.shift.taking.Err() != nil:
		b.back = append(b.back, items...) // they were not sent after all
	case result.Outcome == retry.Canceled: // though the yard does not stop: they wait a moment
		for _, it := range items {
			it.Due = now.Add(firstPause)
		}
		b.again = append(b.again, items...)
	case result.Outcome == retry.PayloadTooLarge && len(items) > 1:
		b.note(items, result, probe, time.Time{})
		half := len(items) / 2
		for _, part := range [][]*item{items[:half], items[half:]} {
			if b.shift.taking.Err() != nil || b.endpoint.gate(b.lane, time.Now()) != open {
				b.back = append(b.back, part...)
				continue
			}
			b.send(part)
		}
	default:
		b.judge(items, result, probe, now)
	}
}

// report notes the result for the endpoint's health, and in the definition where the receiver wants
// no more.
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

// fate is what becomes of some items of a batch.
type fate struct {
	verdict retry.Verdict
	items   []*item
}

// judge decides on each item by its own attempts, and carries it out: one answer for all of
// them (G2), but some may have been tried before.
func (b *batch) judge(items []*item, result webhook.Result, probe bool, now time.Time) {
	if result.Outcome == retry.Delivered && !result.Abort {
		b.note(items, result, probe, time.Time{})
		b.tally.delivered += int64(len(items))
		b.finish(items...)
		return
	}
	var fates []fate // mostly one
	for _, it := range items {
		if !result.Untried {
			it.Attempts++
		}
		it.LastAttempt, it.LastOutcome, it.LastStatus = result.Began, result.Outcome, result.Status
		it.Note(attemptOf(result, probe))
		verdict := retry.Verdict{Do: retry.GiveUp, Reason: retry.ReasonRefused}
		if !result.Abort {
			verdict = retry.Judge(b.terms.policy, retry.Attempt{
				Number: it.Attempts, Status: result.Status, Outcome: result.Outcome, RetryAfter: result.RetryAfter, Untried: result.Untried,
			})
		}
		i := slices.IndexFunc(fates, func(f fate) bool { return f.verdict == verdict })
		if i < 0 {
			i, fates = len(fates), append(fates, fate{verdict: verdict})
		}
		fates[i].items = append(fates[i].items, it)
	}
	var again []key
	for _, f := range fates {
		if f.verdict.Reason == retry.ReasonHops {
			b.lane.s.loops.Do(func() {
				b.lane.s.log.Warn("events go round in a loop of subscriptions", "subscription", b.terms.sub.Name, "advice", hops.Advice)
			})
		}
		if f.verdict.Do != retry.Again {
			b.giveUp(f.items, f.verdict.Reason)
			continue
		}
		b.tryAgain(f, now)
		for _, it := range f.items {
			again = append(again, keyOf(&it.Delivery))
		}
	}
	// What comes of the request after all is waited for. The retries are on their way; when they
	// fall due they find the marks. What was given up has no retry, and is not marked: a redriven
	// event is another matter.
	if s := b.lane.s; result.Late != nil && len(again) > 0 {
		b.lane.holding.crew.start(func(w shift) {
			select {
			case r := <-result.Late:
				if r.Outcome == retry.Delivered {
					s.late.add(again)
				}
			case <-w.taking.Done():
			}
		})
	}
	next := time.Time{}
	if fates[0].verdict.Do == retry.Again {
		next = items[0].Due
	}
	b.note(items, result, probe, next)
}

// tryAgain puts items into the retry log of their wait. In ordered mode they wait in place, and
// hold back those of the same key; and so does what is too large for a retry log: the source's
// log has it.
func (b *batch) tryAgain(f fate, now time.Time) {
	b.tally.count(failed, string(f.items[0].LastOutcome), len(f.items))
	inPlace := f.items
	if !b.terms.ordered {
		inPlace = b.store(f.items, "put events into a retry log", func(ps []pending.Delivery) error {
			return b.lane.holding.logs.Put(b.shift.keeping, f.verdict.Wait, ps)
		})
	}
	for _, it := range inPlace {
		it.Due = now.Add(f.verdict.Wait)
	}
	b.again = append(b.again, inPlace...)
}

// giveUp puts items where the dead letters go, or drops and counts them.
func (b *batch) giveUp(items []*item, reason string) {
	if b.job == jobSend {
		b.tally.count(failed, string(items[0].LastOutcome), len(items))
	}
	if !b.terms.deadTarget {
		b.tally.count(dropped, reason, len(items))
		b.tally.drop(reason, items...)
		b.traceDrop(items, reason)
		b.finish(items...)
		return
	}
	for _, it := range items {
		it.Reason = reason
	}
	tooLarge := b.store(items, "put events into the dead letters", func(ps []pending.Delivery) error {
		err := b.lane.s.cfg.Dead.Put(b.shift.keeping, b.terms.sub, ps)
		if err == nil {
			b.traceDead(ps, reason)
		}
		return err
	})
	b.tally.count(buried, reason, len(items)-len(tooLarge))
	if len(tooLarge) > 0 {
		b.lane.s.log.Error("events are too large to be dead letters and are dropped",
			"subscription", b.terms.sub.Name, "events", len(tooLarge), "reason", reason)
		b.tally.count(dropped, reason, len(tooLarge))
		b.tally.drop(reason, tooLarge...)
		b.traceDrop(tooLarge, reason)
		b.finish(tooLarge...)
	}
}

// What is stored at a time: well within what a log takes as one batch. One that is larger by
// itself is stored alone.
const (
	storeEvents = 1_000
	storeBytes  = 1 << 20
)

// store puts items somewhere durable and finishes those that are there. It gives back those that
// are not, of which each is too large to be stored at all.
//
// While storage refuses for another reason (it is full, say) the items are kept and tried
// again: the worker waits, and so does the lane once all its workers do. When the yard stops, or
// the shard is given up, they go back to the queue, unfinished, and come again.
func (b *batch) store(items []*item, doing string, put func([]pending.Delivery) error) (tooLarge []*item) {
	left := items
	for portion, deliveries := range portions(items, (*item).delivery) {
		err := b.insist(doing, deliveries, put)
		switch {
		case err == nil:
			for i, it := range portion {
				it.Due = deliveries[i].Due
			}
			b.finish(portion...)
		case errors.Is(err, eventlog.ErrTooLarge):
			tooLarge = append(tooLarge, portion...)
		default:
			b.back = append(b.back, left...)
			return tooLarge
		}
		left = left[len(portion):]
	}
	return tooLarge
}

// insist tries until it succeeds, and gives up only when that would never be, or when nothing
// depends on it: the yard stops, or the subscription was deleted, so that the events are nobody's.
func (b *batch) insist(doing string, deliveries []pending.Delivery, put func([]pending.Delivery) error) error {
	l := b.lane
	for wait := firstPause; ; wait = min(2*wait, longestPause) {
		err := put(deliveries)
		if err == nil || l.isGone() {
			return nil
		}
		if b.shift.taking.Err() != nil || errors.Is(err, eventlog.ErrTooLarge) {
			return err
		}
		l.s.log.Warn("cannot "+doing+", trying again", "subscription", b.terms.sub.Name,
			"events", len(deliveries), "after", wait, "error", err)
		sleep.For(b.shift.taking, wait, nil)
	}
}

// portions cuts a list into what is stored at a time, with the deliveries of each portion.
func portions[T any](all []T, of func(T) pending.Delivery) iter.Seq2[[]T, []pending.Delivery] {
	return func(yield func([]T, []pending.Delivery) bool) {
		for len(all) > 0 {
			sum, deliveries := 0, make([]pending.Delivery, 0, min(len(all), storeEvents))
			for _, x := range all {
				d := of(x)
				sum += d.Bytes()
				if n := len(deliveries); n == storeEvents || n > 0 && sum > storeBytes {
					break
				}
				deliveries = append(deliveries, d)
			}
			n := len(deliveries)
			if !yield(all[:n], deliveries) {
				return
			}
			all = all[n:]
		}
	}
}

func (it *item) delivery() pending.Delivery { return it.Delivery }

// keepGrace is how long storing may take after requests have ended, when the yard stops.
const keepGrace = 5 * time.Second
