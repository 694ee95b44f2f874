package console

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/parallel"
)

// mapRows is how many rows the map has besides what is ill.
const mapRows = 40

// yardMap is the yard as a picture: what is published on the left, who gets it on the right, and between
// them tracks as wide as the rate and of the colour of the state.
type yardMap struct {
	Sources []source
	Tracks  []track
	Height  int
	Label   string // it in a sentence
	More    int    // rows that are not shown
}

// source is a hub or a topic. Before and After are the rows that it leaves free, so that it stands in
// the middle of its own.
type source struct {
	ID, Name, Kind, Link string
	Rate                 *float64
	Stops                []stop
	Before, After        []struct{}
	own                  bool // the yard's
}

// stop is who gets events of a source. Tone is good, odd, bad, or empty for nobody.
type stop struct {
	ID, Name, Kind, Link string
	Tone, State          string
	Rate                 *float64
	// ask are the figures of which its rate, and of a group its state, are made.
	ask admin.SeriesQuery
}

func (s stop) ill() bool { return s.Tone == "odd" || s.Tone == "bad" }

// track leads from a source to a stop.
type track struct {
	ID, Path, Class string
	Width           string
	Runs            bool
}

// rowHeight is that of a row of the map, as the style has it.
const rowHeight = 52

// newMap draws sources with their stops.
func newMap(sources []source, more int) yardMap {
	m := yardMap{Sources: sources, More: more}
	row, ill, stops := 0, 0, 0
	for i := range m.Sources {
		s := &m.Sources[i]
		s.ID = "from" + strconv.Itoa(i)
		before := (len(s.Stops) - 1) / 2
		s.Before, s.After = make([]struct{}, before), make([]struct{}, len(s.Stops)-1-before)
		for j := range s.Stops {
			to := &s.Stops[j]
			to.ID = "to" + strconv.Itoa(row+j)
			m.Tracks = append(m.Tracks, newTrack(*to, row+before, row+j))
			if stops++; to.ill() {
				ill++
			}
		}
		row += len(s.Stops)
	}
	m.Height = row * rowHeight
	m.Label = fmt.Sprintf("%s of events, %s; %s not well", plural(len(sources), "source", "sources"), plural(stops, "reader", "readers"), number(ill))
	return m
}

func newTrack(to stop, from, row int) track {
	y, end := from*rowHeight+rowHeight/2, row*rowHeight+rowHeight/2
	t := track{ID: to.ID + "-t", Path: fmt.Sprintf("M0 %dC52 %d 60 %d 112 %d", y, y, end, end), Width: trackWidth(to.Rate)}
	switch {
	case to.ill():
		t.Class = "stopped l-" + to.Tone
	case to.Tone == "":
		t.Class = "stopped l-idle"
	default:
		t.Class, t.Runs = "rail", to.Rate != nil && *to.Rate > 0
	}
	return t
}

// trackWidth grows by the same for each ten times as many events.
func trackWidth(rate *float64) string {
	if rate == nil {
		return "1"
	}
	return coordinate(round(1 + .6*math.Log10(1+*rate)))
}

// choose takes the sources where most is published, up to so many rows, and of the others what is ill.
// They stand by name, so that they do not change places while one looks; the yard's own come last.
func choose(sources []source, rows int) (chosen []source, more int) {
	busiest := slices.Clone(sources)
	slices.SortStableFunc(busiest, func(a, b source) int { return cmp.Compare(orZero(b.Rate), orZero(a.Rate)) })
	for _, s := range busiest {
		if room := max(rows, 0); len(s.Stops) > room {
			kept := slices.DeleteFunc(slices.Clone(s.Stops), func(to stop) bool { return !to.ill() })
			more += len(s.Stops) - len(kept)
			s.Stops = kept
		}
		if rows -= len(s.Stops); len(s.Stops) > 0 {
			chosen = append(chosen, s)
		}
	}
	slices.SortStableFunc(chosen, func(a, b source) int {
		return cmp.Or(compareBool(a.own, b.own), strings.Compare(a.Name, b.Name))
	})
	return chosen, more
}

func orZero(n *float64) float64 {
	if n == nil {
		return 0
	}
	return *n
}

// yardLists are what a map is made of.
type yardLists struct {
	hubs          []admin.Hub
	topics        []admin.Topic
	subscriptions []admin.Subscription
	functions     []admin.Function
	circuits      []admin.Circuit
	needs         []admin.Need
	// late: some of them were not known in time.
	late bool
}

// sources gives each hub and topic with who gets its events. A hub or topic that nobody reads says so.
func (l yardLists) sources(now time.Time) (all []source) {
	for _, h := range l.hubs {
		s := source{Name: h.Name, Kind: "hub, " + plural(h.Partitions, "partition", "partitions"), Link: at("hubs", h.Name), Stops: l.readers(h, now)}
		if h.Stats != nil {
			s.Rate = h.Stats.Published
		}
		all = append(all, s)
	}
	for _, t := range l.topics {
		s := source{Name: t.Name, Kind: "topic", Link: at("topics", t.Name), own: t.Name == yardEvents}
		if s.own {
			s.Kind = "topic of the yard itself"
		}
		if t.Stats != nil {
			s.Rate = t.Stats.Published
		}
		for _, sub := range l.subscriptions {
			if sub.Topic == t.Name {
				s.Stops = append(s.Stops, subscriptionStop(sub, now))
			}
		}
		all = append(all, s)
	}
	all = slices.DeleteFunc(all, func(s source) bool { return s.own && len(s.Stops) == 0 })
	for i := range all {
		all[i].orNobody()
	}
	return all
}

