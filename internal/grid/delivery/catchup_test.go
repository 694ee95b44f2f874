package delivery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/retrylog"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/watermark"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// G1: lanes that fall behind, stand still and catch up get each event, and while nothing fails
// and nobody crashes, each once.
func TestCatchingUpMissesAndRepeatsNothing(t *testing.T) {
	for seed := range max(2, *seeds/4) {
		bubble(t, func(t *testing.T, y *yard) {
			y.stop()
			dice := rand.New(rand.NewPCG(uint64(seed), 4))
			y.config = func(c *Config) {
				c.QueueEvents, c.QueueBytes, c.MemoryBytes = 3+dice.IntN(30), 3000+dice.IntN(9000), 10_000+dice.IntN(60_000)
			}
			y.start()
			y.topic("orders")
			names := []string{"quick", "slow", "picky", "batched", "paused"}
			y.subscribe("orders", "quick")
			y.subscribe("orders", "slow", func(s *topics.Settings) { s.Concurrency = 1 })
			y.subscribe("orders", "picky", func(s *topics.Settings) { s.Filter = filter.Config{EventTypes: []string{"b"}} })
			y.subscribe("orders", "batched", batched(7, 0))
			y.subscribe("orders", "paused")
			y.sender.says(func(_ context.Context, d drop) webhook.Result {
				time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
				return ok()
			})
			want := make(map[string][]string)
			paused := false
			for i := range 60 {
				var batch []string
				for j := range 1 + dice.IntN(40) {
					id := fmt.Sprintf("%c/%d/%d", 'a'+dice.IntN(3), i, j)
					batch = append(batch, id)
				}
				y.publish("orders", batch...)
				for _, name := range names {
					want[name] = append(want[name], slices.DeleteFunc(slices.Clone(batch), func(id string) bool {
						return name == "picky" && id[0] != 'b'
					})...)
				}
				time.Sleep(time.Duration(dice.IntN(200)) * time.Millisecond)
				if dice.IntN(6) == 0 {
					paused = !paused
					y.change("orders", "paused", func(s *topics.Settings) { s.Paused = paused })
				}
				if dice.IntN(10) == 0 {
					name := fmt.Sprintf("new-%d", i)
					y.subscribe("orders", name)
					names = append(names, name)
				}
			}
			y.change("orders", "paused", func(s *topics.Settings) { s.Paused = false })
			after(time.Hour)
			for _, name := range names {
				got := y.sender.delivered(name)
				wantIDs(t, name, got, want[name])
				if len(got) != len(want[name]) {
					t.Errorf("seed %d: %s got %d deliveries of %d events", seed, name, len(got), len(want[name]))
				}
			}
			for _, l := range y.service.allLanes() {
				if tr := l.tracks[0]; !tr.joined.Load() || tr.mark.Open() != 0 || l.memory.bytes != 0 {
					t.Errorf("%s is left at %+v holding %d bytes", l.termsNow().sub.Name, tr, l.memory.bytes)
				}
			}
			y.wantNoMemory("in use at the end")
		})
	}
}

// What was put down is taken up again exactly once, and the mark never passes what is not done,
// whatever the order of things: checked against sets of numbers.
func TestTrackAgainstAModel(t *testing.T) {
	for range 20 { // each is a hundred courses
		rapid.Check(t, func(t *rapid.T) {
			m := newTrackModel(t)
			t.Repeat(map[string]func(*rapid.T){
				"feed offers": m.offer, "lane cannot take": m.refuse, "memory is given up": m.shed,
				"pump reads": m.pump, "an event is done": m.finish, "": m.check,
			})
		})
	}
}

// trackModel is a track, and where each number is.
type trackModel struct {
	track *track
	feed  *feed
	// memory are taken and not done, done are done; match says which are ours.
	memory, done map[int64]bool
	match        map[int64]bool
	end          int64 // of the log
}

func newTrackModel(t *rapid.T) *trackModel {
	start := rapid.Int64Range(0, 3).Draw(t, "start")
	f := &feed{}
	f.next = start
	f.position.Store(start)
	m := &trackModel{feed: f, memory: map[int64]bool{}, done: map[int64]bool{}, match: map[int64]bool{}, end: start}
	m.track = &track{lane: &lane{}, feed: f, mark: watermark.At(start), position: start, indexed: true}
	f.join(m.track)
	return m
}

