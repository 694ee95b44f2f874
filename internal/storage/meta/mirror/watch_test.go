package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// What one process changes the others know, without being asked.
func TestTablesSeeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a, b := load(t, s), load(t, s)
		a.put("before", "1") // while nobody watches
		a.run()
		b.run()
		synctest.Wait()
		b.want(1, map[string]string{"before": "1"})
		a.put("orders", "1")
		synctest.Wait()
		b.put("orders", "2")
		b.put("other", "1")
		synctest.Wait()
		a.want(3, map[string]string{"before": "1", "orders": "2", "other": "1"})
		a.delete("orders")
		b.delete("other")
		synctest.Wait()
		for _, x := range []*table{a, b} {
			x.want(1, map[string]string{"before": "1"})
		}
	})
}

// A process that was cut off catches up with what was made, changed and deleted meanwhile, by
// others and by itself.
func TestWatchIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		other := load(t, s.beside())
		for _, key := range []string{"stays", "goes", "changes", "returns"} {
			other.put(key, "1")
		}
		x := load(t, s)
		x.run()
		for range 3 { // also when it is lost again at once
			synctest.Wait()
			s.cut()
		}
		synctest.Wait() // it pauses now
		other.delete("goes")
		other.put("changes", "2")
		other.delete("returns")
		other.put("returns", "2")
		other.put("comes", "1")
		x.put("mine", "1")
		x.put("brief", "1")
		x.delete("brief")
		if _, ok := x.Get(prefix + "goes"); !ok {
			t.Error("it knows without watching")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		x.want(5, map[string]string{"stays": "1", "changes": "2", "returns": "2", "comes": "1", "mine": "1"})
	})
}

// H9: a watch that is late brings nothing back, neither an old value nor what was deleted.
func TestLateWatchBringsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, let := newStore(), make(chan struct{})
		s.Inject(func(op metatest.Op) error {
			if op.Kind != metatest.OpNext {
				return nil
			}
			return metatest.After(func(err error) error { // the watch passes on what it has when it is let
				<-let
				return err
			})
		})
		x := load(t, s)
		x.run()
		defer close(let)
		let <- struct{}{}
		x.put("orders", "1")
		synctest.Wait() // the watch has the first value in its hands
		x.put("orders", "2")
		let <- struct{}{}
		synctest.Wait()
		x.want(1, map[string]string{"orders": "2"})
		x.delete("orders")
		x.want(1, nil)
		for range 2 { // the second value, then the deletion
			let <- struct{}{}
			synctest.Wait()
			x.want(-1, nil)
		}
		x.want(0, nil)
	})
}

// scripted is a store whose watches report what the test says, one piece at a time.
type scripted struct {
	meta.Store
	news chan []meta.Change
}

func (s scripted) Watch(ctx context.Context, _ string) (meta.Watcher, error) {
	return scriptedWatcher{ctx, s.news}, nil
}

type scriptedWatcher struct {
	ctx  context.Context
	news chan []meta.Change
}

func (w scriptedWatcher) Next() ([]meta.Change, error) {
	select {
	case changes := <-w.news:
		return changes, nil
	case <-w.ctx.Done():
		return nil, w.ctx.Err()
	}
}

// H9: what was made and deleted here after a watch's first look, and before that was taken over,
// does not come back when the watch reports how it was made.
func TestBriefEntryDuringTheFirstLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scripted{newStore(), make(chan []meta.Change)}
		x := load(t, s)
		x.run()
		synctest.Wait() // the watch has been asked for
		made := x.put("orders", "1")
		x.delete("orders")
		for _, news := range [][]meta.Change{
			nil, // the first look: there is nothing yet
			{{Entry: meta.Entry{Key: made.Key, Revision: made.Revision, Value: []byte("1")}}},
			{{Entry: meta.Entry{Key: made.Key, Revision: made.Revision + 1}, Deleted: true}},
		} {
			s.news <- news
			synctest.Wait()
			x.want(-1, nil)
		}
		x.want(0, nil)
	})
}

// What is gone when a watch begins anew goes in one step.
func TestMissingEntriesGoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		other := load(t, s.beside())
		for i := range 100 {
			other.put(fmt.Sprint(i), "1")
		}
		x := load(t, s)
		for i := range 100 {
			other.delete(fmt.Sprint(i))
		}
		calls := x.calls
		x.run()
		synctest.Wait()
		if x.want(0, nil); x.calls != calls+1 {
			t.Errorf("%d calls of Apply", x.calls-calls)
		}
	})
}

// A change of our own that the store made before somebody else's deletion, and that is known here
// only after a new watch has begun without the entry, does not bring it back.
func TestChangeUnderWayWhileTheWatchIsLost(t *testing.T) {
	for _, remake := range []bool{false, true} {
		t.Run(fmt.Sprint("made anew ", remake), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				other := load(t, s.beside())
				other.put("orders", "1")
				x := load(t, s)
				x.run()
				synctest.Wait()
				answer := make(chan struct{})
				s.change(func(metatest.Op) error {
					return metatest.After(func(err error) error {
						<-answer
						return err
					})
				})
				changed := make(chan struct{})
				go func() {
					x.put("orders", "2")
					close(changed)
				}()
				synctest.Wait() // it is stored, and nobody here knows but the watch
				s.cut()
				other.delete("orders")
				want := map[string]string{}
				if remake {
					other.put("orders", "3")
					want["orders"] = "3"
				}
				time.Sleep(time.Second)
				synctest.Wait() // a new watch has begun
				close(answer)
				<-changed
				synctest.Wait()
				x.want(len(want), want)
			})
		})
	}
}

