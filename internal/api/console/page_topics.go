package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/parallel"
)

// topicsView is the list of topics, each with its subscriptions.
type topicsView struct {
	Topics []topicRow
	// Hubs are subscriptions of hubs.
	Hubs    []subscriptionRow
	Pages   pager
	Command string

	all int // subscriptions, on all pages
}

type topicRow struct {
	admin.Topic
	Subs []subscriptionRow
}

type subscriptionRow struct {
	admin.Subscription
	ID, Link, Target, Tone, Said string
	Delivered, Waiting, Dead     int64
	Again                        int64 // of those that wait: for another try
	Known                        bool  // how deliveries go
	// Good and Bad draw the last requests, as high as they took; Recent says them.
	Good, Bad, Recent string
	Rate              string // events delivered a second
}

const (
	// subscriptionsListed is up to how many subscriptions are asked how they do by one call. Of a longer list the first
	// subscriptionsAsked of a page are asked one by one: to ask thousands for a hundred costs more.
	subscriptionsListed = 200
	subscriptionsAsked  = 40
	// subscriptionsAge is how old the list of a live page may be: of thousands it costs more than all else.
	subscriptionsAge = 5 * time.Second
)

var topicsPage = page{template: "topics", load: loadTopics}

func loadTopics(v *visit) (*screen, error) {
	topics, err := v.api.Topics(v.ctx)
	if err != nil {
		return nil, err
	}
	list, err := subscriptionsOf(v, admin.SubscriptionRef{})
	if err != nil {
		return nil, err
	}
	lines := topicLines(topics, list)
	view := topicsView{all: len(list), Pages: pageOf(v, len(lines)), Command: command("topic", "create", "NAME")}
	view.fill(v, lines[view.Pages.From:view.Pages.To])
	return &screen{Title: "Topics", Section: "topics", Crumbs: []crumb{{Name: "Topics"}}, View: view}, nil
}

// topicLine is a line of the list of topics: a subscription under its topic, a topic that has none, or the
// subscription of a hub.
type topicLine struct {
	topic *admin.Topic        // nil: it is of a hub
	of    *admin.Subscription // nil: nobody has subscribed
}

// topicLines puts subscriptions under their topics, and those of hubs behind them, so that pages can be
// counted over all of them.
func topicLines(topics []admin.Topic, subscriptions []admin.Subscription) (lines []topicLine) {
	of := map[string][]*admin.Subscription{}
	for i := range subscriptions {
		s := &subscriptions[i]
		topic := s.Topic
		if s.SourceHub != "" {
			topic = ""
		}
		of[topic] = append(of[topic], s)
	}
	for i := range topics {
		t := &topics[i]
		if len(of[t.Name]) == 0 {
			lines = append(lines, topicLine{topic: t})
		}
		for _, s := range of[t.Name] {
			lines = append(lines, topicLine{t, s})
		}
	}
	for _, s := range of[""] {
		lines = append(lines, topicLine{of: s})
	}
	return lines
}

// fill shows lines. A topic whose subscriptions go over several pages is on each of them.
func (t *topicsView) fill(v *visit, lines []topicLine) {
	var subscriptions []admin.Subscription
	for _, l := range lines {
		if l.of != nil {
			subscriptions = append(subscriptions, *l.of)
		}
	}
	rows := subscriptionRows(v, admin.SubscriptionRef{}, subscriptions, t.all)
	for _, l := range lines {
		if n := len(t.Topics); l.topic != nil && (n == 0 || t.Topics[n-1].Name != l.topic.Name) {
			t.Topics = append(t.Topics, topicRow{Topic: *l.topic})
		}
		if l.of == nil {
			continue
		}
		under := &t.Hubs
		if l.topic != nil {
			under = &t.Topics[len(t.Topics)-1].Subs
		}
		*under, rows = append(*under, rows[0]), rows[1:]
	}
}

