package v1

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/parallel"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/tracing"
)

// A journey is what became of one event: gathered here, put into words in journey_words.go.

// Bounds of an answer: how many events of one id it has, how many subscriptions of one event, and
// how many are asked about at once.
const (
	maxJourneys      = 20
	maxJourneyTo     = 500
	journeysAtOnce   = 8
	maxJourneyLetter = 5
)

// traveller is the event of a journey.
type traveller struct {
	shown     admin.Journey
	source    string // the id of the topic or hub
	partition int
	envelope  schema.Envelope
	// correlation is the correlation id of a hub's event, where it is a text.
	correlation string
}

// topicJourney follows the events of a topic that have an id, among the newest of the topic, or of
// those before a number.
func (d *Handler) topicJourney(w http.ResponseWriter, r *http.Request) error {
	t, err := d.cfg.Grid.Topics.Topic(r.PathValue("topic"))
	if err != nil {
		return err
	}
	log, err := d.cfg.Grid.Topics.Log(&t)
	if err != nil {
		return err
	}
	bounds, err := log.Bounds(r.Context())
	if err != nil {
		return err
	}
	before, err := parseBefore(r.URL.Query().Get("before"), int64(bounds.Next))
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	all, looked, err := findByID(r.Context(), &t, log.Cursor, newLook(int64(bounds.First), before, time.Now()), id)
	if err != nil {
		return err
	}
	answer := admin.Journeys{Events: make([]admin.Journey, len(all)), Looked: looked}
	for i := range all {
		if answer.Events[i], err = d.follow(r.Context(), &all[i], topics.Source{Topic: t.Name}); err != nil {
			return err
		}
	}
	answer.Summary = sayFound(id, "topic "+t.Name, answer)
	return writeJSON(w, http.StatusOK, answer)
}

// parseBefore reads where a search ends; nothing: at the end.
func parseBefore(text string, end int64) (int64, error) {
	if text == "" {
		return end, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, badRequest("use the before of an answer, or leave it out", "before cannot be %.64q", text)
	}
	return min(n, end), nil
}

// findByID gives the events of a topic with an id, the newest first.
func findByID(ctx context.Context, t *topics.Topic, open func(context.Context, eventlog.Position) (eventlog.Cursor, error), l *look, id string) ([]traveller, admin.Looked, error) {
	var all []traveller
	form := t.Schema.Form()
	var e schema.Envelope
	err := l.backwards(ctx, open, func(run eventlog.Run, i int) {
		stored, properties, ok := message.BodyAndProperties(run.Events[i].Message)
		if !ok || len(all) == maxJourneys || e.Scan(form, stored) != nil || string(e.ID) != id {
			return
		}
		one := traveller{source: t.ID, shown: admin.Journey{Topic: t.Name, Sequence: int64(run.First) + int64(i), Published: run.Time.UTC()}}
		kept := append([]byte(nil), stored...)
		if one.envelope.Scan(form, kept) == nil {
			one.envelope.Topic, one.envelope.Trace = t.Resource, tracing.OfProperties(properties)
			one.shown.Event = kept
			all = append(all, one)
		}
	})
	return all, l.looked, err
}

// hubJourney follows one event of a hub.
func (d *Handler) hubJourney(w http.ResponseWriter, r *http.Request) error {
	hub, err := d.cfg.Broker.LookUp(r.Context(), r.PathValue("hub"))
	if err != nil {
		return err
	}
	partition := r.PathValue("partition")
	sequence, err := strconv.ParseInt(r.PathValue("sequence"), 10, 64)
	if err != nil || sequence < 0 {
		return badRequest("give the event's sequence number", "%.64q is no sequence number", r.PathValue("sequence"))
	}
	info, err := d.cfg.Broker.Partition(r.Context(), hub.Name, partition)
	if err != nil {
		return err
	}
	answer := admin.Journeys{Events: []admin.Journey{}, Looked: admin.Looked{First: max(int64(info.First), 0), Next: int64(info.Last) + 1}}
	name := fmt.Sprintf("%s/%s/%d", hub.Name, partition, sequence)
	answer.Summary = sayFound(name, "hub "+hub.Name, answer)
	if sequence >= answer.Looked.First && sequence < int64(info.Next) {
		one, why, err := d.travellerOf(r.Context(), hub, partition, sequence)
		if err != nil {
			return err
		}
		if one == nil {
			answer.Summary = fmt.Sprintf("there is no event %s: %s", name, why)
			return writeJSON(w, http.StatusOK, answer)
		}
		journey, err := d.follow(r.Context(), one, topics.Source{Hub: hub.Name})
		if err != nil {
			return err
		}
		answer.Events, answer.Looked.Events, answer.Summary = append(answer.Events, journey), 1, journey.Summary
	}
	return writeJSON(w, http.StatusOK, answer)
}

// Why a number between the first and the next of a partition has no event.
const (
	aborted   = "its transaction was aborted, or the number marks where a transaction ends"
	undecided = "a transaction is open there, and it is not an event before that is committed"
)

