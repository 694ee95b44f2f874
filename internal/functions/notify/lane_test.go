package notify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// waits gives the times between attempts, with the first since begin.
func (w *world) waits(receiver string, begin time.Time) (all []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.attempts[receiver] {
		all = append(all, at.Sub(begin))
		begin = at
	}
	return all
}

// F6: retries by schedule, given up after a day; others are not held up.
func TestRetriesFollowTheScheduleAndEndAfterADay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, boss, chat, pager)
		w.cfg.SMTP = SMTP{Addr: "smtp.example.com:587", From: "yard@example.com"}
		s := w.open()
		s.mailer.dial = func(context.Context, string, string) (net.Conn, error) {
			return nil, w.attempt("smtp")
		}
		w.setDown(only(pager, "smtp"))
		defer w.run(s)()
		begin := time.Now()
		w.circuits.set("resize", opened(breaker.Record{}, "i1"))
		settle()
		want(t, "the receiver that is well", w.notified(chat), "Opened:i1")
		time.Sleep(25 * time.Hour)
		settle()
		for _, receiver := range []string{pager, "smtp"} {
			waits := w.waits(receiver, begin)
			testkit.Equal(t, fmt.Sprint(waits[:6]), "[0s 5s 30s 2m0s 10m0s 30m0s]",
				"%s was tried after", receiver)
			var all time.Duration
			for i, wait := range waits {
				if all += wait; i > 5 && wait != 30*time.Minute {
					t.Errorf("attempt %d of %s came after %v", i, receiver, wait)
				}
			}
			if all < 24*time.Hour || all > 24*time.Hour+30*time.Minute {
				t.Errorf("%s was given up after %v", receiver, all)
			}
		}
		for _, by := range []medium{byMail, byWebhook} {
			if n := testutil.ToFloat64(s.metrics.notices.WithLabelValues(string(by), string(givenUp))); n != 1 {
				t.Errorf("%v given up by %s", n, by)
			}
		}
		// The incident's end is told all the same.
		w.setDown(only("smtp"))
		w.circuits.set("resize", closed(w.circuits.get("resize"), "Ada"))
		settle()
		want(t, "pager", w.notified(pager), "Closed:i1")
	})
}

// A definition may have fifty targets, and the configuration ten for all functions.
func TestAllTargetsAreNotified(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var targets []string
		for i := range 60 {
			targets = append(targets, fmt.Sprintf("https://hooks.example.com/%02d", i))
		}
		w := newWorld(t, append(targets, targets[0])...)
		defer w.run(w.open())()
		w.circuits.set("resize", opened(breaker.Record{}, "i1"))
		settle()
		for _, target := range targets {
			want(t, target, w.notified(target), "Opened:i1")
		}
	})
}

func TestAScheduleOfOnesOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat)
		w.cfg.Retry = []time.Duration{time.Second, time.Minute}
		w.setDown(only(chat))
		defer w.run(w.open())()
		begin := time.Now()
		w.circuits.set("resize", opened(breaker.Record{}, "i1"))
		time.Sleep(150 * time.Second)
		settle()
		want(t, "attempts", fmt.Sprint(w.waits(chat, begin)), "[0s 1s 1m0s 1m0s]")
	})
}

// What stops in mid-work can be run again, and nothing of the first run is in the way.
func TestAServiceMayRunAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat)
		w.setDown(only(chat))
		s := w.open()
		r := breaker.Record{}
		for i := range 10 {
			stop := w.run(s)
			r = opened(r, fmt.Sprint("i", i))
			w.circuits.set("resize", r)
			time.Sleep(time.Duration(i) * time.Minute)
			stop()
			testkit.That(t, len(s.lanes) <= 0, "%d lanes are left", len(s.lanes))
			r = closed(r, "Ada")
		}
		w.setDown(nil)
		defer w.run(s)()
		time.Sleep(time.Hour)
		settle()
		if notified := w.notified(chat); !strings.HasSuffix(notified, "Opened:i9") {
			t.Errorf("told %q", notified)
		}
	})
}

