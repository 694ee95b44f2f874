package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// slot is the entry of partition 0 for the default group, with nobody's double in between.
func (f *federation) slot(t *testing.T) slotEntry {
	t.Helper()
	var s slotEntry
	for _, e := range testkit.Value(f.Memory.List(t.Context(), slotsPrefix))(t) {
		if at, _ := slotOfKey(e.Key); at.partition == "0" && at.group == DefaultGroup {
			testkit.Must(t, json.Unmarshal(e.Value, &s))
		}
	}
	return s
}

// H5, C4: a receiver takes the slot from one at another node, which is silent before it begins.
func TestEpochTakesTheSlotAtAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 3)
		a, b, c := f.members[0], f.members[1], f.members[2]
		first := mustReceive(t, a.Broker, DefaultGroup, "first", new(int64(4)))
		began := time.Now()
		second := mustReceive(t, b.Broker, DefaultGroup, "second", new(int64(4)))
		want := EvictedError{Name: "first", Epoch: new(int64(4)), NewName: "second", NewEpoch: 4}
		if got := first.evictions(); len(got) != 1 || got[0].Error() != want.Error() {
			t.Fatalf("first was told %v", got)
		}
		testkit.Equal(t, time.Since(began), 0, "it took")
		for _, epoch := range []*int64{new(int64(3)), nil} {
			if _, err := receive(t, c.Broker, DefaultGroup, "third", epoch); !refusedByEpoch(err) {
				t.Errorf("a lower epoch, or none: %v", err)
			}
		}
		if got := second.evictions(); len(got) != 0 || !second.Ready(func() {}) {
			t.Errorf("second was told %v", got)
		}
		// Everybody sees who is there.
		for _, m := range f.members {
			got := testkit.Value(m.Receivers(t.Context(), "orders", DefaultGroup))(t)
			if len(got) != 1 || got[0].Name != "second" || *got[0].Epoch != 4 || got[0].Partition != "0" {
				t.Errorf("%s sees %+v", m.nodes.Self().ID, got)
			}
		}
		// Who closes here makes room there, at once.
		second.Close()
		third := mustReceive(t, c.Broker, DefaultGroup, "third", nil)
		testkit.Equal(t, time.Since(began) < time.Second, true, "it was quick")
		third.Close()
		time.Sleep(tidyPause)
		if s := f.slot(t); len(s.Holders)+len(s.Leaving) > 0 {
			t.Errorf("left behind: %+v", s)
		}
	})
}

// C4: while receivers take a slot from each other, their own writes are the only ones, so that none of
// them meets another. What those leave behind who have lost it is removed a little later.
func TestTakeOversMeetNoOtherWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 3)
		var writes atomic.Int64
		for _, m := range f.members {
			m.store.Inject(func(op metatest.Op) error {
				if op.Kind == metatest.OpSet && op.Under(slotsPrefix) {
					writes.Add(1)
				}
				return nil
			})
		}
		const times = 7
		for i := range times {
			mustReceive(t, f.members[i%3].Broker, DefaultGroup, "r", new(int64(i)))
			synctest.Wait()
		}
		testkit.Equal(t, writes.Load(), times, "writes")
		testkit.That(t, len(f.slot(t).Leaving) > 0, "nobody is leaving")
		time.Sleep(leavingPause + tidyPause) // nodes that meet each other's change try again
		testkit.Equal(t, len(f.slot(t).Leaving), 0, "are leaving")
		testkit.Equal(t, len(f.slot(t).Holders), 1, "have the slot")
	})
}

// H6, C4: the number of receivers without epoch holds over all nodes.
func TestReceiversWithoutEpochAreCountedOverAllNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 3)
		var all []*reader
		for i := range MaxReceivers {
			all = append(all, mustReceive(t, f.members[i%3].Broker, DefaultGroup, fmt.Sprint(i), nil))
		}
		for _, m := range f.members {
			_, err := receive(t, m.Broker, DefaultGroup, "one more", nil)
			if full, ok := errors.AsType[*ReceiverQuotaError](err); !ok || len(full.Names) != MaxReceivers {
				t.Errorf("got %v", err)
			}
		}
		mustReceive(t, f.members[1].Broker, "billing", "another group", nil)
		all[2].Close() // at the third node
		mustReceive(t, f.members[0].Broker, DefaultGroup, "one more", nil)
		taker := mustReceive(t, f.members[1].Broker, DefaultGroup, "taker", new(int64(0)))
		for i, r := range all {
			if got := len(r.evictions()); got != 1 && i != 2 {
				t.Errorf("%d was told %d times", i, got)
			}
		}
		testkit.Equal(t, len(taker.evictions()), 0, "the taker was told")
	})
}

