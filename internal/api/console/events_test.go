package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// eventPaths are lists of events in which something was looked for, or chosen.
var eventPaths = []string{base + "hubs/sensors/events?find=glass", base + "hubs/sensors/events?show=0/41"}

// numbered are events of a partition up to a number.
func numbered(partition string, last int64, n int) (lines []json.RawMessage) {
	for i := last - int64(n) + 1; i <= last; i++ {
		at := noon.Add(time.Duration(i) * time.Millisecond).Format(time.RFC3339Nano)
		lines = append(lines, json.RawMessage(fmt.Sprintf(`{"partition":%q,"sequence":%d,"enqueued":%q,"key":"k","body":"event %d"}`, partition, i, at, i)))
	}
	return lines
}

// V4: of a list that grows a browser is sent the rows that came, at most ten in a frame, with how many more came
// in a second; when no more come that is taken back.
func TestAListOfEventsGrowsByItsRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := fixed()
		stored := func(last int64) {
			answers["GET /api/v1/hubs/{hub}/partitions"] = map[string]any{"partitions": []admin.Partition{{ID: "0", Last: last, LastEnqueued: apiTime(0)}}}
			answers["GET /api/v1/hubs/{hub}/events"] = numbered("0", last, eventsShown)
		}
		stored(1000)
		_, api, h := newFixture(answers)
		ctx, cancel := context.WithCancel(t.Context())
		l := &listener{ResponseRecorder: httptest.NewRecorder()}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			h.ServeHTTP(l, httptest.NewRequestWithContext(ctx, http.MethodGet, livePath+"?at="+base+"hubs/sensors/events", nil))
		}()
		wait := func() (string, []map[string]any) {
			time.Sleep(3 * time.Second)
			synctest.Wait()
			text := strings.ReplaceAll(l.take(), beat, "")
			var frames []map[string]any
			for event := range strings.SplitSeq(text, "\n\n") {
				if data, ok := strings.CutPrefix(event, "event: rows\ndata: "); ok {
					frame := map[string]any{}
					testkit.Must(t, json.Unmarshal([]byte(data), &frame))
					frames = append(frames, frame)
				}
			}
			return text, frames
		}
		change := func(last int64) {
			api.mu.Lock()
			defer api.mu.Unlock()
			stored(last)
		}
		first, _ := wait()
		testkit.That(t, strings.Contains(first, "event 1000") && strings.Contains(first, `"id":"part-list"`), "the first frame has no list")
		again, _ := wait()
		testkit.Equal(t, again, "", "while nothing comes")

		change(1003)
		text, frames := wait()
		testkit.MustEqual(t, len(frames), 1, "frames with rows")
		testkit.Equal(t, len(frames[0]["rows"].([]any)), 3, "rows")
		testkit.Equal(t, fmt.Sprint(frames[0]["more"]), "")
		testkit.That(t, !strings.Contains(text, "event: part"), "the list is sent whole")

		change(4003)
		_, frames = wait()
		testkit.MustEqual(t, len(frames), 2, "frames with rows, and without")
		rows := frames[0]["rows"].([]any)
		testkit.Equal(t, len(rows), feedFrame, "rows of many")
		testkit.Equal(t, fmt.Sprint(rows[0].([]any)[4]), "event 4003", "the newest is the first")
		testkit.That(t, strings.HasSuffix(fmt.Sprint(frames[0]["more"]), " more/s not shown"), "it says %q of the others", frames[0]["more"])
		testkit.Equal(t, fmt.Sprint(frames[1]["more"]), "", "when no more come")
		cancel()
		<-ended
	})
}

