package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// soundStore makes a store with branch pages, long values and deletions, and gives its
// bytes with its entries: those of now, and those before its last commit.
func soundStore(t testing.TB, entriesBucket int) (content []byte, now, before map[string]meta.Entry) {
	t.Helper()
	path := storePath(t)
	s := openStore(t, Config{Path: path, NoSync: true})
	for i := range entriesBucket {
		key := fmt.Sprintf("hubs/%03d/%s", i, strings.Repeat("k", 1+i%60))
		value := strings.Repeat(key, 1+i%7)
		if i%50 == 7 {
			value = strings.Repeat(key, 200)
		}
		if revision := set(t, s, key, 0, value); i%9 == 0 {
			testkit.Must(t, s.Delete(t.Context(), key, revision))
		}
	}
	before = allEntries(t, s)
	set(t, s, "last", 0, "change")
	now = allEntries(t, s)
	testkit.Must(t, s.Close())
	return readFile(t, path), now, before
}

func allEntries(t testing.TB, s *Store) map[string]meta.Entry {
	t.Helper()
	entries := testkit.Value(s.List(t.Context(), ""))(t)
	entriesBucket := make(map[string]meta.Entry)
	for _, entry := range entries {
		entriesBucket[entry.Key] = entry
	}
	return entriesBucket
}

// wantFoundOrHarmless holds a damaged file to this: Check and Open bring no process
// down, and what Check lets pass has every entry as it was stored. A damaged newest meta
// page looks like a power cut during the last commit, and gives the state before it.
func wantFoundOrHarmless(t *testing.T, what, path string, content []byte, now, before map[string]meta.Entry) {
	t.Helper()
	testkit.Must(t, os.WriteFile(path, content, 0o600))
	checked := Check(path)
	if checked != nil && !errors.Is(checked, ErrCorrupt) && !errors.Is(checked, ErrFormat) {
		t.Errorf("%s: Check gave %v, want ErrCorrupt", what, checked)
	}
	s, err := Open(Config{Path: path, NoSync: true, ReserveBytes: -1})
	if err != nil {
		if checked == nil {
			t.Errorf("%s: Check passed, Open gave %v", what, err)
		}
		return
	}
	defer func() { _ = s.Close() }()
	entries, err := s.List(t.Context(), "")
	if checked == nil && (err != nil || !holds(entries, now) && !holds(entries, before)) {
		t.Errorf("%s: Check passed, but the entries are not what was stored (%v)", what, err)
	}
}

// Damage anywhere in the file is found by Check or is harmless.
func TestDamageIsFound(t *testing.T) {
	content, now, before := soundStore(t, 120)
	path := filepath.Join(t.TempDir(), "meta.db")
	random := rand.New(rand.NewPCG(5, 6))
	pageBytes := os.Getpagesize()
	for range 600 {
		at, bit := random.IntN(len(content)), random.IntN(8)
		if random.IntN(2) == 0 { // the beginning of a page has more to break
			at = random.IntN(len(content)/pageBytes)*pageBytes + random.IntN(100)
		}
		damaged := append([]byte(nil), content...)
		damaged[at] ^= 1 << bit
		wantFoundOrHarmless(t, fmt.Sprintf("bit %d of byte %d flipped", bit, at), path, damaged, now, before)
	}
	for at := 2 * pageBytes; at < len(content); at += pageBytes {
		damaged := append([]byte(nil), content...)
		clear(damaged[at : at+pageBytes])
		wantFoundOrHarmless(t, fmt.Sprintf("page %d zeroed", at/pageBytes), path, damaged, now, before)
		wantFoundOrHarmless(t, fmt.Sprintf("cut short at page %d", at/pageBytes), path, content[:at], now, before)
	}
}

// These need a look at the whole: each page by itself is sound.
func TestDamageThatLooksSoundIsFound(t *testing.T) {
	tests := []struct {
		name   string
		damage func(t *testing.T, tx *bbolt.Tx) error
	}{
		{"an entry is missing", func(t *testing.T, tx *bbolt.Tx) error {
			return tx.Bucket(entriesBucket()).Delete([]byte("last"))
		}},
		{"an entry is older than it should be", func(t *testing.T, tx *bbolt.Tx) error {
			record := newRecord([]byte("older"))
			sealRecord(record, "last", 1)
			return tx.Bucket(entriesBucket()).Put([]byte("last"), record)
		}},
		{"an entry is newer than the store", func(t *testing.T, tx *bbolt.Tx) error {
			record := newRecord([]byte("newer"))
			sealRecord(record, "last", 1<<40)
			return tx.Bucket(entriesBucket()).Put([]byte("last"), record)
		}},
		{"the revision went back", func(t *testing.T, tx *bbolt.Tx) error {
			return tx.Bucket(entriesBucket()).SetSequence(1)
		}},
		{"a record is too short", func(t *testing.T, tx *bbolt.Tx) error {
			return tx.Bucket(entriesBucket()).Put([]byte("last"), []byte("short"))
		}},
		{"a key has not the form of one", func(t *testing.T, tx *bbolt.Tx) error {
			record := newRecord(nil)
			sealRecord(record, "a//b", 1)
			return tx.Bucket(entriesBucket()).Put([]byte("a//b"), record)
		}},
		{"the tally is missing", func(t *testing.T, tx *bbolt.Tx) error {
			return tx.Bucket(aboutBucket()).Delete(tallyKey())
		}},
	}
	content, _, _ := soundStore(t, 30)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := editedStore(t, content, func(tx *bbolt.Tx) error { return test.damage(t, tx) })
			testkit.ErrorIs(t, Check(path), ErrCorrupt, "Check")
		})
	}
}

