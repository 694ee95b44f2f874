package mirror

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

var errBroken = errors.New("no such disk")

// store is a meta store in which things happen as told.
type store struct {
	*metatest.Faulty
	memory *metatest.Memory
}

func newStore() *store { return besides(metatest.NewMemory()) }

func besides(m *metatest.Memory) *store { return &store{metatest.NewFaulty(m), m} }

// beside is another process's view of the store, in which nothing is injected.
func (s *store) beside() *store { return besides(s.memory) }

// change has f called before each change.
func (s *store) change(f func(metatest.Op) error) {
	s.Inject(func(op metatest.Op) error {
		if op.Changes() {
			return f(op)
		}
		return nil
	})
}

// fail has all operations of some kinds fail.
func (s *store) fail(kinds ...metatest.OpKind) {
	s.Inject(func(op metatest.Op) error {
		if slices.Contains(kinds, op.Kind) {
			return errBroken
		}
		return nil
	})
}

// cut loses all watches of the store.
func (s *store) cut() { s.LoseWatches(prefix) }

// table is one of texts. It notes what Apply hears.
type table struct {
	*Table[string]
	t       testing.TB
	calling sync.Mutex // held while Apply is called

	mu    sync.Mutex
	heard map[string]string // what Apply's updates come to, by key without prefix; guarded by mu
	calls int               // of Apply; guarded by mu
}

const prefix = "things/"

func newTable(t testing.TB, s meta.Store) *table {
	x := &table{t: t, heard: map[string]string{}}
	x.Table = New(Config[string]{
		Store: s, Prefix: prefix, Name: "things", Encode: func(v string) []byte { return []byte(v) }, Apply: x.hear,
		Log: testkit.Quiet(),
		Decode: func(e meta.Entry) (string, error) {
			if bytes.HasPrefix(e.Value, []byte("{")) {
				return "", errUnreadable
			}
			return string(e.Value), nil
		},
	})
	return x
}

var errUnreadable = errors.New("unreadable")

// hear checks that each update begins where the last of its key has ended, and that Apply is never
// called while it runs.
func (x *table) hear(updates []Update[string]) {
	if !x.calling.TryLock() {
		x.t.Error("Apply was called by two at once")
		return
	}
	defer x.calling.Unlock()
	x.Items() // may be read from here
	x.mu.Lock()
	defer x.mu.Unlock()
	x.calls++
	for _, u := range updates {
		key := u.Key[len(prefix):]
		had, there := x.heard[key]
		if there != u.Old.Exists() || had != u.Old.Value || !there && !u.New.Exists() || u.New.Exists() && u.New.Key != u.Key {
			x.t.Errorf("update %+v after %q", u, had)
		}
		delete(x.heard, key)
		if u.New.Exists() {
			x.heard[key] = u.New.Value
		}
	}
}

func load(t testing.TB, s meta.Store) *table {
	t.Helper()
	x := newTable(t, s)
	testkit.Must(t, x.Load(t.Context()))
	return x
}

// run follows the store until stop, or the end of the test.
func (x *table) run() (stop func()) { return testkit.Run(x.t, x.Run) }

// put stores a value over whatever there is.
func (x *table) put(key, value string) Item[string] {
	x.t.Helper()
	there, err := x.Read(x.t.Context(), prefix+key)
	if err != nil && !errors.Is(err, meta.ErrNotFound) {
		x.t.Fatal(err)
	}
	item, err := x.Put(x.t.Context(), Item[string]{Key: prefix + key, Revision: there.Revision, Value: value})
	testkit.Must(x.t, err)
	return item
}

func (x *table) delete(key string) {
	x.t.Helper()
	testkit.Must(x.t, x.Remove(x.t.Context(), prefix+key))
}

// want checks what the table holds, and that Apply heard the same. remembers is how many keys it
// may know in all, deleted ones included; -1: any.
func (x *table) want(remembers int, want map[string]string) {
	x.t.Helper()
	got := map[string]string{}
	for _, item := range x.Items() {
		got[item.Key[len(prefix):]] = item.Value
		if one, ok := x.Get(item.Key); !ok || one != item {
			x.t.Errorf("Get gives %+v of %+v", one, item)
		}
	}
	heard, known := x.progress()
	if !maps.Equal(got, want) || !maps.Equal(heard, want) || remembers >= 0 && known != remembers {
		x.t.Errorf("the table holds %q and remembers %d keys, Apply heard of %q, want %q and %d", got, known, heard, want, remembers)
	}
}

// progress is what Apply has heard of so far, and how many keys are remembered.
func (x *table) progress() (heard map[string]string, known int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.Table.mu.RLock()
	defer x.Table.mu.RUnlock()
	return maps.Clone(x.heard), len(x.known)
}
