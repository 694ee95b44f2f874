package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// manyOfAll is a yard with so many of everything that a list can have, no two of which are alike.
func manyOfAll(n int) map[string]any {
	answers := fixed()
	some := func(i int) int64 { return int64(i) * 7919 % 100_003 * 31 }
	var hubs []admin.Hub
	var partitions []admin.Partition
	var subscriptions []admin.Subscription
	var functions []admin.Function
	owned, history := fixedOwnership(), admin.GroupHistory{}
	owned.Partitions = nil
	for i := range n {
		id := strconv.Itoa(i)
		hubs = append(hubs, admin.Hub{Name: "hub-of-sensors-" + id, Partitions: 4, PartitionIDs: []string{"0"}, Groups: []string{"aggregator-" + id}, Stats: &admin.HubStats{Published: new(float64(some(i)))}})
		partitions = append(partitions, admin.Partition{ID: id, First: some(i), Last: some(i) + some(i+7), LastOffset: id, LastEnqueued: apiTime(time.Duration(some(i)) * time.Millisecond), Bytes: some(i) << 10})
		subscriptions = append(subscriptions, admin.Subscription{Name: "company-" + id, Topic: "alarms", State: "active", Endpoint: "https://hooks.example/alerts/" + id, Stats: &admin.DeliveryStats{Delivered: some(i), Behind: some(i + 1), Rate: new(float64(some(i))), Recent: restlessRequests(i)}})
		functions = append(functions, admin.Function{Name: "score-" + id, Hub: "hub-of-sensors-" + id, Group: "score", State: "running", Lag: new(some(i)), Failures: i})
		owner := "consumer-" + strconv.Itoa(i%8)
		owned.Partitions = append(owned.Partitions, admin.OwnedPartition{Partition: id, Owner: owner, Alive: true, Epoch: int64(i % 12), Acquired: apiTime(time.Duration(some(i)) * time.Millisecond), Renewed: apiTime(time.Duration(some(i)%60_000) * time.Millisecond), Checkpoint: &admin.Checkpoint{Sequence: new(some(i)), Offset: strconv.FormatInt(some(i), 10)}, Last: some(i) + 1000, LagEvents: new(some(i+3) % 2000), LagSeconds: new(float64(i%40) / 10)})
		handed := time.Duration(some(i)%900) * time.Second
		history.Spans = append(history.Spans, admin.OwnershipSpan{Partition: id, Owner: "consumer-9", From: *apiTime(15 * time.Minute), To: *apiTime(handed)}, admin.OwnershipSpan{Partition: id, Owner: owner, From: *apiTime(handed), To: *apiTime(0)})
	}
	answers["GET /api/v1/hubs"] = map[string]any{"hubs": hubs}
	answers["GET /api/v1/hubs/{hub}/partitions"] = map[string]any{"partitions": partitions}
	answers["GET /api/v1/subscriptions"] = map[string]any{"subscriptions": subscriptions}
	answers["GET /api/v1/functions"] = map[string]any{"functions": functions}
	answers["GET /api/v1/hubs/{hub}/groups/{group}/ownership"] = owned
	answers["GET /api/v1/hubs/{hub}/groups/{group}/history"] = history
	answers["GET /api/v1/series"] = admin.SeriesList{Series: []admin.Series{restless("published", "events/s"), restless("read", "events/s"), restless("lag-seconds", "s"), restless("lag", "events"), restless("waiting", "events"), restless("delivered", "events/s")}}
	return answers
}

// restlessRequests are as many as a list draws, no two lists of which are alike.
func restlessRequests(i int) (took []int) {
	for n := range recentShown {
		ms := (i*31 + n*7919) % 1009
		if (i+n*n)%7 == 0 {
			ms = -ms - 1
		}
		took = append(took, ms)
	}
	return took
}

// restless is a figure that is never the same.
func restless(of, unit string) admin.Series {
	s := admin.Series{Of: of, Unit: unit, From: *apiTime(15 * time.Minute), Step: 1}
	for i := range 900 {
		s.Values = append(s.Values, new(float64((i+len(of))*7919%1009)*6.1))
	}
	return s
}

// longPages are those whose lists grow with the yard.
var longPages = []string{"", "hubs", "hubs/sensors", "hubs/sensors/groups/aggregator", "functions", "topics", "topics/alarms", "hubs/sensors/subscriptions"}

// Budgets of bytes, compressed: all that a first visit loads, and a page with a hundred rows, or a page of a
// thousand.
func TestBudgetsOfManyRows(t *testing.T) {
	c, _, _ := newFixture(nil)
	assets := 0
	for _, f := range c.assets.files {
		assets += len(f.small)
	}
	for n, most := range map[int]int{100: 15_000, 1024: 16_000} { // of a thousand there is also a picture of all
		_, _, h := newFixture(manyOfAll(n))
		for _, path := range longPages {
			r := httptest.NewRequest(http.MethodGet, base+path, nil)
			r.Header.Set("Accept-Encoding", "gzip")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			testkit.Equal(t, w.Code, http.StatusOK, path)
			testkit.That(t, w.Body.Len() <= most, "%s with %d rows has %d bytes", path, n, w.Body.Len())
			testkit.That(t, assets+w.Body.Len() <= 40_000, "a first visit of %s loads %d bytes", path, assets+w.Body.Len())
		}
	}
}

