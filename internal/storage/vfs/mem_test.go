package vfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestFailAfterLetsExactlySoManyOperationsPass(t *testing.T) {
	script := []struct {
		name string
		do   func(m *vfs.Mem, f vfs.File) error
	}{
		{"write", func(_ *vfs.Mem, f vfs.File) error { _, err := f.WriteAt([]byte("x"), 0); return err }},
		{"sync", func(_ *vfs.Mem, f vfs.File) error { return f.Sync() }},
		{"truncate", func(_ *vfs.Mem, f vfs.File) error { return f.Truncate(9) }},
		{"mkdir", func(m *vfs.Mem, _ vfs.File) error { return m.MkdirAll("d") }},
		{"create", func(m *vfs.Mem, _ vfs.File) error { _, err := m.Create("d/a"); return err }},
		{"rename", func(m *vfs.Mem, _ vfs.File) error { return m.Rename("d/a", "d/b") }},
		{"sync of a folder", func(m *vfs.Mem, _ vfs.File) error { return m.SyncDir("d") }},
		{"remove", func(m *vfs.Mem, _ vfs.File) error { return m.Remove("d/b") }},
		{"remove all", func(m *vfs.Mem, _ vfs.File) error { return m.RemoveAll("d") }},
		{"lock", func(m *vfs.Mem, _ vfs.File) error { _, err := m.Lock("LOCK"); return err }},
	}
	for n := range len(script) + 1 {
		t.Run(fmt.Sprintf("after %d", n), func(t *testing.T) {
			m := vfs.NewMem()
			f := create(t, m, "f")
			before := m.Ops()
			m.FailAfter(n)
			for i, step := range script {
				err := step.do(m, f)
				if i < n && err != nil {
					t.Fatalf("%s: %v", step.name, err)
				}
				if i >= n {
					wantError(t, err, vfs.ErrPowerLost)
				}
			}
			if got := m.Ops() - before; got != n {
				t.Errorf("counted %d operations, want %d", got, n)
			}
			if n < len(script) {
				wantDead(t, m, f)
			}
		})
	}
}

func TestFailAfterCountsChangesAndNotReads(t *testing.T) {
	m := vfs.NewMem()
	f := createWith(t, m, "f", "x")
	m.FailAfter(0)
	equal(t, readFile(t, m, "f"), []byte("x")) // the power goes with the next change
	wantError(t, f.Sync(), vfs.ErrPowerLost)
	if _, err := m.Open("f"); err == nil {
		t.Error("opened a file without power")
	}
	after := m.CutPower(newRand(1))
	testkit.Must(t, create(t, after, "g").Close())
}

func TestANegativeFailAfterNeverFails(t *testing.T) {
	m := vfs.NewMem()
	m.FailAfter(0)
	m.FailAfter(-1)
	testkit.Must(t, create(t, m, "f").Close())
}

func TestAPowerCutMidWriteLeavesABeginning(t *testing.T) {
	seen := make(map[int]bool)
	for seed := range uint64(200) {
		m := vfs.NewMem()
		m.SetRand(newRand(seed))
		f := create(t, m, "f")
		m.FailAfter(0)
		n, err := f.WriteAt([]byte("abcd"), 0)
		wantError(t, err, vfs.ErrPowerLost)
		seen[n] = true
		equal(t, readFile(t, m.CrashProcess(), "f"), []byte("abcd")[:n])
	}
	testkit.Equal(t, len(seen), 5, "saw beginnings of these lengths only: %v", seen)
}

func TestRemoveAllMayBeCutInTheMiddle(t *testing.T) {
	m := vfs.NewMem()
	testkit.Must(t, m.MkdirAll("d"))
	for _, name := range []string{"d/a", "d/b", "d/c"} {
		testkit.Must(t, create(t, m, name).Close())
	}
	m.FailAfter(2)
	wantError(t, m.RemoveAll("d"), vfs.ErrPowerLost)
	wantList(t, m.CrashProcess(), "d", "c")
}

func TestAFullDisk(t *testing.T) {
	m := vfs.NewMem()
	m.SetCapacity(1000)
	f := create(t, m, "f")
	writeAt(t, f, pattern(900), 0)

	n, err := f.WriteAt(pattern(200), 900)
	wantError(t, err, syscall.ENOSPC)
	testkit.Equal(t, n, 100, "wrote … of the 100 bytes that fit")
	writeAt(t, f, pattern(500), 300) // needs no room
	wantError(t, f.Truncate(1001), syscall.ENOSPC)
	_, err = f.WriteAt([]byte("x"), 5000)
	wantError(t, err, syscall.ENOSPC)
	testkit.Equal(t, len(contents(t, f)), 1000, "the file")

	testkit.Must(t, f.Truncate(400))
	g := create(t, m, "g")
	writeAt(t, g, pattern(600), 0)
	_, err = g.WriteAt([]byte("x"), 600)
	wantError(t, err, syscall.ENOSPC)

	testkit.Must(t, m.Remove("g"))
	_, err = f.WriteAt([]byte("x"), 400)
	wantError(t, err, syscall.ENOSPC) // the room is taken while g is open
	testkit.Must(t, g.Close())
	writeAt(t, f, pattern(600), 400)

	m.SetCapacity(0)
	writeAt(t, f, pattern(600), 1000)
}

