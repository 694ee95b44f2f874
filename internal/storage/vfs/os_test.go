package vfs_test

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
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

// R6: a link is followed within the root, and on the way to it, and refused where it leads out of it.
func TestNoLinkLeadsOutOfTheRoot(t *testing.T) {
	parent := t.TempDir()
	d := vfs.OS(parent + "/root")
	testkit.Must(t, d.MkdirAll("inside"))
	testkit.Must(t, create(t, d, "inside/f").Close())
	testkit.Must(t, os.Mkdir(parent+"/outside", 0o700))
	testkit.Must(t, os.WriteFile(parent+"/outside/f", nil, 0o600))
	link := func(to, name string) {
		if err := os.Symlink(to, parent+"/root/"+name); err != nil {
			t.Skip("links cannot be made here: ", err)
		}
	}
	link("inside", "within")
	link("../outside", "beside")
	link(parent+"/outside", "away")
	link("../outside/f", "file")

	testkit.Must(t, testkit.Value(d.Open("within/f"))(t).Close())
	wantList(t, d, "within", "f")
	link(".", "../linked")
	linked := vfs.OS(parent + "/linked/root")
	testkit.Must(t, testkit.Value(linked.Open("inside/f"))(t).Close())
	wantList(t, linked, "inside", "f")
	testkit.That(t, testkit.Err(linked.Open("beside/f")) != nil, "beside/f was opened")
	for _, name := range []string{"beside/f", "away/f", "file"} {
		testkit.That(t, testkit.Err(d.Open(name)) != nil, "%s was opened", name)
	}
	for _, name := range []string{"beside", "away"} {
		testkit.That(t, testkit.Err(d.List(name)) != nil, "%s was listed", name)
		testkit.That(t, testkit.Err(d.Create(name+"/new")) != nil, "a file was made in %s", name)
	}
	testkit.Equal(t, len(testkit.Value(os.ReadDir(parent+"/outside"))(t)), 1, "files outside")
}