// Whoever starts a yard anew may just have mended what was wrong.
func TestAStartTriesAtOnceWhatHadFailed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat)
		w.setDown(only(chat))
		stop := w.run(w.open())
		w.circuits.set("resize", opened(breaker.Record{}, "i1"))
		time.Sleep(20 * time.Minute)
		stop()
		settle()
		w.setDown(nil)
		defer w.run(w.open())()
		settle()
		want(t, "chat", w.notified(chat), "Opened:i1")
	})
}

// A receiver that could not be told before the incident ended is told of both at once, and of
// nothing that is not so any more.
func TestATargetNotReachedInTimeIsNotifiedOfTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat, pager)
		w.setDown(only(pager))
		s := w.open()
		defer w.run(s)()
		r := opened(breaker.Record{}, "i1")
		w.circuits.set("resize", r)
		time.Sleep(time.Minute)
		w.circuits.set("resize", closed(r, "Ada"))
		settle()
		w.setDown(nil)
		time.Sleep(time.Hour)
		settle()
		want(t, "chat", w.notified(chat), "Opened:i1 Closed:i1")
		want(t, "pager", w.notified(pager), "Closed:i1")
		if p := w.posted(pager)[0]; p.Failures != 101 || len(p.Errors) != 1 {
			t.Errorf("the end does not tell what it was: %+v", p)
		}
		if n := testutil.ToFloat64(s.metrics.notices.WithLabelValues("webhook", string(superseded))); n != 1 {
			t.Errorf("%v are counted as superseded", n)
		}
	})
}

// Later several nodes run this: each notice is sent by one of them.
func TestSeveralNodesSendOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat, pager)
		for range 3 {
			defer w.run(w.open())()
		}
		r := opened(breaker.Record{}, "i1")
		w.circuits.set("resize", r)
		settle()
		time.Sleep(time.Hour)
		w.circuits.set("resize", closed(r, "Ada"))
		settle()
		time.Sleep(time.Hour)
		settle()
		want(t, "grid", w.published(), "Opened/1 Closed/2")
		want(t, "chat", w.notified(chat), "Opened:i1 Closed:i1")
		want(t, "pager", w.notified(pager), "Opened:i1 Closed:i1")
	})
}

// A node that dies while it sends is replaced by another, when its claim has run out and not
// before.
func TestAClaimOfADeadNodeRunsOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat)
		hang := make(chan struct{})
		w.setDown(func(receiver string) error {
			if receiver == chat {
				<-hang
				return errors.New("gone")
			}
			return nil
		})
		mortal := &mortalStore{Store: w.meta}
		mortal.left.Store(1 << 30)
		durable := w.meta
		w.meta = mortal
		stop := w.run(w.open())
		w.circuits.set("resize", opened(breaker.Record{}, "i1"))
		settle() // it is sending
		mortal.left.Store(0)
		close(hang)
		stop()
		w.setDown(nil)
		w.meta = durable
		defer w.run(w.open())()
		time.Sleep(attemptTime + claimMargin - time.Second)
		settle()
		want(t, "before", w.notified(chat), "")
		time.Sleep(time.Second)
		settle()
		want(t, "after", w.notified(chat), "Opened:i1")
	})
}

// A stop in mid-attempt is no failure: the next start sends at once.
func TestAStopGivesTheClaimBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, boss)
		w.cfg.SMTP = SMTP{Addr: "smtp.example.com:587", From: "yard@example.com"}
		s := w.open()
		s.mailer.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		stop := w.run(s)
		w.circuits.set("resize", opened(breaker.Record{}, "i1"))
		settle()
		stop()
		e := must1(w.meta.Get(t.Context(), keyOf(resizers, "resize")))
		if it, _ := s.read(e.Key, e.Value).head(boss); it.Claim != nil || it.Attempts != 0 || it.Number == 0 {
			t.Errorf("it left %+v", it)
		}
	})
}

