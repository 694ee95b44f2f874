package functions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/pipe"
)

// program is one that is called over HTTP, inside a bubble. It can be down, and crash.
type program struct {
	answer http.HandlerFunc

	mu       sync.Mutex
	server   *http.Server   // guarded by mu; nil: it does not run
	listener *pipe.Listener // guarded by mu
	hangs    bool           // guarded by mu: connections are neither accepted nor refused
}

func (p *program) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = pipe.NewListener("program")
	p.server = &http.Server{Handler: p.answer, Protocols: new(http.Protocols)}
	p.server.Protocols.SetHTTP1(true)
	p.server.Protocols.SetUnencryptedHTTP2(true)
	go p.server.Serve(p.listener)
}

// crash ends it without a word; calls under way break.
func (p *program) crash() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server != nil {
		p.server.Close()
	}
	p.server = nil
}

func (p *program) setHangs(is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hangs = is
}

func (p *program) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p.mu.Lock()
	running, listener, hangs := p.server != nil, p.listener, p.hangs
	p.mu.Unlock()
	switch {
	case hangs:
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
	case !running:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	return listener.Dial(ctx)
}

// Protocols by which a program is called.
const (
	http1 = "HTTP/1.1"
	http2 = "HTTP/2.0"
)

// withProgram runs a test in a bubble with a program that does not run yet.
func withProgram(t *testing.T, protocol string, partitions int, answer http.HandlerFunc, test func(w *world, p *program, handle Handler)) {
	bubble(t, partitions, func(w *world) {
		p := &program{answer: answer}
		transport := &http.Transport{DialContext: p.dial, Protocols: new(http.Protocols)}
		transport.Protocols.SetHTTP1(protocol == http1)
		transport.Protocols.SetUnencryptedHTTP2(protocol == http2)
		test(w, p, HTTP("http://program/", HTTPConfig{Client: &http.Client{Transport: transport}}))
		p.crash()
		transport.CloseIdleConnections()
	})
}

func fine(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }

// wantAll wants every event of every partition to be done, but those.
func (w *world) wantAll(away ...string) {
	w.t.Helper()
	for _, id := range w.orders.IDs() {
		want := 0
		for _, ev := range w.orders.All(id) {
			if !slices.Contains(away, fmt.Sprintf("%s/%d", id, ev.Sequence)) {
				want++
			}
		}
		testkit.Equal(w.t, len(slices.Compact(slices.Sorted(slices.Values(w.gotDone(id))))), want, "events of partition %s that are done", id)
	}
	w.wantAway(away...)
}

// R7, F4: a program that starts a second too late costs no event, and no operator's time.
func TestAProgramThatStartsTooLateCostsNoEvent(t *testing.T) {
	withProgram(t, http1, 4, fine, func(w *world, p *program, handle Handler) {
		for id := range 4 {
			w.orders.SendN(fmt.Sprint(id), 50)
		}
		b := binding()
		b.MaxBatch, b.Retry, b.Breaker = 10, Fixed(2, 50*time.Millisecond), Breaker{Failures: 100, Within: 30 * time.Second}
		in := w.start("a", handle, b)
		after(time.Second)
		w.wantAway()
		p.start()
		after(10 * time.Second)
		w.wantAll()
		w.wantState("closed")
		in.stop()
	})
}