func TestRoomIsCountedAnewAfterACut(t *testing.T) {
	for name, end := range map[string]func(m *vfs.Mem) *vfs.Mem{
		"power":   func(m *vfs.Mem) *vfs.Mem { return m.CutPower(newRand(1)) },
		"process": (*vfs.Mem).CrashProcess,
	} {
		t.Run(name, func(t *testing.T) {
			m := vfs.NewMem()
			m.SetCapacity(1000)
			syncedFile(t, m, "f", pattern(400))
			syncedFile(t, m, "gone", pattern(600))
			testkit.Must(t, m.Remove("gone")) // still open, so its room is still taken
			testkit.Must(t, m.SyncDir("."))
			after := end(m)
			f, err := after.Open("f")
			testkit.Must(t, err)
			writeAt(t, f, pattern(600), 400)
			_, err = f.WriteAt([]byte("x"), 1000)
			wantError(t, err, syscall.ENOSPC)

			testkit.Must(t, f.Close())
			testkit.Must(t, after.Remove("f")) // open before the cut, which holds no room now
			writeAt(t, create(t, after, "g"), pattern(1000), 0)
		})
	}
}

func TestCorruptFlipsBitsOnDiskAndInMemory(t *testing.T) {
	m := vfs.NewMem()
	f := syncedFile(t, m, "f", []byte("hello"))
	writeAt(t, f, []byte("HELLO"), 0)
	testkit.Must(t, m.Corrupt("f", 1, 0x01))
	equal(t, contents(t, f), []byte("HDLLO"))
	for seed := range uint64(seeds) {
		got := readFile(t, m.CutPower(newRand(seed)), "f")
		if got[1] != 'D' && got[1] != 'd' {
			t.Fatalf("found %q", got)
		}
	}
}

func TestCorruptRefusesWhatIsNotThere(t *testing.T) {
	m := vfs.NewMem()
	createWith(t, m, "f", "x")
	wantError(t, m.Corrupt("f", 1, 1), fs.ErrInvalid)
	wantError(t, m.Corrupt("f", -1, 1), fs.ErrInvalid)
	wantError(t, m.Corrupt("g", 0, 1), fs.ErrNotExist)
}

func TestALargeSparseFileCostsLittle(t *testing.T) {
	m := vfs.NewMem()
	f := syncedFile(t, m, "f", []byte("x"))
	const length = 1 << 40
	testkit.Must(t, f.Truncate(length))
	writeAt(t, f, []byte("end"), length-3)
	testkit.Must(t, f.Sync())
	testkit.Must(t, f.Truncate(1))
	got := outcomes(t, m, func(after *vfs.Mem) string {
		g := testkit.Value(after.Open("f"))(t)
		n := testkit.Value(g.Bytes())(t)
		return fmt.Sprint(n)
	})
	wantOutcomes(t, got, "1", fmt.Sprint(length))
}

// TestMemAgreesWithTheDisk does the same random operations on both.
func TestMemAgreesWithTheDisk(t *testing.T) {
	for seed := range uint64(200) {
		mem, disk := vfs.NewMem(), vfs.OS(t.TempDir())
		one, two := newRand(seed), newRand(seed)
		for step := range 60 {
			a, b := randomStep(mem, one), randomStep(disk, two)
			if a != b {
				t.Fatalf("seed %d step %d: memory %s, disk %s", seed, step, a, b)
			}
		}
		if a, b := strings.Join(tree(t, mem, "."), " "), strings.Join(tree(t, disk, "."), " "); a != b {
			t.Fatalf("seed %d: memory holds %q, disk %q", seed, a, b)
		}
	}
}