// subscriptionsOf lists those of a source, or all.
func subscriptionsOf(v *visit, of admin.SubscriptionRef) ([]admin.Subscription, error) {
	return remembered(v, "subscriptions", subscriptionsAge, func() ([]admin.Subscription, error) {
		return v.api.Subscriptions(v.ctx, of)
	})
}

// subscriptionRows shows some subscriptions of a list of n, with how they do.
func subscriptionRows(v *visit, of admin.SubscriptionRef, list []admin.Subscription, n int) []subscriptionRow {
	rows := make([]subscriptionRow, len(list))
	if n <= subscriptionsListed && len(list) > 0 {
		if known, err := v.api.SubscriptionsWithStats(v.ctx, of); err == nil {
			does := map[admin.SubscriptionRef]admin.Subscription{}
			for _, s := range known {
				does[refOf(s)] = s
			}
			for i, s := range list {
				if now, ok := does[refOf(s)]; ok {
					s = now
				}
				rows[i] = newSubscriptionRow(s, i)
			}
			return rows
		}
	}
	parallel.Each(len(list), askedAtOnce, func(i int) {
		s := list[i]
		if i < subscriptionsAsked {
			if full, err := v.api.Subscription(v.ctx, refOf(s), false); err == nil {
				s = full
			}
		}
		rows[i] = newSubscriptionRow(s, i)
	})
	return rows
}

// drawRecent draws requests as strokes, those that failed apart: a low one took less than 100 ms, a high one
// a second or more. Each stroke begins from the one before, because then a page of many rows repeats itself and is short when compressed.
func drawRecent(took []int) (good, bad string) {
	well, ill := &strokes{}, &strokes{}
	for i, ms := range took {
		to := well
		if ms < 0 {
			to, ms = ill, -ms
		}
		high := 6
		for limit := 100; ms >= limit && high < 20; limit *= 10 {
			high += 7
		}
		to.add(6*(recentShown-len(took)+i)+3, high)
	}
	return well.path.String(), ill.path.String()
}

// strokes is a path of upright lines, the last of which is at x and so high.
type strokes struct {
	path    strings.Builder
	x, high int
}

func (s *strokes) add(x, high int) {
	if s.path.Len() == 0 {
		fmt.Fprintf(&s.path, "M%d 24", x)
	} else {
		fmt.Fprintf(&s.path, "m%d %d", x-s.x, s.high)
	}
	fmt.Fprintf(&s.path, "v-%d", high)
	s.x, s.high = x, high
}

// recentShown is how many requests are drawn.
const recentShown = 40

func refOf(s admin.Subscription) admin.SubscriptionRef {
	return admin.SubscriptionRef{Name: s.Name, Topic: s.Topic, Hub: s.SourceHub, DomainTopic: s.DomainTopic}
}

func newSubscriptionRow(s admin.Subscription, i int) subscriptionRow {
	row := subscriptionRow{Subscription: s, ID: "s" + strconv.Itoa(i), Link: subscriptionPath(refOf(s)), Target: targetOf(s), Known: s.Stats != nil}
	row.Tone, row.Said = healthOf(s)
	if s.Stats != nil {
		row.Delivered, row.Again = s.Stats.Delivered, againOf(s.Stats)
		row.Waiting = s.Stats.Behind + row.Again
		recent := s.Stats.Recent[max(0, len(s.Stats.Recent)-recentShown):]
		row.Good, row.Bad = drawRecent(recent)
		failed := 0
		for _, ms := range recent {
			if ms < 0 {
				failed++
			}
		}
		if row.Recent = "no request yet"; len(recent) > 0 {
			row.Recent = fmt.Sprintf("%d of %d failed", failed, len(recent))
		}
		if s.Stats.Rate != nil {
			row.Rate = rateOf(s.Stats.Rate) + "/s"
		}
	}
	if s.DeadLetters != nil {
		row.Dead = s.DeadLetters.Kept
	}
	return row
}

func againOf(stats *admin.DeliveryStats) int64 {
	n := stats.Parked
	for _, w := range stats.Waiting {
		n += w.Events
	}
	return n
}