// travellerOf reads an event of a hub, as subscriptions of the hub see it. Where the number has none it says why.
func (d *Handler) travellerOf(ctx context.Context, hub broker.Hub, partition string, sequence int64) (_ *traveller, why string, _ error) {
	cursor, err := d.cfg.Broker.Cursor(ctx, hub.Name, broker.DefaultGroup, partition, eventlog.At(eventlog.Sequence(sequence)))
	if err != nil {
		return nil, "", err
	}
	defer cursor.Close()
	run, err := cursor.TryNext(ctx)
	switch {
	case err != nil:
		return nil, "", err
	case int64(cursor.At()) <= sequence:
		return nil, undecided, nil
	case len(run.Events) == 0 || int64(run.First) != sequence:
		return nil, aborted, nil
	}
	t := &traveller{source: topics.HubID(hub), partition: partitionNumber(partition), shown: admin.Journey{
		Hub: hub.Name, Partition: partition, Sequence: sequence, Published: run.Time.UTC(), Event: eventFormat{}.appendEvent(nil, partition, run, 0),
	}}
	ev, err := message.Decode(run.Events[0].Message)
	if err != nil {
		return t, "", nil // subscriptions pass what cannot be read
	}
	t.correlation, _ = ev.CorrelationID.(string)
	stored, err := schema.FromHub(nil, schema.HubEvent{
		Namespace: d.cfg.Broker.Namespace(), Hub: hub.Name, Partition: partition, Sequence: sequence,
		Enqueued: run.Time, Key: string(run.Events[0].Key), Event: ev,
	})
	if err == nil && t.envelope.Scan(schema.CloudEventForm, stored) == nil {
		t.envelope.Topic = topics.HubResource(d.cfg.Broker.Namespace(), hub.Name)
	}
	return t, "", nil
}

// follow asks everybody who may have had to do with an event.
func (d *Handler) follow(ctx context.Context, t *traveller, source topics.Source) (admin.Journey, error) {
	j := t.shown
	j.Subscriptions = []admin.JourneyTo{}
	e := &t.envelope
	j.ID, j.Type, j.Subject = string(e.ID), string(e.Type), string(e.Subject)
	if j.TraceID = e.TraceContext().Trace(); j.TraceID != "" {
		j.TraceURL = strings.ReplaceAll(d.cfg.TraceURL, "{trace}", j.TraceID)
	}
	var err error
	if j.Cause, err = d.causeOf(ctx, t); err != nil {
		return j, err
	}
	if d.cfg.Grid != nil {
		subs, err := d.cfg.Grid.Topics.Subscriptions(source)
		if err != nil {
			return j, err
		}
		if j.Subscriptions, j.Omitted, err = d.followAll(ctx, t, subs); err != nil {
			return j, err
		}
	}
	if j.Hub != "" {
		if err := d.followReaders(ctx, &j); err != nil {
			return j, err
		}
	}
	j.Summary = sayJourney(&j)
	return j, nil
}

// followAll asks about all subscriptions that the event matches, or may have matched; the others
// follow, as many as fit.
func (d *Handler) followAll(ctx context.Context, t *traveller, subs []topics.Subscription) ([]admin.JourneyTo, int, error) {
	var asked, rest []*way
	for _, s := range subs {
		w := newWay(t, s)
		if w.mayHave() {
			asked = append(asked, w)
		} else {
			rest = append(rest, w)
		}
	}
	omitted := max(0, len(subs)-maxJourneyTo)
	asked = asked[:min(len(asked), maxJourneyTo)]
	rest = rest[:min(len(rest), maxJourneyTo-len(asked))]
	failures := make([]error, len(asked))
	parallel.Each(len(asked), journeysAtOnce, func(i int) { failures[i] = d.ask(ctx, asked[i]) })
	if err := errors.Join(failures...); err != nil {
		return nil, 0, err
	}
	now, shown := time.Now(), []admin.JourneyTo{}
	for _, w := range append(asked, rest...) {
		shown = append(shown, w.show(now))
	}
	return shown, omitted, nil
}

// way is that of an event to one subscription: what is known of it.
type way struct {
	of       *traveller
	sub      topics.Subscription
	findings []filter.Finding
	matches  bool
	// trace is nil where nothing is delivered to it; letters are the event's, the newest last, and
	// all says that there are no more.
	trace   *delivery.Trace
	letters []deadletter.Letter
	all     bool
}

func newWay(t *traveller, s topics.Subscription) *way {
	w := &way{of: t, sub: s}
	var err error
	w.findings, err = filter.Explain(s.Matches(), &t.envelope)
	w.matches = err == nil && filter.Failed(w.findings) == nil && t.envelope.ID != nil
	return w
}

// changed reports whether the filter may have been another when the event was published.
func (w *way) changed() bool { return w.sub.Updated.After(w.of.shown.Published) }

// mayHave reports whether the event may have been meant for the subscription.
func (w *way) mayHave() bool { return w.matches || w.changed() }

// ask asks the node that delivers to the subscription.
func (d *Handler) ask(ctx context.Context, w *way) error {
	t, err := d.cfg.Grid.Delivery.Trace(ctx, w.sub.ID, w.of.partition, w.of.shown.Sequence)
	switch {
	case err == nil:
		w.trace = &t
	case !errors.Is(err, delivery.ErrNotFound):
		return fmt.Errorf("ask about subscription %s: %w", w.sub.Name, err)
	}
	page, err := d.cfg.Grid.Dead.List(ctx, w.sub.ID, deadletter.Query{
		Of:       &deadletter.Origin{Source: w.of.source, Partition: w.of.partition, Sequence: w.of.shown.Sequence},
		Redriven: true, Since: w.of.shown.Published, Limit: maxJourneyLetter,
	})
	if err != nil {
		return fmt.Errorf("ask about the dead letters of subscription %s: %w", w.sub.Name, err)
	}
	w.letters, w.all = page.Letters, page.Next == 0
	return nil
}