// grow appends an event to the log.
func (m *trackModel) grow(t *rapid.T) {
	m.match[m.end] = rapid.Bool().Draw(t, "match")
	m.end++
}

// offer is the feed's next event, taken if it is ours and the track is joined.
func (m *trackModel) offer(t *rapid.T) { m.feedNext(t, true) }

// refuse is likewise, but there is no room.
func (m *trackModel) refuse(t *rapid.T) { m.feedNext(t, false) }

func (m *trackModel) feedNext(t *rapid.T, room bool) {
	if m.feed.next == m.end {
		m.grow(t)
	}
	n := m.feed.next
	if m.match[n] && m.track.joined.Load() && n >= m.track.mark.Next() {
		if room {
			m.take(t, n)
			m.track.mark.Begin(n)
		} else {
			m.track.detach(n, time.Time{})
		}
	}
	m.feed.next++
	m.feed.position.Store(m.feed.next)
}

func (m *trackModel) take(t *rapid.T, n int64) {
	if m.memory[n] || m.done[n] {
		t.Fatalf("%d was taken twice", n)
	}
	m.memory[n] = true
}

func (m *trackModel) shed(t *rapid.T) {
	var items []*item
	for _, n := range slices.Sorted(maps.Keys(m.memory)) {
		if rapid.Bool().Draw(t, "under way") {
			continue // it is being sent, and stays
		}
		items = append(items, &item{Delivery: pending.Delivery{Sequence: n, Attempts: int(n)}})
		delete(m.memory, n)
	}
	if len(items) > 0 {
		m.track.putDown(items)
	}
}

// pump reads some events, as catching does, and joins if it can.
func (m *trackModel) pump(t *rapid.T) {
	tr := m.track
	if tr.joined.Load() {
		return
	}
	for range rapid.IntRange(0, 4).Draw(t, "ahead of the feed") {
		m.grow(t)
	}
	next := tr.mark.Next()
	for i := rapid.IntRange(0, 5).Draw(t, "events"); i > 0 && tr.position < m.end; i-- {
		n := tr.position
		if r, ok := tr.pickUp(n); ok {
			testkit.MustEqual(t, r.attempts, int(n), "what was known of %d is lost", n)
			m.take(t, n)
		} else if n >= next && m.match[n] {
			m.take(t, n)
			tr.mark.Begin(n)
		}
		if lost := tr.moveTo(n+1, time.Time{}); lost > 0 {
			t.Fatalf("%d were lost on the way", lost)
		}
	}
	m.feed.join(tr)
}

func (m *trackModel) finish(t *rapid.T) {
	if len(m.memory) == 0 {
		return
	}
	n := rapid.SampledFrom(slices.Sorted(maps.Keys(m.memory))).Draw(t, "done")
	delete(m.memory, n)
	m.done[n] = true
	m.track.mark.Finish(n)
}

// check: nothing below the mark is unfinished; nothing that the track takes for looked at is
// missing.
func (m *trackModel) check(t *rapid.T) {
	left := make(map[int64]bool)
	if m.track.joined.Load() && len(m.track.left) > 0 {
		t.Fatalf("%v were put down, and the track has joined", m.track.left)
	}
	for _, r := range m.track.left {
		left[r.n] = true
	}
	for n, ours := range m.match {
		switch {
		case !ours || m.done[n]:
		case n < m.track.low():
			t.Fatalf("%d is not done and below the mark %d", n, m.track.low())
		case n < m.track.next() && !m.memory[n] && !left[n]:
			t.Fatalf("%d is forgotten: the track stands at %d", n, m.track.next())
		case left[n] && n < m.track.position:
			t.Fatalf("%d was put down and will not be read: the track stands at %d", n, m.track.position)
		}
	}
}