// Budgets of a stream: no event of a page with a hundred rows is longer than 32 KiB.
func TestEventsOfAStreamAreShort(t *testing.T) {
	for _, path := range longPages {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, _, h := newFixture(manyOfAll(rowsOfPage))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				l := &listener{ResponseRecorder: httptest.NewRecorder()}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					h.ServeHTTP(l, httptest.NewRequestWithContext(ctx, http.MethodGet, livePath+"?at="+base+path, nil))
				}()
				time.Sleep(3 * time.Second)
				cancel()
				<-ended
				for event := range strings.SplitSeq(l.take(), "\n\n") {
					testkit.That(t, len(event) <= 32<<10, "%s", fmt.Sprint("an event has ", len(event), " bytes"))
				}
			})
		})
	}
}

// V4, R2: an open overview asks how very many subscriptions do every ten seconds, and how a few do each second.
func TestAnOverviewOfManySubscriptions(t *testing.T) {
	for n, most := range map[int]int{subscriptionsListed: 31, subscriptionsListed + 1: 4} {
		synctest.Test(t, func(t *testing.T) {
			answers, list := fixed(), make([]admin.Subscription, n)
			for i := range list {
				list[i] = admin.Subscription{Name: "company-" + strconv.Itoa(i), Topic: "alarms", State: "active", Endpoint: "https://hooks.example/"}
			}
			answers["GET /api/v1/subscriptions"] = map[string]any{"subscriptions": list}
			c, api, h := newFixture(answers)
			began := time.Now()
			c.now = func() time.Time { return noon.Add(time.Since(began)) }
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				h.ServeHTTP(&listener{ResponseRecorder: httptest.NewRecorder()}, httptest.NewRequestWithContext(ctx, http.MethodGet, livePath+"?at="+base, nil))
			}()
			time.Sleep(30 * time.Second)
			cancel()
			<-ended
			asked := 0
			api.mu.Lock() // of a call that was cut off it may not have heard yet
			defer api.mu.Unlock()
			for _, call := range api.calls {
				if call == "GET /api/v1/subscriptions" {
					asked++
				}
			}
			testkit.That(t, asked <= most && asked > most/2, "of %d subscriptions it asked %d times in 30 s", n, asked)
		})
	}
}

// V4, R2: of ten thousand subscriptions a page has a hundred rows, and asks how some of them do; the pages have
// each of them once, under its topic or as a hub's.
func TestTenThousandSubscriptions(t *testing.T) {
	answers, list := fixed(), make([]admin.Subscription, 10_000)
	for i := range list {
		list[i] = admin.Subscription{Name: "company-" + strconv.Itoa(i), Topic: "alarms", State: "active", Endpoint: "https://hooks.example/"}
		if i < 150 {
			list[i].Topic, list[i].SourceHub = "", "sensors"
		}
	}
	answers["GET /api/v1/subscriptions"] = map[string]any{"subscriptions": list}
	_, api, h := newFixture(answers)
	for _, path := range []string{"topics", "topics/alarms", "hubs/sensors/subscriptions"} {
		w := get(h, base+path)
		testkit.Equal(t, w.Code, http.StatusOK, path)
		testkit.That(t, w.Body.Len() < 200_000, "%s has %d bytes", path, w.Body.Len())
		testkit.Equal(t, strings.Count(w.Body.String(), `<span class="named">`), rowsOfPage, "rows of "+path)
		testkit.That(t, strings.Contains(w.Body.String(), "1 to 100 of 10,000"), "%s does not say how many there are", path)
		asked := 0
		for _, call := range api.calls {
			if strings.HasPrefix(call, "GET /api/v1/subscriptions/") {
				asked++
			}
		}
		testkit.That(t, asked <= subscriptionsAsked, "%s asks of %d subscriptions", path, asked)
		testkit.That(t, !strings.Contains(get(h, base+path+"?page=99").Body.String(), ">After<"), "%s has no end", path)
		api.calls = nil
	}
	border := get(h, base+"topics?page=98").Body.String()
	for _, says := range []string{">company-9999<", ">company-0<", ">company-49<", "<h2>Subscriptions of hubs</h2>", ">Before<", ">After<"} {
		testkit.That(t, strings.Contains(border, says), "where topics end and hubs begin there is no %s", says)
	}
	testkit.That(t, !strings.Contains(get(h, base+"topics?page=99").Body.String(), "No topic yet"), "a page of hubs alone says that there is no topic")
}
