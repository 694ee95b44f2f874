package storage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R6: within a yard's folder files of others stay as they are, and no link is followed, whatever
// the yard does: start, append, roll, retention, removal, stop.
func TestFilesOfOthersInTheFolderAreLeftAlone(t *testing.T) {
	for _, sync := range []string{"always", "interval", "os"} {
		t.Run(sync, func(t *testing.T) {
			cfg := Config{Sync: sync, SegmentBytes: 4 << 10, Log: quick.Log}
			dir, outside := filepath.Join(t.TempDir(), "data"), t.TempDir()
			live(t, dir, cfg, "orders-1", false)
			plant(t, outside, map[string]string{"file": "theirs", "folder/file": "theirs", "folder/0/00000000000000000000.seg": "theirs"})
			before := strangers(t, dir, outside)
			for round := range 2 {
				live(t, dir, cfg, fmt.Sprintf("more-%d", round), true)
				testkit.Holds(t, before, dir)
			}
			s := open(t, Disk(dir), cfg)
			testkit.Must(t, s.Log.Remove(t.Context(), "orders-1"))
			testkit.Holds(t, before, dir)
			if left, err := filepath.Glob(filepath.Join(dir, logDir, "orders-1", "0", "0*.seg")); err != nil || len(left) != 0 {
				t.Errorf("of the removed log there is %v, %v", left, err)
			}
			testkit.Must(t, s.Close())
			testkit.Must(t, open(t, Disk(dir), cfg).Close())
			testkit.Holds(t, before, dir)
			testkit.Deep(t, testkit.Tree(t, outside), map[string]string{
				outside: "folder", filepath.Join(outside, "file"): "file: theirs",
				filepath.Join(outside, "folder"): "folder", filepath.Join(outside, "folder", "file"): "file: theirs",
				filepath.Join(outside, "folder", "0"):                             "folder",
				filepath.Join(outside, "folder", "0", "00000000000000000000.seg"): "file: theirs",
			}, "outside")
		})
	}
}

// R6: a link that stays within the folder is not followed either. Two partitions would write one
// file, and removing a log would remove another's segments.
func TestALinkToAnotherLogOrPartitionIsNotFollowed(t *testing.T) {
	const refused = "is a link, and links in the folder are not followed: move what it leads to in its place, or mount that there"
	dir := filepath.Join(t.TempDir(), "data")
	live(t, dir, quick, "orders-1", false)
	plant(t, dir, map[string]string{logDir + "/orders-1/2": "-> 0", logDir + "/other-1": "-> orders-1"})
	before := testkit.Tree(t, filepath.Join(dir, logDir))
	s := open(t, Disk(dir), quick)
	batch := eventlog.Batch{Events: []eventlog.Event{{Message: []byte("x")}}}
	for _, id := range []eventlog.PartitionID{{Log: "orders-1", Number: 2}, {Log: "other-1"}} {
		partition := testkit.Value(s.Log.Partition(id))(t)
		for name, err := range map[string]error{
			"append": testkit.Err(eventlog.Append(t.Context(), partition, batch)), "bounds": testkit.Err(partition.Bounds(t.Context())),
		} {
			if err == nil || !strings.Contains(err.Error(), refused) {
				t.Errorf("%s of %s: %v", name, id, err)
			}
		}
	}
	if err := s.Log.Remove(t.Context(), "other-1"); err == nil || !strings.Contains(err.Error(), refused) {
		t.Errorf("remove: %v", err)
	}
	testkit.Must(t, s.Close())
	testkit.Deep(t, testkit.Tree(t, filepath.Join(dir, logDir)), before)
}

// strangers puts files of others, and links to such, into every folder that storage has, under
// names of all kinds, and gives what is to stay.
func strangers(t *testing.T, dir, outside string) map[string]string {
	t.Helper()
	const segment, random = "00000000000000000000.seg", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	files := map[string]string{}
	for _, in := range []string{".", logDir, logDir + "/orders-1", logDir + "/orders-1/0", journalDir, spareDir, trashDir, trashDir + "/old-1", trashDir + "/old-1/0"} {
		for name, text := range map[string]string{
			"notes.txt": "mine", ".hidden": "mine", "folder/notes.txt": "mine", "1.seg": "mine", "my.jnl": "mine", "new-mine": "mine",
			"meta.db.new-mine": "mine", "000001.seg.bak": "mine",
			"link": "-> " + outside + "/file", "links": "-> " + outside + "/folder",
		} {
			files[in+"/"+name] = text
		}
	}
	// Links under names that the yard makes.
	for _, name := range []string{
		spareDir + "/000001.seg", spareDir + "/new-" + random, spareDir + "/orders-1.0." + segment, journalDir + "/" + random + ".jnl",
		trashDir + "/old-1/1", trashDir + "/old-2", trashDir + "/orders-1", logDir + "/other-1", trashDir + "/old-1/0/" + segment, "meta.db.new-1",
	} {
		files[name] = "-> " + outside + "/folder"
	}
	plant(t, dir, files)
	before := map[string]string{}
	tree := testkit.Tree(t, dir)
	for name := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		before[path] = tree[path]
	}
	return before
}

// live opens storage, appends to a log and trims it, so that segments roll, are removed and used
// again; and removes the log.
func live(t *testing.T, dir string, cfg Config, log string, remove bool) {
	t.Helper()
	s := open(t, Disk(dir), cfg)
	var next eventlog.Sequence
	for _, id := range []eventlog.PartitionID{{Log: "orders-1"}, {Log: log}, {Log: log, Number: 1}} {
		partition := testkit.Value(s.Log.Partition(id))(t)
		for range 6 {
			for range 4 {
				result := testkit.Value(eventlog.Append(t.Context(), partition, eventlog.Batch{Events: []eventlog.Event{{Message: []byte(strings.Repeat("x", 1000))}}}))(t)
				next = result.First
			}
			testkit.Must(t, partition.Trim(t.Context(), next))
		}
	}
	entry := "k/" + log
	revision := testkit.Value(s.Meta.CompareAndSet(t.Context(), entry, 0, []byte("v")))(t)
	if remove {
		testkit.Must(t, s.Log.Remove(t.Context(), log))
		testkit.Must(t, s.Meta.Delete(t.Context(), entry, revision))
		testkit.ErrorIs(t, testkit.Err(os.Stat(filepath.Join(dir, logDir, log))), os.ErrNotExist, "the removed log")
	}
	testkit.Must(t, s.Close())
}
