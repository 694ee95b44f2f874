package storage

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// plant puts files into a folder: by their names, "/" at the end for a folder, "-> TARGET" as the
// content of a link.
func plant(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		target, link := strings.CutPrefix(files[name], "-> ")
		switch {
		case strings.HasSuffix(name, "/"):
			testkit.Must(t, os.MkdirAll(path, 0o700))
		case link:
			testkit.Must(t, os.Symlink(target, path))
		default:
			testkit.Must(t, os.WriteFile(path, []byte(files[name]), 0o600))
		}
	}
}

// R6: a folder of others is refused, with what to do, and nothing in it is touched.
func TestAFolderOfOthersIsRefused(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"a home":                      {".profile": "export A=1", "notes.txt": "shopping"},
		"a folder":                    {"photos/": ""},
		"names that we use":           {"trash/old.txt": "mine", "spare/wheel.txt": "mine", "log/today.txt": "mine", "journal/dear.txt": "mine"},
		"files like ours":             {"spare/000001.seg": "mine", "trash/orders-1/0/00000000000000000000.seg": "mine"},
		"another program's lock":      {"LOCK": "held by somebody"},
		"another program's meta.db":   {"meta.db": "SQLite format 3", "log/": ""},
		"meta.db alone":               {"meta.db": ""},
		"a link":                      {"data": "-> /"},
		"a link in the mark's place":  {markName: "-> /etc/passwd"},
		"a link in the lock's place":  {"LOCK": "-> /etc/passwd"},
		"events without their hubs":   {"LOCK": "", "log/orders-1/0/00000000000000000000.seg": "events"},
		"what looks like a new store": {"meta.db.new-mine": "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			plant(t, dir, files)
			before := testkit.Tree(t, dir)
			_, err := Open(t.Context(), Disk(dir), quick)
			testkit.ErrorIs(t, err, ErrForeign)
			if err != nil && !strings.Contains(err.Error(), "use an empty folder, or one that does not exist yet") {
				t.Errorf("%v: it does not say what to do", err)
			}
			if files[markName] != "" && (err == nil || !strings.Contains(err.Error(), markName+" in it is a link or a folder, not a file")) {
				t.Errorf("%v: it does not say that the mark is a link", err)
			}
			testkit.ErrorIs(t, testkit.Err(Inspect(t.Context(), Disk(dir), Inspection{})), ErrForeign)
			if used, err := InUse(Disk(dir)); used || err != nil {
				t.Errorf("in use: %v, %v", used, err)
			}
			testkit.Deep(t, testkit.Tree(t, dir), before)
		})
	}
	theirs := t.TempDir() // another program's bbolt file of that name
	db := testkit.Value(bbolt.Open(filepath.Join(theirs, metaName), 0o600, nil))(t)
	testkit.Must(t, db.Close())
	testkit.ErrorIs(t, testkit.Err(Open(t.Context(), Disk(theirs), quick)), ErrForeign)
	if _, err := Open(t.Context(), Disk("/"), quick); !errors.Is(err, ErrForeign) {
		t.Errorf("the root of all files: %v", err)
	}
}

// R6: what is empty may be used, also where a first start was cut short.
func TestAnEmptyFolderIsTaken(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"nothing":              {},
		"a new disk":           {"lost+found/": ""},
		"a start cut short":    {"LOCK": "4711\n", "log/": "", "journal/": "", "spare/": "", "trash/": "", "meta.db.new-123": "half", markName + ".new": "{"},
		"a start just stopped": {"LOCK": ""},
		"disks in it":          {"log/lost+found/": "", "journal/": ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			plant(t, dir, files)
			testkit.ErrorIs(t, testkit.Err(Inspect(t.Context(), Disk(dir), Inspection{})), fs.ErrNotExist)
			cfg := quick
			cfg.Program = "eventyard v9"
			testkit.Must(t, open(t, Disk(dir), cfg).Close())
			text := testkit.Value(os.ReadFile(filepath.Join(dir, markName)))(t)
			testkit.Equal(t, string(text), "{\"format\":6,\"program\":\"eventyard v9\"}\n", "the mark")
			testkit.Must(t, open(t, Disk(dir), quick).Close())
		})
	}
}

