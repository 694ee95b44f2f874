package vfs_test

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// holdLock, when set, makes this program hold the lock in the folder it names until
// its input ends, in place of running tests.
const holdLock = "VFS_TEST_HOLD_LOCK"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdLock); dir != "" {
		if _, err := vfs.OS(dir).Lock("LOCK"); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("locked")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0) // without giving the lock back
	}
	os.Exit(m.Run())
}

func TestALockKeepsAnotherProcessOut(t *testing.T) {
	dir := t.TempDir()
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), holdLock+"="+dir)
	stdin, err := holder.StdinPipe()
	testkit.Must(t, err)
	stdout, err := holder.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, holder.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "locked\n" {
		t.Fatalf("the other process said %q, %v", line, err)
	}

	_, err = vfs.OS(dir).Lock("LOCK")
	wantError(t, err, vfs.ErrLocked)
	if want := fmt.Sprintf("locked by process %d", holder.Process.Pid); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q in it", err, want)
	}

	testkit.Must(t, stdin.Close())
	testkit.Must(t, holder.Wait())
	lock, err := vfs.OS(dir).Lock("LOCK") // it ended with the process
	testkit.Must(t, err)
	testkit.Must(t, lock.Close())
}

func TestALockThatNamesNobodyIsStillALock(t *testing.T) {
	for _, text := range []string{"", "nonsense", strings.Repeat("9", 100)} {
		d := vfs.OS(t.TempDir())
		lock, err := d.Lock("LOCK")
		testkit.Must(t, err)
		f, err := d.Open("LOCK")
		testkit.Must(t, err)
		testkit.Must(t, f.Truncate(0))
		writeAt(t, f, []byte(text), 0)
		_, err = d.Lock("LOCK")
		wantError(t, err, vfs.ErrLocked)
		testkit.Must(t, f.Close())
		testkit.Must(t, lock.Close())
	}
}

func TestFilesAndFoldersAreTheOwnersOnly(t *testing.T) {
	dir := t.TempDir()
	d := vfs.OS(dir)
	testkit.Must(t, d.MkdirAll("a"))
	testkit.Must(t, create(t, d, "a/f").Close())
	for name, want := range map[string]fs.FileMode{"a": 0o700, "a/f": 0o600} {
		t.Run(name, func(t *testing.T) {
			info := testkit.Value(os.Stat(dir + "/" + name))(t)
			testkit.Equal(t, info.Mode().Perm(), want, "%s has mode", name)
		})
	}
}

func TestFreeBytes(t *testing.T) {
	free, err := vfs.FreeBytes(t.TempDir())
	if err != nil || free <= 0 {
		t.Errorf("got %d, %v", free, err)
	}
	_, err = vfs.FreeBytes(t.TempDir() + "/no")
	wantError(t, err, fs.ErrNotExist)
}

// R6: below the root no link is followed, not even one that stays within: two partitions would
// write one file, and removing one name would remove what has another. (It was followed once.) Root
// itself and the way to it may be links.
func TestNoLinkBelowTheRootIsFollowed(t *testing.T) {
	parent := t.TempDir()
	plain := vfs.OS(parent + "/root")
	testkit.Must(t, plain.MkdirAll("inside/folder"))
	testkit.Must(t, create(t, plain, "inside/f").Close())
	testkit.Must(t, create(t, plain, "own").Close())
	testkit.Must(t, os.Mkdir(parent+"/outside", 0o700))
	testkit.Must(t, os.WriteFile(parent+"/outside/f", nil, 0o600))
	links := map[string]string{ // by name, what they lead to
		"within": "inside", "beside": "../outside", "away": parent + "/outside", "inside/again": "folder",
		"file": "inside/f", "file-beside": "../outside/f", "nowhere": "missing", "circle": "circle", "../linked": ".",
	}
	for name, to := range links {
		if err := os.Symlink(to, parent+"/root/"+name); err != nil {
			t.Skip("links cannot be made here: ", err)
		}
	}
	delete(links, "../linked")
	before := testkit.Tree(t, parent)
	for way, d := range map[string]vfs.FS{"plain": plain, "by a link": vfs.OS(parent + "/linked/root")} {
		t.Run(way, func(t *testing.T) {
			testkit.Must(t, testkit.Value(d.Open("inside/f"))(t).Close())
			wantList(t, d, "inside", "again", "f", "folder/")
			testkit.Must(t, d.SyncDir("inside"))
			for name := range links {
				for op, err := range map[string]error{
					"open": testkit.Err(d.Open(name)), "open below": testkit.Err(d.Open(name + "/f")),
					"list": testkit.Err(d.List(name)), "sync": d.SyncDir(name), "make": d.MkdirAll(name), "make below": d.MkdirAll(name + "/new/folder"),
					"create below": testkit.Err(d.Create(name + "/new")), "lock": testkit.Err(d.Lock(name)), "lock below": testkit.Err(d.Lock(name + "/LOCK")),
					"remove below": d.Remove(name + "/f"), "remove all below": d.RemoveAll(name + "/f"),
					"rename from below": d.Rename(name+"/f", "own"), "rename to below": d.Rename("own", name+"/f"),
				} {
					want := filepath.FromSlash(name) + " is a link, and links in the folder are not followed: move what it leads to in its place, or mount that there"
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%s %s: got %v, want %q in it", op, name, err, want)
					}
				}
				wantError(t, testkit.Err(d.Create(name)), fs.ErrExist)
			}
		})
	}
	testkit.Deep(t, testkit.Tree(t, parent), before)
	// A link itself is an entry like others.
	testkit.Must(t, plain.Rename("within", "moved"))
	testkit.Must(t, plain.Remove("moved"))
	testkit.Must(t, plain.RemoveAll("beside"))
	wantList(t, plain, "inside", "again", "f", "folder/")
	testkit.Equal(t, len(testkit.Value(os.ReadDir(parent+"/outside"))(t)), 1, "files outside")
}