// orNobody says that nobody gets its events.
func (s *source) orNobody() {
	if len(s.Stops) == 0 {
		s.Stops = []stop{{Name: "nobody", Kind: "nobody reads it", Link: s.Link}}
	}
}

// readers are the functions, groups and subscriptions of a hub.
func (l yardLists) readers(h admin.Hub, now time.Time) (stops []stop) {
	functions := map[string]bool{} // by group
	for _, f := range functionRows(l.functions, l.circuits) {
		if f.Hub == h.Name {
			functions[f.Group] = true
			stops = append(stops, functionStop(f))
		}
	}
	for _, g := range h.Groups {
		if !functions[g] {
			stops = append(stops, l.groupStop(h.Name, g))
		}
	}
	for _, s := range l.subscriptions {
		if s.SourceHub == h.Name {
			stops = append(stops, subscriptionStop(s, now))
		}
	}
	return stops
}

func functionStop(f functionRow) stop {
	s := stop{Name: f.Name, Kind: "function", Link: f.Link, Tone: f.Tone, State: f.State, ask: admin.SeriesQuery{Of: []string{"calls"}, Function: f.Name}}
	if !f.Yard {
		s.Kind, s.ask = "function elsewhere", admin.SeriesQuery{Of: []string{"read"}, Hub: f.Hub, Group: f.Group}
	}
	if f.Lag != nil && *f.Lag > 0 {
		s.State += ", " + number(f.Lag) + " wait"
	}
	return s
}

func subscriptionStop(sub admin.Subscription, now time.Time) stop {
	row := newSubscriptionRow(sub, 0)
	s := stop{Name: sub.Name, Kind: "webhook", Link: row.Link, Tone: row.Tone, State: row.Said,
		ask: admin.SeriesQuery{Of: []string{"delivered"}, Topic: sub.Topic, Hub: sub.SourceHub, DomainTopic: sub.DomainTopic, Subscription: sub.Name}}
	switch {
	case sub.Hub != "":
		s.Kind = "into hub " + sub.Hub
	case sub.Pull != nil:
		s.Kind = "clients receive"
	}
	if row.Waiting > 0 {
		s.State += ", " + number(row.Waiting) + " wait"
	}
	if sub.Stats != nil && sub.Stats.Endpoint.Until != nil && sub.Stats.Endpoint.Until.After(now) {
		s.State += ", probe in " + span(sub.Stats.Endpoint.Until.Sub(now).Truncate(time.Second))
	}
	return s
}

func (l yardLists) groupStop(hub, group string) stop {
	s := stop{Name: group, Kind: "group", Link: at("hubs", hub, "groups", group), ask: admin.SeriesQuery{Of: []string{"read", "lag-seconds"}, Hub: hub, Group: group}}
	for _, n := range l.needs {
		if n.Object.Kind == "group" && n.Object.Hub == hub && n.Object.Group == group {
			s.Tone = toneOfSeverity(n.Severity)
		}
	}
	return s
}

func toneOfSeverity(severity string) string {
	if severity == admin.SeverityBroken {
		return "bad"
	}
	return "odd"
}

// measure asks what the stops of a map do at present. A group of which nothing was ever measured is
// nobody's, and is left out.
func (v *visit) measure(sources []source) []source {
	var stops []*stop
	for i := range sources {
		for j := range sources[i].Stops {
			stops = append(stops, &sources[i].Stops[j])
		}
	}
	parallel.Each(len(stops), askedAtOnce, func(i int) { v.rateOf(stops[i]) })
	for i := range sources {
		s := &sources[i]
		s.Stops = slices.DeleteFunc(s.Stops, func(to stop) bool { return to.Kind == "group" && to.Rate == nil && to.State == "" && !to.ill() })
		s.orNobody()
	}
	return sources
}

// How far back present rates are looked for, and how long they are good.
const (
	rateSpan = 10 * time.Second
	rateGood = 3 * time.Second
)

func (v *visit) rateOf(s *stop) {
	if len(s.ask.Of) == 0 || v.late() {
		return
	}
	q := s.ask
	q.Span = rateSpan
	list, err := remembered(v, fmt.Sprint("rate", q), rateGood, func() (admin.SeriesList, error) { return v.api.Series(v.ctx, q) })
	if err != nil {
		return
	}
	v.silent.add(list.Missing...)
	for _, series := range list.Series {
		switch value := newestValue(series); {
		case value == nil:
		case series.Of == "lag-seconds":
			s.State = span(seconds(*value)) + " behind"
			s.Tone = cmp.Or(s.Tone, "good")
		default:
			s.Rate = value
			s.Tone = cmp.Or(s.Tone, "good")
		}
	}
}

// newestValue is the mean of a rate, and the last of what stands as it is; nil: nothing was measured.
func newestValue(s admin.Series) *float64 {
	values := resample(s, s.From.Unix(), int64(max(len(s.Values)*s.Step, 1)), 1)
	if math.IsNaN(values[0]) {
		return nil
	}
	return &values[0]
}
