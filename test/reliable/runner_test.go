//go:build linux

package reliable

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// TestYardRunsAFunctionAndDies has the yard itself call a program over HTTP which cannot handle one
// event, and kills it with SIGKILL in the midst of a retry, of a put-away, and of the rest: nothing
// is lost, all is in order, and the event is put away once. // F1, F2, F3, F4
func TestYardRunsAFunctionAndDies(t *testing.T) {
	t.Parallel()
	y := startYard(t, true, "")
	r := newTrial(t, y, "web", 2)
	r.fill(200, breaking(map[int][]int{0: {31}}))
	w := startWebhook(t, r)
	y.cli(t, "function", "create", r.name, "--hub", r.name, "--group", groupName, "--endpoint", w.server.URL, "--batch", "20",
		"--retries", "3", "--retry-delay", "200ms", "--breaker", "100/30s")
	w.waitFor("a second attempt under way", func(e entry) bool { return e.what == "call" && e.attempt == 2 })
	y.killAndStart(t)
	until(t, "the poison event", func() (bool, string) {
		info, err := y.client.Hub(r.poison()).Partition(t.Context(), "0")
		return err == nil && info.Last >= 0, fmt.Sprintf("%+v, %v", info, err)
	})
	y.killAndStart(t)
	w.waitFor("more of the broken partition", func(e entry) bool { return e.what == "ok" && e.partition == "0" && e.events[0] > 31 })
	y.killAndStart(t)
	r.settle(nothing)
	r.extra = w.notes
	v := r.judge()
	v.wantPoisoned(t, map[string][]int64{"0": {31}})
	for _, l := range v.poisoned {
		if reason := fmt.Sprint(l.event.Properties["poison-reason"]); !strings.Contains(reason, "500") {
			t.Errorf("the poison event says %q, and nothing of the status 500", reason)
		}
	}
	t.Logf("%d events were done twice", v.repeats)
}

// webhook is a program that is called over HTTP, and notes what it is asked for.
type webhook struct {
	t        *testing.T
	function string
	server   *httptest.Server

	mu     sync.Mutex
	all    []entry // guarded by mu
	mended bool    // guarded by mu: it handles broken events, too
}

func startWebhook(t *testing.T, r *trial) *webhook {
	w := &webhook{t: t, function: r.name}
	w.server = httptest.NewServer(w)
	t.Cleanup(w.server.Close)
	return w
}

// ServeHTTP refuses every batch with a broken event. What it answers well is done, whether or not
// the answer is heard.
func (w *webhook) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	var events []struct {
		Partition string
		Sequence  string
		Attempt   int
		Data      string
	}
	if err := json.NewDecoder(in.Body).Decode(&events); err != nil || len(events) == 0 {
		http.Error(out, fmt.Sprintf("no batch of events: %v", err), http.StatusTeapot)
		return
	}
	e := entry{worker: "webhook", function: w.function, partition: events[0].Partition, attempt: events[0].Attempt}
	bad := false
	for _, ev := range events {
		n, err := strconv.ParseInt(ev.Sequence, 10, 64)
		if err != nil || ev.Partition != e.partition {
			w.t.Errorf("an event of another place: %+v", ev)
		}
		e.events = append(e.events, n)
		bad = bad || strings.Contains(ev.Data, "broken")
	}
	e.rest = fmt.Sprint(e.events)
	if bad {
		e.rest += " broken"
	}
	w.note(e, "call")
	if bad && !w.isMended() {
		w.note(e, "fail")
		http.Error(out, "this event is broken", http.StatusInternalServerError)
		return
	}
	w.note(e, "ok")
}

func (w *webhook) mend(mended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mended = mended
}

func (w *webhook) isMended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mended
}

func (w *webhook) note(e entry, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.at, e.what = now(), what
	w.all = append(w.all, e)
}

func (w *webhook) notes() []entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]entry(nil), w.all...)
}

func (w *webhook) waitFor(what string, is func(entry) bool) {
	w.t.Helper()
	until(w.t, what, func() (bool, string) {
		all := w.notes()
		for _, e := range all {
			if is(e) {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%d notes, the last of them %v", len(all), all[max(0, len(all)-5):])
	})
}
