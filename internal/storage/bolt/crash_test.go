package bolt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

const crashWriters = 16

// A process killed in the midst of its work loses nothing that it has acknowledged. Each round
// starts a process whose writers count keys of their own up, with a deletion at every fifth step,
// and print each step when it is acknowledged. It is killed after a random number of lines. What
// the file then holds of each key must be the last step printed, or the one after it, which may
// have been under way. A kill leaves what was written to the operating system, so every other round
// does without syncs and is killed in the midst of writing instead of in the midst of a sync.
func TestAcknowledgedChangesSurviveAKill(t *testing.T) {
	path := storePath(t)
	random := rand.New(rand.NewPCG(1, 2))
	kept := make(map[string]string) // what earlier rounds have left, which must not move
	for round := range 15 {
		acknowledged := crashRound(t, path, round, 1+random.IntN(500))
		testkit.Must(t, Check(path))
		s := openStore(t, Config{Path: path})
		for key, value := range kept {
			wantValue(t, s, key, value)
		}
		for w := range crashWriters {
			key := crashKey(round, w)
			if value, there := wantStep(t, s, key, acknowledged[key]); there {
				kept[key] = value
			}
		}
		testkit.Must(t, s.Close())
	}
}

func crashKey(round, writer int) string { return fmt.Sprintf("round/%02d/%02d", round, writer) }

// stepDeletes tells whether a step of a writer deletes its key.
func stepDeletes(step int) bool { return step%5 == 0 }

// wantStep checks that a key is as the step left it, or the step after.
func wantStep(t *testing.T, s *Store, key string, step int) (value string, there bool) {
	t.Helper()
	entry, err := s.Get(t.Context(), key)
	for _, n := range []int{step, step + 1} {
		switch gone := n == 0 || stepDeletes(n); {
		case gone && errors.Is(err, meta.ErrNotFound):
			return "", false
		case !gone && err == nil && string(entry.Value) == strconv.Itoa(n):
			return string(entry.Value), true
		}
	}
	t.Fatalf("%q holds %q, %v; step %d was acknowledged", key, entry.Value, err, step)
	return "", false
}

// crashRound runs one process, kills it after some lines, and gives the last step of
// each key that it has printed.
func crashRound(t *testing.T, path string, round, lines int) map[string]int {
	t.Helper()
	cmd := childCommand(t, "write", path, strconv.Itoa(round), strconv.FormatBool(round%2 == 1))
	stdout, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	acknowledged := make(map[string]int)
	seen := 0
	for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
		key, step, ok := strings.Cut(scanner.Text(), " ")
		n, err := strconv.Atoi(step)
		if !ok || err != nil {
			t.Fatalf("the child printed %q", scanner.Text())
		}
		acknowledged[key] = n
		if seen++; seen == lines {
			_ = cmd.Process.Kill() // what it has printed by now is still read
		}
	}
	if err := cmd.Wait(); err == nil || seen < lines {
		t.Fatalf("the child ended by itself after %d lines: %v", seen, err)
	}
	return acknowledged
}

// childCommand starts this test binary in another part; see runChild.
func childCommand(t *testing.T, mode string, args ...string) *exec.Cmd {
	t.Helper()
	binary := testkit.Value(os.Executable())(t)
	cmd := exec.CommandContext(t.Context(), binary, args...)
	// Under the race detector a process sleeps a second before it ends, unless told.
	cmd.Env = append(os.Environ(), childMode+"="+mode, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	return cmd
}

// writeUntilKilled is the child of TestAcknowledgedChangesSurviveAKill.
func writeUntilKilled(args []string) error {
	round, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	s, err := Open(Config{Path: args[0], NoSync: args[2] == "true"})
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	failures := make(chan error, crashWriters)
	for w := range crashWriters {
		all.Go(func() { failures <- stepUntilKilled(s, crashKey(round, w)) })
	}
	all.Wait()
	return <-failures
}

func stepUntilKilled(s *Store, key string) (err error) {
	var revision meta.Revision
	for step := 1; ; step++ {
		if stepDeletes(step) {
			err = s.Delete(context.Background(), key, revision)
			revision = 0
		} else {
			revision, err = s.CompareAndSet(context.Background(), key, revision, []byte(strconv.Itoa(step)))
		}
		if err != nil {
			return err
		}
		// One write per line: a kill leaves it whole or not there.
		if _, err := fmt.Fprintf(os.Stdout, "%s %d\n", key, step); err != nil {
			return err
		}
	}
}
