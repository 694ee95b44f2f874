package mirror

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// A change is in use when the call returns, also where the watch was faster, and Apply has heard of
// it.
func TestChangesAreInUseWhenTheyReturn(t *testing.T) {
	s := newStore()
	x := load(t, s)
	x.run()
	want := map[string]string{}
	for i := range 200 {
		key, value := fmt.Sprint(i%3), fmt.Sprint(i)
		x.put(key, value)
		want[key] = value
		x.want(-1, want)
		if i%4 == 3 {
			x.delete(key)
			delete(want, key)
			x.want(-1, want)
		}
	}
}

func TestRead(t *testing.T) {
	x := load(t, newStore())
	x.put("orders", "1")
	for _, key := range []string{prefix + "missing", prefix + "no\x00key", ""} {
		testkit.ErrorIs(t, testkit.Err(x.Read(t.Context(), key)), meta.ErrNotFound, "%q", key)
	}
	if item, err := x.Read(t.Context(), orders); err != nil || item.Value != "1" || !item.Exists() {
		t.Errorf("got %+v, %v", item, err)
	}
	if items, err := x.List(t.Context(), prefix); err != nil || len(items) != 1 || items[0].Key != orders {
		t.Errorf("got %+v, %v", items, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	testkit.ErrorIs(t, x.Load(ctx), context.Canceled)
}

// What another has stored is in use after Refresh, without the watch, and nothing older ever is.
func TestRefresh(t *testing.T) {
	s := newStore()
	x, other := load(t, s), load(t, s.beside())
	testkit.ErrorIs(t, x.Refresh(t.Context(), orders), meta.ErrNotFound)
	other.put("orders", "1")
	testkit.Must(t, x.Refresh(t.Context(), orders))
	x.want(-1, map[string]string{"orders": "1"})
	x.put("orders", "2")
	testkit.Must(t, x.Refresh(t.Context(), orders))
	x.want(-1, map[string]string{"orders": "2"})
	s.fail(metatest.OpGet)
	testkit.ErrorIs(t, x.Refresh(t.Context(), orders), errBroken)
	x.want(-1, map[string]string{"orders": "2"})
}

// Two changes of one entry both last, whichever comes first.
func TestConcurrentChangesAreMerged(t *testing.T) {
	s := newStore()
	x, other := load(t, s), load(t, s.beside())
	x.put("orders", "1")
	s.InjectOnce(metatest.Op.Changes, func(metatest.Op) error {
		other.put("orders", "12")
		return nil
	})
	calls := 0
	changed, err := x.Change(t.Context(), orders, func(v *string) error {
		calls++
		*v += "3"
		return nil
	})
	if err != nil || changed.Value != "123" || calls != 2 {
		t.Errorf("got %+v, %v after %d calls", changed, err, calls)
	}
	x.want(1, map[string]string{"orders": "123"})
}

func TestWhatChangeReturns(t *testing.T) {
	s := newStore()
	x := load(t, s)
	before := x.put("orders", "1")
	testkit.ErrorIs(t, testkit.Err(x.Change(t.Context(), prefix+"missing", nil)), meta.ErrNotFound, "of what is not there")
	if _, err := x.Change(t.Context(), orders, func(*string) error { return errBroken }); !errors.Is(err, errBroken) {
		t.Errorf("of one that is refused: %v", err)
	}
	got, err := x.Change(t.Context(), orders, func(v *string) error { return ErrUnchanged })
	if err != nil || got != before {
		t.Errorf("of one that is as it should be: %+v, %v", got, err)
	}
	s.fail(metatest.OpSet, metatest.OpDelete)
	testkit.ErrorIs(t, testkit.Err(x.Change(t.Context(), orders, func(*string) error { return nil })), errBroken, "of a store that fails")
	testkit.ErrorIs(t, x.Delete(t.Context(), before), errBroken, "deletion by a store that fails")
	x.want(1, map[string]string{"orders": "1"})
	s.Inject(nil)
	if _, err := x.Put(t.Context(), Item[string]{Key: orders, Revision: before.Revision, Value: "{"}); !errors.Is(err, errUnreadable) {
		t.Errorf("of what is unreadable: %v", err)
	}
	x.want(1, map[string]string{"orders": "1"})
}

// What another process has changed is not deleted.
func TestDeleteMeetsAChange(t *testing.T) {
	s := newStore()
	x, other := load(t, s), load(t, s)
	old := x.put("orders", "1")
	other.put("orders", "2")
	if err := x.Delete(t.Context(), old); !errors.Is(err, meta.ErrConflict) || !GoneOrChanged(err) {
		t.Errorf("got %v", err)
	}
	x.want(1, map[string]string{"orders": "1"})
	other.delete("orders")
	if err := x.Delete(t.Context(), old); !GoneOrChanged(err) {
		t.Errorf("got %v", err)
	}
}

// An entry is removed though others change it, and not if there is none.
func TestRemove(t *testing.T) {
	s := newStore()
	x, other := load(t, s), load(t, s.beside())
	x.put("orders", "1")
	changes := 3
	s.change(func(metatest.Op) error {
		if changes--; changes >= 0 {
			other.put("orders", fmt.Sprint(changes))
		}
		return nil
	})
	testkit.Check(t, x.Remove(t.Context(), orders))
	x.want(1, nil)
	testkit.ErrorIs(t, x.Remove(t.Context(), orders), meta.ErrNotFound, "once more")
}

// What is known to be no more is not shown until the watch reports what took its place.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		x, other := load(t, s), load(t, s)
		old := x.put("orders", "1")
		other.put("orders", "2")
		x.Forget(Item[string]{Key: prefix + "unknown", Revision: 7})
		x.Forget(old)
		x.want(1, nil)
		x.run()
		synctest.Wait()
		x.Forget(old) // it has become another by now
		x.want(1, map[string]string{"orders": "2"})
	})
}

