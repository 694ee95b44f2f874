package v1

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/testkit"
)

// Whatever a request started has ended with it.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// H4: reading begins where it is asked to.
func TestReadFromAnyPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("orders", 2)
		y.send("orders", "0", "a", "b")
		time.Sleep(time.Minute)
		middle := time.Now()
		y.send("orders", "0", "c")
		y.send("orders", "0", "d")

		for _, tt := range []struct {
			what, from string
			want       string
			next       int64
		}{
			{"from the earliest by default", "", "a b c d", 4},
			{"from the earliest", "earliest", "a b c d", 4},
			{"from the latest", "latest", "", 4},
			{"from a number, inclusive", "1", "b c d", 4},
			{"from a number, exclusive", "after:1", "c d", 4},
			{"after the last one", "after:3", "", 4},
			{"from the number to come", "4", "", 4},
			{"from a time", middle.UTC().Format(time.RFC3339), "c d", 4},
			{"from a time in another zone", middle.In(time.FixedZone("", 7200)).Format(time.RFC3339), "c d", 4},
			{"from a time whose plus sign was not escaped", "2000-01-01T00:00:00 02:00", "a b c d", 4},
			{"from milliseconds", fmt.Sprintf("time:%d", middle.UnixMilli()), "c d", 4},
			{"from a time long ago", "1999-01-01T00:00:00Z", "a b c d", 4},
			{"from a time to come", middle.Add(time.Hour).UTC().Format(time.RFC3339), "", 4},
			{"from the id of a tail", "0:2", "c d", 4},
		} {
			page := y.page("orders", "0", "from="+strings.NewReplacer("+", "%2B", " ", "+").Replace(tt.from))
			if texts(page.Events) != tt.want || page.Next != tt.next {
				t.Errorf("%s: read %q, next %d; want %q, next %d", tt.what, texts(page.Events), page.Next, tt.want, tt.next)
			}
		}
	})
}

// H4: what is no position, or not one of this partition, is refused.
func TestReadRefusals(t *testing.T) {
	tests := []struct {
		what, path string
		status     int
		kind       string
	}{
		{"a number past the end", "/partitions/0/events?from=5", 416, "position-past-end"},
		{"after a number past the end", "/partitions/0/events?from=after:4", 416, "position-past-end"},
		{"a number below zero", "/partitions/0/events?from=-1", 400, "bad-request"},
		{"a word that is none", "/partitions/0/events?from=yesterday", 400, "bad-request"},
		{"after a word", "/partitions/0/events?from=after:x", 400, "bad-request"},
		{"a time that is none", "/partitions/0/events?from=time:x", 400, "bad-request"},
		{"a position of another partition", "/partitions/0/events?from=1:0", 400, "bad-request"},
		{"no events at most", "/partitions/0/events?max=0", 400, "bad-request"},
		{"a maximum that is none", "/partitions/0/events?max=many", 400, "bad-request"},
		{"a wait below zero", "/partitions/0/events?wait=-1s", 400, "bad-request"},
		{"a wait that is none", "/partitions/0/events?wait=long", 400, "bad-request"},
		{"a partition that is not there", "/partitions/2/events", 404, "not-found"},
		{"a group that is not there", "/partitions/0/events?group=nobody", 404, "not-found"},
		{"all: a partition that is not there", "/events?partition=0,2", 404, "not-found"},
		{"all: a partition twice", "/events?partition=0,0", 400, "bad-request"},
		{"all: more partitions than there are", "/events?partition=0,1,2", 400, "bad-request"},
		{"all: a group that is not there", "/events?group=nobody", 404, "not-found"},
		{"all: a number for several partitions", "/events?from=1", 400, "bad-request"},
		{"all: a position of a partition not read", "/events?from=0:1,1:0&partition=0", 400, "bad-request"},
		{"all: a position with a partition twice", "/events?from=0:1,0:2", 400, "bad-request"},
		{"all: a position past the end", "/events?from=0:9,1:0", 416, "position-past-end"},
		{"all: a count of nothing", "/events?count=0", 400, "bad-request"},
		{"all: neither yes nor no", "/events?follow=maybe", 400, "bad-request"},
		{"tail: a position past the end", "/events?from=0:9&follow=true", 416, "position-past-end"},
		{"tail: a partition that is not there", "/events?partition=2&follow=1", 404, "not-found"},
		{"tail: a group that is not there", "/events?group=nobody&follow=true", 404, "not-found"},
	}
	y := newYard(t)
	y.hub("orders", 2)
	y.send("orders", "0", "a", "b", "c", "d")
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			y.in(t).refused(tt.status, tt.kind, "GET", "/api/v1/hubs/orders"+tt.path, nil)
		})
	}
	y.refused(404, "not-found", "GET", "/api/v1/hubs/nowhere/events", nil)
	for _, path := range []string{"/events", "/partitions/0/events"} {
		testkit.Equal(t, y.do("HEAD", "/api/v1/hubs/orders"+path, nil).status, 405,
			"HEAD of %s answered", path)
	}
}

// H4: pages follow each other without gap or repeat, whatever their size, and a reader
// may go back: reading removes nothing.
func TestReadPageByPage(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	var want []string
	for i := range 25 { // batches of 1 to 5, so that pages end inside of batches
		var batch []string
		for j := range i%5 + 1 {
			batch = append(batch, fmt.Sprintf("%d-%d", i, j))
		}
		y.send("orders", "0", batch...)
		want = append(want, batch...)
	}
	for _, size := range []int{1, 3, 7, 1000} {
		var got []string
		for next := int64(0); ; {
			page := y.page("orders", "0", fmt.Sprintf("from=%d&max=%d", next, size))
			if len(page.Events) > size {
				t.Fatalf("a page of %d has %d events", size, len(page.Events))
			}
			if len(page.Events) == 0 {
				break
			}
			got = append(got, texts(page.Events))
			next = page.Next
		}
		testkit.Equal(t, strings.Join(got, " "), strings.Join(want, " "), "by %d: read %q", size, got)
	}
}