// Events that a source removed are lost to those who have not seen them, and hold up nobody.
func TestRetentionMayOvertakeALane(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver", func(s *topics.Settings) { s.Concurrency = 1 })
		y.sender.always(outcome(retry.ResolutionError))
		for i := range 30 {
			y.publish("orders", ids(fmt.Sprintf("%02d", i), 100)...)
			wait()
		}
		its, err := y.topics.Topic("orders")
		testkit.Must(t, err)
		log, err := y.topics.Log(&its)
		testkit.Must(t, err)
		testkit.Must(t, log.Trim(t.Context(), 3000))
		testkit.Must(t, y.trimNow())
		bounds, err := log.Bounds(t.Context())
		if err != nil || bounds.First == 0 {
			t.Fatalf("nothing was removed: %+v, %v", bounds, err)
		}
		y.sender.always(ok())
		testkit.Must(t, y.service.Probe(t.Context(), id))
		after(time.Minute)
		y.wantStats(id, func(st Stats) bool { return st.Behind == 0 && st.Queued == 0 && st.Oldest.IsZero() })
		y.publish("orders", "new")
		after(3 * time.Second)
		if d := y.sender.delivered(""); !slices.Contains(d, "new") {
			t.Error("what came later was not delivered")
		}
		its2 := y.cursors("orders")
		_, marks, err := parseCursors([]byte(its2))
		if err != nil || marks[id] != 3001 {
			t.Errorf("its cursor is %v, %v, want 3001", marks, err)
		}
	})
}

// trimNow lets the engine do its rounds for a while.
func (y *yard) trimNow() error {
	ctx, cancel := context.WithTimeout(y.t.Context(), 5*time.Minute)
	defer cancel()
	if err := y.Engine.Run(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// A change of the index lets those join who are not behind. A step of the pump that is under way
// then does no more: what comes next is the feed's.
func TestAPumpNoticesThatItsTrackHasJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, run := still(t)
		tr := l.fallBehind(run, 0)
		f := tr.feed
		f.next = 0
		f.position.Store(0)
		c := (&filling{lane: l}).catching(tr)
		for n := range int64(3) {
			if !c.concerns(n, &run, int(n)) || !c.takeOne(&run, n) {
				t.Fatalf("%d was not taken", n)
			}
		}
		if !f.join(tr) {
			t.Fatal("the track did not join")
		}
		f.offer(&run, 0, 6)
		c.take(t.Context(), &run)
		f.offer(&run, 6, 10)
		testkit.Slices(t, l.queued(), []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, "queued")
	})
}

// A source whose subscriptions have no place yet is not read from its beginning for nobody.
func TestASourceWithoutLanesIsReadFromItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, l, _ := still(t)
		src := l.source
		y.service.reconciler.endLane(src, l)
		src.settle()
		testkit.Equal(t, src.feeds[0].position.Load(), 10, "the feed begins at")
	})
}

// still is a yard whose service was opened and does not run, so that a test can do each step by
// itself.
func still(t *testing.T) (*yard, *lane, eventlog.Run) {
	y := newYard(t)
	y.topic("orders")
	id := y.subscribe("orders", "receiver")
	y.publish("orders", ids("e", 10)...)
	y.open()
	l := y.lane(id)
	cursor, err := l.source.origin.cursor(t.Context(), 0, 0)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = cursor.Close() })
	run, err := cursor.TryNext(t.Context())
	testkit.Must(t, err)
	return y, l, run
}

// fallBehind detaches the lane's track at a number.
func (l *lane) fallBehind(run eventlog.Run, at int64) *track {
	tr := l.tracks[0]
	tr.detach(tr.next(), run.Time)
	tr.position, tr.mark = at, watermark.At(at)
	return tr
}

func (l *lane) queued() (all []int64) {
	for i := range l.memory.queue.ready.len() {
		all = append(all, l.memory.queue.ready.at(i).Sequence)
	}
	return all
}

func (l *lane) shed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shedLocked()
}

// A step of the pump whose track was moved by others does no more.
func TestAPumpNoticesThatItsTrackWasMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, run := still(t)
		tr := l.fallBehind(run, 0)
		c := (&filling{lane: l}).catching(tr)
		take := func(c *catching, n int64) bool {
			if !c.concerns(n, &run, int(n)) {
				t.Fatalf("%d does not concern the lane", n)
			}
			return c.takeOne(&run, n)
		}
		for n := range int64(4) {
			if !take(c, n) {
				t.Fatalf("%d was not taken", n)
			}
		}
		l.shed()
		if take(c, 4) {
			t.Error("a step went on though what it had taken was put down")
		}
		if c.move(5, run.Time); tr.position != 0 || len(tr.left) != 4 {
			t.Errorf("the track stands at %d with %d put down, want 0 and 4", tr.position, len(tr.left))
		}
		again := (&filling{lane: l}).catching(tr)
		again.take(t.Context(), &run)
		testkit.Slices(t, l.queued(), []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, "queued")
		if !tr.feed.join(tr) {
			t.Error("the track did not join")
		}
	})
}

