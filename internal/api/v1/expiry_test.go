package v1

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// A tail ends with its token, says so, and can be resumed with another.
func TestTailEndsWhenItsTokenExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("orders", 1)
		y.send("orders", "0", "a")
		began := time.Now()
		f := y.as(signed("orders", 50*time.Second)).follow(t, "/api/v1/hubs/orders/events")
		f.event()
		for range 3 {
			f.message() // heartbeats
		}
		end := f.end()
		if end.Reason != "expired" || end.Resume != "0:1" || !strings.Contains(end.Detail, "expired") {
			t.Errorf("ended with %+v", end)
		}
		testkit.Equal(t, time.Since(began), 50*time.Second, "it ended after")
		y.send("orders", "0", "b")
		f = y.as(signed("orders", time.Minute)).follow(t, "/api/v1/hubs/orders/events?from="+end.Resume)
		if e := f.event(); e.text() != "b" {
			t.Errorf("resumed with %+v", e)
		}
	})
}

// A key has no end, and neither has its tail.
func TestTailOfAKeyGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("orders", 1)
		f := y.follow(t, "/api/v1/hubs/orders/events")
		for range 1000 {
			if got, ok := f.message(); !ok || got.comment == "" {
				t.Fatalf("no heartbeat but %+v", got)
			}
		}
	})
}

// A long poll ends with its token, empty-handed; the next one is refused.
func TestLongPollEndsWhenTheTokenExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("orders", 1)
		y = y.as(signed("", 10*time.Second))
		began := time.Now()
		if page := y.page("orders", "0", "wait=1m"); len(page.Events) != 0 || page.Next != 0 {
			t.Errorf("read %+v", page)
		}
		testkit.Equal(t, time.Since(began), 10*time.Second, "it took")
		y.refused(http.StatusUnauthorized, "expired-token", "GET", "/api/v1/hubs/orders/partitions/0/events?wait=1m", nil)
	})
}
