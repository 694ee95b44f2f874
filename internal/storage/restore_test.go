package storage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/testkit"
)

func restoreConfig() Config {
	return Config{Sync: "os", Program: "eventyard test", Own: []string{"blobs", "tls"}, Log: testkit.Quiet()}
}

// sealedEntry is an entry of another yard with its secret key.
func sealedEntry(t *testing.T) (key string, e meta.Entry, id string) {
	t.Helper()
	key = sealed.NewKey()
	keys, err := sealed.ParseKeys(key)
	testkit.Must(t, err)
	e = meta.Entry{Key: "policies/a", Value: keys.Seal("policies/a", []byte("hunter2")), Revision: 5 << 40}
	id, _ = sealed.KeyOf(e.Value)
	return key, e, id
}

// C7, R5: what was restored is opened with its secrets, and numbers revisions anew.
func TestRestore(t *testing.T) {
	key, entry, id := sealedEntry(t)
	folder := filepath.Join(t.TempDir(), "data")
	testkit.Must(t, os.MkdirAll(folder, 0o700))
	testkit.Must(t, os.WriteFile(filepath.Join(folder, SecretKeyFile), []byte(key+"\n"), 0o600))
	r, err := Restore(t.Context(), Disk(folder), restoreConfig(), Restored{SecretKeys: []string{id}, Revision: entry.Revision})
	testkit.Must(t, err)
	stored, wanted, err := r.Entry(entry)
	testkit.Must(t, err)
	testkit.That(t, wanted && string(stored.Value) == string(entry.Value), "it is stored as %q", stored.Value)
	_, _, err = r.Entry(meta.Entry{Key: "policies/b", Value: entry.Value})
	testkit.That(t, err != nil, "a secret is moved to another entry")
	for _, key := range []string{"logs/orders", "nodes/a", "brokers/numbers", "places/orders/a/0", "storage/secret-key", "holds/trimmed/a"} {
		_, wanted, err := r.Entry(meta.Entry{Key: key, Value: []byte("{}")})
		testkit.That(t, err == nil && !wanted, "%s is stored, or %v", key, err)
	}
	revision, err := r.Meta.CompareAndSet(t.Context(), entry.Key, 0, entry.Value)
	testkit.Must(t, err)
	testkit.That(t, revision > entry.Revision, "revision %d is given again", revision)
	p, err := r.Log.Partition(eventlog.PartitionID{Log: "orders"})
	testkit.Must(t, err)
	testkit.Must(t, p.(eventlog.Importer).BeginAt(t.Context(), 40, p.Peek().LastTime))

	// Before it is finished nothing opens it, of this program or of an older one.
	_, err = Open(t.Context(), Disk(folder), restoreConfig())
	testkit.ErrorIs(t, err, ErrRestoring, "opened while it is restored")
	testkit.Must(t, r.Close())
	_, err = Open(t.Context(), Disk(folder), restoreConfig())
	testkit.ErrorIs(t, err, ErrRestoring, "opened after it was interrupted")
	_, err = Inspect(t.Context(), Disk(folder), Inspection{})
	testkit.ErrorIs(t, err, ErrRestoring, "inspected")
	found, err := readMark(filepath.Join(folder, markName))
	testkit.Must(t, err)
	found.Restoring = "" // as an older program reads it
	testkit.ErrorIs(t, examined{kind: marked, mark: found}.refusal(folder), ErrNewerData, "by an older program")

	testkit.Must(t, r.Finish(t.Context()))
	s, err := Open(t.Context(), Disk(folder), restoreConfig())
	testkit.Must(t, err)
	defer s.Close()
	e, err := s.Meta.Get(t.Context(), entry.Key)
	testkit.Must(t, err)
	testkit.Equal(t, string(e.Value), "hunter2", "the secret")
	if p, err = s.Log.Partition(eventlog.PartitionID{Log: "orders"}); err == nil {
		var b eventlog.Bounds
		b, err = p.Bounds(t.Context())
		testkit.Equal(t, b.Next, 40, "the next number")
	}
	testkit.Must(t, err)
}

// C7: a restore that was interrupted is begun again, with nothing of the first, and only one is finished.
func TestRestoreAgain(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	begin := func() *Restoring {
		t.Helper()
		r, err := Restore(t.Context(), Disk(folder), restoreConfig(), Restored{})
		testkit.Must(t, err)
		return r
	}
	first := begin()
	testkit.Must(t, testkit.Err(first.Meta.CompareAndSet(t.Context(), "hubs/a", 0, nil)))
	p, err := first.Log.Partition(eventlog.PartitionID{Log: "orders"})
	testkit.Must(t, err)
	testkit.Must(t, testkit.Err(eventlog.Append(t.Context(), p, eventlog.Batch{Events: []eventlog.Event{{Message: []byte("x")}}})))
	testkit.Must(t, os.MkdirAll(filepath.Join(folder, "blobs"), 0o700))
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "blobs", "body"), nil, 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "notes.txt"), nil, 0o600))
	_, err = Restore(t.Context(), Disk(folder), restoreConfig(), Restored{})
	testkit.ErrorIs(t, err, ErrLocked, "two at once")
	testkit.Must(t, first.Close())

	second := begin()
	testkit.ErrorIs(t, testkit.Err(second.Meta.Get(t.Context(), "hubs/a")), meta.ErrNotFound, "an entry of the first")
	testkit.Must(t, second.Close())
	testkit.ErrorIs(t, first.Finish(t.Context()), ErrRestoring, "the first is finished after the second has begun")
	testkit.Must(t, second.Finish(t.Context()))
	for name, want := range map[string]bool{"log/orders": false, "blobs": false, "notes.txt": true} {
		_, err := os.Stat(filepath.Join(folder, filepath.FromSlash(name)))
		testkit.Equal(t, err == nil, want, "%s is there", name)
	}
	s, err := Open(t.Context(), Disk(folder), restoreConfig())
	testkit.Must(t, err)
	testkit.Must(t, s.Close())
}

// R6: nothing is restored over something else, or without its key, and then nothing is changed.
func TestRestoreRefuses(t *testing.T) {
	_, _, id := sealedEntry(t)
	other := sealed.NewKey()
	for name, tt := range map[string]struct {
		prepare func(t *testing.T, folder string)
		config  func(*Config)
		want    error
		says    string
	}{
		"files of others": {func(t *testing.T, folder string) {
			testkit.Must(t, os.WriteFile(filepath.Join(folder, "photo.jpg"), nil, 0o600))
		}, nil, ErrOccupied, "holds photo.jpg"},
		"a yard": {func(t *testing.T, folder string) {
			s, err := Open(t.Context(), Disk(folder), restoreConfig())
			testkit.Must(t, err)
			testkit.Must(t, s.Close())
		}, nil, ErrOccupied, "holds the data of a yard"},
		"no key":      {func(*testing.T, string) {}, nil, ErrNoKey, id},
		"another key": {func(*testing.T, string) {}, func(c *Config) { c.SecretKey.Key = other }, ErrNoKey, "another one was given"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			tt.prepare(t, folder)
			before := testkit.Tree(t, folder)
			cfg := restoreConfig()
			if tt.config != nil {
				tt.config(&cfg)
			}
			_, err := Restore(t.Context(), Disk(folder), cfg, Restored{SecretKeys: []string{id}})
			testkit.ErrorIs(t, err, tt.want)
			testkit.That(t, err != nil && strings.Contains(err.Error(), tt.says), "it says %v", err)
			testkit.Holds(t, before, folder)
		})
	}
}
