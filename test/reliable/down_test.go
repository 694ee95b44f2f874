//go:build linux

package reliable

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/triage"
	"golang.org/x/net/html"

	"github.com/eventyard/eventyard/internal/testkit"
)

// threshold is that of the breaker: more failures than these open the circuit.
const threshold = 20

// askDown has something that the function needs go away in mid-load: the circuit opens for all
// instances, nothing more is put away and nothing moves, a mail comes, and its link resumes
// everything where it stood. // F5, F6, F7
func askDown(t *testing.T, y *yard, mail *mailServer, p pace) {
	r := newTrial(t, y, fmt.Sprintf("down-%d", p.rate), partitions)
	down := startService(t)
	stop := r.fleet(duty{MaxBatch: 100, Retries: 1, Delay: 20 * time.Millisecond, Failures: threshold, Within: 10 * time.Second, Downstream: down.addr})
	r.waitForShares("w1", "w2", "w3") // one that came later would see the circuit open later, too
	var loading sync.WaitGroup
	loading.Go(func() { r.load(p.rate, p.lasting, fine) })
	defer loading.Wait()
	r.waitForProgress()
	down.stop()
	r.waitForOpen()
	open := r.standstill(mail)
	down.start()
	open.pressed = r.resume(open.link)
	loading.Wait()
	r.settle(nothing)
	r.stopAndLock(open.link, stop)
	v := r.judge()
	r.wantOnce(v)
	r.judgeOpen(v, open)
}

// waitForProgress lets the function do something of each partition before there is trouble.
func (r *trial) waitForProgress() {
	r.t.Helper()
	until(r.t, "every partition to be on its way", func() (bool, string) {
		checkpoints, err := r.store.Checkpoints(r.t.Context(), r.group)
		if err != nil {
			return false, err.Error()
		}
		return len(checkpoints) == len(r.sent), fmt.Sprintf("%d partitions", len(checkpoints))
	})
}

// seen are the moments at which instances saw a state of the circuit for the first time.
func (r *trial) seen(state breaker.State) map[string]int64 {
	first := map[string]int64{}
	for _, e := range r.notes() {
		if e.what == "circuit" && strings.HasPrefix(e.rest, string(state)+" ") && first[e.worker] == 0 {
			first[e.worker] = e.at
		}
	}
	return first
}

// waitForOpen waits until all instances know that the circuit is open; they learn it together.
// F5
func (r *trial) waitForOpen() {
	r.t.Helper()
	until(r.t, "an open circuit in all instances", func() (bool, string) {
		seen := r.seen(breaker.Open)
		return len(seen) == instances, fmt.Sprintf("%d instances, circuit %+v", len(seen), r.circuit().Record)
	})
	moments := slices.Sorted(maps.Values(r.seen(breaker.Open)))
	apart := since(moments[len(moments)-1], moments[0])
	r.t.Logf("%s: all instances saw the circuit open within %v", r.name, apart)
	if apart > 5*time.Second {
		r.t.Errorf("instances saw the circuit open %v apart", apart)
	}
}

// opened is what was found while the circuit was open.
type opened struct {
	link        string
	incident    string
	checkpoints map[string]int64
	poisoned    int
	pressed     int64 // when the button was, on the machine's clock
}

// standstill looks twice, with mail and events that come in between: nothing has moved. // F5, F6
func (r *trial) standstill(mail *mailServer) opened {
	r.t.Helper()
	r.waitForQuiet()
	o := opened{incident: r.circuit().Record.Incident}
	o.checkpoints = r.yard.position(r.t, r.name, groupName).checkpoints()
	o.poisoned = len(r.poisonEvents())
	until(r.t, "a mail with a link", func() (bool, string) {
		var subjects []string
		o.link, subjects = mail.find(r.t, r.name)
		return o.link != "", fmt.Sprintf("%d mails: %q", len(subjects), subjects)
	})
	r.fill(5, fine)
	form := r.openLink(o.link)
	if form == nil {
		r.t.Fatal("the link shows no form")
	}
	if s := r.circuit().Record; s.State != breaker.Open || s.Incident != o.incident {
		r.t.Errorf("after the link was opened, and nothing pressed, the circuit is %+v", s)
	}
	if again := r.yard.position(r.t, r.name, groupName).checkpoints(); !maps.Equal(again, o.checkpoints) {
		r.t.Errorf("checkpoints moved while the circuit was open: %v, then %v", o.checkpoints, again)
	}
	if again := len(r.poisonEvents()); again != o.poisoned {
		r.t.Errorf("%d events were put away before the circuit was open, and %d after", o.poisoned, again-o.poisoned)
	}
	if most := instances*threshold + partitions; o.poisoned > most {
		r.t.Errorf("%d events were put away before the circuit opened", o.poisoned)
	}
	return o
}

// waitForQuiet waits until every call that was under way has ended, and what became of it is
// stored: those may still have been entitled to put an event away.
func (r *trial) waitForQuiet() {
	r.t.Helper()
	began := now()
	until(r.t, "all calls to end", func() (bool, string) {
		under, last := map[string]entry{}, int64(0)
		for _, e := range r.notes() {
			last = max(last, e.at)
			switch e.what {
			case "call":
				under[e.worker+e.partition] = e
			case "ok", "fail", "panic":
				delete(under, e.worker+e.partition)
			}
		}
		quiet, putting := since(now(), max(began, last)), r.beingPutAway()
		return len(under) == 0 && quiet > time.Second && putting == 0, fmt.Sprintf("%v after the last note: %v, %d put-aways", quiet, under, putting)
	})
}