// A definition that changes while the pump reads is heeded from the next event on.
func TestAPumpNoticesNewTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, l, run := still(t)
		tr := l.fallBehind(run, 0)
		c := (&filling{lane: l}).catching(tr)
		changed := *l.terms.sub
		changed.Filter.EventTypes = []string{"none"}
		y.service.reconciler.changeLane(l.source, l, &changed)
		if c.take(t.Context(), &run); tr.position != 0 || l.memory.queue.events != 0 {
			t.Errorf("the pump went on with an old filter, to %d", tr.position)
		}
		(&filling{lane: l}).catching(tr).take(t.Context(), &run)
		testkit.Equal(t, tr.position, 10, "the track stands at")
		testkit.Equal(t, l.memory.queue.events, 0, "queued")
	})
}

// A lane that is ahead of the feed joins it, and is given nothing twice.
func TestALaneAheadOfTheFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, run := still(t)
		tr := l.fallBehind(run, 0)
		(&filling{lane: l}).catching(tr).take(t.Context(), &run)
		f := tr.feed
		f.next = 3
		f.position.Store(3)
		if !f.join(tr) {
			t.Fatal("the track did not join")
		}
		f.offer(&run, 3, 10)
		testkit.Equal(t, l.memory.queue.events, 10, "are queued")
		testkit.Equal(t, tr.low(), 0, "the mark")
	})
}

// New lanes begin where they were made, also while the source is read.
func TestALaneThatComesLaterBeginsAtItsStart(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("first")
		y.publish("orders", ids("e", 10)...)
		wait()
		id := y.subscribe("orders", "second")
		wait()
		l := y.lane(id)
		if tr := l.tracks[0]; !tr.joined.Load() || tr.low() != 10 {
			t.Errorf("it stands at %d, joined %v, want 10 and joined", tr.low(), tr.joined.Load())
		}
		y.unsubscribe("orders", "first")
		y.publish("orders", "x")
		wait()
		wantIDs(t, "second", y.sender.delivered("second"), []string{"x"})
	})
}

// One that takes the place of another begins where it was made, too.
func TestASubscriptionThatReplacesAnotherBeginsAtItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, _, _ := still(t)
		y.unsubscribe("orders", "receiver")
		y.publish("orders", ids("f", 5)...)
		id := y.subscribe("orders", "another")
		y.service.reconciler.reconcile(t.Context())
		l := y.lane(id)
		testkit.Equal(t, l.low(0), 15, "it begins at")
	})
}

// G1: events that damage has taken are counted: nothing is left out silently.
func TestWhatDamageTakesIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, l, run := still(t)
		damage := &eventlog.CorruptError{Where: "here", Reason: "bits", First: 2, Next: 6}
		tr := l.tracks[0]
		f := tr.feed
		f.next = 2
		if err := f.pass(damage); !errors.Is(err, damage) || f.next != 6 {
			t.Errorf("the feed stands at %d, %v", f.next, err)
		}
		testkit.Equal(t, testutil.ToFloat64(y.service.metrics.unreadable), 4, "the feed left out")
		l.fallBehind(run, 3)
		_ = (&filling{lane: l}).catching(tr).pass(damage)
		if n := testutil.ToFloat64(y.service.metrics.unreadable); n != 7 || tr.position != 6 {
			t.Errorf("%v events were left out, and the track stands at %d, want 7 and 6", n, tr.position)
		}
	})
}

// G5: that holds also for a subscription that has no lane just now.
func TestAParkedLogInTroubleWithoutALane(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		id := y.subscribe("orders", "receiver")
		y.stop()
		y.disk = &fullDisk{prefix: "shelf-"}
		y.disk.full.Store(true)
		y.open()
		s := y.service
		s.mu.Lock()
		delete(s.lanes, id)
		s.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := false
		p := pending.Delivery{Subscription: id, Attempts: 1, Published: time.Now(), Alive: time.Now(), Event: eventOf("due")}
		s.whole.take(ctx, []retrylog.Entry{{Delivery: p, Done: func() { done = true }}})
		if ctx.Err() != nil || !done {
			t.Error("what is due for others was held up")
		}
	})
}
