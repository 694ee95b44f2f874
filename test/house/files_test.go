package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// maxFileBytes is how long a file of the project is at most: what is built is longer.
const maxFileBytes = 1 << 20

// TestNothingBuiltIsCommitted: a program that was built in the tree was committed with it once, and each
// clone has had 66 MB more since.
func TestNothingBuiltIsCommitted(t *testing.T) {
	const root = "../.."
	out, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Skip("this is no clone: ", err)
	}
	for _, name := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join(root, name))
		if err != nil {
			continue // it is being removed
		}
		testkit.That(t, info.Size() <= maxFileBytes, "%s has %d bytes", name, info.Size())
	}
}
