package console

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/admin"
)

// topicEventsShown is how many events a page of a topic's has.
const topicEventsShown = 50

// topicEventsView is a page of what a topic holds, the newest first.
type topicEventsView struct {
	admin.Topic
	Rows []topicEventRow
	// From is what was asked for: a number or a time; empty: the newest.
	From                  string
	Older, Newer, Command string
	Own                   bool
}

// topicEventRow is an event of a topic, and where its journey is; Unreadable: it is stored and no event.
type topicEventRow struct {
	admin.TopicEvent
	ID, Type, Subject, Link string
	Unreadable              bool
}

// topicTabs are the pages of a topic. What the yard publishes to by itself has no settings.
func topicTabs(t admin.Topic, here string) []tab {
	tabs := []tab{{Name: "Subscriptions", Link: at("topics", t.Name), Count: t.Subscriptions}, {Name: "Events", Link: at("topics", t.Name, "events"), Count: -1}}
	if t.Name != yardEvents {
		tabs = append(tabs, tab{Name: "Settings", Link: at("topics", t.Name, "settings"), Count: -1})
	}
	for i := range tabs {
		tabs[i].Here = tabs[i].Name == here
	}
	return tabs
}

var topicEventsPage = page{template: "topicevents", load: func(v *visit) (*screen, error) {
	t, err := v.api.Topic(v.ctx, v.name("topic"))
	if err != nil {
		return nil, err
	}
	t.Keys = nil // they are asked for by a form
	view := topicEventsView{Topic: t, From: strings.TrimSpace(v.r.URL.Query().Get("from")), Own: t.Name == yardEvents}
	end, err := v.api.ReadTopic(v.ctx, t.Name, "latest", 1)
	if err != nil {
		return nil, err
	}
	first := max(end.Next-t.Events, 0)
	begin := view.From
	if begin == "" {
		begin = strconv.FormatInt(max(end.Next-topicEventsShown, first), 10)
	}
	found, err := v.api.ReadTopic(v.ctx, t.Name, begin, topicEventsShown)
	if err != nil {
		return nil, err
	}
	for i := len(found.Events) - 1; i >= 0; i-- {
		view.Rows = append(view.Rows, newTopicEventRow(t.Name, found.Events[i]))
	}
	link := func(from int64) string {
		return with(at("topics", t.Name, "events"), "from", strconv.FormatInt(from, 10))
	}
	if n := len(found.Events); n > 0 {
		if oldest := found.Events[0].Sequence; oldest > first {
			view.Older = link(max(oldest-topicEventsShown, first))
		}
		if found.Next < end.Next {
			view.Newer = link(found.Next)
		}
	}
	view.Command = command("topic", "read", t.Name, "--from", begin)
	s := &screen{
		Title: "Events of " + t.Name, Section: "topics", View: view, Tabs: topicTabs(t, "Events"),
		Crumbs: []crumb{{"Topics", at("topics")}, {t.Name, at("topics", t.Name)}, {Name: "Events"}},
		still:  view.From != "", // what was asked for by its place stays where it is
	}
	return s, nil
}}

func newTopicEventRow(topic string, e admin.TopicEvent) topicEventRow {
	row := topicEventRow{TopicEvent: e, Unreadable: string(e.Event) == "null"}
	var head eventHead
	_ = json.Unmarshal(e.Event, &head) // an event of another shape has none of it
	row.ID, row.Subject, row.Type = head.ID, head.Subject, orWord(head.EventType, head.Type)
	if head.ID != "" {
		row.Link = with(at("events"), "id", head.ID, "in", "topics/"+topic, "number", strconv.FormatInt(e.Sequence, 10))
	}
	return row
}
