package delivery

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/retrylog"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestWhatFitsIntoMemory(t *testing.T) {
	const event = 600 // bytes, with its item 1000
	bounds := &terms{queueEvents: 4, queueBytes: 3500}
	for _, tt := range []struct {
		name           string
		total          int // of all lanes
		queued         int
		fits, low, old bool
	}{
		{"nothing is there", 1 << 20, 0, true, true, true},
		{"some is", 1 << 20, 1, true, true, true},
		{"half", 1 << 20, 2, true, false, true},
		{"too many bytes", 1 << 20, 3, false, false, true},
		{"too many events", 1 << 20, 4, false, false, true},
		{"others have left as much as it would hold", 4000, 2, false, false, false},
		{"and half as much as it holds", 2500, 1, false, false, false},
		{"one event always fits", 1, 0, true, true, true},
		{"unless nothing is left", 0, 0, false, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBudget(tt.total, newClock())
			m := memory{budget: b}
			for range tt.queued {
				b.charge(event + itemBytes)
				m.push(bounds, itemFor(make([]byte, event)), time.Now())
			}
			testkit.Equal(t, m.fits(bounds, event), tt.fits, "fits")
			testkit.Equal(t, m.low(bounds), tt.low, "low")
			testkit.Equal(t, m.fitsExpired(bounds, event), tt.old, "fits as something old")
			for _, it := range m.clear() {
				m.letGo(it)
			}
			if used := b.used.Load(); used != 0 || m.bytes != 0 {
				t.Errorf("%d bytes are in use at the end, %d held", used, m.bytes)
			}
		})
	}
}

func itemFor(event []byte) *item {
	s := &body{bytes: event}
	s.refs.Store(1)
	return &item{Delivery: pending.Delivery{Event: event}, body: s}
}

// What receivers hold comes back when its lock has ended, and not before.
func TestLocksLapse(t *testing.T) {
	now := time.Now()
	var p pullers
	first, second := itemFor(nil), itemFor(nil)
	one, two := newToken("sub"), newToken("sub")
	p.hold(hold{one, first, now.Add(time.Minute)})
	p.hold(hold{two, second, now.Add(2 * time.Minute)})
	testkit.Equal(t, len(p.lapse(now.Add(time.Minute-1))), 0, "lapsed too soon")
	if lapsed := p.lapse(now.Add(time.Minute)); len(lapsed) != 1 || lapsed[0] != first || !p.nextLapse.Equal(now.Add(2*time.Minute)) {
		t.Errorf("lapsed %v, the next will at %v", lapsed, p.nextLapse)
	}
	settled, holds := p.unlock("sub", []string{one, "sub.rubbish", newToken("other"), two}, false, now)
	for i, want := range []error{ErrLockLost, ErrToken, ErrToken, nil} {
		testkit.Equal(t, settled[i].Err, want, "token %d", i)
	}
	if len(holds) != 1 || holds[0].item != second || len(p.held) != 0 {
		t.Errorf("unlocked %v, %d are held", holds, len(p.held))
	}
	p.hold(holds[0])
	if _, holds = p.unlock("sub", []string{two}, true, now.Add(time.Hour)); len(holds) != 0 || len(p.lapse(now.Add(time.Hour-1))) != 0 {
		t.Error("a renewed lock ended before its time")
	}
	testkit.Equal(t, len(p.lapse(now.Add(time.Hour))), 1, "lapsed at the end of a renewed lock")
}

// G6, G7: a lane that stood still while others had all the memory goes on when they give it back,
// though it looked at one event of its parked log.
func TestALaneThatStandsStillWaitsForRoom(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver", func(s *topics.Settings) { s.Retry.TimeToLive = 20 * time.Second })
		y.sender.always(outcome(retry.SocketError)) // 30 s of probation
		y.publish("orders", ids("e", 40)...)
		after(5 * time.Second)
		l := y.lane(id)
		again := pending.Delivery{Subscription: id, Source: l.source.id, Published: time.Now(), Alive: time.Now(), Form: schema.EventGridForm, Event: eventOf("again")}
		testkit.Must(t, y.service.Redeliver(t.Context(), []pending.Delivery{again}))
		after(5 * time.Second)
		b := y.service.budget
		b.charge(int(b.total))
		after(30 * time.Second)
		b.release(int(b.total))
		y.sender.always(ok())
		after(24 * time.Hour)
		wantIDs(t, "delivered or given up", append(y.sender.delivered(""), y.dead.ids("")...), append(ids("e", 40), "again"))
		testkit.Equal(t, b.used.Load(), 0, "bytes are in use at the end")
	})
}

// G8: dead letters that cannot be written do not take all workers and all memory.
func TestRefusedDeadLettersTakeAFewWorkersOnly(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver", func(s *topics.Settings) {
			s.Retry.TimeToLive, s.Concurrency, s.Paused = time.Second, 2, true
		})
		for range 40 {
			y.publish("orders", ids("e", 500)...)
		}
		y.dead.refuses(errTest)
		after(time.Hour)
		l := y.lane(id)
		l.mu.Lock()
		busy := l.sending.busy
		l.mu.Unlock()
		if busy > 2 {
			t.Errorf("%d workers, want 2 at most", busy)
		}
		y.dead.refuses(nil)
		after(time.Hour)
		if n := len(y.dead.all()); n < 20_000 {
			t.Errorf("%d dead letters, want 20,000", n)
		}
	})
}

