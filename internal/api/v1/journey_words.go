package v1

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

// What only a journey knows, beside the states of delivery.Trace.
const (
	toDead      = "dead-lettered"
	toInactive  = "inactive"
	toUnmatched = "unmatched"
	toEarly     = "early"
	toLate      = "late"
	toUnknown   = "unknown"
)

// show puts together what is known of a way.
func (w *way) show(now time.Time) admin.JourneyTo {
	to := admin.JourneyTo{
		Subscription: w.sub.Name, DomainTopic: w.sub.Source.DomainTopic, Matches: w.matches, Conditions: showFindings(w.findings), Tries: []admin.JourneyTry{},
	}
	if w.changed() {
		to.FilterChanged = spec.TimeIfAny(w.sub.Updated)
	}
	if t := w.trace; t != nil {
		w.showTrace(&to, t)
	}
	if n := len(w.letters); n > 0 {
		to.DeadLetter = new(showLetter(&w.letters[n-1], nil))
	}
	to.State, to.Summary = w.verdict(now)
	if to.State == toDead {
		l := &w.letters[len(w.letters)-1]
		to.Attempts, to.Tries = l.Attempts, showTries(l.History, nil)
	}
	return to
}

func (w *way) showTrace(to *admin.JourneyTo, t *delivery.Trace) {
	to.Attempts, to.Tries, to.KnownSince = t.Attempts, showTries(t.History, t.Requests), spec.TimeIfAny(t.Since)
	if to.Attempts == 0 {
		to.Attempts = len(to.Tries)
	}
	to.Due = spec.TimeIfAny(t.Due)
	if !t.Alive.IsZero() {
		to.Expires = spec.TimeIfAny(t.Alive.Add(cmp.Or(w.sub.Retry.TimeToLive, retry.DefaultTimeToLive)))
	}
	if w.sub.Pull == nil {
		to.Endpoint = &admin.EndpointHealth{
			State: string(t.Endpoint.State), Failures: t.Endpoint.Failures, Last: string(t.Endpoint.Last),
			Since: spec.TimeIfAny(t.Endpoint.Since), Until: spec.TimeIfAny(t.Endpoint.Until),
		}
	}
}

// showTries joins what the event has kept of its attempts with the requests that are remembered.
func showTries(history []pending.Attempt, requests []delivery.AttemptRecord) []admin.JourneyTry {
	tries := []admin.JourneyTry{}
	for _, a := range history {
		tries = append(tries, admin.JourneyTry{Time: a.At.UTC(), Took: a.Took.String(), Outcome: string(a.Outcome), Status: a.Status, Said: a.Said, Probe: a.Probe})
	}
	for _, r := range slices.Backward(requests) {
		at := r.Time.UTC()
		i := slices.IndexFunc(tries, func(t admin.JourneyTry) bool { return t.Time.Equal(at.Truncate(time.Millisecond)) })
		if i < 0 {
			i, tries = len(tries), append(tries, admin.JourneyTry{})
		}
		tries[i] = admin.JourneyTry{
			Time: at, Took: r.Took.Round(10 * time.Microsecond).String(), Outcome: string(r.Outcome), Status: r.Status,
			Said: cmp.Or(r.Err, r.Head), Probe: r.Probe, Events: r.Events,
		}
	}
	slices.SortStableFunc(tries, func(a, b admin.JourneyTry) int { return a.Time.Compare(b.Time) })
	return tries
}