// Who learns that an entry is no longer what the store had knows that it is not what it was before,
// either.
func TestForgetWhatIsOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		other := load(t, s.beside())
		other.put("orders", "1")
		x := load(t, s)
		second := other.put("orders", "2")
		other.delete("orders")
		x.Forget(second)
		x.want(-1, nil)
		x.run()
		synctest.Wait()
		x.want(0, nil)
	})
}

// Many entries are deleted many at a time, and Apply hears of them at once.
func TestDeleteAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		x, other := load(t, s), load(t, s.beside())
		var items []Item[string]
		for i := range 1000 {
			items = append(items, x.put(fmt.Sprint(i), "1"))
		}
		other.put("1", "2")
		other.delete("2")
		s.change(func(metatest.Op) error {
			time.Sleep(10 * time.Millisecond)
			return nil
		})
		began, calls := time.Now(), x.calls
		testkit.Check(t, x.DeleteAll(t.Context(), items))
		if took := time.Since(began); took > time.Second || x.calls != calls+1 {
			t.Errorf("it took %v and %d calls of Apply", took, x.calls-calls)
		}
		x.want(-1, map[string]string{"1": "1", "2": "1"})
		x.run()
		synctest.Wait()
		x.want(1, map[string]string{"1": "2"})
		testkit.Check(t, x.DeleteAll(t.Context(), nil))
	})
}

// Where one cannot be deleted the rest is left, and what was deleted is known to be.
func TestDeleteAllStopsAtAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		x := load(t, s)
		var items []Item[string]
		for i := range 10 * deletions {
			items = append(items, x.put(fmt.Sprint(i), "1"))
		}
		s.change(func(op metatest.Op) error {
			time.Sleep(10 * time.Millisecond)
			if op.Key == prefix+"100" {
				return errBroken
			}
			return nil
		})
		testkit.ErrorIs(t, x.DeleteAll(t.Context(), items), errBroken)
		left, err := s.List(t.Context(), prefix)
		if err != nil || len(left) != len(x.Items()) || len(left) < deletions || len(left) == len(items) {
			t.Errorf("left are %d, known %d, %v", len(left), len(x.Items()), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		testkit.ErrorIs(t, x.DeleteAll(ctx, x.Items()), context.Canceled, "after its client has left")
	})
}

// A change does not spend its tries at once: it gets through when the others are done, and waits no
// longer than its client does. Who never gets through is told so, after a bounded time.
func TestContestedChangesWait(t *testing.T) {
	tests := []struct {
		what        string
		others      time.Duration // how long they keep changing it
		patience    time.Duration // zero: no end
		want        error
		least, most time.Duration
	}{
		{"nobody else is there", 0, 0, nil, 0, 0},
		{"the others come to an end", time.Second, 0, nil, time.Second, 2 * time.Second},
		{"the client is in haste", time.Second, 100 * time.Millisecond, meta.ErrConflict, 100 * time.Millisecond, 100 * time.Millisecond},
		{"the others never do", time.Hour, 0, meta.ErrConflict, time.Second, 10 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				x := load(t, s)
				x.put("orders", "1")
				began := time.Now()
				s.change(func(metatest.Op) error {
					if time.Since(began) < tt.others {
						return meta.ErrConflict
					}
					return nil
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.patience > 0 {
					ctx, cancel = context.WithTimeout(ctx, tt.patience)
					defer cancel()
				}
				_, err := x.Change(ctx, orders, func(v *string) error { *v += "2"; return nil })
				if took := time.Since(began); !errors.Is(err, tt.want) || took < tt.least || took > tt.most {
					t.Errorf("got %v after %v", err, took)
				}
			})
		})
	}
}