// targetOf is where a subscription's events go.
func targetOf(s admin.Subscription) string {
	switch {
	case s.Hub != "":
		return "hub " + s.Hub
	case s.Pull != nil:
		return "clients receive"
	}
	return s.Endpoint
}

// healthOf is how a subscription does, with its colour.
func healthOf(s admin.Subscription) (tone, said string) {
	switch s.State {
	case "active":
	case "paused", "pending":
		return "odd", s.State
	default:
		return "bad", s.State
	}
	if s.Stats == nil {
		return "good", s.State
	}
	switch health := s.Stats.Endpoint.State; health {
	case "probation", "probing", "failing": // events wait, none is lost
		return "odd", health
	}
	return "good", s.State
}

// subscriptionPath is the page of a subscription, or of something about it, in its source: several may
// have one of that name.
func subscriptionPath(s admin.SubscriptionRef, rest ...string) string {
	path := []string{"topics", s.Topic, "subscriptions", s.Name}
	if s.Hub != "" {
		path[0], path[1] = "hubs", s.Hub
	}
	return with(at(append(path, rest...)...), "domainTopic", s.DomainTopic)
}

// hubSubscriptionsView is the list of a hub's subscriptions.
type hubSubscriptionsView struct {
	admin.Hub
	Subs    []subscriptionRow
	Pages   pager
	Command string
}

var hubSubscriptionsPage = page{template: "hubsubscriptions", load: func(v *visit) (*screen, error) {
	h, err := v.api.Hub(v.ctx, v.name("hub"))
	if err != nil {
		return nil, err
	}
	list, err := subscriptionsOf(v, admin.SubscriptionRef{Hub: h.Name})
	if err != nil {
		return nil, err
	}
	pages := pageOf(v, len(list))
	return hubScreen(v, h, "Subscriptions", hubSubscriptionsView{
		Hub: h, Subs: subscriptionRows(v, admin.SubscriptionRef{Hub: h.Name}, list[pages.From:pages.To], len(list)), Pages: pages,
		Command: command("subscription", "create", "NAME", "--source-hub", h.Name, "--endpoint", "URL"),
	}), nil
}}

// topicView is one topic.
type topicView struct {
	admin.Topic
	Subs    []subscriptionRow
	Pages   pager
	Own     bool // the yard's own
	Command string
	Chart   *chart
}

// yardEvents is the topic that the yard alone publishes to, and that cannot be deleted.
const yardEvents = "yard-events"

var topicPage = page{template: "topic", load: loadTopic}

func loadTopic(v *visit) (*screen, error) {
	t, err := v.api.Topic(v.ctx, v.name("topic"))
	if err != nil {
		return nil, err
	}
	t.Keys = nil // they are asked for by a form
	list, err := subscriptionsOf(v, admin.SubscriptionRef{Topic: t.Name})
	if err != nil {
		return nil, err
	}
	pages := pageOf(v, len(list))
	view := topicView{Topic: t, Subs: subscriptionRows(v, admin.SubscriptionRef{Topic: t.Name}, list[pages.From:pages.To], len(list)), Pages: pages, Own: t.Name == yardEvents, Command: command("topic", "publish", t.Name, `{"total":42}`, "--type", "order.placed")}
	view.Chart = v.flow(v.series(admin.SeriesQuery{Of: []string{"published", "delivered", "failed"}, Topic: t.Name}), marksOf(v.happened(""), "topics", t.Name))
	return &screen{Title: t.Name, Section: "topics", Crumbs: []crumb{{"Topics", at("topics")}, {Name: t.Name}}, View: view, Tabs: topicTabs(t, "Subscriptions")}, nil
}