// C4: an operator ends receivers wherever they are.
func TestDisconnectAtAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2)
		r := mustReceive(t, f.members[0].Broker, DefaultGroup, "r", new(int64(9)))
		n := testkit.Value(f.members[1].Disconnect(t.Context(), "orders", DefaultGroup, "0"))(t)
		if n != 1 || len(r.evictions()) != 1 || r.evictions()[0].NewName != operator {
			t.Errorf("%d, told %v", n, r.evictions())
		}
		testkit.Equal(t, testkit.Value(f.members[1].Disconnect(t.Context(), "orders", DefaultGroup, "0"))(t), 0, "more were there")
		mustReceive(t, f.members[1].Broker, DefaultGroup, "next", new(int64(0)))
	})
}

// C4: where the request to evict is lost, the watch does it, and asking again ends the wait.
func TestARequestToEvictIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2)
		first := mustReceive(t, f.members[0].Broker, DefaultGroup, "first", new(int64(1)))
		asked := 0
		f.lose(func(r cluster.Request) bool {
			asked++
			return r.Subject == subjectEvict && asked <= 2
		})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			mustReceive(t, f.members[1].Broker, DefaultGroup, "second", new(int64(1)))
		}()
		synctest.Wait()
		testkit.Equal(t, len(first.evictions()), 1, "first was told")
		select {
		case <-ended:
			t.Error("nobody has confirmed, and it begins")
		default:
		}
		<-ended
	})
}

// C4: who is cut off is paused, and goes on where nobody came meanwhile.
func TestAPausedReceiverGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2)
		m := f.members[0]
		r := mustReceive(t, m.Broker, DefaultGroup, "r", new(int64(1)))
		plain := mustReceive(t, m.Broker, "billing", "plain", nil)
		woken := 0
		wake := func() { woken++ }
		m.isolate(true)
		time.Sleep(cluster.QuietAfter)
		if r.Ready(wake) || !plain.Ready(wake) {
			t.Error("it is not paused, or the one without epoch is")
		}
		time.Sleep(time.Minute) // the other has seen it dead
		testkit.Equal(t, woken, 0, "woken while it is cut off")
		m.isolate(false)
		time.Sleep(3 * cluster.WriteInterval)
		if !r.Ready(wake) || woken != 1 || len(r.evictions()) > 0 {
			t.Errorf("ready: %t, woken %d times, told %v", r.Ready(wake), woken, r.evictions())
		}
		// It has the slot in a term of its own again, and loses it as anyone does.
		second := mustReceive(t, f.members[1].Broker, DefaultGroup, "second", new(int64(1)))
		if len(r.evictions()) != 1 || len(second.evictions()) != 0 {
			t.Error("the slot was not taken over")
		}
	})
}

// C4: a node that is back has its slot confirmed before another hears that it lives again. That one
// takes it as from anyone who lives.
func TestAReturnThatOthersHaveNotHeardOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2)
		a, b := f.members[0], f.members[1]
		first := mustReceive(t, a.Broker, DefaultGroup, "first", new(int64(1)))
		a.isolate(true)
		testkit.Must(t, b.nodes.AwaitDeath(t.Context(), a.nodes.Self(), 0))
		b.store.Inject(func(op metatest.Op) error {
			if op.Kind == metatest.OpList && op.Under("nodes/") {
				return meta.ErrUnavailable
			}
			return nil
		})
		a.isolate(false)
		time.Sleep(2 * cluster.WriteInterval)
		if !first.Ready(nil) || b.nodes.Alive(a.nodes.Self()) {
			t.Fatal("it is not back, or the other has heard of it")
		}
		asked := 0
		f.lose(func(r cluster.Request) bool {
			if r.Subject == subjectEvict {
				asked++
			}
			return false
		})
		mustReceive(t, b.Broker, DefaultGroup, "second", new(int64(1)))
		testkit.Equal(t, asked, 2, "requests and answers of evictions") // one each
	})
}