// verdict is where the event is, and why, in a sentence. What was seen of the event itself goes
// before what the definition says, which may have changed.
func (w *way) verdict(now time.Time) (state, words string) {
	t := w.trace
	if n := len(w.letters); n > 0 && (w.letters[n-1].Redriven.IsZero() || t == nil) {
		return toDead, w.sayDead()
	}
	if t != nil && t.State != delivery.TraceSettled && t.State != delivery.TraceBehind {
		return string(t.State), w.sayTrace(now)
	}
	starts := w.sub.Starts
	switch published := w.of.shown.Published; {
	case w.of.envelope.ID == nil:
		return toUnmatched, "never: the event cannot be read, and is passed over"
	case !w.matches:
		return toUnmatched, "never: " + w.sayUnmatched()
	case w.of.partition < len(starts) && w.of.shown.Sequence < starts[w.of.partition]:
		return toEarly, "never: the event was published before the subscription became active"
	case !w.sub.Expires.IsZero() && !published.Before(w.sub.Expires):
		return toLate, "never: the subscription had expired at " + sayTime(w.sub.Expires)
	case t == nil && w.sub.State != topics.Active:
		return toInactive, w.sayInactive()
	case t == nil:
		return toUnknown, "not known: the subscription is not being delivered just now; ask again in a moment"
	}
	return string(t.State), w.sayTrace(now)
}

// sayInactive also says what an endpoint misses that has yet to agree for the first time.
func (w *way) sayInactive() string {
	words := "not yet: the subscription is " + string(w.sub.State) + saying(w.sub.Why)
	if w.sub.State == topics.Pending && w.sub.Starts == nil && !w.sub.FromStart {
		words += "; it gets what is published after that, and not this event"
	}
	return words
}

func (w *way) sayUnmatched() string {
	words := "the filter wants "
	if failed := filter.Failed(w.findings); failed != nil {
		words += failed.Words()
	}
	if w.changed() {
		words += " (as the filter is now: the subscription was changed at " + sayTime(w.sub.Updated) + ")"
	}
	return words
}

func (w *way) sayDead() string {
	l := &w.letters[len(w.letters)-1]
	words := fmt.Sprintf("dead-lettered at %s: %s after %s", sayTime(l.Died), l.Reason, counted(l.Attempts, "attempt"))
	if l.LastOutcome != "" {
		words += ", the last ended in " + sayOutcome(l.LastOutcome, l.LastStatus)
	}
	return words + fmt.Sprintf("; send it again with: eventyard dead redrive %s %d", w.sub.Name, l.Number)
}

func (w *way) sayTrace(now time.Time) string {
	t := w.trace
	switch t.State {
	case delivery.TraceDelivered:
		return w.sayDelivered()
	case delivery.TraceDropped:
		return fmt.Sprintf("dropped at %s: %s after %s; to keep such events: eventyard subscription update %s --dead-letter yard",
			sayTime(t.At), t.Reason, counted(t.Attempts, "attempt"), w.sub.Name)
	case delivery.TraceSettled:
		return w.saySettled()
	case delivery.TraceSending:
		return "on its way: a request with it is under way" + w.sayLast()
	case delivery.TraceLocked:
		return "a client has received it, and has not acknowledged it yet"
	case delivery.TraceQueued:
		return "not yet: it is in memory, to be sent in its turn" + w.sayLast() + w.sayHeld(now)
	case delivery.TraceWaiting:
		return fmt.Sprintf("not yet: it waits for its next attempt, due %s%s%s%s", sayWhen(t.Due, now), w.sayLast(), w.sayHeld(now), w.sayLeft(now))
	case delivery.TraceParked:
		return "not yet: its next attempt was due " + sayWhen(t.Due, now) + ", and it waits in the parked log" + w.sayLast() + w.sayHeld(now) + w.sayLeft(now)
	}
	words := "not yet: the subscription has not come to it"
	if t.Ahead > 0 {
		words += ", " + counted(int(t.Ahead), "event") + " of the source are before it"
	}
	return words + w.sayLast() + w.sayHeld(now)
}

func (w *way) sayDelivered() string {
	r := &w.trace.Requests[0]
	words := fmt.Sprintf("delivered at %s, attempt %d, answered %d in %s", sayTime(w.trace.At), max(w.trace.Attempts, 1), r.Status, quantity.FormatSpan(r.Took))
	if r.Status == 0 {
		words = fmt.Sprintf("delivered at %s, attempt %d", sayTime(w.trace.At), max(w.trace.Attempts, 1))
	}
	if r.Events > 1 {
		words += fmt.Sprintf(", in a batch of %d", r.Events)
	}
	return words
}