// Many who count on many tables of one store lose no update, and all tables end alike.
func TestManyCount(t *testing.T) {
	const tables, counts = 8, 25
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		load(t, s).put("orders", "0")
		var all []*table
		var counting sync.WaitGroup
		for range tables {
			x := load(t, s)
			x.run()
			all = append(all, x)
			counting.Go(func() {
				for range counts {
					for {
						_, err := x.Change(t.Context(), orders, func(v *string) error {
							n, err := strconv.Atoi(*v)
							*v = strconv.Itoa(n + 1)
							return err
						})
						if err == nil {
							break
						}
						testkit.ErrorIs(t, err, meta.ErrConflict)
					}
				}
			})
		}
		counting.Wait()
		synctest.Wait()
		for _, x := range all {
			x.want(1, map[string]string{"orders": strconv.Itoa(tables * counts)})
		}
	})
}

// Many writers on several tables make, change and delete a few entries, while watches are lost and
// tables started and stopped. In the end all know what is stored, and remember nothing else.
func TestStorm(t *testing.T) {
	t.Run("in real time", storm)
	t.Run("in fake time", func(t *testing.T) { synctest.Test(t, storm) })
}

func storm(t *testing.T) {
	shared := newStore()
	stop, done := make(chan struct{}), sync.WaitGroup{}
	var stores []*store
	var all []*table
	for range 3 {
		s := shared.beside()
		s.change(func(metatest.Op) error {
			return metatest.After(func(err error) error { // answers come late
				time.Sleep(rand.N(2 * time.Millisecond))
				return err
			})
		})
		x := load(t, s)
		stores, all = append(stores, s), append(all, x)
		done.Go(func() { // starts and stops it
			for {
				ended := x.run()
				select {
				case <-stop:
					ended()
					return
				case <-time.After(rand.N(60 * time.Millisecond)):
					ended()
				}
			}
		})
	}
	var writers sync.WaitGroup
	for i := range 12 {
		writers.Go(func() {
			for range 60 {
				stir(t, all[i%len(all)])
				if rand.IntN(10) == 0 {
					stores[i%len(stores)].cut()
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	done.Wait()
	truth := load(t, shared)
	want := map[string]string{}
	for _, item := range truth.Items() {
		want[item.Key[len(prefix):]] = item.Value
	}
	for i, x := range all {
		ended := x.run()
		stores[i].cut()
		for range 1000 { // until it has caught up
			if heard, known := x.progress(); maps.Equal(heard, want) && known == len(want) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		x.want(len(want), want)
		ended()
	}
}

// stir does something at random; that somebody else was faster is no fault.
func stir(t *testing.T, x *table) {
	ctx, key := t.Context(), fmt.Sprint(prefix, rand.IntN(4))
	var err error
	switch rand.IntN(5) {
	case 0:
		_, err = x.Put(ctx, Item[string]{Key: key, Value: "1"})
	case 1:
		var there Item[string]
		if there, err = x.Read(ctx, key); err == nil {
			err = x.Delete(ctx, there)
		}
	case 2:
		err = x.DeleteAll(ctx, x.Items())
	default:
		_, err = x.Change(ctx, key, func(v *string) error { *v = fmt.Sprint(rand.IntN(1000)); return nil })
	}
	if err != nil && !GoneOrChanged(err) {
		t.Error(err)
	}
}

// C4: who finds an entry as it should be, because another process has just made it so, has it in use
// when the call returns: nobody follows the store yet while a yard starts.
func TestWhatAnotherHasStoredIsInUse(t *testing.T) {
	s := newStore()
	x, other := load(t, s), load(t, s.beside())
	other.put("orders", "1")
	changed, err := x.Change(t.Context(), orders, func(v *string) error {
		*v += " and what is not stored"
		return ErrUnchanged
	})
	if err != nil || changed.Value != "1 and what is not stored" {
		t.Errorf("got %+v, %v", changed, err)
	}
	x.want(1, map[string]string{"orders": "1"})
	testkit.Must(t, testkit.Err(x.Change(t.Context(), orders, func(*string) error { return ErrUnchanged })))
	x.want(1, map[string]string{"orders": "1"}) // no news
	other.put("orders", "2")
	s.InjectOnce(func(op metatest.Op) bool { return op.Kind == metatest.OpGet }, func(metatest.Op) error {
		s.InjectOnce(func(op metatest.Op) bool { return op.Kind == metatest.OpGet }, func(metatest.Op) error {
			other.delete("orders") // between the two reads
			return nil
		})
		return nil
	})
	testkit.Must(t, testkit.Err(x.Change(t.Context(), orders, func(*string) error { return ErrUnchanged })))
}
