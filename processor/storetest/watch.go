package storetest

import (
	"context"
	"time"

	"github.com/eventyard/eventyard/processor"
)

// Stores that are no processor.Watcher pass these by being none. Who watches gives a channel with
// room for one: what is told while nobody takes from it would be lost otherwise.
var watchTests = []test{
	{"a claim is told", func(f *fixture) {
		f.wantReported(nil, func(s processor.Store) error {
			_, err := s.Claim(f.ctx, f.group, []processor.Lease{lease("0", "a", 1)})
			return err
		})
	}},
	{"a release is told", func(f *fixture) {
		var had processor.Lease
		f.wantReported(func() { had = f.claim(lease("0", "a", 1)) }, func(s processor.Store) error {
			had.Owner = ""
			_, err := s.Claim(f.ctx, f.group, []processor.Lease{had})
			return err
		})
	}},
	{"a put is told", func(f *fixture) {
		f.wantReported(nil, func(s processor.Store) error {
			_, err := s.Put(f.ctx, f.group, processor.Entry{Key: "next/0", Value: []byte("b")})
			return err
		})
	}},
	{"a takeover is told", func(f *fixture) {
		var had processor.Lease
		f.wantReported(func() { had = f.claim(lease("0", "a", 1)) }, func(s processor.Store) error {
			had.Owner, had.Epoch = "b", 2
			_, err := s.Claim(f.ctx, f.group, []processor.Lease{had})
			return err
		})
	}},
	{"an acquisition among renewals is told", func(f *fixture) {
		var had processor.Lease
		f.wantReported(func() { had = f.claim(lease("0", "a", 1)) }, func(s processor.Store) error {
			_, err := s.Claim(f.ctx, f.group, []processor.Lease{had, lease("1", "a", 1)})
			return err
		})
	}},
	{"the same owner under a new epoch is told", func(f *fixture) {
		var had processor.Lease
		f.wantReported(func() { had = f.claim(lease("0", "a", 1)) }, func(s processor.Store) error {
			had.Epoch = 2
			_, err := s.Claim(f.ctx, f.group, []processor.Lease{had})
			return err
		})
	}},
	{"a put of another value is told", func(f *fixture) {
		var had processor.Entry
		f.wantReported(func() { had = f.put(processor.Entry{Key: "next/0"}) }, func(s processor.Store) error {
			had.Value = []byte("b")
			_, err := s.Put(f.ctx, f.group, had)
			return err
		})
	}},
	{"a removal is told", func(f *fixture) {
		var had processor.Entry
		f.wantReported(func() { had = f.put(processor.Entry{Key: "next/0"}) }, func(s processor.Store) error {
			return s.Remove(f.ctx, f.group, had)
		})
	}},
	{"one change after another is told", watchOn},
	{"renewals and entries that stay as they are wake nobody", quietRenewals},
	{"several watchers are told", severalWatchers},
	{"a watcher that does not listen blocks nobody", deafWatcher},
	{"watching ends with its context", watchEnds},
}

// watching is one running Watch.
type watching struct {
	changed chan struct{}
	ended   chan struct{} // closed when Watch has returned
	cancel  context.CancelFunc
}

// watch starts one and waits until it is ready.
func (f *fixture) watch(s processor.Store, changed chan struct{}) *watching {
	f.Helper()
	watcher, is := s.(processor.Watcher)
	if !is {
		f.Skip("the store cannot be watched")
	}
	ctx, cancel := context.WithCancel(f.ctx)
	w := &watching{changed: changed, ended: make(chan struct{}), cancel: cancel}
	ready := make(chan struct{})
	go func() {
		defer close(w.ended)
		if err := watcher.Watch(ctx, f.group, func() { close(ready) }, changed); err != nil && ctx.Err() == nil {
			f.Errorf("watch: %v", err)
		}
	}()
	f.Cleanup(w.stop)
	f.await(ready, "the watch is not ready")
	return w
}

// watchIfCan is nil where the store cannot be watched.
func (f *fixture) watchIfCan() *watching {
	f.Helper()
	if _, can := f.store.(processor.Watcher); !can {
		return nil
	}
	return f.watch(f.store, make(chan struct{}, 1))
}

func (w *watching) stop() {
	w.cancel()
	<-w.ended
}

