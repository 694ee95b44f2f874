package parts

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// Eventyard builds the program, with the race detector or without it, and gives its file.
func Eventyard(t testing.TB, race bool) (binary string) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		Missing(t, "the program cannot be built: %v", err)
	}
	binary = filepath.Join(t.TempDir(), "eventyard")
	if err := BuildEventyard(binary, race); err != nil {
		t.Fatal(err)
	}
	return binary
}

// BuildEventyard builds the program into a file, for the tests of a process together.
func BuildEventyard(binary string, race bool) error {
	out, err := exec.Command("go", "build", fmt.Sprintf("-race=%t", race), "-o", binary, "github.com/eventyard/eventyard/cmd/eventyard").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return nil
}
