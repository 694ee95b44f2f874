package delivery

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/testkit"
)

// A queue gives each item once, those of a key in order, and counts right.
func TestQueueAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &queueModel{}
		m.q.order(rapid.Bool().Draw(t, "ordered"))
		t.Repeat(map[string]func(*rapid.T){
			"push": m.push, "take": m.take, "take some": m.takeSome, "done": m.done, "back": m.back,
			"wait": m.wait, "ripen": m.ripen, "clear": m.clear, "": m.check,
		})
	})
}

// queueModel is a queue, and what should be in it.
type queueModel struct {
	q    queue
	next int64
	now  time.Time
	in   []*item // in order of pushing
	out  []*item
}

func (m *queueModel) push(t *rapid.T) {
	it := &item{Delivery: pending.Delivery{Sequence: m.next}}
	if m.next++; m.q.ordered() {
		it.key = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "key")
	}
	if rapid.Bool().Draw(t, "later") {
		it.Due = m.now.Add(time.Second)
	}
	m.in = append(m.in, it)
	m.q.push(it, m.now)
}

func (m *queueModel) took(t *rapid.T, it *item) {
	m.q.out(it)
	i := slices.Index(m.in, it)
	if i < 0 {
		t.Fatalf("%d was not there", it.Sequence)
	}
	if m.q.ordered() {
		same := func(other *item) bool { return other.key == it.key }
		if slices.ContainsFunc(m.in[:i], same) || slices.ContainsFunc(m.out, same) {
			t.Fatalf("%d of %q came before its turn", it.Sequence, it.key)
		}
	}
	m.in = slices.Delete(m.in, i, i+1)
	m.out = append(m.out, it)
}

func (m *queueModel) take(t *rapid.T) {
	if m.q.ready.len() > 0 {
		m.took(t, m.q.ready.pop())
	}
}

func (m *queueModel) takeSome(t *rapid.T) {
	odd := rapid.Int64Range(0, 1).Draw(t, "odd")
	rest := make([]*item, 0)
	n := rapid.IntRange(0, m.q.ready.len()).Draw(t, "of")
	for i := range m.q.ready.len() {
		if it := m.q.ready.at(i); i >= n || it.Sequence%2 != odd {
			rest = append(rest, it)
		}
	}
	for _, it := range m.q.ready.remove(n, func(it *item) bool { return it.Sequence%2 == odd }) {
		m.took(t, it)
	}
	for i, it := range rest {
		testkit.MustEqual(t, m.q.ready.at(i), it, "what was left is not in its place")
	}
}

// leave takes one that is out.
func (m *queueModel) leave(t *rapid.T) *item {
	if len(m.out) == 0 {
		return nil
	}
	i := rapid.IntRange(0, len(m.out)-1).Draw(t, "which")
	it := m.out[i]
	m.out = slices.Delete(m.out, i, i+1)
	return it
}

func (m *queueModel) done(t *rapid.T) {
	if it := m.leave(t); it != nil {
		m.q.advance(it, m.now)
	}
}

func (m *queueModel) back(t *rapid.T) {
	if it := m.leave(t); it != nil {
		m.in = slices.Insert(m.in, 0, it)
		m.q.back(it)
	}
}

func (m *queueModel) wait(t *rapid.T) {
	if it := m.leave(t); it != nil {
		it.Due = m.now.Add(time.Duration(rapid.IntRange(1, 3).Draw(t, "seconds")) * time.Second)
		m.in = slices.Insert(m.in, 0, it)
		m.q.wait(it)
	}
}

func (m *queueModel) ripen(*rapid.T) {
	m.now = m.now.Add(time.Second)
	m.q.ripen(m.now)
	if due := m.q.nextDue(); !due.IsZero() && !due.After(m.now) {
		panic("something that is due still waits")
	}
}

func (m *queueModel) clear(t *rapid.T) {
	got := m.q.clear()
	testkit.MustEqual(t, len(got), len(m.in), "were in it")
	for _, it := range m.in {
		if !slices.Contains(got, it) {
			t.Fatalf("%d is lost", it.Sequence)
		}
	}
	m.in = nil
}

func (m *queueModel) check(t *rapid.T) {
	if m.q.events != len(m.in) || m.q.bytes != len(m.in)*itemBytes {
		t.Fatalf("%d events of %d bytes, want %d", m.q.events, m.q.bytes, len(m.in))
	}
	if !m.q.ordered() && m.q.ready.len()+len(m.q.waiting) != len(m.in) {
		t.Fatalf("%d are ready, want %d", m.q.ready.len(), len(m.in))
	}
}