// await waits for a channel. What a store has to tell comes at some time; how soon is not
// the suite's business.
func (f *fixture) await(c <-chan struct{}, otherwise string) {
	f.Helper()
	select {
	case <-c:
	case <-time.After(patience / 2):
		f.Fatal(otherwise)
	}
}

// wantReported prepares, watches, and wants to be told of what do does, through another
// process's store.
func (f *fixture) wantReported(prepare func(), do func(s processor.Store) error) {
	f.Helper()
	if prepare != nil {
		prepare()
	}
	peer := f.peer()
	w := f.watch(f.store, make(chan struct{}, 1))
	if err := do(peer); err != nil {
		f.Fatal(err)
	}
	f.await(w.changed, "the change was not told")
}

// watchOn reads after every call until it has seen each change: whoever reads whenever told
// is never left with an old state.
func watchOn(f *fixture) {
	peer := f.peer()
	w := f.watch(f.store, make(chan struct{}, 1))
	entry := processor.Entry{Key: "presence/a"}
	for i := range 20 {
		var err error
		entry.Value = []byte(partition(i))
		if entry, err = peer.Put(f.ctx, f.group, entry); err != nil {
			f.Fatalf("put: %v", err)
		}
		for f.entryVersion(entry.Key) != entry.Version {
			f.await(w.changed, "the change was not told")
		}
	}
}

// quietRenewals has a place for every call there might be: after as many changes as were waited
// for, none may be left, but for the records from before the watch where it begins late. There are
// far more renewals than such records.
func quietRenewals(f *fixture) {
	if f.opt.NotifiesRenewals {
		f.Skip("the store tells of them")
	}
	peer := f.peer()
	leases := f.claimAll(lease("0", "a", 1), lease("1", "a", 1))
	same := f.put(processor.Entry{Key: "presence/a", Value: []byte("alive")})
	w := f.watch(f.store, make(chan struct{}, 100))
	for range 5 {
		var err error
		if leases, err = peer.Claim(f.ctx, f.group, leases); err != nil {
			f.Fatal(err)
		}
		if same, err = peer.Put(f.ctx, f.group, same); err != nil {
			f.Fatal(err)
		}
	}
	for i := range 5 {
		if _, err := peer.Put(f.ctx, f.group, processor.Entry{Key: "next/" + partition(i)}); err != nil {
			f.Fatal(err)
		}
		f.await(w.changed, "the change was not told")
	}
	late := 0
	if f.opt.LateWatch {
		late = len(leases) + 1 // and the presence
	}
	if n := len(w.changed); n > late {
		f.Errorf("%d more calls came than changes were made", n)
	}
}

func (f *fixture) entryVersion(key string) processor.Version {
	f.Helper()
	entries, err := f.store.Entries(f.ctx, f.group, "")
	if err != nil {
		f.Fatalf("entries: %v", err)
	}
	for _, entry := range entries {
		if entry.Key == key {
			return entry.Version
		}
	}
	return ""
}

func severalWatchers(f *fixture) {
	peer := f.peer()
	var all []*watching
	for range 4 {
		all = append(all, f.watch(f.store, make(chan struct{}, 1)))
	}
	all[3].stop() // one that has gone does the others no harm
	if _, err := peer.Claim(f.ctx, f.group, []processor.Lease{lease("0", "a", 1)}); err != nil {
		f.Fatal(err)
	}
	for _, w := range all[:3] {
		f.await(w.changed, "one of several was not told")
	}
}

func deafWatcher(f *fixture) {
	full := make(chan struct{}, 1)
	full <- struct{}{}
	f.watch(f.store, make(chan struct{})) // nobody ever takes from it
	f.watch(f.store, full)
	hears := f.watch(f.store, make(chan struct{}, 1))
	entry := processor.Entry{Key: "presence/a"}
	for i := range 100 {
		entry.Value = []byte(partition(i))
		entry = f.put(entry)
	}
	for f.entryVersion(entry.Key) != entry.Version {
		f.await(hears.changed, "the change was not told")
	}
}

func watchEnds(f *fixture) {
	w := f.watch(f.store, make(chan struct{}, 1))
	w.cancel()
	f.await(w.ended, "the watch goes on although its context has ended")
	f.claim(lease("0", "a", 1)) // and the store with it
}
