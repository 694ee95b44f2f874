package sealed

import (
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C4, R5: of nodes that start at once on an empty store with different keys those with one key go
// on, and the others are refused.
func TestNodesAgreeOnAKey(t *testing.T) {
	for range 20 {
		inner := metatest.NewMemory()
		keys := []string{NewKey(), NewKey()}
		errs := make([]error, 6)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() { errs[i] = New(metatest.NewLateNode(inner), keysOf(t, keys[i%2])).Agree(t.Context()) })
		}
		all.Wait()
		first := 0
		if errs[0] != nil {
			first = 1
		}
		for i, err := range errs {
			if i%2 == first {
				testkit.Must(t, err)
				continue
			}
			testkit.ErrorIs(t, err, ErrOtherKey)
			testkit.ErrorIs(t, err, ErrUnknownKey)
		}
	}
}

// R5: a key is changed in steps, in which nodes with the old order and with the new one agree.
func TestAgreeWhileTheKeyIsChanged(t *testing.T) {
	inner := metatest.NewMemory()
	first, second := NewKey(), NewKey()
	for _, step := range []struct {
		name   string
		keys   []string
		reseal bool
		want   error
	}{
		{name: "the first", keys: []string{first}},
		{name: "another", keys: []string{second}, want: ErrOtherKey},
		{name: "the new one before the old one, which others do not have", keys: []string{second, first}, want: ErrUnknownToOthers},
		{name: "the new one behind the old one", keys: []string{first, second}, reseal: true},
		{name: "the old one still", keys: []string{first}},
		{name: "the new one before the old one", keys: []string{second, first}, reseal: true},
		{name: "the new one behind the old one, on a node that comes later", keys: []string{first, second}},
		{name: "the new one alone", keys: []string{second}},
		{name: "the old one alone", keys: []string{first}, want: ErrOtherKey},
	} {
		store := New(metatest.NewLateNode(inner), keysOf(t, step.keys...))
		testkit.ErrorIs(t, store.Agree(t.Context()), step.want, step.name)
		if step.reseal {
			testkit.Must(t, store.Fresh(t.Context(), ""))
			testkit.Must(t, testkit.Err3(store.Reseal(t.Context())))
		}
	}
}

func TestACheckEntryInClearIsRefused(t *testing.T) {
	inner := metatest.NewMemory()
	testkit.Must(t, testkit.Err(inner.CompareAndSet(t.Context(), checkKey, 0, []byte("{}"))))
	testkit.That(t, New(inner, keysOf(t, NewKey())).Agree(t.Context()) != nil, "any key fits")
}

// A store that does not know whether the entry was made is asked again.
func TestAgreeAfterDoubt(t *testing.T) {
	for _, stored := range []bool{true, false} {
		inner := metatest.NewFaulty(metatest.NewMemory())
		doubt := true
		inner.Inject(func(op metatest.Op) error {
			if op.Kind != metatest.OpSet || !doubt {
				return nil
			}
			doubt = false
			if stored {
				return metatest.After(func(error) error { return meta.ErrUncertain })
			}
			return meta.ErrUncertain
		})
		store := New(inner, keysOf(t, NewKey()))
		testkit.Must(t, store.Agree(t.Context()))
		testkit.Must(t, testkit.Err(inner.Get(t.Context(), checkKey)))
	}
}
