package console

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/admin"
)

const (
	// eventsShown is how many events a list has, eventBytes how much is read for it, previewBytes how
	// much of a body it shows, and bodyBytes how much the page of an event does at first.
	eventsShown  = 50
	eventBytes   = 2 << 20
	previewBytes = 240
	bodyBytes    = 16 << 10
	// groupsAsked is of how many groups it is said whether they have handled an event.
	groupsAsked = 20
)

// storedEvent is an event as the API writes it.
type storedEvent struct {
	Partition     string          `json:"partition"`
	Sequence      int64           `json:"sequence"`
	Enqueued      time.Time       `json:"enqueued"`
	Key           string          `json:"key"`
	ContentType   string          `json:"contentType"`
	MessageID     any             `json:"messageId"`
	CorrelationID any             `json:"correlationId"`
	Subject       string          `json:"subject"`
	Properties    map[string]any  `json:"properties"`
	System        map[string]any  `json:"system"`
	Body          json.RawMessage `json:"body"`
	BodyBase64    string          `json:"bodyBase64"`
	Value         json.RawMessage `json:"value"`
	Unreadable    string          `json:"unreadable"`
	StoredBase64  string          `json:"storedBase64"`
}

// content gives the body's bytes. A JSON string of a body is its text.
func (e storedEvent) content() []byte {
	var text string
	switch {
	case e.BodyBase64 != "" || e.StoredBase64 != "":
		body, _ := base64.StdEncoding.DecodeString(cmp.Or(e.BodyBase64, e.StoredBase64)) // the API has encoded it
		return body
	case e.Body == nil:
		return e.Value
	case json.Unmarshal(e.Body, &text) == nil:
		return []byte(text)
	}
	return e.Body
}

// Preview is the beginning of a body.
func (e storedEvent) Preview() string {
	body := e.content()
	if !utf8.Valid(body[:min(len(body), previewBytes/2)]) && !utf8.Valid(body) {
		return hex.EncodeToString(body[:min(len(body), previewBytes/4)])
	}
	return strings.ToValidUTF8(string(body[:min(len(body), previewBytes)]), "")
}

// ID is what its row is called.
func (e storedEvent) ID() string { return fmt.Sprintf("e%s-%d", e.Partition, e.Sequence) }

// eventsView is the browser of a hub's events.
type eventsView struct {
	admin.Hub
	Begin, When, Partition string
	After                  string // the place in a partition from which a list goes on: 3:1041; empty: where it begins
	Find                   string // what is looked for; empty: nothing is
	Events                 []storedEvent
	List                   feed
	Problem, Remedy        string // what was wrong with what was asked for, and what helps
	Cut                    bool   // they are too large to be shown at once
	Looking                string // the page that waits for what is still being looked for; empty: all is known
	Found                  string // how many were looked at, and found
	Next, Older            string // where to go on, and where to look for more
	Command                string
	Strip                  *strip
	// Shown is the event beside the list; nil: none is chosen.
	Shown *eventView
	total int64 // how many events there ever were
}

// eventsVisit is a visit that looks at events.
type eventsVisit struct{ *visit }

var eventsPage = page{template: "events", load: loadEvents}

// here is the same list with other things in its address.
func (e eventsView) here(pairs ...string) string {
	return with(at("hubs", e.Name, "events"), append([]string{"begin", e.Begin, "when", e.When, "partition", e.Partition, "find", e.Find, "after", e.After}, pairs...)...)
}

