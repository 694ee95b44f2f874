package triage

import (
	"math"
	"slices"

	"github.com/eventyard/eventyard/internal/setaside/ranges"
)

// Intent is what was about to be written when it was stored.
type Intent struct {
	Sequence int64 `json:"sequence"`
	Attempts int   `json:"attempts"`
	Deaths   int   `json:"deaths,omitempty"`
	// Partition of the poison hub, the producer, and its number.
	Partition string `json:"partition,omitempty"`
	Producer  int64  `json:"producer,omitempty"`
	Number    int32  `json:"number"`
	Reason    string `json:"reason"`
}

const (
	// maxWaiting bounds what waits for its event. It takes a crash between two writes to make one;
	// whoever is left out may be put away twice.
	maxWaiting            = 8
	maxWaitingReasonBytes = 128
)

// Intended says whether the unit is an event that was about to be put away: it is not called, its
// poison event is written again.
func (w Work) Intended(u Unit) bool {
	_, found := w.intentOf(u.Events.First())
	return found && u.Events.Len() == 1
}

// Intend says that a unit of one event is about to be put away, into a partition of the poison hub,
// and gives what is to be written. An event that was intended before is written as it was then,
// under the same number. producer is a random one, for where none is chosen yet; and for where the
// last owner's Intent is another event's, which comes later: nobody knows whether its number is
// taken, so that one waits with its producer, and this goes on with a new one.
func (w *Work) Intend(u Unit, partition string, producer int64) Intent {
	if intent, found := w.intentOf(u.Events.First()); found {
		return intent
	}
	if w.Intent != nil { // it waits for its event
		waits := *w.Intent
		waits.Reason = shorten(waits.Reason, maxWaitingReasonBytes)
		waiting := append(slices.Clip(w.Waiting), waits)
		w.Waiting = waiting[max(0, len(waiting)-maxWaiting):]
		w.abandon()
	}
	if w.Producer == 0 {
		w.Producer, w.Number = producer, 0
	}
	w.Intent = &Intent{
		Sequence: u.Events.First(), Attempts: u.Attempts, Deaths: u.Deaths,
		Partition: partition, Producer: w.Producer, Number: w.Number, Reason: shorten(u.Reason, maxIntentReasonBytes),
	}
	return *w.Intent
}

// Sent says that the poison event of an event that was intended is durable: the event is away.
func (w *Work) Sent(sequence int64) {
	intent, found := w.intentOf(sequence)
	if !found {
		return
	}
	w.Away = w.Away.Add(sequence)
	w.Drop(ranges.SetOf(sequence))
	if w.Intent == nil || w.Intent.Sequence != sequence {
		w.Waiting = without(w.Waiting, func(i Intent) bool { return i.Sequence == sequence })
		return
	}
	w.Intent, w.Number = nil, intent.Number+1
	if intent.Number == math.MaxInt32 {
		w.Number = 0 // as hubs count
	}
}

// Renumber gives what was intended for an event to another producer, as when the poison hub knows
// nothing of the first.
func (w *Work) Renumber(sequence, producer int64) Intent {
	intent, found := w.intentOf(sequence)
	if !found {
		return Intent{}
	}
	intent.Producer, intent.Number = producer, 0
	if w.Intent != nil && w.Intent.Sequence == sequence {
		w.Intent, w.Producer, w.Number = &intent, producer, 0
		return intent
	}
	w.Waiting = append(without(w.Waiting, func(i Intent) bool { return i.Sequence == sequence }), intent)
	return intent
}

// intentOf gives what is intended for an event.
func (w Work) intentOf(sequence int64) (Intent, bool) {
	if w.Intent != nil && w.Intent.Sequence == sequence {
		return *w.Intent, true
	}
	i := slices.IndexFunc(w.Waiting, func(i Intent) bool { return i.Sequence == sequence })
	if i < 0 {
		return Intent{}, false
	}
	return w.Waiting[i], true
}

// abandon ends the present numbers with the Intent. Whether its poison event was written nobody
// knows, and so nobody knows the producer's next number either: under the wrong one the next poison
// event would be taken for a repeat, and lost.
func (w *Work) abandon() { w.Intent, w.Producer, w.Number = nil, 0, 0 }

// without gives a copy of a list without some, nil if nothing is left.
func without(intents []Intent, leave func(Intent) bool) []Intent {
	var rest []Intent
	for _, i := range intents {
		if !leave(i) {
			rest = append(rest, i)
		}
	}
	return rest
}
