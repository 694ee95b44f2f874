//go:build linux

package interop

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// weather is how a receiver behaves, and what has to become of one event because of it.
type weather struct {
	// answer is the receiver's; nil: nobody listens there.
	answer func(w http.ResponseWriter, r *http.Request, d delivered)
	flags  []string
	// outcomes are those of the attempts, in their order, and status that of the last.
	outcomes []string
	status   int
	// waits are the least between the attempts.
	waits []time.Duration
	// reason it is dead-lettered for; empty: it was delivered.
	reason string
	// repeats: a request whose connection broke that was in use before is made once more on a new
	// one, as part of the same attempt.
	repeats bool
}

func always(status int) func(http.ResponseWriter, *http.Request, delivered) {
	return func(w http.ResponseWriter, _ *http.Request, _ delivered) { w.WriteHeader(status) }
}

const (
	usedUp    = "MaxDeliveryAttemptsExceeded"
	tooOld    = "TimeToLiveExceeded"
	notWanted = "UndeliverableDueToClientError"
)

// metadata is where clouds keep what no webhook may see.
const metadata = "http://169.254.169.254/latest/meta-data/"

// weathers are all kinds. Requests that the receiver does not end are counted in open.
func weathers(elsewhere string, open *atomic.Int32) map[string]weather {
	const ms = time.Millisecond
	return map[string]weather{
		"well":                  {answer: always(200), outcomes: []string{"Delivered"}, status: 200},
		"created":               {answer: always(201), outcomes: []string{"Delivered"}, status: 201},
		"accepted":              {answer: always(202), outcomes: []string{"Delivered"}, status: 202},
		"not-authoritative":     {answer: always(203), outcomes: []string{"Delivered"}, status: 203},
		"no-content":            {answer: always(204), outcomes: []string{"Delivered"}, status: 204},
		"streaming-for-ever":    {answer: streaming(200, open), outcomes: []string{"Delivered"}, status: 200},
		"well-the-third-time":   {answer: fails(2, 500), outcomes: []string{"GenericError", "GenericError", "Delivered"}, status: 200, waits: []time.Duration{200 * ms, 500 * ms}},
		"ill":                   {answer: always(503), outcomes: []string{"Busy", "Busy", "Busy"}, status: 503, waits: []time.Duration{200 * ms, 500 * ms}, reason: usedUp},
		"ill-and-streaming":     {answer: streaming(503, open), outcomes: []string{"Busy", "Busy", "Busy"}, status: 503, waits: []time.Duration{200 * ms, 500 * ms}, reason: usedUp},
		"partial-content":       {answer: always(206), outcomes: []string{"GenericError", "GenericError", "GenericError"}, status: 206, waits: []time.Duration{200 * ms, 500 * ms}, reason: usedUp},
		"asking-for-more-time":  {answer: busyFor("1"), flags: []string{"--attempts", "2"}, outcomes: []string{"Busy", "Busy"}, status: 429, waits: []time.Duration{time.Second}, reason: usedUp},
		"ill-with-a-least-wait": {answer: always(503), flags: []string{"--attempts", "2", "--retry-floor", "503=1s"}, outcomes: []string{"Busy", "Busy"}, status: 503, waits: []time.Duration{time.Second}, reason: usedUp},
		"not-found":             {answer: always(404), outcomes: []string{"NotFound"}, status: 404, reason: notWanted},
		"bad-request":           {answer: always(400), outcomes: []string{"BadRequest"}, status: 400, reason: notWanted},
		"unauthorized":          {answer: always(401), outcomes: []string{"Unauthorized"}, status: 401, reason: notWanted},
		"forbidden":             {answer: always(403), outcomes: []string{"Forbidden"}, status: 403, reason: notWanted},
		"too-large":             {answer: always(413), outcomes: []string{"PayloadTooLarge"}, status: 413, reason: notWanted},
		"not-found-for-a-while": {answer: fails(1, 404), flags: []string{"--no-retry", "400"}, outcomes: []string{"NotFound", "Delivered"}, status: 200, waits: []time.Duration{200 * ms}},
		"hanging":               {answer: hanging(open), flags: []string{"--attempts", "2", "--timeout", "300ms"}, outcomes: []string{"TimedOut", "TimedOut"}, waits: []time.Duration{200 * ms}, reason: usedUp},
		"resetting":             {answer: resetting, flags: []string{"--attempts", "2"}, outcomes: []string{"SocketError", "SocketError"}, waits: []time.Duration{200 * ms}, reason: usedUp, repeats: true},
		"gone":                  {flags: []string{"--attempts", "2", "--skip-validation"}, outcomes: []string{"SocketError", "SocketError"}, waits: []time.Duration{200 * ms}, reason: usedUp},
		"ageing":                {answer: always(500), flags: []string{"--ttl", "3s", "--retry-schedule", "500ms,4s"}, outcomes: []string{"GenericError", "GenericError"}, status: 500, waits: []time.Duration{500 * ms}, reason: tooOld},
		"sending-to-a-cloud":    {answer: redirecting(metadata), flags: []string{"--attempts", "2"}, outcomes: []string{"GenericError", "GenericError"}, status: 302, waits: []time.Duration{200 * ms}, reason: usedUp},
		"sending-elsewhere":     {answer: redirecting(elsewhere), flags: []string{"--attempts", "2"}, outcomes: []string{"GenericError", "GenericError"}, status: 302, waits: []time.Duration{200 * ms}, reason: usedUp},
	}
}

