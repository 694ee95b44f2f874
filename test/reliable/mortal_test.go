//go:build linux

package reliable

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/internal/functions/triage"
	"github.com/eventyard/eventyard/processor"
)

// The points at which a worker kills itself. Those at a write have a "before", when it has not
// reached the store, and an "after", when it has and the worker does not know yet.
const (
	inRetry      = "in the handler, at the second attempt"
	inHalf       = "in the call of a half"
	inDeadly     = "in every call that has the deadly event"
	inProbe      = "in the call that tries whether all is well"
	atWrite      = "at write " // + a number: the so-manieth that is worth it
	intent       = "the intent is stored"
	putAway      = "the end of a put-away is stored"
	checkpointed = "the checkpoint behind a put-away is saved"
	opening      = "the circuit is opened"
	closing      = "the circuit is closed"
)

// mortal is a store that ends the process at a point.
type mortal struct {
	processor.Store
	processor.Watcher
	point   string
	freezes bool
	probing atomic.Bool // the circuit is half-open
	once    sync.Once
	notes   *ledger

	mu sync.Mutex
	// intents are the work records whose newest form has an intent; guarded by mu. So are the
	// following.
	intents map[string]bool
	away    bool // something was put away
	writes  int
	most    int // events of the largest call with a broken one
}

func newMortal(inner processor.Store, d duty, notes *ledger) *mortal {
	return &mortal{Store: inner, Watcher: inner.(processor.Watcher), point: d.Die, freezes: d.Freeze, notes: notes, intents: map[string]bool{}}
}

// reach ends the process if that is the point, or, the first time, stops it until somebody lets it
// go on.
func (m *mortal) reach(point string) {
	if point != m.point {
		return
	}
	if !m.freezes {
		m.notes.note("die", "", "", 0, point)
		die()
	}
	m.once.Do(func() {
		m.notes.note("freeze", "", "", 0, point)
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	})
}

// changed is told of the circuit's state.
func (m *mortal) changed(state string) { m.probing.Store(state == string(breaker.HalfOpen)) }

// called is told of every call of the handler.
func (m *mortal) called(attempt int, events []event.Event) {
	if m.probing.Load() {
		m.reach(inProbe)
	}
	if !broken(events) {
		return
	}
	m.mu.Lock()
	m.most = max(m.most, len(events))
	half := len(events) < m.most
	m.mu.Unlock()
	if attempt == 2 {
		m.reach(inRetry)
	}
	if half {
		m.reach(inHalf)
	}
	for _, ev := range events {
		if strings.Contains(string(ev.Body), "deadly") {
			m.reach(inDeadly)
		}
	}
}

func (m *mortal) Put(ctx context.Context, g processor.Group, f processor.Entry) (processor.Entry, error) {
	what := m.what(f)
	m.write(what, "before ")
	stored, err := m.Store.Put(ctx, g, f)
	if err == nil {
		m.write(what, "after ")
	}
	return stored, err
}

func (m *mortal) Save(ctx context.Context, g processor.Group, lease processor.Lease, c processor.Checkpoint) (processor.Checkpoint, error) {
	m.mu.Lock()
	what := "a checkpoint is saved"
	if m.away {
		what = checkpointed
	}
	m.mu.Unlock()
	m.write(what, "before ")
	saved, err := m.Store.Save(ctx, g, lease, c)
	if err == nil {
		m.write(what, "after ")
	}
	return saved, err
}

// write counts a side of a write that is worth dying at, and dies at the right one.
func (m *mortal) write(what, side string) {
	if what == "" {
		return
	}
	m.mu.Lock()
	m.writes++
	n := m.writes
	m.mu.Unlock()
	m.reach(side + what)
	m.reach(atNth(n))
}

// what names the writing of an entry; empty: it is of no interest.
func (m *mortal) what(f processor.Entry) string {
	switch {
	case strings.HasPrefix(f.Key, "work/"):
		return m.workOf(f)
	case strings.HasPrefix(f.Key, circuit.Prefix):
		r, err := breaker.DecodeRecord(f.Value)
		switch {
		case err != nil:
			return ""
		case r.State == breaker.Open:
			return opening
		case r.State == breaker.Closed && r.Term > 0:
			return closing
		}
	}
	return ""
}

func (m *mortal) workOf(f processor.Entry) string {
	w, err := triage.DecodeWork(f.Value)
	if err != nil {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	had := m.intents[f.Key]
	m.intents[f.Key] = w.Intent != nil
	switch {
	case w.Intent != nil:
		return intent
	case had:
		m.away = true
		return putAway
	}
	return "other work is stored"
}

func atNth(n int) string { return atWrite + strconv.Itoa(n) }