func loadEvents(v *visit) (*screen, error) {
	h, err := v.api.Hub(v.ctx, v.name("hub"))
	if err != nil {
		return nil, err
	}
	query := v.r.URL.Query()
	view := eventsView{
		Hub: h, Begin: cmp.Or(query.Get("begin"), "newest"), When: query.Get("when"), Partition: query.Get("partition"), After: query.Get("after"), Find: strings.TrimSpace(query.Get("find")),
		Command: command("read", h.Name, "--from", "earliest"),
	}
	q, wrong, err := eventsVisit{v}.readQuery(&view)
	if err == nil && wrong == nil {
		if view.Find != "" {
			err = eventsVisit{v}.find(q, &view)
		} else {
			err = eventsVisit{v}.read(q, &view)
		}
	}
	if said, refused := refusalOf(err); refused && view.Find != "" && said.Status == http.StatusBadRequest {
		wrong, err = &said, nil // of what was looked for
	}
	if err != nil {
		return nil, err
	}
	if wrong != nil {
		said, _ := refusalOf(wrong)
		view.Problem, view.Remedy = said.Detail, said.Next
		s := hubScreen(v, h, "Events", view)
		s.still = true // until something else is asked for
		return s, nil
	}
	view.List = eventsVisit{v}.list(view)
	view.Strip = eventsVisit{v}.strip(view)
	if shown := query.Get("show"); shown != "" && v.sight == nil {
		view.Shown = eventsVisit{v}.beside(view, shown)
	}
	s := hubScreen(v, h, "Events", view)
	s.still = view.Find != "" && view.Looking == "" // what was found stays
	return s, nil
}

// list has the rows of a list, each of which leads to its event beside it.
func (v eventsVisit) list(view eventsView) feed {
	f := feed{total: view.total}
	for _, e := range view.Events {
		label, before, match, after := e.Partition+" / "+number(e.Sequence), "", "", pictures(e.Preview())
		if e.Unreadable != "" {
			after = "not readable: " + after
		} else if view.Find != "" {
			before, match, after = divide(after, view.Find)
		}
		to := view.here("show", e.Partition+"/"+strconv.FormatInt(e.Sequence, 10))
		key, escape := pictures(e.Key), template.HTMLEscapeString
		marked := escape(before)
		if match != "" {
			marked += "<mark>" + escape(match) + "</mark>"
		}
		f.rows = append(f.rows, fedRow{
			id: e.ID(), texts: []string{e.Enqueued.UTC().Format(time.RFC3339Nano), to, label, key, after},
			html: template.HTML(`<tr><td class="nowrap">` + string(clock(e.Enqueued)) + `</td><td class="num"><a href="` + escape(to) + `">` + escape(label) + `</a></td><td class="mono small wide long"><div class="cut" title="` +
				escape(key) + `">` + escape(key) + `</div></td><td class="long"><div class="cut mono small soft">` + marked + escape(after) + "</div></td></tr>\n"),
		})
	}
	return f
}

// beside is the event that is chosen in a list; nil: it is not there.
func (v eventsVisit) beside(view eventsView, shown string) *eventView {
	partition, sequence, _ := strings.Cut(shown, "/")
	e, err := v.event(partition, sequence)
	if err != nil {
		return nil
	}
	one := v.newEventView(view.Hub, e, v.r.URL.Query().Get("all") != "", func(pairs ...string) string { return view.here(append(pairs, "show", shown)...) })
	one.Readers = v.readers(view.Hub, e)
	return &one
}

// readQuery says where to read. Wrong is for who asked.
func (v eventsVisit) readQuery(view *eventsView) (q admin.Query, wrong, err error) {
	q = admin.Query{Hub: view.Name, Count: eventsShown}
	if view.Partition != "" {
		q.Partitions = []string{view.Partition}
		if !slices.Contains(view.PartitionIDs, view.Partition) {
			return q, wrongInput("There is no partition " + view.Partition + "."), nil
		}
	}
	switch view.Begin {
	case "time":
		t, wrong := parseTime(view.When)
		q.From = t.Format(time.RFC3339)
		return q, wrong, nil
	case "number":
		n, err := strconv.ParseInt(strings.ReplaceAll(view.When, ",", ""), 10, 64)
		if err != nil || n < 0 {
			return q, wrongInput(strconv.Quote(view.When) + " is no sequence number."), nil
		}
		if q.From = strconv.FormatInt(n, 10); view.Partition == "" && len(view.PartitionIDs) > 1 {
			return q, wrongInput("Sequence numbers count within a partition: choose one."), nil
		}
		return q, nil, nil
	case "oldest":
		return q, nil, nil
	}
	partitions, err := v.api.Partitions(v.ctx, view.Name)
	if err != nil {
		return q, nil, err
	}
	for _, p := range partitions {
		if view.Partition == "" || p.ID == view.Partition {
			view.total += p.Last + 1
		}
	}
	q.From, q.Partitions, q.Count = newest(partitions, view.Partition, view.each)
	return q, nil, nil
}