// saySettled says of an event that is done with what can be concluded: requests are remembered for
// a while only.
func (w *way) saySettled() string {
	t := w.trace
	forgotten := fmt.Sprintf("requests are remembered since %s", sayTime(t.Since))
	switch {
	case t.Drops && !w.of.shown.Published.Before(t.Began):
		return "delivered: it is done with, and was not dropped; when is forgotten (" + forgotten + ")"
	case w.sub.DeadLetter.Kind != "" && w.all:
		return "delivered, or its dead letter was purged or is too old: it is done with, and there is no dead letter of it (" + forgotten + ")"
	}
	return "done with: delivered, or dropped after its retries; which is forgotten (" + forgotten + ")"
}

// sayLast tells how the newest attempt ended.
func (w *way) sayLast() string {
	tries := showTries(w.trace.History, w.trace.Requests)
	if len(tries) == 0 {
		return ""
	}
	last := tries[len(tries)-1]
	words := fmt.Sprintf("; tried %s, the last ended in %s", counted(max(w.trace.Attempts, len(tries)), "time"), sayOutcome(retry.Outcome(last.Outcome), last.Status))
	if last.Said != "" {
		words += fmt.Sprintf(" (%.80s)", last.Said)
	}
	return words + " at " + sayTime(last.Time)
}

// sayHeld tells why nothing is sent.
func (w *way) sayHeld(now time.Time) string {
	t := w.trace
	switch {
	case t.Hold == string(topics.Paused):
		return "; the subscription is paused: eventyard subscription resume " + w.sub.Name
	case t.Hold != "":
		return "; nothing is sent: " + t.Hold + saying(w.sub.Why)
	case t.Endpoint.State == retry.Waiting:
		return fmt.Sprintf("; its endpoint is on probation since %s, and is tried %s: eventyard subscription probe %s does it now",
			sayTime(t.Endpoint.Since), sayWhen(t.Endpoint.Until, now), w.sub.Name)
	case t.Endpoint.State == retry.Probing:
		return "; its endpoint is on probation, and is being tried"
	case w.sub.Pull != nil:
		return "; it waits for a client to receive it"
	}
	return ""
}

// sayLeft tells how long it is tried.
func (w *way) sayLeft(now time.Time) string {
	t := w.trace
	if t.Alive.IsZero() {
		return ""
	}
	attempts := cmp.Or(w.sub.Retry.MaxAttempts, retry.DefaultAttempts) - t.Attempts
	left := t.Alive.Add(cmp.Or(w.sub.Retry.TimeToLive, retry.DefaultTimeToLive)).Sub(now).Round(time.Second)
	return fmt.Sprintf("; %s and %s are left", counted(max(attempts, 0), "attempt"), quantity.FormatSpan(max(left, 0)))
}

// sayJourney is the answer in a sentence: to how many the event came, and why not to the others.
func sayJourney(j *admin.Journey) string {
	where := "topic " + j.Topic
	name := j.ID
	if j.Hub != "" {
		where, name = "hub "+j.Hub, fmt.Sprintf("%s/%s/%d", j.Hub, j.Partition, j.Sequence)
	}
	words := fmt.Sprintf("%s, published to %s at %s, ", name, where, sayTime(j.Published))
	wanted, got := 0, 0
	var missing []string
	for _, to := range j.Subscriptions {
		switch to.State {
		case toUnmatched, toEarly, toLate:
			continue
		case string(delivery.TraceDelivered):
			got++
		default:
			if strings.HasPrefix(to.Summary, "delivered") {
				got++
			} else if len(missing) < maxSaid {
				missing = append(missing, to.Subscription+": "+to.Summary)
			}
		}
		wanted++
	}
	words += sayAnswer(sayFunctions(j.Functions), sayCount(len(j.Subscriptions)+j.Omitted, wanted, got, j.Hub != ""), len(j.Subscriptions) > 0)
	for _, f := range j.Functions {
		if f.State != "handled" {
			missing = append(missing, "function "+f.Function+": "+f.Summary)
		}
	}
	if len(missing) > 0 {
		words += "; " + strings.Join(missing, "; ")
	}
	return words
}