// What is due for a subscription whose lane is just being made is found by that lane.
func TestWhatIsDueForALaneThatIsJustBeingMade(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver")
		s := y.service
		l, err := s.lane(id)
		testkit.Must(t, err)
		y.publish("orders", "e")
		wait()
		first := y.sender.all("")
		testkit.MustEqual(t, len(first), 1, "requests")
		s.mu.Lock()
		delete(s.lanes, id)
		s.mu.Unlock()
		s.cfg.Topics = hookedTopics{s.cfg.Topics, func() {
			s.mu.Lock()
			s.lanes[id] = l
			s.mu.Unlock()
		}}
		it := item{}
		it.Subscription, it.Source, it.Attempts, it.Published, it.Alive = id, l.source.id, 1, time.Now(), time.Now()
		it.Form, it.Event, it.LastOutcome = schema.EventGridForm, eventOf("due"), retry.TimedOut
		s.whole.take(t.Context(), []retrylog.Entry{{Delivery: it.Delivery, Done: func() {}}})
		after(time.Minute)
		wantIDs(t, "delivered", y.sender.delivered(""), []string{"e", "due"})
	})
}

// hookedTopics does something whenever it is looked at.
type hookedTopics struct {
	Topics
	hook func()
}

func (h hookedTopics) Snapshot() *topics.Snapshot {
	h.hook()
	return h.Topics.Snapshot()
}

// What waits in a parked log is not settled, and may be the oldest.
func TestTheOldestMayBeInTheParkedLog(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver", func(s *topics.Settings) { s.Concurrency = 16 })
		y.sender.always(status(503))
		published := time.Now()
		y.publish("orders", ids("e", 10)...)
		after(time.Minute)
		after(4 * time.Minute) // all retries are due, and in the parked log
		st := y.stats(id)
		if len(st.Waiting) != 0 || st.Parked == 0 || st.Behind != 0 {
			t.Fatalf("it is not where it should be: %+v", st)
		}
		if !st.Oldest.Equal(published) {
			t.Errorf("oldest %v, want %v", st.Oldest, published)
		}
	})
}

// Those who wait for memory are woken though others give memory back all the time.
func TestWhoWaitsForMemoryIsNotPutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		b := newBudget(1000, c)
		b.charge(1100)
		b.wait(&lane{})
		began := time.Now()
		for time.Since(began) < time.Second {
			b.release(200)
			if who, _ := c.due(time.Now()); who == b {
				return
			}
			b.charge(200)
			b.release(200)
			b.charge(200)
			time.Sleep(feedEvery - time.Microsecond)
			time.Sleep(2 * time.Microsecond) // the timer has fired, its goroutine has not come yet
		}
		t.Error("nobody was woken within a second")
	})
}

func TestHowManyWorkersAreStarted(t *testing.T) {
	now := time.Now()
	spent := rate.NewLimiter(1, 1)
	spent.AllowN(now, 1)
	single, batches := &terms{concurrency: 4}, &terms{concurrency: 4, order: &webhook.Order{Batched: true, MaxEvents: 10}}
	for _, tt := range []struct {
		name          string
		terms         *terms
		sending       sending
		gate          gate
		ready, chores int
		want          int
	}{
		{"nothing to do", single, sending{}, open, 0, 0, 0},
		{"one for each event", single, sending{}, open, 3, 0, 3},
		{"up to the concurrency", single, sending{}, open, 9, 0, 4},
		{"less those who are busy", single, sending{busy: 3}, open, 9, 0, 1},
		{"all are busy", single, sending{busy: 4}, open, 9, 9, 0},
		{"one for each batch", batches, sending{}, open, 21, 0, 3},
		{"no more requests for now", single, sending{limiter: spent}, open, 9, 0, 0},
		{"what is too old is put away whatever the rate", single, sending{limiter: spent}, open, 9, 9, 1},
		{"or the gate", single, sending{}, shut, 0, 9, 1},
		{"nothing is sent while it is shut", single, sending{}, shut, 9, 0, 0},
		{"or vacant", single, sending{}, vacant, 9, 0, 0},
		{"one probes", single, sending{}, probe, 9, 0, 1},
		{"once", single, sending{probeSent: true}, probe, 9, 0, 0},
		{"receivers need no workers", &terms{concurrency: 4, pull: true}, sending{}, open, 9, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.Equal(t, tt.sending.workers(tt.terms, tt.gate, tt.ready, tt.chores, now), tt.want, "workers")
		})
	}
}

func TestWhenTheRateAllowsTheNextRequest(t *testing.T) {
	now := time.Now()
	s := sending{}
	if at := s.nextToken(now); !at.IsZero() {
		t.Errorf("without a limit: %v", at)
	}
	s.limiter = rate.NewLimiter(4, 1)
	if at := s.nextToken(now); !at.IsZero() {
		t.Errorf("before the first: %v", at)
	}
	s.begin(7, true, now)
	if at := s.nextToken(now); at.Sub(now) != 250*time.Millisecond || s.inFlight != 7 || !s.probeSent {
		t.Errorf("after the first: %v later, %+v", at.Sub(now), s)
	}
}

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