// Targets come from definitions only: one that was taken out is told nothing more, though not
// before all nodes know.
func TestARemovedTargetGetsNoMoreNotices(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat, pager)
		w.setDown(only(pager))
		s := w.open()
		defer w.run(s)()
		w.circuits.set("resize", opened(breaker.Record{}, "i1"))
		settle()
		w.circuits.setTargets(chat)
		w.setDown(nil)
		time.Sleep(time.Hour)
		settle()
		want(t, "pager", w.notified(pager), "")
		if n := testutil.ToFloat64(s.metrics.notices.WithLabelValues("webhook", string(unlisted))); n != 1 {
			t.Errorf("%v are counted as unlisted", n)
		}
	})
}

// A target that one node knows of sooner than the other is waited for.
func TestATargetThatIsNotKnownYetIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat, pager)
		s := w.open()
		testkit.Must(t, s.note(t.Context(), Circuit{resizers, "resize", opened(breaker.Record{}, "i1")}))
		w.circuits.setTargets(chat)
		defer w.run(s)()
		time.Sleep(time.Minute)
		settle()
		want(t, "pager", w.notified(pager), "")
		w.circuits.setTargets(chat, pager)
		time.Sleep(5 * time.Minute)
		settle()
		want(t, "pager", w.notified(pager), "Opened:i1")
	})
}

// A watch that is lost ends nothing that is under way, and what went meanwhile is forgotten.
func TestALostWatchIsBegunAnew(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, boss)
		w.cfg.SMTP = SMTP{Addr: "smtp.example.com:587", From: "yard@example.com"}
		store := metatest.NewFaulty(w.meta)
		s := w.open()
		s.follow(store)
		var dials, cuts atomic.Int64
		s.mailer.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			dials.Add(1)
			select {
			case <-ctx.Done():
				cuts.Add(1)
			case <-time.After(10 * time.Second):
			}
			return nil, errors.New("no")
		}
		defer w.run(s)()
		w.circuits.set("crop", closed(opened(breaker.Record{}, "i0"), "Ada"))
		w.circuits.set("resize", opened(breaker.Record{}, "i1"))
		settle()
		store.LoseWatches(ledgerPrefix)
		settle()
		gone := must1(w.meta.Get(t.Context(), keyOf(resizers, "crop")))
		testkit.Must(t, w.meta.Delete(t.Context(), gone.Key, gone.Revision))
		time.Sleep(14 * time.Second)
		settle()
		if dials.Load() != 1 || cuts.Load() != 0 {
			t.Errorf("%d attempts, %d of them cut off", dials.Load(), cuts.Load())
		}
		testkit.Equal(t, len(s.ledgers.Items()), 1, "ledgers are known")
		time.Sleep(2 * time.Second)
		settle()
		testkit.Equal(t, dials.Load(), 2, "attempts after the wait")
	})
}

// A function that is removed while it is stopped is no open incident any more, and leaves nothing
// behind.
func TestARemovedFunctionIsForgotten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat)
		defer w.run(w.open())()
		w.circuits.set("resize", opened(breaker.Record{}, "i1"))
		settle()
		w.circuits.remove("resize")
		time.Sleep(3 * sweepEvery)
		settle()
		want(t, "chat", w.notified(chat), "Opened:i1 Closed:i1")
		if text := w.posted(chat)[1].Text; !strings.Contains(text, "removed") {
			t.Errorf("the text is %q", text)
		}
		if all := must1(w.meta.List(t.Context(), ledgerPrefix)); len(all) > 0 {
			t.Errorf("%d ledgers are left", len(all))
		}
	})
}

// Who was told that it stopped hears that it is gone, although its definition went with it, and so
// does the grid.
func TestTargetsAreNotifiedOfTheEndOfTheirFunction(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat)
		defer w.run(w.open())()
		w.circuits.set("resize", opened(breaker.Record{}, "i1"))
		settle()
		w.circuits.remove("resize")
		w.circuits.setTargets()
		w.circuits.notify("resize", breaker.Record{})
		time.Sleep(time.Hour)
		settle()
		want(t, "chat", w.notified(chat), "Opened:i1 Closed:i1")
		want(t, "grid", w.published(), "Opened/1 Closed/2")
		if end := w.events[len(w.events)-1].Data; end.Incident != "i1" || end.PreviousState != breaker.Open || !strings.Contains(end.Reason, "removed") {
			t.Errorf("the end is %+v", end)
		}
	})
}