// beingPutAway counts the partitions that have an event on its way to the poison hub.
func (r *trial) beingPutAway() (n int) {
	r.t.Helper()
	entries, err := r.store.Entries(r.t.Context(), r.group, "work/"+r.name+"/")
	testkit.Must(r.t, err)
	for _, f := range entries {
		work, err := triage.DecodeWork(f.Value)
		testkit.Must(r.t, err)
		if work.Intent != nil {
			n++
		}
	}
	return n
}

// resume presses the button of the page that the link leads to. // F6, F7
func (r *trial) resume(link string) (pressed int64) {
	r.t.Helper()
	form := r.openLink(link)
	if form == nil {
		r.t.Fatal("the link shows no form")
	}
	pressed = now()
	if status, page := form.press(r.t); status >= 400 {
		r.t.Fatalf("pressing the button answered %d:\n%s", status, page)
	}
	if shown := r.yard.cli(r.t, "circuit", "show", r.name, "-o", "json"); !strings.Contains(shown, `"state": "closed"`) {
		r.t.Errorf("after the button was pressed the circuit is %s", shown)
	}
	return pressed
}

// stopAndLock ends the fleet, and tries the link once more on a circuit that an operator has
// opened: it was good for one incident. // F6
func (r *trial) stopAndLock(link string, stop func()) {
	r.t.Helper()
	stop()
	form := r.openLink(link)
	r.yard.cli(r.t, "circuit", "open", r.name)
	if form == nil {
		form = &button{action: link, values: url.Values{}}
	}
	form.press(r.t)
	if s := r.circuit().Record; s.State != breaker.Held {
		r.t.Errorf("after an old link was used on a circuit that an operator holds, it is %+v", s)
	}
}

// judgeOpen looks at the time between opening and closing, and at where work went on. // F5, F7
func (r *trial) judgeOpen(v verdict, o opened) {
	r.t.Helper()
	if len(v.poisoned) != o.poisoned {
		r.t.Errorf("%d events were put away before the circuit was open, and %d in the end", o.poisoned, len(v.poisoned))
	}
	r.t.Logf("%s: %d events were put away before the circuit opened", r.name, o.poisoned)
	open := r.seen(breaker.Open)
	next, resumed := r.undone(v, o.pressed), map[string]entry{}
	for _, e := range r.notes() {
		if e.what != "call" {
			continue
		}
		if e.at > open[e.worker]+int64(time.Second) && e.at < o.pressed {
			r.t.Errorf("%v began while the circuit was open", e)
		}
		if first, ok := resumed[e.partition]; e.at >= o.pressed && (!ok || e.at < first.at) {
			resumed[e.partition] = e
		}
	}
	for i, want := range next {
		if e, ok := resumed[id(i)]; !ok || e.events[0] != want {
			r.t.Errorf("partition %d went on with %v, not with event %d", i, e, want)
		}
	}
}

// undone are the first events that were neither done nor put away at a time, by partition.
func (r *trial) undone(v verdict, at int64) []int64 {
	settled := map[string]map[int64]bool{}
	for i := range r.sent {
		settled[id(i)] = map[int64]bool{}
	}
	for partition, all := range sequences(v.poisoned) {
		for _, n := range all {
			settled[partition][n] = true
		}
	}
	for _, e := range r.notes() {
		if e.what == "ok" && e.at < at {
			for _, n := range e.events {
				settled[e.partition][n] = true
			}
		}
	}
	first := make([]int64, len(r.sent))
	for i := range first {
		for settled[id(i)][first[i]] {
			first[i]++
		}
	}
	return first
}

// button is the form of a page.
type button struct {
	action string
	values url.Values
}

// openLink gets a page as a browser does, and gives its form; nil: it has none.
func (r *trial) openLink(link string) *button {
	r.t.Helper()
	response, err := http.Get(link)
	testkit.Must(r.t, err)
	defer response.Body.Close()
	page, err := html.Parse(response.Body)
	testkit.Must(r.t, err)
	base, err := url.Parse(link)
	testkit.Must(r.t, err)
	return findForm(page, base)
}

// findForm gives the form that posts.
func findForm(page *html.Node, base *url.URL) *button {
	for n := range page.Descendants() {
		if n.Type != html.ElementNode || n.Data != "form" || !strings.EqualFold(attribute(n, "method"), "post") {
			continue
		}
		action, err := base.Parse(attribute(n, "action"))
		if err != nil {
			return nil
		}
		b := &button{action: action.String(), values: url.Values{}}
		for field := range n.Descendants() {
			if name := attribute(field, "name"); name != "" {
				b.values.Set(name, attribute(field, "value"))
			}
		}
		return b
	}
	return nil
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func (b *button) press(t *testing.T) (status int, page string) {
	t.Helper()
	response, err := http.PostForm(b.action, b.values)
	testkit.Must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	testkit.Must(t, err)
	return response.StatusCode, string(text)
}

// service is what the function depends on. It answers everybody who connects, while it runs.
type service struct {
	t        *testing.T
	addr     string
	listener net.Listener
	serving  sync.WaitGroup
}

func startService(t *testing.T) *service {
	t.Helper()
	s := &service{t: t, addr: "127.0.0.1:0"}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *service) start() {
	s.t.Helper()
	until(s.t, "the service to start", func() (bool, string) {
		listener, err := net.Listen("tcp", s.addr)
		if err != nil {
			return false, err.Error()
		}
		s.listener, s.addr = listener, listener.Addr().String()
		return true, ""
	})
	s.serving.Go(func() { serve(s.listener) })
}

func serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte("."))
		conn.Close()
	}
}

func (s *service) stop() {
	s.listener.Close()
	s.serving.Wait()
}
