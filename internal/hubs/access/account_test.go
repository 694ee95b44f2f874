package access

import (
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R1: the blob account of a new yard has keys of its own, and no others open it.
func TestANewYardHasABlobAccount(t *testing.T) {
	store := storagetest.Entries(t)
	k := open(t, Config{Meta: store})
	root, made := testkit.Value(k.Policy("", auth.RootPolicy))(t), k.Account()
	keys := map[string]bool{root.Primary: true, root.Secondary: true, made.Primary: true, made.Secondary: true}
	if len(keys) != 4 || made.RootKeys || len(made.Primary) != 44 || made.Created.IsZero() {
		t.Errorf("made is %+v, the root policy %+v", made, root)
	}
	testkit.Diff(t, made, open(t, Config{Meta: store}).Account())
}

// R4: connection strings from before the account had keys of its own go on until an operator turns
// them off, and stay off.
func TestRootKeysOfAnOlderYard(t *testing.T) {
	store := storagetest.Entries(t)
	open(t, Config{Meta: store})
	forgetAccount(t, store)
	k := open(t, Config{Meta: store})
	testkit.Equal(t, k.Account().RootKeys, true, "root keys of an older yard")
	testkit.Equal(t, open(t, Config{Meta: store}).Account().RootKeys, true, "at the next start")
	for range 2 {
		off := testkit.Value(k.AllowRootKeys(t.Context(), false))(t)
		testkit.Equal(t, off.RootKeys, false, "root keys that were turned off")
		testkit.Equal(t, off.Primary, k.Account().Primary, "the key")
	}
	testkit.Equal(t, open(t, Config{Meta: store}).Account().RootKeys, false, "at the next start")
	testkit.Must(t, testkit.Err(k.AllowRootKeys(t.Context(), true)))
	testkit.Equal(t, k.Account().RootKeys, true, "root keys that were turned on")
}

// forgetAccount makes a store that of a yard from before there was an account.
func forgetAccount(t *testing.T, store meta.Store) {
	t.Helper()
	entry, err := store.Get(t.Context(), blobAccount)
	testkit.Must(t, err)
	testkit.Must(t, store.Delete(t.Context(), entry.Key, entry.Revision))
}

// A start that is cut short after the account was made gives the root policy no right to blobs.
func TestAStartCutShortAfterTheAccount(t *testing.T) {
	store := storagetest.Entries(t)
	faulty := metatest.NewFaulty(store)
	changes := 0
	faulty.Inject(func(op metatest.Op) error {
		if op.Changes() {
			if changes++; changes > 1 {
				return meta.ErrClosed
			}
		}
		return nil
	})
	if _, err := Open(t.Context(), Config{Meta: faulty, Hub: newHubs().find, Log: testkit.Quiet()}); err == nil {
		t.Fatal("it opened")
	}
	k := open(t, Config{Meta: store})
	testkit.Equal(t, k.Created(), true, "the root policy was made")
	testkit.Equal(t, k.Account().RootKeys, false, "root keys")
}

// R6: an older yard starts on a full disk, where there is no room for the account. Nobody has its
// keys until a later start makes it. A new yard without room does not start: its root policy would
// pass for that of an older one.
func TestNoRoomForTheAccount(t *testing.T) {
	store := storagetest.Entries(t)
	faulty := metatest.NewFaulty(store)
	faulty.Inject(func(op metatest.Op) error {
		if op.Kind == metatest.OpSet && op.Key == blobAccount {
			return meta.ErrNoSpace
		}
		return nil
	})
	_, err := Open(t.Context(), Config{Meta: faulty, Hub: newHubs().find, Log: testkit.Quiet()})
	testkit.ErrorIs(t, err, meta.ErrNoSpace)
	testkit.Equal(t, len(stored(t, store)), 0, "policies of a new yard")

	open(t, Config{Meta: store})
	forgetAccount(t, store)
	k := open(t, Config{Meta: faulty})
	testkit.Equal(t, k.Account(), Account{})
	testkit.ErrorIs(t, testkit.Err(k.AllowRootKeys(t.Context(), true)), meta.ErrNoSpace)
	testkit.ErrorIs(t, testkit.Err(k.RegenerateAccount(t.Context(), PrimaryKey)), meta.ErrNoSpace)
	testkit.Must(t, testkit.Err(k.RegenerateRoot(t.Context(), "")))
	made := open(t, Config{Meta: store}).Account()
	testkit.Equal(t, made.Primary != "" && made.RootKeys, true, "it is made later")
}

// H9: one key is made anew while clients use the other. Keys that others may have seen go together.
func TestKeysOfTheAccountAreMadeAnew(t *testing.T) {
	k := open(t, Config{})
	before := k.Account()
	after := testkit.Value(k.RegenerateAccount(t.Context(), SecondaryKey))(t)
	if after.Primary != before.Primary || after.Secondary == before.Secondary || k.Account() != after {
		t.Errorf("%+v became %+v", before, after)
	}
	testkit.ErrorIs(t, testkit.Err(k.RegenerateAccount(t.Context(), "third")), ErrInvalid)
	testkit.Must(t, testkit.Err(k.RegenerateRoot(t.Context(), "")))
	if last := k.Account(); last.Primary == after.Primary || last.Secondary == after.Secondary {
		t.Errorf("%+v became %+v", after, last)
	}
}

// What one node does to the account counts at the other.
func TestNodesShareTheAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storagetest.Entries(t)
		a, b := open(t, Config{Meta: store}), open(t, Config{Meta: store})
		defer testkit.Run(t, a.Run)()
		defer testkit.Run(t, b.Run)()
		changed := testkit.Value(a.RegenerateAccount(t.Context(), PrimaryKey))(t)
		synctest.Wait()
		testkit.Diff(t, changed, b.Account())
	})
}
