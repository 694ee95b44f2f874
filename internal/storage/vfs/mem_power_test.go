package vfs_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// seeds is how many outcomes of one power cut the tests look at.
const seeds = 400

// outcomes cuts the power many times over the same state and gives what was found, each kind once.
func outcomes(t *testing.T, m *vfs.Mem, look func(after *vfs.Mem) string) []string {
	t.Helper()
	found := make(map[string]bool)
	for seed := range uint64(seeds) {
		found[look(m.CutPower(rand.New(rand.NewPCG(seed, 0))))] = true
	}
	return slices.Sorted(maps.Keys(found))
}

func wantOutcomes(t *testing.T, got []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func TestWhatWasSyncedSurvives(t *testing.T) {
	m := vfs.NewMem()
	testkit.Must(t, m.MkdirAll("a/b"))
	f := create(t, m, "a/b/f")
	data := pattern(5000)
	writeAt(t, f, data, 0)
	testkit.Must(t, f.Sync())
	testkit.Must(t, m.SyncDir("a/b"))
	// What is appended without a sync must not hurt what was synced before it, not
	// even in the sector that they share.
	writeAt(t, f, pattern(3000), 5000)
	for seed := range uint64(seeds) {
		equal(t, readFile(t, m.CutPower(newRand(seed)), "a/b/f")[:5000], data)
	}
}

func TestFateOfSectorsThatWereNotSynced(t *testing.T) {
	const size = 3 * 512
	m := vfs.NewMem()
	f := syncedFile(t, m, "f", bytes.Repeat([]byte("o"), size))
	writeAt(t, f, bytes.Repeat([]byte("n"), size), 0)

	got := outcomes(t, m, func(after *vfs.Mem) string {
		return shape(readFile(t, after, "f"))
	})
	var torn int
	got = slices.DeleteFunc(got, func(s string) bool {
		if strings.Contains(s, "/") {
			torn++
			return true
		}
		return false
	})
	if torn == 0 {
		t.Error("no sector was ever torn")
	}
	wantOutcomes(t, got, "ooo", "oon", "ono", "onn", "noo", "non", "nno", "nnn")
}

// shape writes each sector as the letter that fills it, or as new/old when it is torn.
func shape(data []byte) string {
	var b strings.Builder
	for sector := range slices.Chunk(data, 512) {
		b.WriteByte(sector[0])
		rest := bytes.TrimLeft(sector, string(sector[:1]))
		if len(rest) == 0 {
			continue
		}
		if len(bytes.TrimLeft(rest, string(rest[:1]))) > 0 {
			return "more than one tear in a sector"
		}
		b.WriteByte('/')
		b.WriteByte(rest[0])
	}
	return b.String()
}

func TestATornSectorIsNewFirstAndOldBehind(t *testing.T) {
	m := vfs.NewMem()
	f := syncedFile(t, m, "f", bytes.Repeat([]byte("o"), 512))
	writeAt(t, f, bytes.Repeat([]byte("n"), 512), 0)
	got := outcomes(t, m, func(after *vfs.Mem) string { return shape(readFile(t, after, "f")) })
	wantOutcomes(t, got, "n", "n/o", "o")
}

func TestASectorMayBeFoundAsItWasInBetween(t *testing.T) {
	m := vfs.NewMem()
	f := syncedFile(t, m, "f", bytes.Repeat([]byte("1"), 512))
	for _, version := range []string{"2", "3"} {
		writeAt(t, f, bytes.Repeat([]byte(version), 512), 0)
	}
	got := outcomes(t, m, func(after *vfs.Mem) string { return shape(readFile(t, after, "f"))[:1] })
	wantOutcomes(t, got, "1", "2", "3")
}

func TestAnAppendMayBeFoundShortOrAsZeros(t *testing.T) {
	m := vfs.NewMem()
	f := syncedFile(t, m, "f", []byte("old"))
	writeAt(t, f, bytes.Repeat([]byte("n"), 600), 3)
	got := outcomes(t, m, func(after *vfs.Mem) string {
		data := readFile(t, after, "f")
		if string(data[:3]) != "old" {
			return "synced bytes were lost"
		}
		added := data[3:]
		switch {
		case len(added) == 0:
			return "not there"
		case len(added) < 600:
			return "part of the length"
		case bytes.Count(added, []byte("n")) == 600:
			return "whole"
		case bytes.Count(added, []byte{0}) == 600:
			return "zeros"
		default:
			return "zeros in part"
		}
	})
	wantOutcomes(t, got, "not there", "part of the length", "whole", "zeros", "zeros in part")
}

func TestALengthThatWasNotSyncedIsOldOrNew(t *testing.T) {
	for _, c := range []struct {
		name    string
		lengths []int64
		want    []string
	}{
		{"cut", []int64{10}, []string{"10", "600"}},
		{"cut and grown again", []int64{10, 600}, []string{"10", "600", "in between"}},
		{"untouched", nil, []string{"600"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := vfs.NewMem()
			f := syncedFile(t, m, "f", pattern(600))
			for _, n := range c.lengths {
				testkit.Must(t, f.Truncate(n))
			}
			got := outcomes(t, m, func(after *vfs.Mem) string {
				n := len(readFile(t, after, "f"))
				if n > 10 && n < 600 {
					return "in between"
				}
				return fmt.Sprint(n)
			})
			wantOutcomes(t, got, c.want...)
		})
	}
}

func TestWhatIsBehindTheLengthAfterACutIsGone(t *testing.T) {
	m := vfs.NewMem()
	f := syncedFile(t, m, "f", nil)
	writeAt(t, f, bytes.Repeat([]byte("n"), 1000), 0)
	for seed := range uint64(seeds) {
		g := testkit.Value(m.CutPower(newRand(seed)).Open("f"))(t)
		found := contents(t, g)
		testkit.Must(t, g.Truncate(2000))
		equal(t, contents(t, g)[len(found):], make([]byte, 2000-len(found)))
	}
}

// A file system that holds "keep" durably, then does something without SyncDir.
func TestFateOfNamesThatWereNotSynced(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(t *testing.T, m *vfs.Mem)
		want []string // the files of the root and of folder d with their contents
	}{
		{
			"a creation may be lost, though the file was synced",
			func(t *testing.T, m *vfs.Mem) { writeSynced(t, m, "new", "N") },
			[]string{"keep=K", "keep=K new=N"},
		},
		{
			"a creation is kept once its folder was synced",
			func(t *testing.T, m *vfs.Mem) {
				writeSynced(t, m, "new", "N")
				testkit.Must(t, m.SyncDir("."))
			},
			[]string{"keep=K new=N"},
		},
		{
			"a removed file may be back",
			func(t *testing.T, m *vfs.Mem) { testkit.Must(t, m.Remove("keep")) },
			[]string{"", "keep=K"},
		},
		{
			"a removed file stays away once its folder was synced",
			func(t *testing.T, m *vfs.Mem) {
				testkit.Must(t, m.Remove("keep"))
				testkit.Must(t, m.SyncDir("."))
			},
			[]string{""},
		},
		{
			"a renamed file has one of its names",
			func(t *testing.T, m *vfs.Mem) { testkit.Must(t, m.Rename("keep", "moved")) },
			[]string{"keep=K", "moved=K"},
		},
		{
			"a file renamed twice has one of its names",
			func(t *testing.T, m *vfs.Mem) {
				testkit.Must(t, m.Rename("keep", "second"))
				testkit.Must(t, m.Rename("second", "third"))
			},
			[]string{"keep=K", "second=K", "third=K"},
		},
		{
			"a file moved to another folder is in one of them while only one was synced",
			func(t *testing.T, m *vfs.Mem) {
				testkit.Must(t, m.Rename("keep", "d/moved"))
				testkit.Must(t, m.SyncDir("d"))
			},
			[]string{"d/moved=K", "keep=K"},
		},
		{
			"a file moved to another folder is there once both were synced",
			func(t *testing.T, m *vfs.Mem) {
				testkit.Must(t, m.Rename("keep", "d/moved"))
				testkit.Must(t, m.SyncDir("."))
				testkit.Must(t, m.SyncDir("d"))
			},
			[]string{"d/moved=K"},
		},
		{
			"replacing by rename leaves the old or the new, never neither",
			func(t *testing.T, m *vfs.Mem) {
				writeSynced(t, m, "temp", "N")
				testkit.Must(t, m.Rename("temp", "keep"))
			},
			[]string{"keep=K", "keep=K temp=N", "keep=N"},
		},
		{
			"changes of different names are lost each on its own",
			func(t *testing.T, m *vfs.Mem) {
				writeSynced(t, m, "a", "A")
				writeSynced(t, m, "b", "B")
			},
			[]string{"a=A b=B keep=K", "a=A keep=K", "b=B keep=K", "keep=K"},
		},
		{
			"a name taken anew never hides where its old file went",
			func(t *testing.T, m *vfs.Mem) {
				testkit.Must(t, m.Rename("keep", "old"))
				writeSynced(t, m, "keep", "N")
			},
			[]string{"keep=K", "keep=N old=K", "old=K"},
		},
		{
			"a sync keeps what the synced name stands on",
			func(t *testing.T, m *vfs.Mem) {
				testkit.Must(t, m.Rename("keep", "d/old")) // waits for d as well
				writeSynced(t, m, "keep", "N")
				testkit.Must(t, m.SyncDir("."))
			},
			[]string{"d/old=K keep=N"},
		},
		{
			"a file moved out of a removed folder is not lost with it",
			func(t *testing.T, m *vfs.Mem) {
				testkit.Must(t, m.MkdirAll("e"))
				writeSynced(t, m, "e/f", "F")
				testkit.Must(t, m.SyncDir("e"))
				testkit.Must(t, m.Rename("e/f", "f"))
				testkit.Must(t, m.Remove("e"))
			},
			[]string{"e/f=F keep=K", "f=F keep=K"},
		},
		{
			"a folder made is durable at once, what is in it is not",
			func(t *testing.T, m *vfs.Mem) {
				testkit.Must(t, m.MkdirAll("e"))
				writeSynced(t, m, "e/f", "F")
			},
			[]string{"e/f=F keep=K", "keep=K"},
		},
		{
			"a folder removed with all in it may be there in part",
			func(t *testing.T, m *vfs.Mem) {
				testkit.Must(t, m.MkdirAll("e"))
				writeSynced(t, m, "e/f", "F")
				writeSynced(t, m, "e/g", "G")
				testkit.Must(t, m.SyncDir("e"))
				testkit.Must(t, m.RemoveAll("e"))
			},
			[]string{"e/f=F e/g=G keep=K", "e/f=F keep=K", "e/g=G keep=K", "keep=K"},
		},
		{
			"a folder removed with all in it is gone once its parent was synced",
			func(t *testing.T, m *vfs.Mem) {
				testkit.Must(t, m.MkdirAll("e"))
				writeSynced(t, m, "e/f", "F")
				testkit.Must(t, m.SyncDir("e"))
				testkit.Must(t, m.RemoveAll("e"))
				testkit.Must(t, m.SyncDir("."))
			},
			[]string{"keep=K"},
		},
		{
			"folders moved into each other do not vanish",
			func(t *testing.T, m *vfs.Mem) {
				testkit.Must(t, m.MkdirAll("e/c"))
				writeSynced(t, m, "e/c/f", "F")
				testkit.Must(t, m.SyncDir("e/c"))
				testkit.Must(t, m.Rename("e/c", "c"))
				testkit.Must(t, m.Rename("e", "c/e"))
			},
			[]string{"c/f=F keep=K", "e/c/f=F keep=K"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := vfs.NewMem()
			testkit.Must(t, m.MkdirAll("d"))
			writeSynced(t, m, "keep", "K")
			testkit.Must(t, m.SyncDir("."))
			c.do(t, m)
			got := outcomes(t, m, func(after *vfs.Mem) string { return strings.Join(tree(t, after, "."), " ") })
			wantOutcomes(t, got, c.want...)
		})
	}
}