// H7, C4: who is cut off or frozen loses the slot in the end, is silent before, and hears of it.
func TestTheSlotOfADeadNodeIsTaken(t *testing.T) {
	for _, epoch := range []*int64{new(int64(7)), new(int64(0))} {
		for _, how := range []string{"cut off", "frozen"} {
			t.Run(fmt.Sprintf("%s, by epoch %d", how, *epoch), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFederation(t, 3)
					m := f.members[0]
					first := mustReceive(t, m.Broker, DefaultGroup, "first", new(int64(7)))
					thaw := func() { m.isolate(false) }
					if how == "frozen" {
						end := m.freeze()
						thaw = func() {
							end(func() { testkit.Equal(t, first.Ready(func() {}), false, "ready at once") })
						}
					} else {
						m.isolate(true)
						f.lose(func(r cluster.Request) bool { return r.To == m.nodes.Self() })
					}
					began := time.Now()
					var second *reader
					for second == nil { // a lower epoch is refused until then
						second, _ = receive(t, f.members[1].Broker, DefaultGroup, "second", epoch)
						time.Sleep(100 * time.Millisecond)
					}
					if took := time.Since(began); took < cluster.QuietAfter || took > 25*time.Second {
						t.Errorf("it took %v", took)
					}
					if first.Ready(func() {}) || !second.Ready(func() {}) {
						t.Error("the wrong one reads")
					}
					if got := testkit.Value(f.members[2].Receivers(t.Context(), "orders", DefaultGroup))(t); len(got) != 1 || got[0].Name != "second" {
						t.Errorf("%+v are there", got)
					}
					f.lose(nil)
					thaw()
					time.Sleep(2 * cluster.WriteInterval)
					if len(first.evictions()) != 1 || first.Ready(func() {}) {
						t.Errorf("first was told %v", first.evictions())
					}
					testkit.Equal(t, len(second.evictions()), 0, "second was told")
				})
			})
		}
	}
}

// H7, C5: who waits for the slot of a node that does not answer has it at the moment that the node is seen
// dead, whatever it was doing then. That is at most DeadAfter after the node's last write, and a look.
func TestTheSlotOfADeadNodeIsTakenAtOnce(t *testing.T) {
	for i := range 8 { // at any time between two requests to evict
		synctest.Test(t, func(t *testing.T) {
			f := newFederation(t, 2)
			m, other := f.members[0], f.members[1]
			mustReceive(t, m.Broker, DefaultGroup, "first", new(int64(7)))
			thaw := m.freeze()
			lost := time.Now()
			time.Sleep(time.Duration(i) * 400 * time.Millisecond)
			dead := make(chan time.Time, 1)
			go func() {
				testkit.Check(t, other.nodes.AwaitDeath(t.Context(), m.nodes.Self(), 0))
				dead <- time.Now()
			}()
			mustReceive(t, other.Broker, DefaultGroup, "second", new(int64(8)))
			taken, seen := time.Now(), <-dead
			testkit.Equal(t, taken.Sub(seen), 0, "time between the node's death and the slot's being taken")
			const bound = cluster.DeadAfter + 2*cluster.LookInterval
			testkit.That(t, taken.Sub(lost) <= bound, "it took %v", taken.Sub(lost))
			thaw(func() {})
		})
	}
}

// C4: a receiver without epoch whose node was dead takes its slot again, or is told who has it.
func TestReceiversWithoutEpochComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2)
		m := f.members[0]
		stays := mustReceive(t, m.Broker, DefaultGroup, "stays", nil)
		goes := mustReceive(t, m.Broker, "billing", "goes", nil)
		m.isolate(true)
		time.Sleep(20 * time.Second)
		mustReceive(t, f.members[1].Broker, DefaultGroup, "beside", nil)
		mustReceive(t, f.members[1].Broker, "billing", "instead", new(int64(1)))
		if !stays.Ready(nil) || !goes.Ready(nil) {
			t.Error("they are paused")
		}
		m.isolate(false)
		time.Sleep(3 * cluster.WriteInterval)
		testkit.Equal(t, len(stays.evictions()), 0, "stays was told")
		if got := goes.evictions(); len(got) != 1 || got[0].NewName != "instead" || got[0].NewEpoch != 1 {
			t.Errorf("goes was told %v", got)
		}
		testkit.Equal(t, len(f.slot(t).Holders), 2, "have the slot")
	})
}