// R7, F4: while what a function needs is down nothing is put away for it, however long that lasts;
// the breaker counts it.
func TestNoEventIsPutAwayForWhatIsDown(t *testing.T) {
	status := func(code int) func(*program, http.ResponseWriter, *http.Request) {
		return func(_ *program, w http.ResponseWriter, r *http.Request) {
			fine(w, r)
			w.WriteHeader(code)
		}
	}
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for name, c := range map[string]breakdown{
		"nobody listens":                {},
		"the connection takes too long": {hangs: true},
		"502":                           {answer: status(502)},
		"503":                           {answer: status(503)},
		"504":                           {answer: status(504)},
		"503 with a wish": {answer: func(p *program, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "1")
			status(503)(p, w, r)
		}},
		"it hangs up":          {answer: func(*program, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		"it dies, and is back": {answer: func(p *program, _ http.ResponseWriter, _ *http.Request) { p.crash(); p.start() }},
		"it breaks off in its answer": {answer: func(p *program, w http.ResponseWriter, r *http.Request) {
			fine(w, r)
			w.Write([]byte("{"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}},
		"a Go handler":                      {goes: Unavailable(errBad)},
		"a Go handler that reached nothing": {goes: fmt.Errorf("store: %w", Unavailable(refused))},
		"a Go handler with a wish":          {goes: RetryAfter(time.Second, Unavailable(nil))},
	} {
		for _, protocol := range []string{http1, http2} {
			if c.goes == nil || protocol == http1 {
				t.Run(name+" over "+protocol, func(t *testing.T) { c.putsNothingAway(t, protocol) })
			}
		}
	}
}

// breakdown is a way to be down.
type breakdown struct {
	answer func(*program, http.ResponseWriter, *http.Request) // nil: nobody listens
	hangs  bool
	goes   error // of a Go handler; nil: it is the program
}

// putsNothingAway has a program, or a Go handler, be down by it for ten minutes.
func (c breakdown) putsNothingAway(t *testing.T, protocol string) {
	var well atomic.Bool
	withProgram(t, protocol, 2, fine, func(w *world, p *program, handle Handler) {
		p.answer = func(w http.ResponseWriter, r *http.Request) {
			if well.Load() || c.answer == nil {
				fine(w, r)
				return
			}
			c.answer(p, w, r)
		}
		if c.answer != nil {
			p.start()
		}
		p.setHangs(c.hangs)
		if c.goes != nil {
			handle = func(context.Context, *Batch) error {
				if well.Load() {
					return nil
				}
				return c.goes
			}
		}
		w.orders.SendN("0", 20)
		w.orders.SendN("1", 20)
		b := binding()
		b.MaxBatch, b.Retry, b.Timeout, b.Breaker = 8, Fixed(2, 50*time.Millisecond), 5*time.Second, Breaker{Failures: 10, Within: 2 * time.Minute}
		in := w.start("a", handle, b)
		after(10 * time.Minute)
		w.wantAway()
		w.wantState("open")
		if errs := in.Status()[0].Circuit.Errors; len(errs) == 0 {
			t.Errorf("the circuit has no errors to show")
		}
		well.Store(true)
		p.setHangs(false)
		if c.answer == nil {
			p.start()
		}
		testkit.Must(t, in.Resume(w.t.Context(), "bill"))
		after(time.Minute)
		w.wantAll()
		in.stop()
	})
}

// R7, F5: an outage that lasts opens the default circuit, with one partition, too; nothing is put
// away, and a probe closes it when the program is back.
func TestALastingOutageOpensTheDefaultCircuit(t *testing.T) {
	for name, retry := range map[string]Retry{"few": Fixed(2, 50*time.Millisecond), "forever": Fixed(Forever, 10*time.Second)} {
		t.Run(name, func(t *testing.T) {
			withProgram(t, http1, 1, fine, func(w *world, p *program, handle Handler) {
				w.orders.SendN("0", 20)
				b := binding()
				b.Retry, b.Breaker = retry, Breaker{Probe: 10 * time.Second}
				in := w.start("a", handle, b)
				after(25 * time.Second)
				w.wantState("closed")
				after(20 * time.Second)
				testkit.That(t, w.state() != "closed", "the circuit is closed")
				w.wantAway()
				p.start()
				after(time.Minute)
				w.wantState("closed")
				w.wantAll()
				in.stop()
			})
		})
	}
}

// R7, F4: an event that brings its program down is found and put away, since others succeed between
// its attempts; whoever was beside it is not.
func TestTheEventThatBringsItsProgramDownIsPutAway(t *testing.T) {
	for name, c := range map[string]killer{
		"in one partition, among others of its batch":     {1, 20, 300 * time.Millisecond},
		"alone, beside other partitions":                  {3, 1, 300 * time.Millisecond},
		"in a batch, beside other partitions":             {3, 5, time.Second},
		"where the program survives":                      {1, 20, 0},
		"where the program survives, beside partitions":   {4, 1, 0},
		"where the program takes longer than the retries": {2, 10, 5 * time.Second},
	} {
		for _, protocol := range []string{http1, http2} {
			t.Run(name+" over "+protocol, func(t *testing.T) { c.isFound(t, protocol) })
		}
	}
}

// killer is an event that its program does not survive, or the connection by which it came, and how
// it is called.
type killer struct {
	partitions, batch int
	restart           time.Duration // 0: only the connection breaks
}

func (c killer) isFound(t *testing.T, protocol string) {
	var p *program
	answer := func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), "deadly") {
			return
		}
		if c.restart > 0 {
			p.crash()
			time.AfterFunc(c.restart, p.start)
		}
		panic(http.ErrAbortHandler)
	}
	withProgram(t, protocol, c.partitions, answer, func(w *world, program *program, handle Handler) {
		p = program
		p.start()
		b := binding()
		b.MaxBatch, b.Retry, b.Breaker = c.batch, Fixed(2, 50*time.Millisecond), Breaker{Off: true}
		in := w.start("a", handle, b)
		after(time.Second)
		w.orders.Send("0", "a", "b", "c", "deadly", "d", "e", "f", "g", "h", "i")
		for i := range 300 { // the others have something to do all the while
			for id := 1; id < c.partitions; id++ {
				w.orders.Send(fmt.Sprint(id), fmt.Sprint("event ", i))
			}
			after(200 * time.Millisecond)
		}
		after(20 * time.Minute) // each crash takes its time, and who comes first after it is chance
		w.wantAll("0/3")
		in.stop()
		after(time.Minute) // for the last restart
	})
}