// tree gives all files as name=contents.
func tree(t *testing.T, d vfs.FS, dir string) []string {
	t.Helper()
	entries := testkit.Value(d.List(dir))(t)
	var files []string
	for _, e := range entries {
		name := strings.TrimPrefix(dir+"/"+e.Name, "./")
		if e.Dir {
			files = append(files, tree(t, d, name)...)
		} else {
			files = append(files, fmt.Sprintf("%s=%s", name, readFile(t, d, name)))
		}
	}
	return files
}

func TestARemovedFileThatIsBackHasItsDurableBytes(t *testing.T) {
	m := vfs.NewMem()
	f := syncedFile(t, m, "f", pattern(2000))
	closing(t, f)
	testkit.Must(t, m.Remove("f"))
	for seed := range uint64(seeds) {
		after := m.CutPower(newRand(seed))
		if list(t, after, ".") != "" {
			equal(t, readFile(t, after, "f"), pattern(2000))
		}
	}
}

func TestTheSameSeedGivesTheSameOutcome(t *testing.T) {
	build := func() *vfs.Mem {
		m := vfs.NewMem()
		for i := range 20 {
			f := create(t, m, fmt.Sprint(i))
			writeAt(t, f, pattern(3000), 0)
		}
		return m
	}
	one, two := build(), build()
	for seed := range uint64(20) {
		a, b := one.CutPower(newRand(seed)), two.CutPower(newRand(seed))
		if diff := cmp.Diff(tree(t, a, "."), tree(t, b, ".")); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

func TestWhatIsFoundAfterACutIsDurable(t *testing.T) {
	m := vfs.NewMem()
	f := create(t, m, "f")
	writeAt(t, f, pattern(3000), 0)
	first := m.CutPower(newRand(3))
	want := tree(t, first, ".")
	for seed := range uint64(20) {
		testkit.MustDiff(t, want, tree(t, first.CutPower(newRand(seed)), "."))
	}
}

func TestAfterACutTheOldFileSystemIsDead(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(m *vfs.Mem) *vfs.Mem
	}{
		{"by a power cut", func(m *vfs.Mem) *vfs.Mem { return m.CutPower(newRand(1)) }},
		{"by a crash of the process", (*vfs.Mem).CrashProcess},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := vfs.NewMem()
			f := syncedFile(t, m, "f", []byte("x"))
			lock := testkit.Value(m.Lock("LOCK"))(t)
			after := c.end(m)

			wantDead(t, m, f)
			testkit.Must(t, lock.Close())
			again := testkit.Value(after.Lock("LOCK"))(t)
			testkit.Must(t, again.Close())
			equal(t, readFile(t, after, "f"), []byte("x"))
		})
	}
}

