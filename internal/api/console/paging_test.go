package console

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V1: all poison events that the API lists are on the pages of a function, a hundred on each, and where there may be
// more that is said; the page of the function leads there.
func TestPagesOfPoisonEvents(t *testing.T) {
	answers, list := fixed(), make([]admin.PoisonEvent, poisonAsked)
	for i := range list {
		list[i] = admin.PoisonEvent{ID: "p", Function: "score", Hub: "sensors", Partition: "1", Sequence: int64(100_000 + i), Reason: "503: refused"}
	}
	answers["GET /api/v1/hubs/{hub}/poison"] = map[string]any{"poison": list}
	_, _, h := newFixture(answers)
	first, last := get(h, base+"functions/score/poison").Body.String(), get(h, base+"functions/score/poison?page=9").Body.String()
	testkit.Equal(t, strings.Count(first, `<td class="mono small">`), rowsOfPage, "rows of the first page")
	for page, says := range map[string][]string{
		first: {"1 to 100 of 1,000", ">1 / 100,000<", ">After<", "There may be more"}, last: {"901 to 1,000 of 1,000", ">1 / 100,999<", ">Before<"},
		get(h, base+"functions/score").Body.String(): {at("functions", "score", "poison")},
	} {
		for _, one := range says {
			testkit.That(t, strings.Contains(page, one), "a page does not say %s", one)
		}
	}
}

// V1, V2: the events of a topic are shown from the newest, go on to older and newer ones as far as there are any, and
// each leads to its journey; what is stored and no event is said to be that.
func TestPagesOfATopicsEvents(t *testing.T) {
	answers := fixed()
	topic := answers["GET /api/v1/topics/{topic}"].(admin.Topic)
	topic.Events = 20
	answers["GET /api/v1/topics/{topic}"] = topic
	events := []admin.TopicEvent{
		{Sequence: 40, Event: json.RawMessage("null")},
		{Sequence: 41, Event: json.RawMessage(`{"id":"7c1d-e0","type":"alarm.glass"}`)},
	}
	answers["GET /api/v1/topics/{topic}/events"] = admin.TopicEvents{Next: 42, Events: events}
	_, _, h := newFixture(answers)
	newest := get(h, base+"topics/alarms/events").Body.String()
	for _, says := range []string{"id=7c1d-e0&amp;in=topics%2Falarms&amp;number=41", "alarm.glass", "cannot be read", `?from=22">Older<`} {
		testkit.That(t, strings.Contains(newest, says), "the page does not say %s: %s", says, newest)
	}
	testkit.That(t, strings.Index(newest, ">41<") < strings.Index(newest, ">40<"), "the newest is not the first")
	testkit.That(t, !strings.Contains(newest, ">Newer<"), "there is something newer than the newest")
	topic.Events = 2
	answers["GET /api/v1/topics/{topic}"] = topic
	testkit.That(t, !strings.Contains(get(h, base+"topics/alarms/events").Body.String(), ">Older<"), "there is something older than the oldest")
}
