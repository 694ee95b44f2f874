//go:build linux

package reliable

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

var (
	keep = flag.String("reliable.keep", "", "keep the workers' notes in this folder, and what processes had to say when a test failed")
	long = flag.Bool("reliable.long", false, "also what takes minutes")
	// patience is how long anything may take on a slow machine; nothing else is timed.
	patience = flag.Duration("reliable.patience", 2*time.Minute, "how long anything is waited for")
)

// TestMain makes the same binary the worker, so that it is built once.
func TestMain(m *testing.M) {
	if text := os.Getenv(jobVariable); text != "" {
		if err := work(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	os.Exit(runTests(m))
}

// runTests lets more tests run at once than there are cores: what most of them do is wait for
// leases to end.
func runTests(m *testing.M) int {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	defer func() {
		if dir, err := programs(); err == nil {
			os.RemoveAll(dir)
		}
	}()
	return m.Run()
}

// programs is the folder of the binaries.
var programs = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "reliable") })

// program is the real one, as users have it; racing is the same with the race detector, where the
// tests have it too.
var (
	program = sync.OnceValues(func() (string, error) { return build("eventyard") })
	racing  = sync.OnceValues(func() (string, error) { return build("eventyard-race", raceFlags...) })
)

func build(name string, flags ...string) (string, error) {
	dir, err := programs()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, name)
	args := append(append([]string{"build"}, flags...), "-o", binary, "github.com/eventyard/eventyard/cmd/eventyard")
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return binary, nil
}

// until asks again and again, as an operator would.
func until(t *testing.T, what string, done func() (bool, string)) {
	t.Helper()
	deadline := time.Now().Add(*patience)
	for {
		ok, now := done()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s; it is %s", what, now)
		}
		<-time.After(50 * time.Millisecond)
	}
}