// R6: the mark is the first thing in a folder.
func TestNothingIsWrittenBeforeTheMark(t *testing.T) {
	dir := t.TempDir()
	testkit.Must(t, os.Chmod(dir, 0o700))
	if err := putMark(dir, quick); err != nil {
		t.Fatal(err)
	}
	entries := testkit.Value(os.ReadDir(dir))(t)
	if len(entries) != 1 || entries[0].Name() != markName {
		t.Errorf("found %v", entries)
	}
}

// R6: who is too old for the data says which version it needs, and changes nothing.
func TestNewerDataIsRefused(t *testing.T) {
	url := filled(t)
	plant(t, folder(t, url), map[string]string{markName: `{"format":7,"program":"eventyard v7.1","more":[]}`})
	before := testkit.Tree(t, folder(t, url))
	_, opened := Open(t.Context(), url, quick)
	_, inspected := Inspect(t.Context(), url, Inspection{})
	for _, err := range []error{opened, inspected} {
		testkit.ErrorIs(t, err, ErrNewerData)
		for _, want := range []string{"format 7", "up to 6", "run eventyard v7.1, or a newer one"} {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%v: it lacks %q", err, want)
			}
		}
	}
	testkit.Deep(t, testkit.Tree(t, folder(t, url)), before)
}

func TestADamagedMarkIsNotGuessed(t *testing.T) {
	url := filled(t)
	for _, text := range []string{"", "{", `{"format":0}`, `{"format":"1"}`, "\x00\x00\x00"} {
		plant(t, folder(t, url), map[string]string{markName: text})
		if _, err := Open(t.Context(), url, quick); err == nil || !strings.Contains(err.Error(), "is damaged: restore it from a backup, or remove it") {
			t.Errorf("%q: %v", text, err)
		}
	}
	testkit.Must(t, os.Remove(filepath.Join(folder(t, url), markName)))
	testkit.Must(t, open(t, url, quick).Close())
}

// R6: folders from before the mark are known by their meta.db, and get it.
func TestAnOlderFolderIsMarked(t *testing.T) {
	url := filled(t)
	plain := filepath.Join(folder(t, url), markName)
	testkit.Must(t, os.Remove(plain))
	plant(t, folder(t, url), map[string]string{"notes.txt": "mine"})
	if found, err := Inspect(t.Context(), url, Inspection{}); err != nil || found.Events != 1 {
		t.Errorf("found %+v, %v", found, err)
	}
	s := open(t, url, quick)
	if entry, err := s.Meta.Get(t.Context(), "k"); err != nil || string(entry.Value) != "v" {
		t.Errorf("found %q, %v", entry.Value, err)
	}
	testkit.Must(t, s.Close())
	testkit.Must(t, testkit.Err(os.Stat(plain)))
}

// R6: a folder of an older format gets the present mark at its first start, durably, and from then on
// names the program that wrote it so first.
func TestAnOlderFormatIsRaised(t *testing.T) {
	for name, text := range map[string]string{"format 1": `{"format":1,"program":"eventyard v1"}`, "before the mark": ""} {
		t.Run(name, func(t *testing.T) {
			url := olderFolder(t, text)
			cfg := quick
			for _, cfg.Program = range []string{"eventyard v2", "eventyard v3"} {
				testkit.Must(t, open(t, url, cfg).Close())
				testkit.Equal(t, readFile(t, url, markName), "{\"format\":6,\"program\":\"eventyard v2\"}\n", "after a start of "+cfg.Program)
			}
		})
	}
}