// wantDead checks that every method answers ErrPowerLost.
func wantDead(t *testing.T, m *vfs.Mem, f vfs.File) {
	t.Helper()
	p := make([]byte, 1)
	for name, op := range map[string]func() error{
		"Create":    func() error { _, err := m.Create("new"); return err },
		"Open":      func() error { _, err := m.Open("f"); return err },
		"Rename":    func() error { return m.Rename("f", "g") },
		"Remove":    func() error { return m.Remove("f") },
		"RemoveAll": func() error { return m.RemoveAll("f") },
		"MkdirAll":  func() error { return m.MkdirAll("d") },
		"List":      func() error { _, err := m.List("."); return err },
		"SyncDir":   func() error { return m.SyncDir(".") },
		"Lock":      func() error { _, err := m.Lock("OTHER"); return err },
		"Corrupt":   func() error { return m.Corrupt("f", 0, 1) },
		"ReadAt":    func() error { _, err := f.ReadAt(p, 0); return err },
		"WriteAt":   func() error { _, err := f.WriteAt(p, 0); return err },
		"Sync":      f.Sync,
		"Truncate":  func() error { return f.Truncate(0) },
		"Bytes":     func() error { _, err := f.Bytes(); return err },
		"Close":     f.Close,
	} {
		t.Run(name, func(t *testing.T) { wantError(t, op(), vfs.ErrPowerLost) })
	}
}