// newest is where the last events of each partition begin, as many of each as there are to be of so many. Empty partitions are
// left out.
func newest(partitions []admin.Partition, only string, each func(partitions int) int64) (from string, which []string, count int) {
	partitions = slices.DeleteFunc(slices.Clone(partitions), func(p admin.Partition) bool {
		return p.Empty || only != "" && p.ID != only
	})
	slices.SortFunc(partitions, func(a, b admin.Partition) int { return b.LastEnqueued.Compare(a.LastEnqueued.Time) })
	partitions = partitions[:min(len(partitions), eventsShown)]
	var positions []string
	for _, p := range partitions {
		first := max(p.First, p.Last-each(len(partitions))+1)
		positions, which = append(positions, fmt.Sprintf("%s:%d", p.ID, first)), append(which, p.ID)
		count += int(p.Last - first + 1)
	}
	return strings.Join(positions, ","), which, count
}

// read fills the list. With the newest, they come in the order of time, the newest first; else partition after
// partition, as the API gives them.
func (v eventsVisit) read(q admin.Query, view *eventsView) error {
	if view.Begin == "newest" {
		if q.From == "" {
			return nil // nothing was stored yet
		}
		err := v.take(q, view)
		slices.SortStableFunc(view.Events, func(a, b storedEvent) int {
			return cmp.Or(b.Enqueued.Compare(a.Enqueued), cmp.Compare(b.Sequence, a.Sequence))
		})
		view.Events = view.Events[:min(len(view.Events), eventsShown)]
		return err
	}
	for _, q := range view.goOn(q) {
		if q.Count = eventsShown - len(view.Events); q.Count > 0 && !view.Cut {
			if err := v.take(q, view); err != nil {
				return err
			}
		}
	}
	if n := len(view.Events); n > 0 && (n == eventsShown || view.Cut) {
		last := view.Events[n-1]
		view.Next = view.here("after", last.Partition+":"+strconv.FormatInt(last.Sequence+1, 10))
	}
	return nil
}

// goOn is what to read of a list that was read up to a place already: the rest of that partition, and those behind
// it from where the list begins.
func (e eventsView) goOn(q admin.Query) []admin.Query {
	ids := q.Partitions
	if len(ids) == 0 {
		ids = e.PartitionIDs
	}
	partition, from, _ := strings.Cut(e.After, ":")
	at := slices.Index(ids, partition)
	if _, err := strconv.ParseUint(from, 10, 63); at < 0 || err != nil {
		return []admin.Query{q}
	}
	rest := q
	q.Partitions, q.From = ids[at:at+1], from
	if rest.Partitions = ids[at+1:]; len(rest.Partitions) == 0 {
		return []admin.Query{q}
	}
	return []admin.Query{q, rest}
}

// take adds the events of a reading, as long as they are not too large to be shown at once.
func (v eventsVisit) take(q admin.Query, view *eventsView) error {
	total := 0
	for line, err := range v.api.Read(v.ctx, q, nil) {
		if err != nil {
			return err
		}
		var e storedEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		view.Events = append(view.Events, e)
		if total += len(line); total > eventBytes {
			view.Cut = true
			break
		}
	}
	return nil
}

// eventView is one event.
type eventView struct {
	admin.Hub
	storedEvent
	As          string
	Body        template.HTML
	Size        int
	Cut         bool
	Forms       []tab
	All, Save   string
	Again, Edit string // the forms that send it once more: as it is, or changed
	Pairs       []pair
	Readers     []readBy
	Copy        string // the body as text; empty: it is none, or too long
	Open        string // its own page
	Before      string // empty: there is none, as with After
	After       string
	Description string
}