var createTopic = action{
	path: base + "new/topic", calls: []string{"POST /api/v1/topics"},
	sheet: func(v *visit) (*sheet, error) {
		name := v.value("name", "")
		return &sheet{
			Title: "Create a topic", About: "A topic pushes each event to every subscription that matches.", Back: at("topics"),
			Fields: []field{
				{Name: "name", Label: "Name", Kind: "text", Value: name, Placeholder: "shop"},
				{Name: "schema", Label: "Schema of its events", Kind: "select", Value: v.value("schema", "cloudevents"), Options: []option{{"cloudevents", "CloudEvents"}, {"eventgrid", "Event Grid"}, {"custom", "your own, with a mapping"}}},
				{Name: "mapping", Label: "Where events of your own schema have what an envelope needs", Kind: "area", Value: v.value("mapping", ""), Hint: "JSON, for your own schema alone.", Optional: true, More: true},
			},
			Buttons: []button{{"Create", "main", act}}, Command: command("topic", "create", orWord(name, "NAME"), "--schema", v.value("schema", "cloudevents")),
		}, nil
	},
	do: func(v *visit) (outcome, error) {
		r := admin.TopicRequest{Name: strings.TrimSpace(v.r.PostFormValue("name")), Schema: v.r.PostFormValue("schema")}
		if mapping := v.filled("mapping"); mapping != nil {
			if !json.Valid([]byte(*mapping)) {
				return outcome{}, wrongInput("The mapping is not JSON. Nothing was created.")
			}
			r.Mapping = json.RawMessage(*mapping)
		}
		t, err := v.api.CreateTopic(v.ctx, r)
		return outcome{to: at("topics", t.Name), done: "created"}, err
	},
}

var deleteTopic = action{
	path: base + "topics/{topic}/delete", calls: []string{"DELETE /api/v1/topics/{topic}"},
	sheet: func(v *visit) (*sheet, error) {
		t, err := v.api.Topic(v.ctx, v.name("topic"))
		if err != nil {
			return nil, err
		}
		about := plural(t.Events, "event", "events") + " and " + plural(t.Subscriptions, "subscription", "subscriptions") + " are deleted with it. This cannot be undone."
		return deletion("topic", t.Name, about, at("topics", t.Name), command("topic", "delete", t.Name)), nil
	},
	do: func(v *visit) (outcome, error) {
		if err := v.typed(v.name("topic")); err != nil {
			return outcome{}, err
		}
		return outcome{to: at("topics"), done: "deleted"}, v.api.DeleteTopic(v.ctx, v.name("topic"))
	},
}

var revealTopic = action{
	path: base + "topics/{topic}/reveal", calls: []string{"GET /api/v1/topics/{topic}"},
	do: func(v *visit) (outcome, error) {
		t, err := v.api.Topic(v.ctx, v.name("topic"))
		return outcome{sheet: topicKeysSheet(t, "The keys of "+t.Name)}, err
	},
}

func topicKeysSheet(t admin.Topic, title string) *sheet {
	keys := cmp.Or(t.Keys, &admin.TopicKeys{})
	return &sheet{
		Title: title, About: "Whoever has one of them may publish to the topic. They are hidden again after a minute.", Back: at("topics", t.Name), Command: command("topic", "show", t.Name),
		Secrets: []secret{{"Key 1", keys.Key1}, {"Key 2", keys.Key2}},
	}
}

var regenerateTopic = action{
	path: base + "topics/{topic}/regenerate", calls: []string{"POST /api/v1/topics/{topic}/regenerate"},
	sheet: func(v *visit) (*sheet, error) {
		name := v.name("topic")
		return &sheet{
			Title: "Regenerate a key of " + name, About: "Publishers that use the old key are refused from then on. Give them the other key first.", Back: at("topics", name),
			Fields:  []field{{Name: "key", Label: "Which key", Kind: "select", Value: v.value("key", "key2"), Options: []option{{"key1", "key 1"}, {"key2", "key 2"}}}},
			Buttons: []button{{"Regenerate", "danger", act}}, Command: command("topic", "regenerate", name),
		}, nil
	},
	do: func(v *visit) (outcome, error) {
		t, err := v.api.RegenerateTopicKey(v.ctx, v.name("topic"), v.r.PostFormValue("key"))
		return outcome{sheet: topicKeysSheet(t, "New key of "+t.Name)}, err
	},
}
