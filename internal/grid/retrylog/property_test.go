package retrylog

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/testkit"
)

// G5: in every order of puts, waits, ends and starts, each pending delivery is handed out once in
// each life, at the very millisecond at which it is due, or at once if that has passed; until it
// and all that was put before it into the same retry log are done. What is counted is what is not
// done.
func TestRetryLogsProperty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ rapid.TB }{t}, func(r *rapid.T) { // without a deadline, which bubbles do not have
			m := newModel(t, r)
			defer m.end()
			r.Repeat(map[string]func(*rapid.T){
				"put":    m.putSome,
				"finish": m.finishSome,
				"wait": func(r *rapid.T) {
					time.Sleep(time.Duration(rapid.IntRange(1, 20_000).Draw(r, "ms")) * time.Millisecond)
				},
				"restart": func(*rapid.T) { m.restart() },
				"":        m.check,
			})
		})
	})
}

// model is what a yard should do: the pending deliveries of each retry log from its cursor on.
type model struct {
	*yard
	last int
	logs [][]*modelDelivery
	// born is when this life began.
	born time.Time
}

type modelDelivery struct {
	name   string
	due    time.Time
	handed *taken // in this life; nil: not yet
	done   bool
}

func newModel(t *testing.T, r *rapid.T) *model {
	cfg := Config{}
	if rapid.Bool().Draw(r, "with jitter") {
		cfg.Jitter = func() float64 { return rapid.Float64Range(-1, 1).Draw(r, "jitter") }
	}
	m := &model{yard: newYard(t, cfg), born: time.Now()}
	m.logs = make([][]*modelDelivery, len(m.cfg.Ladder))
	m.run()
	return m
}

func (m *model) end() {
	m.stop()
	_ = m.engine.Close() // twice is allowed
}

func (m *model) restart() {
	m.yard.restart()
	m.born = time.Now()
	for i, retryLog := range m.logs {
		low := slices.IndexFunc(retryLog, func(p *modelDelivery) bool { return !p.done })
		if low < 0 {
			low = len(retryLog)
		}
		m.logs[i] = retryLog[low:]
		for _, p := range m.logs[i] {
			p.handed, p.done = nil, false
		}
	}
	m.run()
}

func (m *model) putSome(r *rapid.T) {
	position := rapid.IntRange(0, len(m.cfg.Ladder)-1).Draw(r, "retry log")
	var batch []pending.Delivery
	for range rapid.IntRange(1, 3).Draw(r, "deliveries") {
		m.last++
		batch = append(batch, thing(fmt.Sprint(m.last)))
	}
	testkit.Must(r, m.Put(context.Background(), m.cfg.Ladder[position], batch))
	for _, p := range batch {
		m.logs[position] = append(m.logs[position], &modelDelivery{name: nameOf(p), due: p.Due})
	}
}

func (m *model) finishSome(r *rapid.T) {
	for p := range m.all {
		if p.handed != nil && rapid.Bool().Draw(r, "done") {
			p.handed.Done()
			p.done = true
		}
	}
}

func (m *model) all(yield func(*modelDelivery) bool) {
	for _, retryLog := range m.logs {
		for _, p := range retryLog {
			if !yield(p) {
				return
			}
		}
	}
}

func (m *model) check(r *rapid.T) {
	synctest.Wait()
	handed := m.taker.handed()
	undone := int64(0)
	for p := range m.all {
		if i := slices.IndexFunc(handed, func(e taken) bool { return nameOf(e.Delivery) == p.name }); i >= 0 {
			m.checkHanded(r, p, handed[i])
			handed = slices.Delete(handed, i, i+1)
		} else if p.handed == nil && !p.due.After(time.Now()) {
			r.Fatalf("%s was due at %v and was not handed out at %v", p.name, p.due, time.Now())
		}
		if !p.done {
			undone++
		}
	}
	if len(handed) > 0 {
		r.Fatalf("handed out again: %s", names(handed))
	}
	var waiting int64
	for _, w := range m.Waiting("mailer2345678") {
		waiting += w.Count
	}
	testkit.MustEqual(r, waiting, undone, "are counted")
}

func (m *model) checkHanded(r *rapid.T, p *modelDelivery, e taken) {
	want := p.due
	if want.Before(m.born) {
		want = m.born
	}
	if p.handed != nil || !e.at.Equal(want) {
		r.Fatalf("%s was handed out at %v, want once, at %v", p.name, e.at, want)
	}
	p.handed = &e
}