type pair struct{ Name, Value string }

// readBy is whether a group, a Kafka group, a function or a subscription has handled an event.
type readBy struct{ Name, Kind, Said, Tone, Link string }

var eventPage = page{template: "event", load: loadEvent}

func loadEvent(v *visit) (*screen, error) {
	h, err := v.api.Hub(v.ctx, v.name("hub"))
	if err != nil {
		return nil, err
	}
	e, err := eventsVisit{v}.event(v.name("partition"), v.name("sequence"))
	if gone, ok := errors.AsType[*goneError](err); ok {
		return goneScreen(v, h, gone), nil
	}
	if err != nil {
		return nil, err
	}
	here := at("hubs", h.Name, "partitions", e.Partition, "events", strconv.FormatInt(e.Sequence, 10))
	view := eventsVisit{v}.newEventView(h, e, v.r.URL.Query().Get("all") != "", func(pairs ...string) string { return with(here, pairs...) })
	view.Readers = eventsVisit{v}.readers(h, e)
	if p, err := v.api.Partition(v.ctx, h.Name, e.Partition); err == nil {
		view.neighbours(p)
	}
	s := hubScreen(v, h, "Events", view)
	s.Title = fmt.Sprintf("%s / %s / %s", h.Name, e.Partition, number(e.Sequence))
	s.Crumbs = []crumb{{"Hubs", at("hubs")}, {h.Name, at("hubs", h.Name)}, {"Events", at("hubs", h.Name, "events")}, {Name: e.Partition + " / " + number(e.Sequence)}}
	return s, nil
}

// event reads one event, or says that it is not there any more, or not yet.
func (v eventsVisit) event(partition, sequence string) (storedEvent, error) {
	e, _, err := eventLine(v.visit, partition, sequence)
	return e, err
}

// eventLine is event, also as the API writes it.
func eventLine(v *visit, partition, sequence string) (e storedEvent, as json.RawMessage, err error) {
	n, err := strconv.ParseInt(sequence, 10, 64)
	if err != nil || n < 0 {
		return e, nil, notHere(v.r)
	}
	for line, err := range v.api.Read(v.ctx, admin.Query{Hub: v.name("hub"), From: sequence, Partitions: []string{partition}, Count: 1}, nil) {
		if err != nil {
			return e, nil, err
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return e, nil, err
		}
		as = line
	}
	if as != nil && e.Sequence == n {
		return e, as, nil
	}
	if as != nil {
		return e, nil, &goneError{n, e}
	}
	return e, nil, noEvent(fmt.Sprintf("partition %s has no event %s: nothing is stored at this number yet", partition, number(n)))
}

// goneError: retention has removed an event; left is the first that is there.
type goneError struct {
	sequence int64
	left     storedEvent
}

func (g *goneError) Error() string { return g.problem().Error() }

func (g *goneError) problem() error {
	return noEvent(fmt.Sprintf("partition %s has no event %s: it was removed by retention; the first that is left is %s", g.left.Partition, number(g.sequence), number(g.left.Sequence)))
}

// Unwrap has it shown as what it is where there is no page for it.
func (g *goneError) Unwrap() error { return g.problem() }

// goneView is the page of an event that was removed.
type goneView struct {
	admin.Hub
	Partition      string
	Sequence       int64
	Left           storedEvent
	First, ByTimes string // the page of the first that is left, and the list from there on
}

// goneScreen says until when events were removed, as the first that is left tells.
func goneScreen(v *visit, h admin.Hub, g *goneError) *screen {
	n := strconv.FormatInt(g.left.Sequence, 10)
	view := goneView{
		Hub: h, Partition: g.left.Partition, Sequence: g.sequence, Left: g.left, First: at("hubs", h.Name, "partitions", g.left.Partition, "events", n),
		ByTimes: with(at("hubs", h.Name, "events"), "begin", "number", "when", n, "partition", g.left.Partition),
	}
	s := hubScreen(v, h, "Events", view)
	s.Title, s.template, s.status = "Removed by retention", "gone", http.StatusNotFound
	return s
}

