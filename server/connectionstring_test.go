package server

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// content reads a small file; empty where there is none.
func content(t *testing.T, dir vfs.FS, name string) string {
	t.Helper()
	f, err := dir.Open(name)
	if vfs.IsNotExist(err) {
		return ""
	}
	testkit.Must(t, err)
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<16))
	testkit.Must(t, err)
	return string(text)
}

// The power may go at any moment: the file is the old one or the new one, and the new
// one once it was said to be kept.
func TestTheConnectionStringSurvivesAPowerCut(t *testing.T) {
	testengine.NeedsFiles(t)
	const before, after = "the old one\n", "the new one\n"
	for cut := range 12 {
		for seed := range uint64(20) {
			disk := vfs.NewMem()
			testkit.Must(t, vfs.ReplaceFile(disk, ConnectionStringFile, before))
			disk.FailAfter(cut)
			err := vfs.ReplaceFile(disk, ConnectionStringFile, after)
			found := disk.CutPower(rand.New(rand.NewPCG(seed, 1)))
			got := content(t, found, ConnectionStringFile)
			if got != after && (err == nil || got != before) {
				t.Fatalf("cut after %d operations, seed %d: found %q, the call said %v", cut, seed, got, err)
			}
			testkit.Must(t, vfs.ReplaceFile(found, ConnectionStringFile, "newer\n"),
				"cut after %d operations, seed %d", cut, seed)
			if left, err := found.List("."); err != nil || len(left) != 1 {
				t.Fatalf("cut after %d operations, seed %d: left are %v, %v", cut, seed, left, err)
			}
		}
	}
}

// What fails leaves the old one, and no key lying about.
func TestAConnectionStringThatCannotBeKept(t *testing.T) {
	testengine.NeedsFiles(t)
	for _, kind := range []vfs.OpKind{vfs.OpCreate, vfs.OpWrite, vfs.OpSync, vfs.OpRename} {
		disk := vfs.NewMem()
		testkit.Must(t, vfs.ReplaceFile(disk, ConnectionStringFile, "old"))
		broken := errors.New("broken")
		faulty := vfs.NewFaulty(disk)
		faulty.Inject(func(op vfs.Op) error {
			if op.Kind == kind {
				return broken
			}
			return nil
		})
		testkit.ErrorIs(t, vfs.ReplaceFile(faulty, ConnectionStringFile, "new"), broken, "%v fails: error", kind)
		left, err := disk.List(".")
		if err != nil || len(left) != 1 || content(t, disk, ConnectionStringFile) != "old" {
			t.Errorf("%v fails: left are %v, %v", kind, left, err)
		}
	}
}

// What a crash has left behind holds a key: a start removes it, and nobody takes it for
// a stranger's file.
func TestAnUnfinishedConnectionStringIsRemoved(t *testing.T) {
	testengine.NeedsFiles(t)
	cfg := quick(t)
	start(t, cfg).shutdown()
	unfinished := filepath.Join(cfg.DataDir, ConnectionStringFile+vfs.UnfinishedSuffix)
	testkit.Must(t, os.WriteFile(unfinished, []byte("SharedAccessKey=old"), 0o600))
	if found, err := Inspect(t.Context(), Inspection{DataDir: cfg.DataDir}); err != nil || len(found.Foreign) != 0 {
		t.Errorf("found %+v, %v", found, err)
	}
	start(t, cfg).shutdown()
	testkit.ErrorIs(t, testkit.Err(os.Stat(unfinished)), os.ErrNotExist, "it is still there")
}

// However many make the root key anew at once, the file has the one that is good.
func TestTheKeptKeyIsTheLastOne(t *testing.T) {
	r := start(t, everyListener(t))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			status, answer := r.do("POST", "/api/v1/policies/"+auth.RootPolicy+"/regenerate", `{"key":"primary"}`)
			if status != 200 {
				t.Error(fmt.Sprint(status, " ", answer))
			}
		})
	}
	all.Wait()
	if kept, root := r.kept(), r.policy("/api/v1/policies/"+auth.RootPolicy); kept.Key != root.PrimaryKey {
		t.Error("the file has a key that is good no more")
	}
	r.shutdown()
}
