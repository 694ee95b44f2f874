//go:build linux

package interop

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// The environment tells a copy of the test binary that it is not the first one.
const (
	insideVariable = "INTEROP_INSIDE" // set in the private namespace
	binaryVariable = "INTEROP_BINARY" // folder of the yards that the first copy built, or was given
	clientVariable = "INTEROP_CLIENT" // name of the client to play, in place of the tests
)

// full is known to the first copy only: the one in a namespace runs nothing that was not wanted.
var full = flag.Bool("full", false, "run the foreign test suites that take long, too")

func TestMain(m *testing.M) {
	flag.Parse()
	if role := os.Getenv(clientVariable); role != "" {
		os.Exit(playClient(role))
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	if inside() {
		if err := furnishNamespace(); err != nil {
			fmt.Fprintln(os.Stderr, "furnish the namespace:", err)
			return 1
		}
		return m.Run()
	}
	if os.Getenv(binaryVariable) != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "eventyard-interop-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv(binaryVariable, dir)
	return m.Run()
}

func inside() bool { return os.Getenv(insideVariable) != "" }

// build is how a yard is compiled.
type build struct {
	name string
	once sync.Once
	err  error
}

var (
	// checkedBuild has the race detector whenever the tests have it.
	checkedBuild = &build{name: "eventyard"}
	// leanBuild never has it: it is the one whose memory is worth telling.
	leanBuild = &build{name: "eventyard-lean"}
)

// binary compiles the yard on first use. A copy of the test in a namespace finds it compiled.
func (b *build) binary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(os.Getenv(binaryVariable), b.name)
	b.once.Do(func() {
		if _, err := os.Stat(path); err == nil {
			return
		}
		b.err = b.compile(path)
	})
	testkit.Must(t, b.err)
	return path
}

func (b *build) compile(path string) error {
	args := []string{"build", "-o", path}
	if raceDetector && b == checkedBuild {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "github.com/eventyard/eventyard/cmd/eventyard")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