// editedStore writes a store's bytes to a file and changes it behind the store's back.
func editedStore(t *testing.T, content []byte, edit func(*bbolt.Tx) error) string {
	t.Helper()
	path := storePath(t)
	testkit.Must(t, os.WriteFile(path, content, 0o600))
	db := testkit.Value(openBolt(path, bbolt.Options{NoSync: true}))(t)
	testkit.Must(t, errors.Join(db.Update(edit), db.Close()))
	return path
}

// One damaged entry is one error; the others are read and changed as ever.
func TestADamagedEntryDoesNotAffectOthers(t *testing.T) {
	content, _, _ := soundStore(t, 30)
	path := editedStore(t, content, func(tx *bbolt.Tx) error {
		record := append([]byte(nil), tx.Bucket(entriesBucket()).Get([]byte("last"))...)
		record[len(record)-1] ^= 1
		return tx.Bucket(entriesBucket()).Put([]byte("last"), record)
	})
	s := openStore(t, Config{Path: path})
	testkit.ErrorIs(t, testkit.Err(s.Get(t.Context(), "last")), ErrCorrupt, "get")
	testkit.ErrorIs(t, testkit.Err(s.CompareAndSet(t.Context(), "last", 1, nil)), ErrCorrupt, "set")
	set(t, s, "another", 0, "well")
	wantValue(t, s, "another", "well")
}

func TestFilesThatAreNoStoreAreRefused(t *testing.T) {
	content, _, _ := soundStore(t, 5)
	later := editedStore(t, content, func(tx *bbolt.Tx) error {
		return tx.Bucket(aboutBucket()).Put(formatKey(), []byte("2"))
	})
	foreign := editedStore(t, content, func(tx *bbolt.Tx) error { return tx.DeleteBucket(entriesBucket()) })
	tests := []struct {
		name    string
		content []byte
		want    error
	}{
		{"an empty file", nil, ErrCorrupt},
		{"a file of text", []byte("hubs: []\n"), ErrCorrupt},
		{"a long file of zeros", make([]byte, 1<<16), ErrCorrupt},
		{"a store of a later format", readFile(t, later), ErrFormat},
		{"another program's bbolt file", readFile(t, foreign), ErrFormat},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := storePath(t)
			testkit.Must(t, os.WriteFile(path, test.content, 0o600))
			testkit.ErrorIs(t, testkit.Err(Open(Config{Path: path})), test.want, "Open")
			testkit.ErrorIs(t, Check(path), test.want, "Check")
			testkit.Equal(t, string(readFile(t, path)), string(test.content), "the file was changed")
		})
	}
	testkit.ErrorIs(t, Check(storePath(t)), os.ErrNotExist, "Check of no file")
}

// Other tools, such as bbolt's own compact, leave a list of free pages in the file.
func TestAStoreWithAFreelistIsSound(t *testing.T) {
	content, now, before := soundStore(t, 200)
	path := storePath(t)
	testkit.Must(t, os.WriteFile(path, content, 0o600))
	db := testkit.Value(bbolt.Open(path, 0o600, nil))(t)
	testkit.Must(t, db.Close())
	testkit.Check(t, Check(path))
	wantFoundOrHarmless(t, "as it is", path, readFile(t, path), now, before)
	set(t, openStore(t, Config{Path: path}), "another", 0, "well")
}

// FuzzCheck overwrites eight bytes somewhere.
func FuzzCheck(f *testing.F) {
	content, now, before := soundStore(f, 60)
	pages := uint32(len(content) / os.Getpagesize())
	for page := range pages {
		f.Add(page*uint32(os.Getpagesize())+8, uint64(1))
		f.Add(page*uint32(os.Getpagesize())+16, ^uint64(0))
	}
	path := filepath.Join(f.TempDir(), "meta.db")
	f.Fuzz(func(t *testing.T, at uint32, number uint64) {
		damaged := append([]byte(nil), content...)
		binary.NativeEndian.PutUint64(damaged[at%uint32(len(damaged)-8):], number)
		wantFoundOrHarmless(t, "overwritten", path, damaged, now, before)
	})
}