// noEvent says that an event is not there.
func noEvent(detail string) error {
	return &admin.Problem{Type: "urn:eventyard:problem:not-found", Title: "The event is not there", Status: http.StatusNotFound, Detail: detail}
}

// forms are how an event can be shown, by the word that is in its address. As a CloudEvent it is as subscriptions
// of its hub see it, and the whole of it.
var forms = []option{{"json", "json"}, {"text", "text"}, {"hex", "hex"}, {cloudForm, "CloudEvent"}}

const cloudForm = "cloudevent"

// cloudEvent reads an event as a CloudEvent; nil: it is none, or cannot be read.
func (v eventsVisit) cloudEvent(e storedEvent) []byte {
	q := admin.Query{Hub: v.name("hub"), From: strconv.FormatInt(e.Sequence, 10), Partitions: []string{e.Partition}, Count: 1, Bodies: "cloudevents"}
	for line, err := range v.api.Read(v.ctx, q, nil) {
		var read struct {
			Event json.RawMessage `json:"cloudEvent"`
		}
		if err != nil || json.Unmarshal(line, &read) != nil {
			return nil
		}
		return read.Event
	}
	return nil
}

// newEventView shows an event in the form that is asked for. link is the page that it is on, with something else in
// its address.
func (v eventsVisit) newEventView(h admin.Hub, e storedEvent, all bool, link func(pairs ...string) string) eventView {
	body, as := e.content(), v.r.URL.Query().Get("as")
	if as == cloudForm {
		if cloud := v.cloudEvent(e); cloud != nil {
			body = cloud
		}
	}
	own := at("hubs", h.Name, "partitions", e.Partition, "events", strconv.FormatInt(e.Sequence, 10))
	view := eventView{
		Hub: h, storedEvent: e, As: as, Size: len(body), All: link("as", as, "all", "1"), Save: own + "/body", Open: own,
		Again: hubAgainPath(h.Name, e.Partition, e.Sequence),
		Edit:  with(at("hubs", h.Name, "send"), "of", e.Partition, "number", strconv.FormatInt(e.Sequence, 10)),
	}
	if as == "" {
		view.As = formOf(body)
	}
	for _, form := range forms {
		view.Forms = append(view.Forms, tab{Name: form.Text, Link: link("as", form.Value), Count: -1, Here: form.Value == view.As})
	}
	shown := body
	if len(body) > bodyBytes && !all {
		shown, view.Cut = body[:bodyBytes], true
	}
	if utf8.Valid(body) && len(body) <= bodyBytes {
		view.Copy = string(body)
	}
	view.Body = showBody(shown, view.As, view.Cut)
	view.Pairs = pairsOf(e)
	return view
}

// neighbours leads to the events before and after in their partition, where there are any.
func (e *eventView) neighbours(p admin.Partition) {
	beside := func(n int64) string {
		return at("hubs", e.Name, "partitions", e.Partition, "events", strconv.FormatInt(n, 10))
	}
	if e.Sequence > p.First {
		e.Before = beside(e.Sequence - 1)
	}
	if e.Sequence < p.Last {
		e.After = beside(e.Sequence + 1)
	}
}

// formOf is how a body is shown at first.
func formOf(body []byte) string {
	switch {
	case !utf8.Valid(body):
		return "hex"
	case len(body) > 0 && json.Valid(body):
		return "json"
	}
	return "text"
}

func pairsOf(e storedEvent) []pair {
	var pairs []pair
	add := func(name string, value any) {
		if text := valueText(value); text != "" {
			pairs = append(pairs, pair{name, text})
		}
	}
	add("key", e.Key)
	add("content type", e.ContentType)
	add("message id", e.MessageID)
	add("correlation id", e.CorrelationID)
	add("subject", e.Subject)
	add("not readable", e.Unreadable)
	for _, name := range sorted(e.Properties) {
		add(name, e.Properties[name])
	}
	for _, name := range sorted(e.System) {
		add(name, e.System[name])
	}
	return pairs
}

