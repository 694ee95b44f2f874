package console

import (
	"context"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/parallel"
)

const (
	// journeyTopics is how many topics are looked through for an event of which nobody says where it is.
	journeyTopics = 40
	// journeyEvery is how often the page of an event that waits looks again: a search costs more than a figure.
	journeyEvery = 5 * time.Second
)

// journeyView is where events are found, and what became of one.
type journeyView struct {
	Asked, In string
	Sources   []option
	// One of these: Event is the one that was found, Several are those to choose from, and Looked is
	// where it is not.
	Event   *journeyEvent
	Several []journeyChoice
	Looked  []journeyMissed
	// Left is how many topics were not looked at.
	Left int
	// Looking is the page that waits for what is still being looked for; empty: all is known.
	Looking string
	Command string
}

// journeyEvent is one event, and what became of it.
type journeyEvent struct {
	admin.Journey
	Name         string
	Source, From string // where it was published to, and the page of that
	Tone, Said   string
	Why          *note
	Ways         []journeyWay
	Calls        []journeyFunction
	Kafka        []readBy // by the offsets that they have committed
	Cause        *journeyCause
	Picture      journeyPicture
	Body         template.HTML
	Link, Page   string // of this page, and of the event's own
	Again        string // the form that sends it once more; empty: there is none
}

// journeyChoice is one of several events with an id.
type journeyChoice struct {
	admin.Journey
	Source, Link, Tone, Said string
}

// journeyMissed is a place where the event is not; Before leads on to what is older.
type journeyMissed struct{ Said, Before string }

var journeyPage = page{template: "journey", load: loadJourney, every: journeyEvery}

func loadJourney(v *visit) (*screen, error) {
	q := whereabouts(v)
	view := journeyView{Asked: strings.TrimSpace(q.Get("id")), In: q.Get("in")}
	view.Command = command("event", "trace", orWord(view.Asked, "EVENTID"))
	topics, err := v.api.Topics(v.ctx)
	if err != nil && !notThere(err) {
		return nil, err
	}
	view.Sources = sourcesOf(topics, view.In)
	s := &screen{Title: "Find an event", Section: "events", Crumbs: []crumb{{Name: "Find an event"}}, still: true}
	if view.Asked != "" {
		ctx, cancel := soon(v)
		found, err := journeySearch{v, ctx, q}.find(&view, topics)
		cancel()
		switch {
		case tooLate(ctx, err):
			view.Looking, s.State, s.still = waiting(v), "It is still being looked for.", false
		case err != nil:
			return nil, err
		default:
			s.State = "It was not found."
			showFound(v, &view, q, found)
		}
	}
	if e := view.Event; e != nil {
		s.Title, s.Crumbs = e.Name, []crumb{{"Find an event", at("events")}, {Name: e.Name}}
		if s.State = e.Said; e.waits() {
			s.Path, s.still = e.Link, false
		}
		lookThere(v, e)
	} else if len(view.Several) > 0 {
		s.State = "Several events have this id."
	}
	s.View = view
	return s, nil
}

// sourcesOf are where can be looked: everywhere, in a topic, and in the hub that was asked for.
func sourcesOf(topics []admin.Topic, in string) []option {
	sources := []option{{"", "all topics"}}
	for _, t := range topics {
		sources = append(sources, option{"topics/" + t.Name, t.Name})
	}
	if hub, ok := strings.CutPrefix(in, "hubs/"); ok {
		sources = append(sources, option{in, "hub " + hub})
	}
	return sources
}

// foundAt is under what a stream keeps where the event of its page is.
const foundAt = "where the event is"

// whereabouts says what to look for and where: as the page was asked for or, once its stream has found the event,
// where that is.
func whereabouts(v *visit) url.Values {
	if v.sight != nil {
		if known, ok := v.sight.kept.find(foundAt, v.now); ok {
			return known.(url.Values)
		}
	}
	return v.r.URL.Query()
}

// lookThere has a stream look at an event from now on where it was found.
func lookThere(v *visit, e *journeyEvent) {
	if at, err := url.Parse(e.Link); err == nil && v.sight != nil {
		v.sight.kept.keep(foundAt, keptAnswer{at.Query(), v.now.Add(lookedGood)}, v.now)
	}
}

