//go:build linux

package reliable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/processor"
)

// jobVariable tells a worker what to do, as JSON.
const jobVariable = "RELIABLE_JOB"

// groupName is the consumer group of all functions.
const groupName = "workers"

// job is what a worker process does.
type job struct {
	Name   string
	Yard   string // connection string
	Ledger string // file of its notes
	Lease  time.Duration
	Duties []duty
}

// duty is one function of a worker: how it is bound, and how it misbehaves. Events whose body has
// the word broken always fail.
type duty struct {
	Function, Hub string
	Each          bool // it takes single events
	MaxBatch      int
	Retries       int
	Delay         time.Duration
	// Failures of the breaker, within Within; 0: it is off. Probe is the breaker's, too.
	Failures int
	Within   time.Duration
	Probe    time.Duration
	// Takes is how long a call lasts.
	Takes time.Duration
	// Panics is how many calls come to one that panics; 0: none does.
	Panics int
	// Downstream is the address of a service that every call needs; empty: none.
	Downstream string
	// Die is the point at which the process kills itself; one of those in mortal_test.go.
	Die string
	// Freeze: it does not kill itself there but stops, until somebody lets it go on.
	Freeze bool
	// ResumeWhenOpen closes the circuit as soon as it is seen open.
	ResumeWhenOpen bool
}

func (d duty) binding() functions.Binding {
	b := functions.Binding{Hub: d.Hub, Group: groupName, MaxBatch: d.MaxBatch, Retry: functions.None(), Breaker: functions.Breaker{Off: true}}
	if d.Retries > 0 {
		b.Retry = functions.Exponential(d.Retries, d.Delay)
	}
	if d.Failures > 0 {
		b.Breaker = functions.Breaker{Failures: d.Failures, Within: d.Within, Probe: d.Probe}
	}
	return b
}

// work is a worker program as a user would write it, except that it notes all that it does.
func work(text string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	notes, err := openLedger(j.Ledger)
	if err != nil {
		return err
	}
	defer notes.close()
	client, err := hub.Dial(ctx, j.Yard, hub.Config{})
	if err != nil {
		return err
	}
	defer client.Close()
	w := &worker{job: j, notes: notes}
	store, err := w.store(client)
	if err != nil {
		return err
	}
	w.host = functions.NewHost(client, functions.Config{
		Store: store, ID: j.Name, Lease: j.Lease, Renew: j.Lease / 4,
		OnError:   func(err error) { notes.note("error", "", "", 0, oneLine(err.Error())) },
		OnCircuit: func(c functions.Circuit) { w.changed(ctx, c) },
	})
	for _, d := range j.Duties {
		w.handle(d)
	}
	defer w.resuming.Wait()
	return w.host.Run(ctx)
}

// worker is the process.
type worker struct {
	job      job
	notes    *ledger
	host     *functions.Host
	resuming sync.WaitGroup
	mortal   *mortal // nil: it does not kill itself
}

// store is the yard's own: nil says so, and one that can kill the process is put around it where
// that is wanted.
func (w *worker) store(client *hub.Client) (processor.Store, error) {
	for _, d := range w.job.Duties {
		if d.Die == "" {
			continue
		}
		inner, err := processor.StoreOf(client.Hub(d.Hub))
		if err != nil {
			return nil, err
		}
		w.mortal = newMortal(inner, d, w.notes)
		return w.mortal, nil
	}
	return nil, nil
}

// changed notes what became of a circuit.
func (w *worker) changed(ctx context.Context, c functions.Circuit) {
	w.notes.note("circuit", c.Function, "", 0, fmt.Sprintf("%s %d %s", c.State, c.Term, c.Incident))
	if w.mortal != nil {
		w.mortal.changed(c.State)
	}
	for _, d := range w.job.Duties {
		if d.Function == c.Function && d.ResumeWhenOpen && c.State == "open" {
			w.resuming.Go(func() {
				if err := w.host.Resume(ctx, d.Function); err != nil {
					w.notes.note("error", d.Function, "", 0, oneLine(err.Error()))
				}
			})
		}
	}
}

// handle adds one function.
func (w *worker) handle(d duty) {
	h := &handler{worker: w, duty: d, dice: rand.New(rand.NewPCG(1, uint64(len(w.job.Name))<<8|uint64(w.job.Name[len(w.job.Name)-1])))}
	if d.Each {
		w.host.Handle(d.Function, functions.Each(h.one), d.binding())
	} else {
		w.host.Handle(d.Function, h.batch, d.binding())
	}
}

// handler is the user's code of one function.
type handler struct {
	worker *worker
	duty   duty

	mu   sync.Mutex
	dice *rand.Rand // guarded by mu
}

func (h *handler) batch(ctx context.Context, b *functions.Batch) error {
	return h.call(ctx, b.Partition, b.Attempt, b.Events)
}

func (h *handler) one(ctx context.Context, ev event.Event) error {
	return h.call(ctx, ev.Partition, functions.Attempt(ctx), []event.Event{ev})
}

// call handles events and notes what came of it.
func (h *handler) call(ctx context.Context, partition string, attempt int, events []event.Event) (err error) {
	note := func(what string) { h.worker.notes.note(what, h.duty.Function, partition, attempt, ranges(events)) }
	note("call")
	if h.worker.mortal != nil {
		h.worker.mortal.called(attempt, events)
	}
	if h.roll() {
		note("panic")
		panic("a bad day")
	}
	if err := h.do(ctx, events); err != nil {
		note("fail")
		return err
	}
	note("ok")
	return nil
}

// roll tells whether this call panics.
func (h *handler) roll() bool {
	if h.duty.Panics == 0 {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dice.IntN(h.duty.Panics) == 0
}

func (h *handler) do(ctx context.Context, events []event.Event) error {
	if h.duty.Takes > 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(h.duty.Takes):
		}
	}
	if broken(events) {
		return errors.New("this event is broken")
	}
	if h.duty.Downstream == "" {
		return nil
	}
	return askDownstream(ctx, h.duty.Downstream)
}

func broken(events []event.Event) bool {
	for _, ev := range events {
		if strings.Contains(string(ev.Body), "broken") {
			return true
		}
	}
	return false
}

// askDownstream needs an answer from the service that the function depends on.
func askDownstream(ctx context.Context, addr string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("downstream: %w", err)
	}
	defer conn.Close()
	answer := make([]byte, 1)
	if _, err := conn.Read(answer); err != nil {
		return fmt.Errorf("downstream: %w", err)
	}
	return nil
}

// die ends this process as the machine's end would.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