// fails answers so many times with a status, then well.
func fails(times int32, status int) func(http.ResponseWriter, *http.Request, delivered) {
	var n atomic.Int32
	return func(w http.ResponseWriter, _ *http.Request, _ delivered) {
		if n.Add(1) <= times {
			w.WriteHeader(status)
		}
	}
}

func busyFor(seconds string) func(http.ResponseWriter, *http.Request, delivered) {
	return func(w http.ResponseWriter, _ *http.Request, _ delivered) {
		w.Header().Set("Retry-After", seconds)
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

func redirecting(to string) func(http.ResponseWriter, *http.Request, delivered) {
	return func(w http.ResponseWriter, r *http.Request, _ delivered) { http.Redirect(w, r, to, http.StatusFound) }
}

// streaming answers without ever coming to an end, until the yard has enough of it.
func streaming(status int, open *atomic.Int32) func(http.ResponseWriter, *http.Request, delivered) {
	page := []byte(strings.Repeat("and so on, ", 1000))
	return func(w http.ResponseWriter, _ *http.Request, _ delivered) {
		open.Add(1)
		defer open.Add(-1)
		w.WriteHeader(status)
		for {
			if _, err := w.Write(page); err != nil {
				return
			}
		}
	}
}

// hanging never answers.
func hanging(open *atomic.Int32) func(http.ResponseWriter, *http.Request, delivered) {
	return func(_ http.ResponseWriter, r *http.Request, _ delivered) {
		open.Add(1)
		defer open.Add(-1)
		<-r.Context().Done()
	}
}

// resetting breaks the connection without a word.
func resetting(w http.ResponseWriter, _ *http.Request, _ delivered) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
}

// TestGridWeather has one event delivered to receivers of every kind, in real time, with a schedule
// of less than a second, and looks what the yard says of it. // G3, G4, G5, G6, G8
func TestGridWeather(t *testing.T) {
	t.Parallel()
	// Requests that time out go on for a while, here a short one.
	y := startGrid(t, "grid: {jitterPercent: 0, deadDelay: 0s, lateWindow: 2s}")
	elsewhere := newHook(t, nil)
	var open atomic.Int32
	all := weathers(elsewhere.URL, &open)
	orders := y.topic(t, "orders", "eventgrid")
	hooks := map[string]*hook{}
	for name, w := range all {
		hooks[name] = newHook(t, w.answer)
		at := hooks[name].URL
		if w.answer == nil {
			at = "http://127.0.0.1:" + ownPort(t)
		}
		y.subscribe(t, "orders", name, at, append([]string{"--attempts", "3", "--retry-schedule", "200ms,500ms", "--dead-letter", "yard"}, w.flags...)...)
	}
	y.subscribe(t, "orders", "nowhere-to-put-it", answering(t, 404).URL)
	y.publish(t, orders, "application/json", gridEvents("1"))
	for name, w := range all {
		t.Run(name, func(t *testing.T) { w.check(t, y, name, hooks[name]) })
	}
	t.Run("nowhere to put it", func(t *testing.T) {
		y.eventuallyShown(t, "nowhere-to-put-it", func(s admin.Subscription) bool {
			return s.Stats.Dropped[notWanted] == 1 && s.DeadLetters.Kept == 0 && s.Stats.Requests == 1
		})
	})
	eventually(t, func() string {
		if n := open.Load(); n > 0 {
			return fmt.Sprintf("%d requests go on that have no end", n)
		}
		return ""
	})
	if n := len(elsewhere.all()); n > 0 {
		t.Errorf("a redirect was followed: %d requests came", n)
	}
}

func (w weather) check(t *testing.T, y *yard, name string, h *hook) {
	shown := y.eventuallyShown(t, name, func(s admin.Subscription) bool {
		// A dead letter is kept a moment before it is counted.
		return s.Stats.Delivered+s.DeadLetters.Kept == 1 && s.Stats.DeadLettered[w.reason] == s.DeadLetters.Kept &&
			s.Stats.InFlight == 0 && len(s.Stats.Waiting) == 0 && s.Stats.Queued == 0
	})
	w.checkAttempts(t, y.attempts(t, name))
	if shown.Stats.Requests != int64(len(w.outcomes)) || shown.Stats.Matched != 1 || len(shown.Stats.Dropped) > 0 {
		t.Errorf("the counts are %+v", *shown.Stats)
	}
	failed := map[string]int64{}
	for _, outcome := range w.outcomes {
		if outcome != "Delivered" {
			failed[outcome]++
		}
	}
	testkit.Equal(t, fmt.Sprint(shown.Stats.Failed), fmt.Sprint(failed),
		"failed")
	if w.answer != nil {
		w.checkReceiver(t, h.all())
	}
	w.checkDead(t, y.dead(t, name), shown)
}

func (w weather) checkAttempts(t *testing.T, made []admin.Attempt) {
	t.Helper()
	var outcomes []string
	var over time.Time // when the attempt before was
	for i, a := range made {
		outcomes = append(outcomes, a.Outcome)
		if a.Attempt != i+1 || a.EventID != "1" || a.Events != 1 {
			t.Errorf("attempt %d is %+v", i+1, a)
		}
		if last := i == len(made)-1; last && (a.Status != w.status || a.NextTry != nil && w.reason != tooOld) || !last && a.NextTry == nil {
			t.Errorf("attempt %d is %+v", i+1, a)
		}
		took, err := time.ParseDuration(a.Took)
		if err != nil || a.Outcome == "TimedOut" && took < 300*time.Millisecond {
			t.Errorf("attempt %d took %s: %v", i+1, a.Took, err)
		}
		if i > 0 && i <= len(w.waits) && a.Time.Sub(over) < w.waits[i-1] {
			t.Errorf("attempt %d began %s after the one before was over; it was to wait %s", i+1, a.Time.Sub(over), w.waits[i-1])
		}
		over = a.Time.Add(took - 5*time.Millisecond) // it is rounded
		if a.Status == 0 && a.Error == "" {
			t.Errorf("attempt %d does not say why: %+v", i+1, a)
		}
	}
	if !slices.Equal(outcomes, w.outcomes) {
		t.Errorf("the attempts ended as %q, want %q", outcomes, w.outcomes)
	}
}

// checkReceiver looks at the same attempts from the other side.
func (w weather) checkReceiver(t *testing.T, got []delivered) {
	t.Helper()
	if w.repeats {
		got = slices.CompactFunc(got, func(a, b delivered) bool {
			return a.header.Get("aeg-delivery-count") == b.header.Get("aeg-delivery-count")
		})
	}
	testkit.MustEqual(t, len(got), len(w.outcomes), "requests came")
	for i, d := range got {
		testkit.Equal(t, d.header.Get("aeg-delivery-count"), fmt.Sprint(i),
			"request %d has the delivery count", i+1)
		// One that the yard gave up may have been seen here only after that.
		if i > 0 && w.outcomes[i-1] != "TimedOut" && d.at.Sub(got[i-1].at) < w.waits[i-1] {
			t.Errorf("request %d came %s after the one before; it was to wait %s", i+1, d.at.Sub(got[i-1].at), w.waits[i-1])
		}
	}
}

func (w weather) checkDead(t *testing.T, dead []admin.DeadLetter, shown admin.Subscription) {
	t.Helper()
	if w.reason == "" {
		if len(dead) > 0 {
			t.Errorf("delivered, and a dead letter: %+v", dead)
		}
		return
	}
	if len(dead) != 1 || shown.Stats.DeadLettered[w.reason] != 1 {
		t.Fatalf("dead letters are %+v, counted %v", dead, shown.Stats.DeadLettered)
	}
	d, last := dead[0], w.outcomes[len(w.outcomes)-1]
	if d.EventID != "1" || d.EventType != "order.placed" || d.Reason != w.reason || d.Attempts != len(w.outcomes) || d.Outcome != last || d.Status != w.status ||
		d.LastAttempt == nil || d.LastAttempt.Before(d.Published) || d.Died.Before(*d.LastAttempt) {
		t.Errorf("the dead letter is %+v", d)
	}
	// Time to live is looked at when the next attempt falls due, and not before.
	if least := 4500 * time.Millisecond; w.reason == tooOld && d.Died.Sub(d.Published) < least {
		t.Errorf("it died %s after it was published; its next attempt fell due after %s", d.Died.Sub(d.Published), least)
	}
}

// G7: endpoints that nobody may name are refused, though loopback is allowed here.
func TestGridForbiddenEndpoints(t *testing.T) {
	t.Parallel()
	y := startGrid(t)
	y.topic(t, "orders", "eventgrid")
	for _, at := range []string{metadata, "http://10.0.0.1/", "http://192.168.0.1/", "http://[fd00::1]/", "http://0xa9fea9fe/", "http://2852039166/", "http://[::ffff:169.254.169.254]/", "ftp://127.0.0.1/", "http://168.63.129.16/"} {
		y.refuses(t, "subscription", "create", "spy", "--topic", "orders", "--endpoint", at)
		y.refuses(t, "subscription", "create", "spy", "--topic", "orders", "--endpoint", at, "--skip-validation")
	}
	if said := y.refuses(t, "subscription", "create", "spy", "--topic", "orders", "--endpoint", metadata); !strings.Contains(said, "169.254.169.254") || !strings.Contains(said, "--grid-allow") {
		t.Errorf("without advice: %s", said)
	}
	if all := ask[[]admin.Subscription](t, y, "subscription", "list"); len(all) > 0 {
		t.Errorf("subscribed all the same: %+v", all)
	}
}