// journeySearch is a search for an event, for as long as its context lasts.
type journeySearch struct {
	*visit
	ctx   context.Context
	asked url.Values
}

// find asks the API wherever the event may be.
func (v journeySearch) find(view *journeyView, topics []admin.Topic) ([]admin.Journeys, error) {
	if hub, ok := strings.CutPrefix(view.In, "hubs/"); ok {
		_, partition, n, ok := hubPosition("x/" + view.Asked)
		if !ok {
			return []admin.Journeys{{Summary: strconv.Quote(view.Asked) + " is no event of a hub: write PARTITION/NUMBER, such as 3/1041"}}, nil
		}
		found, err := v.api.HubEventJourney(v.ctx, hub, partition, n)
		return []admin.Journeys{found}, err
	}
	if topic, ok := strings.CutPrefix(view.In, "topics/"); ok {
		found, err := v.inTopic(topic, view.Asked)
		return []admin.Journeys{found}, err
	}
	if hub, partition, n, ok := hubPosition(view.Asked); ok {
		found, err := v.api.HubEventJourney(v.ctx, hub, partition, n)
		if !notThere(err) {
			return []admin.Journeys{found}, err
		} // else it may be an id with slashes
	}
	view.Left = max(0, len(topics)-journeyTopics)
	return v.inTopics(view.Asked, topics[:len(topics)-view.Left])
}

// inTopic looks for an event in one topic. A stream keeps what came of it, but for the event that it has found.
func (v journeySearch) inTopic(topic, id string) (admin.Journeys, error) {
	ask := func() (admin.Journeys, error) { return v.api.EventJourney(v.ctx, topic, id, beforeOf(v.asked)) }
	if v.asked.Get("number") != "" {
		return ask()
	}
	return remembered(v.visit, "journey in "+topic, lookedGood, ask)
}

func (v journeySearch) inTopics(id string, topics []admin.Topic) ([]admin.Journeys, error) {
	found, failures := make([]admin.Journeys, len(topics)), make([]error, len(topics))
	parallel.Each(len(topics), askedAtOnce, func(i int) {
		found[i], failures[i] = v.inTopic(topics[i].Name, id)
	})
	for _, err := range failures {
		if err != nil && !notThere(err) { // a topic may have gone meanwhile
			return nil, err
		}
	}
	return found, nil
}

// beforeOf is where a search begins, backwards: behind the event that was chosen, or where a link says.
func beforeOf(asked url.Values) int64 {
	if n, err := strconv.ParseInt(asked.Get("number"), 10, 64); err == nil {
		return n + 1
	}
	n, _ := strconv.ParseInt(asked.Get("before"), 10, 64)
	return n
}

// hubPosition reads HUB/PARTITION/NUMBER, as the pages of events write it, too; a hub's name may have
// slashes itself.
func hubPosition(text string) (hub, partition string, number int64, ok bool) {
	parts := strings.Split(strings.NewReplacer(" ", "", ",", "").Replace(text), "/")
	n := len(parts)
	if n < 3 {
		return "", "", 0, false
	}
	_, wrong := strconv.ParseUint(parts[n-2], 10, 16)
	number, err := strconv.ParseInt(parts[n-1], 10, 64)
	return strings.Join(parts[:n-2], "/"), parts[n-2], number, wrong == nil && err == nil && number >= 0
}

// showFound puts answers on the page: the one event, or those to choose from, or where it is not.
func showFound(v *visit, view *journeyView, asked url.Values, found []admin.Journeys) {
	var all []admin.Journey
	chosen := asked.Get("number")
	for _, f := range found {
		for _, j := range f.Events {
			if chosen == "" || strconv.FormatInt(j.Sequence, 10) == chosen {
				all = append(all, j)
			}
		}
		if len(f.Events) == 0 && f.Summary != "" {
			view.Looked = append(view.Looked, journeyMissed{capital(f.Summary), olderThan(view, f)})
		}
	}
	switch len(all) {
	case 0:
	case 1:
		view.Event, view.Looked = newJourneyEvent(all[0], v.now), nil
	default:
		view.Looked = nil
		for _, j := range all {
			e := newJourneyEvent(j, v.now)
			view.Several = append(view.Several, journeyChoice{j, e.Source, e.Link, e.Tone, e.Said})
		}
	}
}