func valueText(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	}
	text, _ := json.Marshal(value) // it came as JSON
	return string(text)
}

// readers tells who has got an event: groups, Kafka groups, functions and subscriptions, for who may follow it; else
// groups by their checkpoints alone.
func (v eventsVisit) readers(h admin.Hub, e storedEvent) []readBy {
	if v.may("Manage") {
		if found, err := v.api.HubEventJourney(v.ctx, h.Name, e.Partition, e.Sequence); err == nil && len(found.Events) == 1 {
			return readersOf(h.Name, found.Events[0])
		}
	}
	var all []readBy
	for _, group := range h.Groups[:min(len(h.Groups), groupsAsked)] {
		r := admin.JourneyGroup{Group: group}
		if list, err := v.api.Checkpoints(v.ctx, h.Name, group); err == nil {
			for _, c := range list.Checkpoints {
				if c.Partition != e.Partition || c.Sequence == nil {
					continue
				}
				if r.State = "before"; *c.Sequence >= e.Sequence {
					r.State = "past"
				}
			}
		}
		all = append(all, groupReader(h.Name, r))
	}
	return all
}

// readersOf are those of an event's journey, at most as many of each kind as there is room for.
func readersOf(hub string, j admin.Journey) (all []readBy) {
	for _, g := range j.Groups[:min(len(j.Groups), groupsAsked)] {
		all = append(all, groupReader(hub, g))
	}
	for _, g := range j.KafkaGroups[:min(len(j.KafkaGroups), groupsAsked)] {
		all = append(all, kafkaReader(hub, g))
	}
	for _, f := range j.Functions[:min(len(j.Functions), groupsAsked)] {
		tone := map[string]string{"handled": "good", "before": "odd", "poison": "bad"}[f.State]
		all = append(all, readBy{f.Function, "function", orWord(map[string]string{"before": "not yet", "unknown": "not known"}[f.State], f.State), cmp.Or(tone, "soft"), at("functions", f.Function)})
	}
	for _, s := range j.Subscriptions[:min(len(j.Subscriptions), groupsAsked)] {
		tone := map[string]string{"delivered": "good", "settled": "good", "dead-lettered": "bad", "dropped": "bad", "unmatched": "soft", "early": "soft", "late": "soft", "inactive": "soft", "unknown": "soft"}[s.State]
		all = append(all, readBy{s.Subscription, "subscription", s.State, cmp.Or(tone, "odd"), subscriptionPath(admin.SubscriptionRef{Name: s.Subscription, Hub: hub, DomainTopic: s.DomainTopic})})
	}
	return all
}

// groupReader is how far a group is, by its checkpoint.
func groupReader(hub string, g admin.JourneyGroup) readBy {
	return readBy{g.Group, "group", "no checkpoint", "soft", at("hubs", hub, "groups", g.Group)}.at(g.State)
}

// kafkaReader is how far a Kafka group is, by the offset that it has committed.
func kafkaReader(hub string, g admin.JourneyGroup) readBy {
	return readBy{g.Group, "Kafka group", "no offset", "soft", at("hubs", hub, "kafka-groups", g.Group)}.at(g.State)
}

// at says whether a group has passed an event, where that is known.
func (r readBy) at(state string) readBy {
	switch state {
	case "past":
		r.Said, r.Tone = "past it", "good"
	case "before":
		r.Said, r.Tone = "not yet", "odd"
	}
	return r
}

// saveBody gives a body as a file: as nothing that a browser would show.
func (c *Console) saveBody(v *visit) error {
	e, err := eventsVisit{v}.event(v.name("partition"), v.name("sequence"))
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="event-%d"`, e.Sequence))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	_, _ = v.w.Write(e.content())
	return nil
}