func TestACrashOfTheProcessLosesNothingYet(t *testing.T) {
	m := vfs.NewMem()
	f := syncedFile(t, m, "f", []byte("old"))
	writeAt(t, f, []byte("new"), 0)
	writeSynced(t, m, "g", "G")

	m = m.CrashProcess()
	wantOutcomes(t, []string{strings.Join(tree(t, m, "."), " ")}, "f=new g=G")

	// Reading it does not make it durable.
	got := outcomes(t, m, func(after *vfs.Mem) string { return strings.Join(tree(t, after, "."), " ") })
	for _, want := range []string{"f=new g=G", "f=old", "f=old g=G", "f=new"} {
		if !slices.Contains(got, want) {
			t.Errorf("never found %q", want)
		}
	}
}

func TestAfterAFailedSyncALaterOneProvesNothing(t *testing.T) {
	m := vfs.NewMem()
	d := vfs.NewFaulty(m)
	f := create(t, d, "f")
	writeAt(t, f, bytes.Repeat([]byte("o"), 1024), 0)
	testkit.Must(t, f.Sync())
	testkit.Must(t, d.SyncDir("."))

	writeAt(t, f, bytes.Repeat([]byte("n"), 1024), 0)
	d.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync {
			return fs.ErrPermission
		}
		return nil
	})
	wantError(t, f.Sync(), fs.ErrPermission)
	d.Inject(nil)
	testkit.Must(t, f.Sync())
	look := func(after *vfs.Mem) string { return shape(readFile(t, after, "f")) }
	if got := outcomes(t, m.CrashProcess(), look); !slices.Contains(got, "oo") || !slices.Contains(got, "nn") {
		t.Errorf("found only %q", got)
	}
}