// V4: what is new in a list, and what is said of the rest.
func TestWhatIsNewInAList(t *testing.T) {
	of := func(total int64, ids ...string) (f feed) {
		for _, id := range ids {
			f.rows = append(f.rows, fedRow{id: id, texts: []string{id}})
		}
		f.total = total
		return f
	}
	old := of(3, "c", "b", "a")
	for name, tt := range map[string]struct {
		now    feed
		rows   int
		said   string
		lasted time.Duration
	}{
		"nothing":           {old, 0, "", time.Second},
		"one":               {of(4, "d", "c", "b"), 1, "", time.Second},
		"more than it has":  {of(103, "z", "y", "x"), 3, "97 more/s not shown", time.Second},
		"in half a second":  {of(103, "z", "y", "x"), 3, "194 more/s not shown", time.Second / 2},
		"of another list":   {of(1, "q"), 1, "", time.Second},
		"no time has gone":  {of(103, "z", "y", "x"), 3, "", 0},
		"more than a frame": {of(15, strings.Split("onmlkjihgfed", "")...), feedFrame, "2 more/s not shown", time.Second},
	} {
		rows, said := tt.now.news(old, tt.lasted)
		testkit.Equal(t, len(rows), tt.rows, name)
		testkit.Equal(t, said, tt.said, name)
	}
}

// V4: a text is looked for in the newest events of all partitions, 10,000 of them, or from a place on; what was
// found is marked, and it is said how many were looked at and where to go on.
func TestEventsAreSearched(t *testing.T) {
	answers := fixed()
	_, api, h := newFixture(answers)
	page := func(query string) string { return get(h, base+"hubs/sensors/events?"+query).Body.String() }
	found := page("find=GLASS")
	for _, says := range []string{"<mark>glass</mark>", "2 events of 12,456 looked at.", "Look from the oldest on", `value="GLASS"`} {
		testkit.That(t, strings.Contains(found, says), "the page does not say %s", says)
	}
	testkit.That(t, !strings.Contains(found, "data-live"), "what was found changes")
	asked := strings.Join(api.calls, "\n")
	testkit.That(t, strings.Contains(asked, "/partitions/0/events") && strings.Contains(asked, "/partitions/1/events") && !strings.Contains(asked, "/partitions/2/events"), "asked: %s", asked)

	path := "GET /api/v1/hubs/{hub}/partitions/{partition}/events"
	answers[path] = admin.FoundPage{Next: 10_000, Looked: 10_000}
	testkit.That(t, strings.Contains(page("find=x&begin=oldest"), "after=0%3A10000") && strings.Contains(page("find=x&begin=oldest"), "Nothing found"), "it does not say where to go on in the partition")
	answers[path] = admin.FoundPage{Next: 10_000, Looked: 10_000, End: true}
	testkit.That(t, strings.Contains(page("find=x&begin=oldest"), "after=1%3A"), "it does not go on in the next partition")
	testkit.That(t, !strings.Contains(page("find=x&begin=oldest&after=2%3A"), "Look further"), "it goes on behind the last partition")
	answers[path] = admin.FoundPage{Events: numbered("0", 99, 60), Next: 100, Looked: 100, End: true}
	full := page("find=event&begin=oldest")
	testkit.That(t, strings.Contains(full, "after=0%3A90") && strings.Contains(full, "60 events of 100 looked at; the first 50 are here."), "a list that is full goes on behind what it shows")

	newest := page("find=event")
	testkit.That(t, strings.Contains(newest, "event</mark> 99<") && !strings.Contains(newest, "event</mark> 40<") && strings.Contains(newest, "the newest 50 are here."), "of many that were found the newest are not shown")
	for text, want := range map[string][3]string{
		"the glass broke":                     {"the ", "glass", " broke"},
		"nothing":                             {"", "", "nothing"},
		strings.Repeat("é", 40) + "Glass":     {"…" + strings.Repeat("é", 12), "Glass", ""},
		"İ is longer in lower case: GLASS is": {"longer in lower case: ", "GLASS", " is"},
	} {
		before, match, after := divide(text, "glass")
		testkit.Equal(t, match, want[1], text)
		testkit.Equal(t, after, want[2], text)
		testkit.That(t, strings.HasSuffix(before, strings.TrimPrefix(want[0], "…")), "before it is %q", before)
	}
}