// Nothing is kept of what is gone, here or in the store.
func TestWhatIsGoneIsForgottenHereToo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat, pager)
		s := w.open()
		defer w.run(s)()
		for i := range 10 {
			name := fmt.Sprint("f", i)
			w.circuits.set(name, opened(breaker.Record{}, "i1"))
			settle()
			w.circuits.remove(name)
		}
		time.Sleep(5 * sweepEvery)
		settle()
		if all := must1(w.meta.List(t.Context(), ledgerPrefix)); len(all)+len(s.ledgers.Items())+len(s.lanes)+len(s.slots.used) > 0 {
			t.Errorf("left are %d ledgers, %d known, %d lanes and %d slots", len(all), len(s.ledgers.Items()), len(s.lanes), len(s.slots.used))
		}
	})
}

// Whoever may write a group's entries must not be able to silence the notices of the others.
func TestACircuitThatCannotBeReadHoldsUpNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat)
		defer w.run(w.open())()
		w.circuits.set("crop", opened(breaker.Record{}, "i1"))
		settle()
		w.circuits.setTrouble(errors.New("it cannot be read"))
		w.circuits.notify("crop", breaker.Record{})
		w.circuits.set("resize", opened(breaker.Record{}, "i2"))
		time.Sleep(time.Minute)
		settle()
		want(t, "chat", w.notified(chat), "Opened:i1 Opened:i2")
		w.circuits.remove("crop")
		w.circuits.setTrouble(nil)
		time.Sleep(2 * sweepEvery)
		settle()
		want(t, "when it can be read", w.notified(chat), "Opened:i1 Opened:i2 Closed:i1")
	})
}

// A lane that is at work is told of what comes, and nobody starts another: so it must not end once
// something has come, and must be known to have ended before anything else can come.
func TestALaneEndsOnlyWhenNothingWaitsForIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat)
		s := w.open()
		key := keyOf(resizers, "resize")
		l := &lane{outbox: s.outbox, id: laneID{key, chat}, bell: make(chan struct{}, 1)}
		s.lanes[l.id] = l
		testkit.Must(t, s.note(t.Context(), Circuit{resizers, "resize", opened(breaker.Record{}, "i1")}))
		var lanes sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		start := func(l *lane) { lanes.Go(func() { l.run(ctx) }) }
		s.startLanes(start) // for the grid only: the other is at work
		if _, more := s.next(l); !more || s.lanes[l.id] != l {
			t.Error("the lane has ended, and nobody sends what waits")
		}
		s.startLanes(start)
		settle()
		want(t, "chat, by a second lane", w.notified(chat), "")
		lanes.Go(func() { l.run(ctx) })
		settle()
		want(t, "chat", w.notified(chat), "Opened:i1")
		testkit.That(t, len(s.lanes) <= 0, "%d lanes are at work", len(s.lanes))
		testkit.Must(t, s.note(t.Context(), Circuit{resizers, "resize", closed(opened(breaker.Record{}, "i1"), "Ada")}))
		s.startLanes(start)
		settle()
		want(t, "chat, by the next lane", w.notified(chat), "Opened:i1 Closed:i1")
		stop()
		lanes.Wait()
	})
}

// Who tells of all circuits may begin with blank ones before it has read them.
func TestABlankCircuitIsLookedAtBeforeItIsBelieved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat)
		s := w.open()
		defer w.run(s)()
		r := opened(breaker.Record{}, "i1")
		w.circuits.set("resize", r)
		settle()
		testkit.Must(t, s.note(t.Context(), Circuit{resizers, "resize", breaker.Record{}}))
		testkit.Must(t, s.note(t.Context(), Circuit{resizers, "never", breaker.Record{}}))
		settle()
		want(t, "chat", w.notified(chat), "Opened:i1")
		w.circuits.set("resize", breaker.Record{})
		settle()
		want(t, "chat", w.notified(chat), "Opened:i1 Closed:i1")
		testkit.Equal(t, len(must1(w.meta.List(t.Context(), ledgerPrefix))), 1, "ledgers are there")
	})
}