func TestWritingAgainAfterAFailedSyncHelps(t *testing.T) {
	m := vfs.NewMem()
	d := vfs.NewFaulty(m)
	f := create(t, d, "f")
	testkit.Must(t, d.SyncDir("."))
	writeAt(t, f, bytes.Repeat([]byte("n"), 1024), 0)
	d.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync && op.N == 1 {
			return fs.ErrPermission
		}
		return nil
	})
	wantError(t, f.Sync(), fs.ErrPermission)
	writeAt(t, f, bytes.Repeat([]byte("n"), 1024), 0)
	testkit.Must(t, f.Sync())
	got := outcomes(t, m, func(after *vfs.Mem) string { return shape(readFile(t, after, "f")) })
	wantOutcomes(t, got, "nn")
}

// writeSynced makes a file whose bytes are durable and whose name is not.
func writeSynced(t *testing.T, d vfs.FS, name, text string) {
	t.Helper()
	f := createWith(t, d, name, text)
	testkit.Must(t, f.Sync())
	closing(t, f)
}

// syncedFile makes a file in the root that is durable, and leaves it open.
func syncedFile(t *testing.T, d vfs.FS, name string, data []byte) vfs.File {
	t.Helper()
	f := create(t, d, name)
	writeAt(t, f, data, 0)
	testkit.Must(t, f.Sync())
	testkit.Must(t, d.SyncDir("."))
	return f
}