// V4: a list of events from the oldest or from a time on goes on where it ends, also over all partitions: in the
// partition that it has come to, and in those behind it from its beginning on.
func TestAListOfAllPartitionsGoesOn(t *testing.T) {
	answers := fixed()
	_, _, h := newFixture(answers)
	answers["GET /api/v1/hubs/{hub}/events"] = numbered("1", 99, eventsShown)
	for _, query := range []string{"begin=oldest", "begin=time&when=2026-01-31T11:00:00Z", "begin=oldest&partition=1", "begin=oldest&after=0:7"} {
		page := get(h, base+"hubs/sensors/events?"+query).Body.String()
		testkit.That(t, strings.Contains(page, `">Next events</a>`) && strings.Contains(page, "after=1%3A100&amp;begin="), "%s does not go on", query)
	}
	page := get(h, base+"hubs/sensors/events?begin=oldest&after=0:7").Body.String()
	testkit.That(t, strings.Contains(page, "after=0%3A7&amp;begin=oldest&amp;show=1%2F50"), "who chooses an event of it is led to another list")

	view := eventsView{Hub: admin.Hub{PartitionIDs: []string{"0", "1", "2"}}}
	for after, want := range map[string]string{
		"": "[] from T", "0:7": "[0] from 7, [1 2] from T", "2:7": "[2] from 7", "7:7": "[] from T", "1:x": "[] from T", "nonsense": "[] from T",
	} {
		var asked []string
		view.After = after
		for _, q := range view.goOn(admin.Query{From: "T"}) {
			asked = append(asked, fmt.Sprint(q.Partitions, " from ", q.From))
		}
		testkit.Equal(t, strings.Join(asked, ", "), want, after)
	}
	view.After = "1:7"
	testkit.Equal(t, len(view.goOn(admin.Query{Partitions: []string{"1"}})), 1, "readings of one partition")
}

// V4: the event that is chosen in a list stands beside it, with who got it: groups, functions and subscriptions
// for who may follow it, groups for others.
func TestAnEventBesideTheList(t *testing.T) {
	answers := fixed()
	_, _, h := newFixture(answers)
	page := get(h, eventPaths[1]).Body.String()
	for _, says := range []string{`class="detail stack"`, "firmware", "past it", `<span class="soft small">function</span>`, "not yet", `data-copy="{&#34;sensor&#34;`, `show=0%2F41"`} {
		testkit.That(t, strings.Contains(page, says), "the page does not say %s", says)
	}
	testkit.That(t, !strings.Contains(get(h, base+"hubs/sensors/events?show=0/7").Body.String(), `class="detail`), "an event that is not there is shown")
	j := admin.Journey{Subscriptions: []admin.JourneyTo{{Subscription: "a", State: "delivered"}, {Subscription: "b", State: "dead-lettered"}, {Subscription: "c", State: "waiting"}}}
	for i, tone := range []string{"good", "bad", "odd"} {
		testkit.Equal(t, readersOf("sensors", j)[i].Tone, tone)
	}
}

// V4: of an event that retention has removed the page says until when all were removed, and leads to the first
// that is left.
func TestAnEventThatWasRemoved(t *testing.T) {
	_, _, h := newFixture(fixed())
	w := get(h, base+"hubs/sensors/partitions/0/events/7")
	testkit.Equal(t, w.Code, http.StatusNotFound)
	for _, says := range []string{"removed by retention", `href="/console/hubs/sensors/partitions/0/events/41"`, `<time datetime="2026-01-31T11:59:59Z"`, "7 days"} {
		testkit.That(t, strings.Contains(w.Body.String(), says), "the page does not say %s", says)
	}
	testkit.Equal(t, get(h, base+"hubs/sensors/partitions/0/events/99").Code, http.StatusNotFound, "one that was never there")
	testkit.That(t, strings.Contains(get(h, hubAgainPath("sensors", "0", 7)).Body.String(), "it was removed by retention"), "a form about it says another thing")
}