// A page is bounded by its size in memory too, and an event larger than that goes alone.
func TestPageIsBounded(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	for range 12 {
		y.send("orders", "0", strings.Repeat("x", 1000<<10))
	}
	page := y.page("orders", "0", "max=1000")
	if n := len(page.Events); n < 4 || n > 6 {
		t.Errorf("a page holds %d events of 1 MB", n)
	}
	small := make([]string, 1500)
	for i := range small {
		small[i] = "x"
	}
	y.send("orders", "0", small...)
	testkit.Equal(t, len(y.page("orders", "0", "from=12&max=5000").Events), maxPageEvents,
		"a page of at most 5000 holds")
	testkit.Equal(t, len(y.page("orders", "0", "from=12").Events), defaultPageEvents,
		"a page holds … events by default")
}

// H4: at the end a reader waits, and has the event as soon as it is there.
func TestLongPollWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("orders", 1)
		y.send("orders", "0", "old")
		began := time.Now()
		got := make(chan shownPage)
		go func() { got <- y.page("orders", "0", "from=latest&wait=30s") }()
		synctest.Wait()
		time.Sleep(7 * time.Second)
		y.send("orders", "0", "new", "newer")
		page := <-got
		testkit.Equal(t, texts(page.Events), "new newer", "read %q, next %d", texts(page.Events), page.Next)
		testkit.Equal(t, page.Next, 3, "read %q, next %d", texts(page.Events), page.Next)
		testkit.Equal(t, time.Since(began), 7*time.Second, "waited")
	})
}

// H4: a wait ends in time, with nothing, and at most after a minute.
func TestLongPollEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("orders", 1)
		for _, tt := range []struct {
			wait string
			want time.Duration
		}{{"", 0}, {"0s", 0}, {"250ms", 250 * time.Millisecond}, {"20", 20 * time.Second}, {"1h", time.Minute}} {
			began := time.Now()
			page := y.page("orders", "0", "wait="+tt.wait)
			if took := time.Since(began); took != tt.want || len(page.Events) != 0 || page.Next != 0 {
				t.Errorf("wait=%s: %d events after %v", tt.wait, len(page.Events), took)
			}
		}
	})
}

// A yard that stops lets waiting readers go with what they have, at once.
func TestLongPollEndsWhenStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("orders", 1)
		got := make(chan shownPage)
		go func() { got <- y.page("orders", "0", "wait=1m") }()
		synctest.Wait()
		began := time.Now()
		y.stopping()
		if page := <-got; len(page.Events) != 0 || page.Next != 0 {
			t.Errorf("read %+v", page)
		}
		testkit.Equal(t, time.Since(began), 0, "it took")
	})
}

// A hub deleted under a waiting reader is told, and not taken for silence.
func TestLongPollEndsWhenTheHubIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("orders", 1)
		got := make(chan reply)
		go func() { got <- y.do("GET", "/api/v1/hubs/orders/partitions/0/events?wait=1m", nil) }()
		synctest.Wait()
		testkit.Must(t, y.broker.DeleteHub(t.Context(), "orders"))
		if r := <-got; r.status != http.StatusGone {
			t.Errorf("answered %d %s", r.status, r.body)
		}
	})
}

// A reader who leaves takes the waiting along.
func TestLongPollEndsWithItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("orders", 1)
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			req, _ := http.NewRequestWithContext(ctx, "GET", "http://localhost/api/v1/hubs/orders/partitions/0/events?wait=1m", nil)
			req.Header.Set("Authorization", y.authorization)
			_, err := y.client.Do(req)
			gone <- err
		}()
		synctest.Wait()
		leave()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		synctest.Wait()
		route := "/api/v1/hubs/{hub}/partitions/{partition}/events"
		testkit.Equal(t, y.counted(route, "GET", "4xx"), 1, "requests ended with their client")
	})
}

// While the yard is stopping, what is short is still answered; nothing long begins.
func TestReadingWhileStopping(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	y.send("orders", "0", "a")
	y.stopping()
	testkit.Equal(t, texts(y.page("orders", "0", "wait=1m").Events), "a", "read")
	if page := y.page("orders", "0", "from=1&wait=1m"); len(page.Events) != 0 {
		t.Errorf("read %+v", page)
	}
	y.refused(503, "stopping", "GET", "/api/v1/hubs/orders/events", nil)
	y.refused(503, "stopping", "GET", "/api/v1/hubs/orders/events?follow=true", nil)
	y.send("orders", "0", "b")
}

// H4: what is read over HTTP is counted for the group in whose name it is read: by page, as lines and
// in a tail, each event once.
func TestReadingIsCounted(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	testkit.Must(t, testkit.Err(y.broker.CreateGroup(t.Context(), "orders", "billing")))
	y.send("orders", "0", "a", "b", "c")
	count := func(group string) float64 { return testutil.ToFloat64(y.broker.Reads("orders", group)) }
	y.page("orders", "0", "max=2")
	testkit.Equal(t, count(broker.DefaultGroup), 2, "events of a page")
	y.want(http.StatusOK, "GET", "/api/v1/hubs/orders/events?group=billing&count=2", nil)
	testkit.Equal(t, count("billing"), 2, "with those of lines")
	y.want(http.StatusOK, "GET", "/api/v1/hubs/orders/events?group=billing&follow=true&from=earliest&count=3", nil)
	testkit.Equal(t, count("billing"), 5, "with those of a tail")
	testkit.Equal(t, count(broker.DefaultGroup), 2, "events of the other group")
}