// An entry that cannot be read stops none of the others; the one that was there stays. A start says
// so.
func TestUnreadableEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		other, x := load(t, s), load(t, s)
		x.run()
		good := other.put("orders", "1")
		synctest.Wait()
		bad := testkit.Value(s.CompareAndSet(t.Context(), good.Key, good.Revision, []byte("{")))(t)
		testkit.Must(t, testkit.Err(s.CompareAndSet(t.Context(), prefix+"new", 0, []byte("{"))))
		other.put("other", "1")
		synctest.Wait()
		x.want(2, map[string]string{"orders": "1", "other": "1"})
		testkit.ErrorIs(t, newTable(t, s).Load(t.Context()), errUnreadable, "load")
		testkit.ErrorIs(t, testkit.Err(x.Read(t.Context(), good.Key)), errUnreadable, "read")
		testkit.ErrorIs(t, testkit.Err(x.Change(t.Context(), good.Key, func(*string) error { return nil })), errUnreadable, "change")
		s.cut() // what the new watch begins with is unreadable, but there
		time.Sleep(time.Second)
		synctest.Wait()
		x.want(2, map[string]string{"orders": "1", "other": "1"})
		testkit.Must(t, s.Delete(t.Context(), good.Key, bad))
		synctest.Wait()
		x.want(1, map[string]string{"other": "1"})
	})
}

// A watch that fails for good is reported, not passed over.
func TestWatchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, fails := range map[string]metatest.OpKind{
			"it does not begin":                   metatest.OpWatch,
			"what is missing cannot be looked up": metatest.OpGet,
		} {
			s := newStore()
			other := load(t, s.beside())
			other.put("orders", "1")
			x := load(t, s)
			other.delete("orders")
			s.fail(fails)
			if err := x.Run(t.Context()); !errors.Is(err, errBroken) || !strings.HasPrefix(err.Error(), "watch things: ") {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// C5: while the store is out of reach a table goes on with what it knows and says so once; it asks
// less and less often, and catches up by itself.
func TestTheStoreIsOutOfReach(t *testing.T) {
	for _, kind := range []metatest.OpKind{metatest.OpWatch, metatest.OpNext, metatest.OpGet} {
		t.Run(kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				other := load(t, s.beside())
				other.put("goes", "1")
				x := load(t, s)
				var log testkit.Buffer
				x.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
				other.delete("goes")
				other.put("comes", "1")
				s.Inject(func(op metatest.Op) error {
					if op.Kind == kind {
						return fmt.Errorf("no majority: %w", meta.ErrUnavailable)
					}
					return nil
				})
				x.run()
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if _, ok := x.Get(prefix + "goes"); !ok {
					t.Error("what is known is forgotten")
				}
				tries := s.Count(kind)
				if least, most := int(10*time.Minute/maxLostPause), int(20*time.Minute/maxLostPause)+10; tries < least || tries > most {
					t.Errorf("%d tries in ten minutes, want %d to %d", tries, least, most)
				}
				if lines := strings.Count(log.String(), "level=WARN"); lines != 1 {
					t.Errorf("%d warnings:\n%s", lines, log.String())
				}
				s.Inject(nil)
				time.Sleep(maxLostPause)
				synctest.Wait()
				x.want(1, map[string]string{"comes": "1"})
				s.cut() // the next trouble is another
				synctest.Wait()
				if lines := strings.Count(log.String(), "level=WARN"); lines != 2 {
					t.Errorf("%d warnings after the watch was lost once more", lines)
				}
			})
		})
	}
}

// Run ends where it is: while it watches, and while it waits to watch again. Another catches up.
func TestRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		other, x := load(t, s.beside()), load(t, s)
		other.put("goes", "1")
		for _, lost := range []bool{false, true} {
			stop := x.run()
			synctest.Wait()
			x.want(1, map[string]string{"goes": "1"})
			if lost {
				s.cut()
				synctest.Wait()
			}
			began := time.Now()
			stop()
			if took := time.Since(began); took > 0 {
				t.Errorf("it took %v", took)
			}
		}
		other.delete("goes")
		other.put("comes", "1")
		x.run()
		synctest.Wait()
		x.want(1, map[string]string{"comes": "1"})
	})
}

// Run ends also while it waits for a change of its own process that hangs; the next Run waits for
// it all the same.
func TestRunEndsDespiteAChangeThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, answer := newStore(), make(chan struct{})
		x, other := load(t, s), load(t, s.beside())
		s.change(func(metatest.Op) error {
			return metatest.After(func(err error) error {
				<-answer
				return err
			})
		})
		changed := make(chan struct{})
		go func() {
			x.put("orders", "1")
			close(changed)
		}()
		synctest.Wait() // it is stored, and nobody here knows
		other.delete("orders")
		stop := x.run()
		synctest.Wait() // it watches, and waits for the change
		stop()
		x.run()
		synctest.Wait()
		close(answer)
		<-changed
		synctest.Wait()
		x.want(0, nil)
	})
}