// C4: a write whose answer is lost is found, and one that was given up is taken back.
func TestDoubtAboutASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2)
		m := f.members[0]
		m.store.InjectOnce(func(op metatest.Op) bool { return op.Kind == metatest.OpSet && op.Under(slotsPrefix) },
			func(metatest.Op) error { return metatest.Unheard(meta.ErrUncertain) })
		r := mustReceive(t, m.Broker, DefaultGroup, "r", new(int64(1)))
		testkit.Equal(t, len(f.slot(t).Holders), 1, "have the slot")
		testkit.Equal(t, r.Ready(nil), true, "ready")
		m.store.Inject(func(op metatest.Op) error {
			if op.Kind == metatest.OpSet && op.Under(slotsPrefix) {
				return metatest.Unheard(context.DeadlineExceeded)
			}
			return nil
		})
		_, err := receive(t, m.Broker, "billing", "given up", new(int64(1)))
		testkit.ErrorIs(t, err, context.DeadlineExceeded)
		m.store.Inject(nil)
		time.Sleep(2 * tidyPause)
		if got := testkit.Value(f.members[1].Receivers(t.Context(), "orders", "billing"))(t); len(got) > 0 {
			t.Errorf("%+v are there", got)
		}
	})
}

// C4: a node that stops leaves no receivers behind.
func TestANodeThatStopsLeavesItsSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2)
		r := mustReceive(t, f.members[0].Broker, DefaultGroup, "r", new(int64(9)))
		r.Close()
		f.members[0].stop()
		began := time.Now()
		mustReceive(t, f.members[1].Broker, DefaultGroup, "next", new(int64(0)))
		testkit.Equal(t, time.Since(began), 0, "it took")
	})
}

// C4: with the hub its slots go.
func TestSlotsAreDeletedWithTheHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2)
		r := mustReceive(t, f.members[0].Broker, DefaultGroup, "r", new(int64(9)))
		testkit.Must(t, f.members[1].DeleteHub(t.Context(), "orders"))
		synctest.Wait()
		_, err := r.Cursor.Next(t.Context())
		testkit.ErrorIs(t, err, eventlog.ErrRemoved)
		r.Close()
		time.Sleep(2 * tidyPause)
		if left := testkit.Value(f.Memory.List(t.Context(), slotsPrefix))(t); len(left) > 0 {
			t.Errorf("%d slots stay behind", len(left))
		}
		testkit.Equal(t, len(r.evictions()), 0, "it was told")
	})
}

// C4: requests of nodes that are none harm nobody: what is too large or cannot be read is refused, and
// who does not know a receiver's random id evicts nobody.
func TestForgedRequestsAboutReceivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2)
		a, b := f.members[0], f.members[1]
		first := mustReceive(t, a.Broker, DefaultGroup, "first", new(int64(4)))
		for _, subject := range []string{subjectEvict, subjectCheck} {
			for what, body := range map[string][]byte{"nothing": nil, "no list": []byte(`{"id":7}`), "too much": make([]byte, maxAskedBytes+1)} {
				_, err := b.nodes.Ask(t.Context(), a.nodes.Self(), subject, body)
				testkit.That(t, err != nil, "%s is asked %s", subject, what)
			}
			guess := encode([]holder{{ID: "guess", Node: a.nodes.Self(), Name: "first", Epoch: new(int64(4))}, {}})
			testkit.Must(t, testkit.Err(b.nodes.Ask(t.Context(), a.nodes.Self(), subject, guess)))
		}
		testkit.That(t, len(first.evictions()) == 0 && first.Ready(nil), "it was evicted: %v", first.evictions())
	})
}