// olderThan leads to what is older than all that was looked at, in the one topic that was asked for.
func olderThan(view *journeyView, f admin.Journeys) string {
	if f.Looked.Before == nil || !strings.HasPrefix(view.In, "topics/") {
		return ""
	}
	return with(at("events"), "id", view.Asked, "in", view.In, "before", strconv.FormatInt(*f.Looked.Before, 10))
}

func newJourneyEvent(j admin.Journey, now time.Time) *journeyEvent {
	e := &journeyEvent{Journey: j, Name: j.ID, Source: j.Topic, From: at("topics", j.Topic), Body: showBody(j.Event, "json", false)}
	e.Link = with(at("events"), "id", j.ID, "in", "topics/"+j.Topic, "number", strconv.FormatInt(j.Sequence, 10))
	e.Again = topicAgainPath(j.Topic, j.Sequence)
	if j.Hub != "" {
		e.Name, e.Source, e.From = fmt.Sprintf("%s / %s / %s", j.Hub, j.Partition, number(j.Sequence)), j.Hub, at("hubs", j.Hub)
		e.Link, e.Again = hubJourneyPath(j.Hub, j.Partition, j.Sequence), hubAgainPath(j.Hub, j.Partition, j.Sequence)
		e.Page = at("hubs", j.Hub, "partitions", j.Partition, "events", strconv.FormatInt(j.Sequence, 10))
	}
	if !strings.HasPrefix(j.TraceURL, "https://") && !strings.HasPrefix(j.TraceURL, "http://") { // links that leave the console are of the web
		e.TraceURL = ""
	}
	for _, to := range j.Subscriptions {
		e.Ways = append(e.Ways, newJourneyWay(j, to))
	}
	for _, f := range j.Functions {
		e.Calls = append(e.Calls, newJourneyFunction(f))
	}
	for _, g := range j.KafkaGroups {
		e.Kafka = append(e.Kafka, kafkaReader(j.Hub, g))
	}
	e.Cause = newJourneyCause(j.Cause)
	e.Said, e.Why = verdictOf(e)
	e.Tone = e.Why.Tone
	e.Picture = drawJourney(e, now)
	return e
}

// journeyCause is what an event came from.
type journeyCause struct {
	admin.JourneyCause
	Name, Link string // of the event that it names; empty: it names none
}

func newJourneyCause(c *admin.JourneyCause) *journeyCause {
	if c == nil {
		return nil
	}
	shown := &journeyCause{JourneyCause: *c}
	if c.Hub != "" && c.Sequence != nil {
		shown.Name, shown.Link = fmt.Sprintf("%s / %s / %s", c.Hub, c.Partition, number(*c.Sequence)), hubJourneyPath(c.Hub, c.Partition, *c.Sequence)
	}
	return shown
}

// waits tells whether anything is still to come of an event.
func (e *journeyEvent) waits() bool {
	for _, w := range e.Ways {
		if w.Tone == "odd" {
			return true
		}
	}
	for _, f := range e.Functions {
		if f.State == "before" {
			return true
		}
	}
	return false
}

// journeyPath follows an event that a subscription has to do with, by its id; nothing: it cannot be
// found by that.
func journeyPath(s admin.SubscriptionRef, id string) string {
	switch {
	case s.Hub == "" && id != "":
		return with(at("events"), "id", id, "in", "topics/"+s.Topic)
	case s.Hub != "":
		if _, partition, n, ok := hubPosition(id); ok {
			return hubJourneyPath(s.Hub, partition, n)
		}
	}
	return ""
}

func hubJourneyPath(hub, partition string, n int64) string {
	return with(at("events"), "id", fmt.Sprintf("%s/%d", partition, n), "in", "hubs/"+hub)
}

// address is that of the yard for others: the public one, or as the browser has it.
func (v *visit) address() string {
	if v.console.cfg.PublicURL != "" {
		return v.console.cfg.PublicURL
	}
	u := url.URL{Scheme: "http", Host: v.r.Host}
	if v.r.TLS != nil {
		u.Scheme = "https"
	}
	return u.String()
}

// capital begins a sentence of the API as one.
func capital(text string) string {
	_, first := utf8.DecodeRuneInString(text)
	return strings.ToUpper(text[:first]) + text[first:]
}