// randomStep does one operation on few names, so that they often meet, and tells
// what it was and whether it succeeded.
func randomStep(d vfs.FS, rnd *rand.Rand) string {
	names := []string{"a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "e", "e/a"}
	name, other := names[rnd.IntN(len(names))], names[rnd.IntN(len(names))]
	offset, length := rnd.Int64N(9000), rnd.IntN(3000)
	var what string
	var err error
	switch kind := rnd.IntN(10); kind {
	case 0, 1:
		what = "create " + name
		var f vfs.File
		if f, err = d.Create(name); err == nil {
			err = f.Close()
		}
	case 2:
		what = "mkdir " + name
		err = d.MkdirAll(name)
	case 3:
		what = "rename " + name + " " + other
		err = d.Rename(name, other)
	case 4:
		what = "remove " + name
		err = d.Remove(name)
	case 5:
		what = "removeall " + name
		err = d.RemoveAll(name)
	default:
		what = "change " + name
		err = changeFile(d, name, kind == 6, offset, length)
	}
	return fmt.Sprintf("%s: success %t, absent %t, taken %t", what, err == nil, vfs.IsNotExist(err), errors.Is(err, fs.ErrExist))
}

func changeFile(d vfs.FS, name string, truncate bool, offset int64, length int) error {
	f, err := d.Open(name)
	if err != nil {
		return err
	}
	if truncate {
		err = f.Truncate(offset)
	} else {
		_, err = f.WriteAt(bytes.Repeat([]byte{byte('a' + length%26)}, length), offset)
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// TestSyncedBytesSurviveAnyCut writes and syncs at random, cuts the power after each
// possible number of operations, and checks what the syncs had promised.
func TestSyncedBytesSurviveAnyCut(t *testing.T) {
	for seed := range uint64(150) {
		rnd := newRand(seed)
		m := vfs.NewMem()
		m.SetRand(rnd)
		f := syncedFile(t, m, "f", nil)
		m.FailAfter(rnd.IntN(200))
		promised := appendUntilLost(t, f, rnd)
		after := m.CutPower(rnd)
		if got := readFile(t, after, "f"); !bytes.HasPrefix(got, promised) {
			t.Fatalf("seed %d: lost some of %d synced bytes, found %d", seed, len(promised), len(got))
		}
	}
}

// appendUntilLost gives the bytes that the last good sync promised.
func appendUntilLost(t *testing.T, f vfs.File, rnd *rand.Rand) []byte {
	t.Helper()
	source := pattern(2000)
	var written, promised []byte
	for {
		p := source[:rnd.IntN(len(source))]
		if _, err := f.WriteAt(p, int64(len(written))); err != nil {
			wantError(t, err, vfs.ErrPowerLost)
			return promised
		}
		written = append(written, p...)
		if rnd.IntN(3) > 0 {
			continue
		}
		if err := f.Sync(); err != nil {
			return promised
		}
		promised = written
	}
}

// TestNamesStayConsistentAfterAnyCut moves files and folders about at random. Files
// that were durable and never removed must be found once each.
func TestNamesStayConsistentAfterAnyCut(t *testing.T) {
	for seed := range uint64(1000) {
		rnd := newRand(seed)
		m := vfs.NewMem()
		names := []string{"a", "b", "c", "a/d", "b/d", "a/d/e", "c/d", "c/d/e"}
		testkit.Must(t, m.MkdirAll("a/d/e"))
		testkit.Must(t, m.MkdirAll("b"))
		var want []string
		for i := range 4 {
			dir := []string{"a", "b", "a/d", "a/d/e"}[i]
			want = append(want, fmt.Sprint("file", i))
			writeSynced(t, m, dir+"/"+want[i], want[i])
			testkit.Must(t, m.SyncDir(dir))
		}
		for range 30 {
			moveSomething(m, rnd, names, want)
		}
		var got []string
		for _, entry := range tree(t, m.CutPower(rnd), ".") {
			_, text, _ := strings.Cut(entry, "=")
			got = append(got, text)
		}
		slices.Sort(got)
		testkit.MustSlices(t, got, want, "seed %d: found", seed)
	}
}

// moveSomething tries one change; many are refused, which is fine. It replaces no
// file, for files keep their own names.
func moveSomething(m *vfs.Mem, rnd *rand.Rand, dirs, files []string) {
	from, to := dirs[rnd.IntN(len(dirs))], dirs[rnd.IntN(len(dirs))]
	file := "/" + files[rnd.IntN(len(files))]
	switch rnd.IntN(8) {
	case 0:
		_ = m.SyncDir(from)
	case 1:
		_ = m.MkdirAll(from)
	case 2:
		_ = m.Remove(from)
	case 3, 4:
		_ = m.Rename(from, to)
	default:
		_ = m.Rename(from+file, to+file)
	}
}

func BenchmarkRunOfAFewHundredOperations(b *testing.B) {
	data := pattern(1500)
	for seed := range uint64(b.N) {
		rnd := newRand(seed)
		m := vfs.NewMem()
		for file := range 3 {
			f, err := m.Create(fmt.Sprint(file))
			testkit.Must(b, err)
			for i := range 50 {
				testkit.Must(b, testkit.Err(f.WriteAt(data, int64(i*len(data)))))
				testkit.Must(b, f.Sync())
			}
		}
		m.CutPower(rnd)
	}
}
