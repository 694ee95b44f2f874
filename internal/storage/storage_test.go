package storage

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// quick syncs no events.
var quick = Config{Sync: "os", Log: slog.New(slog.DiscardHandler)}

func open(t *testing.T, url string, cfg Config) *Storage {
	t.Helper()
	s := testkit.Value(Open(t.Context(), url, cfg))(t)
	return s
}

// filled is the URL of storage that has been closed, with one event and one entry.
func filled(t *testing.T) string {
	t.Helper()
	url := Disk(filepath.Join(t.TempDir(), "below", "data"))
	s := open(t, url, Config{Sync: "always", Log: quick.Log})
	testkit.Must(t, testkit.Err(s.Meta.CompareAndSet(t.Context(), "k", 0, []byte("v"))))
	partition := testkit.Value(s.Log.Partition(eventlog.PartitionID{Log: "orders"}))(t)
	receipt := testkit.Value(partition.Submit(t.Context(), eventlog.Batch{Events: []eventlog.Event{{Message: []byte("hello")}}}))(t)
	testkit.Must(t, testkit.Err(receipt.Wait(t.Context())))
	testkit.Must(t, s.Close())
	return url
}

func folder(t *testing.T, url string) string {
	t.Helper()
	dir := testkit.Value(folderOf(url))(t)
	return dir
}

func TestURLs(t *testing.T) {
	for _, url := range []string{"", "disk://", "disk:data", "s3://bucket", "data"} {
		_, opened := Open(t.Context(), url, quick)
		_, used := InUse(url)
		_, inspected := Inspect(t.Context(), url, Inspection{})
		for _, err := range []error{opened, used, inspected} {
			if err == nil || !strings.Contains(err.Error(), "use disk://FOLDER") {
				t.Errorf("%q: %v", url, err)
			}
		}
	}
	if _, err := Open(t.Context(), Disk(t.TempDir()), Config{Sync: "sometimes"}); err == nil || (Config{Sync: "sometimes"}).Check() == nil {
		t.Error("a sync mode that there is not was taken")
	}
}

// What was stored is there again, and one yard at a time has it.
func TestStorageIsForOne(t *testing.T) {
	url := filled(t)
	s := open(t, url, quick)
	if entry, err := s.Meta.Get(t.Context(), "k"); err != nil || string(entry.Value) != "v" || s.Engine != "disk" {
		t.Errorf("found %q, %v in %s", entry.Value, err, s.Engine)
	}
	testkit.ErrorIs(t, testkit.Err(Open(t.Context(), url, quick)), ErrLocked, "a second one")
	if used, err := InUse(url); err != nil || !used {
		t.Errorf("in use: %v, %v", used, err)
	}
	if found, err := Inspect(t.Context(), url, Inspection{}); err != nil || !found.InUse || found.LogRead {
		t.Errorf("found %+v, %v", found, err)
	}
	testkit.Check(t, s.Close())
	if used, err := InUse(url); err != nil || used {
		t.Errorf("after closing, in use: %v, %v", used, err)
	}
	for _, dir := range []string{folder(t, url), filepath.Dir(folder(t, url))} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s is for others, too: %v, %v", dir, info, err)
		}
	}
}

// In every sync mode: events may be lost to a power cut, their hubs may not.
func TestDefinitionsAreDurableWhateverTheSyncMode(t *testing.T) {
	for _, mode := range []string{"always", "interval", "os"} {
		if cfg := metaConfig("d", Config{Sync: mode}, false); cfg.NoSync || cfg.Path != filepath.Join("d", metaName) {
			t.Errorf("sync mode %s opens the meta store with %+v", mode, cfg)
		}
	}
}

// Events without the file that says whose they are must not look like empty storage.
func TestALostMetaStoreIsAnError(t *testing.T) {
	url := filled(t)
	testkit.Must(t, os.Remove(filepath.Join(folder(t, url), metaName)))
	if _, err := Open(t.Context(), url, quick); !errors.Is(err, ErrMetaLost) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
	testkit.ErrorIs(t, testkit.Err(os.Stat(filepath.Join(folder(t, url), metaName))), fs.ErrNotExist, "a store was made")
	if found, err := Inspect(t.Context(), url, Inspection{}); err != nil || !errors.Is(found.Meta, ErrMetaLost) || found.Events != 1 {
		t.Errorf("found %+v, %v", found, err)
	}
	testkit.Must(t, os.RemoveAll(filepath.Join(folder(t, url), logDir)))
	if found, err := Inspect(t.Context(), url, Inspection{}); err != nil || found.Meta != nil {
		t.Errorf("where there are no events: found %+v, %v", found, err)
	}
}

func TestInspect(t *testing.T) {
	url := filled(t)
	for _, name := range []string{"notes.txt", "tls", "dead"} {
		testkit.Must(t, os.WriteFile(filepath.Join(folder(t, url), name), nil, 0o600))
	}
	progress := int64(0)
	found, err := Inspect(t.Context(), url, Inspection{
		Own: []string{"tls"}, Known: func(path string, _ fs.DirEntry) bool { return filepath.Base(path) == "dead" },
		Progress: func(done, _ int64) { progress = done },
	})
	if err != nil || found.Meta != nil || !found.LogRead || found.Events != 1 || found.Partitions != 1 || found.LogBytes == 0 || progress == 0 ||
		len(found.Problems) != 0 || !slices.Equal(found.Foreign, []string{"notes.txt"}) {
		t.Errorf("found %+v, %v; progress %d", found, err, progress)
	}
	if found, err := Inspect(t.Context(), url, Inspection{MaxLogBytes: 1}); err != nil || found.LogRead {
		t.Errorf("a log that is too large: found %+v, %v", found, err)
	}
	testkit.ErrorIs(t, testkit.Err(Inspect(t.Context(), Disk(t.TempDir()), Inspection{})), fs.ErrNotExist, "an empty folder")
	if _, err := Inspect(t.Context(), Disk(filepath.Join(t.TempDir(), "none")), Inspection{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}