// The store fails now and then, also to watch, and its watches are lost.
func TestAFailingStoreLosesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat, pager)
		s := w.open()
		flaky := metatest.NewFaulty(w.meta)
		flaky.Inject(func(op metatest.Op) error {
			switch {
			case op.Kind == metatest.OpSet && op.N%4 == 0:
				return meta.ErrNoSpace
			case op.Kind == metatest.OpSet && op.N%4 == 1: // it was stored, and nobody knows
				return metatest.Unheard(meta.ErrUncertain)
			case op.Kind == metatest.OpWatch && op.N%3 == 2:
				return errors.New("not now")
			case op.Kind == metatest.OpNext && op.N%3 == 0:
				return meta.ErrWatchLost
			}
			return nil
		})
		s.follow(flaky)
		defer w.run(s)()
		r := opened(breaker.Record{}, "i1")
		w.circuits.set("resize", r)
		time.Sleep(5 * time.Minute)
		settle()
		w.circuits.set("resize", closed(r, "Ada"))
		time.Sleep(5 * time.Minute)
		settle()
		want(t, "grid", w.published(), "Opened/1 Closed/2")
		want(t, "chat", w.notified(chat), "Opened:i1 Closed:i1")
		want(t, "pager", w.notified(pager), "Opened:i1 Closed:i1")
	})
}

// A process that does not know whether it has a claim need not wait for it to run out: the claim is
// its own.
func TestAClaimOfOnesOwnIsNotWaitedFor(t *testing.T) {
	for _, n := range []int{1, 2, 3} { // the change, the claim, and what came of it
		t.Run(fmt.Sprint("write ", n), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				s := w.open()
				store := metatest.NewFaulty(w.meta)
				store.Inject(func(op metatest.Op) error {
					if op.Kind == metatest.OpSet && op.N == n {
						return metatest.Unheard(meta.ErrUncertain)
					}
					return nil
				})
				s.follow(store)
				defer w.run(s)()
				w.circuits.set("resize", opened(breaker.Record{}, "i1"))
				time.Sleep(3 * time.Second)
				settle()
				want(t, "grid", w.published(), "Opened/1")
			})
		})
	}
}

// Many circuits open at once when what all of them need fails; a server is not stormed.
func TestManyAtOnceAreSentAFewAtATime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat)
		var mu sync.Mutex
		now, most := 0, 0 // guarded by mu
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			now += n
			most = max(most, now)
		}
		w.down = nil
		s := w.open()
		s.cfg.Topics = publisherFunc(func() error {
			count(1)
			time.Sleep(time.Second)
			count(-1)
			return nil
		})
		defer w.run(s)()
		for i := range 50 {
			w.circuits.set(fmt.Sprint("f", i), opened(breaker.Record{}, fmt.Sprint("i", i)))
		}
		time.Sleep(time.Minute)
		settle()
		mu.Lock()
		defer mu.Unlock()
		if n := len(w.posted(chat)); n != 50 || most != eventSlots || now != 0 {
			t.Errorf("%d posts, %d events at once, %d under way", n, most, now)
		}
	})
}

type publisherFunc func() error

func (f publisherFunc) Announce(context.Context, [][]byte) error { return f() }

// What cannot be stored ever must not keep others from being noticed.
func TestAnImpossibleNameHoldsUpNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, chat)
		defer w.run(w.open())()
		w.circuits.set(strings.Repeat("long", 400), opened(breaker.Record{}, "i1"))
		w.circuits.set("resize", opened(breaker.Record{}, "i2"))
		settle()
		want(t, "chat", w.notified(chat), "Opened:i2")
	})
}