// R7: of what a Go handler says the same holds: others that succeed make it the event's fault, but
// not where nothing was reached.
func TestWhatIsUnavailableForOneEventAlone(t *testing.T) {
	dns := &net.DNSError{Err: "no such host", Name: "db", IsNotFound: true}
	for _, c := range []struct {
		name string
		err  error
		away []string
	}{
		{"is its fault", Unavailable(errors.New("connection reset")), []string{"0/0"}},
		{"is nobody's if nothing was reached", Unavailable(fmt.Errorf("store: %w", dns)), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, 2, func(w *world) {
				b := binding()
				b.MaxBatch, b.Breaker = 1, Breaker{Off: true}
				in := w.start("a", func(_ context.Context, b *Batch) error {
					if b.Partition == "0" {
						return c.err
					}
					return nil
				}, b)
				w.orders.Send("0", "bad")
				for range 100 {
					w.orders.SendN("1", 1)
					after(500 * time.Millisecond)
				}
				w.wantAway(c.away...)
				in.stop()
			})
		})
	}
}

// R7, F5: an endpoint that is down for less than the retries last is no failure for the breaker,
// and after that each attempt is one.
func TestTheBreakerCountsWhatIsDownForLongerThanTheRetries(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 10)
		b := binding()
		b.Retry, b.Breaker = Fixed(3, 10*time.Second), Breaker{Failures: 2, Within: time.Hour}
		in := w.start("a", func(context.Context, *Batch) error { return Unavailable(errBad) }, b)
		after(35 * time.Second)
		w.wantCalls("0:0-9 1", "0:0-9 2", "0:0-9 3", "0:0-9 4")
		testkit.Equal(t, in.Status()[0].Circuit.Failures, 1, "failures")
		w.wantState("closed")
		after(time.Minute)
		w.wantState("open")
		w.wantAway()
		in.stop()
	})
}

// R7, F5: with any number of instances ten are put away, and the eleventh opens the circuit; what
// was found guilty together is one question.
func TestNoMoreArePutAwayThanTheBreakerAllows(t *testing.T) {
	for _, k := range []int{1, 2, 5} {
		for name, handle := range map[string]Handler{
			"whole batches":  func(context.Context, *Batch) error { return errBad },
			"events by name": func(_ context.Context, b *Batch) error { return &Results{Failed: failAll(b)} },
			"one by one":     Each(func(context.Context, event.Event) error { return errBad }),
		} {
			t.Run(fmt.Sprintf("%d instances, %s", k, name), func(t *testing.T) {
				bubble(t, 10, func(w *world) {
					b := binding()
					b.MaxBatch, b.Retry, b.Breaker = 8, None(), Breaker{Failures: 10, Within: 30 * time.Second}
					var hosts []*instance
					for i := range k {
						hosts = append(hosts, w.start(fmt.Sprint("host-", i), handle, b))
					}
					after(2 * time.Minute)
					for round := 1; round <= 2; round++ {
						for id := range 10 {
							w.orders.SendN(fmt.Sprint(id), 20)
						}
						after(time.Minute)
						w.wantState("open")
						testkit.Equal(t, len(w.poisonEvents()), 10*round, "events put away")
						testkit.Must(t, hosts[0].Resume(w.t.Context(), "bill")) // what waits fails at once
					}
					for _, h := range hosts {
						h.stop()
					}
				})
			})
		}
	}
}

func failAll(b *Batch) map[int]error {
	all := map[int]error{}
	for i := range b.Events {
		all[i] = errBad
	}
	return all
}