// R6: a start that is cut short anywhere in the change of the mark leaves the old one or the new one,
// and the next start goes on.
func TestTheMarkIsRaisedInOneStep(t *testing.T) {
	const old = `{"format":1,"program":"eventyard v1"}`
	for n, failed := 1, true; failed; n++ {
		url := olderFolder(t, old)
		plant(t, folder(t, url), map[string]string{markName + vfs.UnfinishedSuffix: "{"})
		faulty, cfg, left := vfs.NewFaulty(vfs.OS(folder(t, url))), quick, n
		cfg.markIn = faulty
		faulty.Inject(func(op vfs.Op) error {
			if left--; left == 0 {
				return syscall.EIO
			}
			return nil
		})
		s, err := Open(t.Context(), url, cfg)
		failed = left <= 0
		text := readFile(t, url, markName)
		switch {
		case err == nil: // also where it could not look whether there is something to do
			testkit.Equal(t, text, "{\"format\":6}\n", "operation %d failed", n)
			testkit.Must(t, s.Close())
		case !errors.Is(err, syscall.EIO) || text != old && text != "{\"format\":6}\n":
			t.Errorf("operation %d failed: the mark is %q, %v", n, text, err)
		}
		testkit.Must(t, open(t, url, quick).Close())
		testkit.Equal(t, readFile(t, url, markName), "{\"format\":6}\n", "at last")
	}
}

// R6: a full disk does not keep a yard of an older format from starting; it stays readable for the
// older version until there is room for the mark.
func TestAFullDiskKeepsTheOlderFormat(t *testing.T) {
	for name, text := range map[string]string{"format 1": `{"format":1}`, "before the mark": ""} {
		t.Run(name, func(t *testing.T) {
			url := olderFolder(t, text)
			faulty, cfg := vfs.NewFaulty(vfs.OS(folder(t, url))), quick
			cfg.markIn = faulty
			faulty.Inject(func(op vfs.Op) error {
				if op.Kind == vfs.OpCreate || op.Kind == vfs.OpWrite {
					return syscall.ENOSPC
				}
				return nil
			})
			s := open(t, url, cfg)
			if entry, err := s.Meta.Get(t.Context(), "k"); err != nil || string(entry.Value) != "v" {
				t.Errorf("found %q, %v", entry.Value, err)
			}
			testkit.Must(t, s.Close())
			if text == "" {
				testkit.ErrorIs(t, testkit.Err(os.Stat(filepath.Join(folder(t, url), markName))), fs.ErrNotExist)
			} else {
				testkit.Equal(t, readFile(t, url, markName), text, "the mark")
			}
			faulty.Inject(nil)
			testkit.Must(t, open(t, url, cfg).Close())
			testkit.Equal(t, readFile(t, url, markName), "{\"format\":6}\n", "the mark when there is room")
		})
	}
}

// olderFolder is the URL of storage with an older mark; none if it is empty.
func olderFolder(t *testing.T, text string) string {
	t.Helper()
	url := filled(t)
	testkit.Must(t, os.Remove(filepath.Join(folder(t, url), markName)))
	if text != "" {
		plant(t, folder(t, url), map[string]string{markName: text})
	}
	return url
}

func readFile(t *testing.T, url, name string) string {
	t.Helper()
	return string(testkit.Value(os.ReadFile(filepath.Join(folder(t, url), name)))(t))
}

// R6: links would lead the yard to files of others.
func TestLinksUnderTheYardsNamesAreRefused(t *testing.T) {
	for _, name := range append(storageNames(), "blobs", "tls/ca-key.pem") {
		t.Run(name, func(t *testing.T) {
			url, outside := filled(t), t.TempDir()
			plant(t, outside, map[string]string{"file": "theirs", "000001.seg": "theirs", "orders-1/0/00000000000000000000.seg": "theirs"})
			target := outside
			if filepath.Ext(name) != "" || name == lockName {
				target = filepath.Join(outside, "file")
			}
			before := testkit.Tree(t, outside)
			path := filepath.Join(folder(t, url), name)
			testkit.Must(t, os.RemoveAll(path))
			testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
			testkit.Must(t, os.Symlink(target, path))
			cfg := quick
			cfg.Own = []string{"blobs", "tls", "tls/ca-key.pem"}
			if _, err := Open(t.Context(), url, cfg); err == nil || !strings.Contains(err.Error(), "move it away") && !errors.Is(err, ErrForeign) {
				t.Errorf("opened with %v", err)
			}
			testkit.Deep(t, testkit.Tree(t, outside), before)
			testkit.Equal(t, testkit.Tree(t, path)[path], "link: "+target, "the link")
		})
	}
}