// sayAnswer is what came of the event: at functions first, since what is not well there holds up what is behind it.
func sayAnswer(functions, count string, subscriptions bool) string {
	switch {
	case functions == "":
		return count
	case subscriptions:
		return functions + ", and " + count
	}
	return functions
}

// sayFunctions tells of the functions of a hub, those first that have not handled the event.
func sayFunctions(all []admin.JourneyFunction) string {
	var not []string
	handled := 0
	for _, f := range all {
		switch {
		case f.State == "handled":
			handled++
		case f.State == "poison":
			not = append(not, "was put away as poison by function "+f.Function)
		case f.Stopped != "":
			not = append(not, "waits for function "+f.Function+", which is "+f.Stopped)
		case f.State == "before":
			not = append(not, "is not handled by function "+f.Function+" yet")
		default:
			not = append(not, "is not known to be handled by function "+f.Function)
		}
	}
	if left := len(not) - maxSaid; left > 0 {
		not = append(not[:maxSaid], "is not handled by "+counted(left, "function")+" more")
	}
	switch {
	case handled == 1 && len(all) == 1:
		return "was handled by function " + all[0].Function
	case handled > 0:
		not = append(not, fmt.Sprintf("was handled by %d of %s", handled, counted(len(all), "function")))
	}
	return strings.Join(not, ", ")
}

// maxSaid is how many are named in a sentence.
const maxSaid = 3

func sayCount(all, wanted, got int, hub bool) string {
	switch {
	case all == 0 && hub:
		return "goes to no subscription"
	case all == 0:
		return "goes to nobody: there is no subscription"
	case wanted == 0:
		return fmt.Sprintf("goes to nobody: it matches none of %s", counted(all, "subscription"))
	case wanted == got && got == 1:
		return "was delivered to the one subscription that it matches"
	case wanted == got:
		return fmt.Sprintf("was delivered to all %d subscriptions that it matches", got)
	}
	return fmt.Sprintf("was delivered to %d of %s that it matches", got, counted(wanted, "subscription"))
}

// sayFound is the first sentence of an answer.
func sayFound(name, where string, a admin.Journeys) string {
	l := a.Looked
	switch {
	case len(a.Events) == 1:
		return a.Events[0].Summary
	case len(a.Events) > 1:
		return fmt.Sprintf("%d events of %s have the id %s", len(a.Events), where, name)
	case strings.HasPrefix(where, "hub ") && l.Next == l.First:
		return fmt.Sprintf("there is no event %s: the partition has none at present", name)
	case strings.HasPrefix(where, "hub "):
		return fmt.Sprintf("there is no event %s: the partition has numbers %d to %d; older ones were removed, later ones are not published yet", name, l.First, l.Next-1)
	case l.Events == 0:
		return fmt.Sprintf("no event of %s has the id %s: there are no events to look at", where, name)
	}
	words := fmt.Sprintf("no event of %s has the id %s: looked at %s, published from %s to %s", where, name, counted(l.Events, "event"), sayTime(*l.From), sayTime(*l.To))
	if l.Before != nil {
		return words + fmt.Sprintf("; older ones follow before number %d", *l.Before)
	}
	return words + ", which are all that are kept"
}

func sayOutcome(o retry.Outcome, status int) string {
	if status == 0 {
		return string(o)
	}
	return strconv.Itoa(status) + " " + string(o)
}

func sayTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// sayWhen is a time with how far it is from now.
func sayWhen(t, now time.Time) string {
	switch left := t.Sub(now).Round(time.Second); {
	case t.IsZero():
		return "at once"
	case left > 0:
		return fmt.Sprintf("in %s, at %s", quantity.FormatSpan(left), sayTime(t))
	}
	return "since " + sayTime(t)
}

func saying(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}
