package crash

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

var backupRounds = flag.Int("backup.rounds", 2, "how many times each of yard, backup and restore is killed")

// bulk is how many events of 100 KiB are backed up besides those that are checked, so that there is
// time to kill.
const bulk = 120

// TestKillNineOfBackupAndRestore kills the yard while a backup is taken, the backup, and the restore,
// all under load: what was interrupted is never taken for whole, everything can be begun again, and what
// was acknowledged before a backup that was finished is in it, where it was. // C7
func TestKillNineOfBackupAndRestore(t *testing.T) {
	y := &yard{t: t, binary: parts.Eventyard(t, true), data: filepath.Join(t.TempDir(), "data"), acked: map[position]string{}, accepted: map[int]bool{}, sizes: map[int]int{}}
	y.start()
	y.post("/api/v1/hubs", fmt.Sprintf(`{"name":"orders","partitions":%d}`, partitions), http.StatusCreated)
	y.post("/api/v1/hubs", `{"name":"bulk","partitions":2}`, http.StatusCreated)
	y.program("send", "bulk", "--count", fmt.Sprint(bulk), "--size", "100000", "--server", y.url).mustRun()
	killed := map[string]int{}
	for round := range *backupRounds {
		for _, victim := range []string{"yard", "backup"} {
			if y.killWhileBackingUp(victim, round) {
				killed[victim]++
			}
		}
	}
	dir, before := y.backUp()
	y.process.Process.Kill()
	y.process.Wait()
	restored := filepath.Join(t.TempDir(), "restored")
	testkit.Must(t, os.MkdirAll(restored, 0o700))
	key, err := os.ReadFile(filepath.Join(y.data, "secret.key"))
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(filepath.Join(restored, "secret.key"), key, 0o600))
	for round := range *backupRounds {
		if y.killWhileRestoring(dir, restored, int64(round+1)*bulk*100_000/int64(*backupRounds+1)) {
			killed["restore"]++
		}
	}
	for _, victim := range []string{"yard", "backup", "restore"} {
		testkit.That(t, killed[victim] > 0, "the %s was done before it was killed, each time: this proves too little", victim)
	}
	y.program("restore", dir, "--data", restored).mustRun()

	y.data, y.acked, y.accepted = restored, before, map[int]bool{}
	y.start()
	y.check()
	out := y.program("read", "bulk", "-o", "json", "--server", y.url).mustRun()
	testkit.Equal(t, bytes.Count(out, []byte("\n")), bulk, "events besides")
	y.stop()
	t.Logf("killed in the midst: %v; %d events acknowledged before the backup were found", killed, len(before))
}

// command is the program with arguments.
type command struct {
	*exec.Cmd
	y      *yard
	output bytes.Buffer
}

func (y *yard) program(args ...string) *command {
	c := &command{Cmd: exec.Command(y.binary, args...), y: y}
	c.Stdout, c.Stderr = &c.output, &c.output
	return c
}

func (c *command) mustRun() []byte {
	c.y.t.Helper()
	testkit.Must(c.y.t, c.Run(), "%v: %s", c.Args[1:], c.output.String())
	return c.output.Bytes()
}

// mustFail wants it to end with an error that has some words.
func (c *command) mustFail(words string) {
	c.y.t.Helper()
	if err := c.Run(); err == nil || !strings.Contains(c.output.String(), words) {
		c.y.t.Errorf("%v ends with %v: %s, want %q", c.Args[1:], err, c.output.String(), words)
	}
}

// load sends from several clients until it is stopped, or the yard is gone.
func (y *yard) load() (stop func()) {
	ctx, cancel := context.WithCancel(y.t.Context())
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for ctx.Err() == nil && y.send(ctx) == nil {
			}
		})
	}
	return func() {
		cancel()
		senders.Wait()
	}
}

// until runs a command until a folder holds so many bytes, then ends a process. It tells whether the
// command was still running, and waits for its end.
func (c *command) until(dir string, size int64, end func()) (interrupted bool) {
	c.y.t.Helper()
	testkit.Must(c.y.t, c.Start())
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	for folderBytes(dir) < size {
		select {
		case err := <-done:
			testkit.Must(c.y.t, err, "%v: %s", c.Args[1:], c.output.String())
			return false
		default:
		}
	}
	end()
	return <-done != nil
}

func folderBytes(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil // it is being made
		}
		if info, err := entry.Info(); err == nil {
			total += info.Size()
		}
		return nil
	})
	return total
}

// killWhileBackingUp kills the yard or the backup in its midst. The yard runs when it returns.
func (y *yard) killWhileBackingUp(victim string, round int) (interrupted bool) {
	y.t.Helper()
	stop := y.load()
	dir := filepath.Join(y.t.TempDir(), "backup")
	c := y.program("backup", dir, "--server", y.url)
	interrupted = c.until(dir, 1+int64(round)*bulk*100_000/int64(*backupRounds), func() {
		if victim == "yard" {
			y.process.Process.Kill()
		} else {
			c.Process.Kill()
		}
	})
	stop()
	if victim == "yard" {
		y.process.Process.Kill()
		y.process.Wait()
		y.start()
	}
	if interrupted {
		y.program("backup", "verify", dir).mustFail("the backup is not whole")
		y.program("restore", dir, "--data", filepath.Join(y.t.TempDir(), "none")).mustFail("the backup is not whole")
		y.program("backup", dir, "--server", y.url).mustFail("was not finished, and is of no use")
	} else {
		y.program("backup", "verify", dir).mustRun()
	}
	y.check()
	return interrupted
}

// backUp takes a backup under load, and gives what was acknowledged before it. The yard may still have
// to notice that the one before was killed.
func (y *yard) backUp() (dir string, before map[position]string) {
	y.t.Helper()
	defer y.load()()
	for {
		y.mu.Lock()
		before = maps.Clone(y.acked)
		y.mu.Unlock()
		dir = filepath.Join(y.t.TempDir(), "backup")
		c := y.program("backup", dir, "--server", y.url)
		if err := c.Run(); err == nil {
			return dir, before
		} else if !strings.Contains(c.output.String(), "another backup is being taken") {
			y.t.Fatalf("backup: %v: %s", err, c.output.String())
		}
	}
}

// killWhileRestoring kills a restore in its midst, and wants no yard to start on what it leaves.
func (y *yard) killWhileRestoring(dir, to string, size int64) (interrupted bool) {
	y.t.Helper()
	c := y.program("restore", dir, "--data", to)
	interrupted = c.until(to, size, func() { c.Process.Kill() })
	if interrupted {
		y.program("serve", "--data", to, "--http", "off", "--https", "off", "--amqp", "off", "--amqps", "off", "--kafka", "off", "--kafkas", "off").mustFail("a restore is not finished")
		return true
	}
	key, err := os.ReadFile(filepath.Join(to, "secret.key"))
	testkit.Must(y.t, err)
	testkit.Must(y.t, os.RemoveAll(to))
	testkit.Must(y.t, os.MkdirAll(to, 0o700))
	testkit.Must(y.t, os.WriteFile(filepath.Join(to, "secret.key"), key, 0o600))
	return false
}
