package soak

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

const diskBytes = "96M"

// smallDisk mounts a file system of its own for a test, or says why that cannot be.
func smallDisk(t *testing.T, kind string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var steps [][]string
	switch kind {
	case "tmpfs":
		steps = [][]string{{"mount", "-t", "tmpfs", "-o", "size=" + diskBytes, "tmpfs", dir}}
	case "ext4":
		image := filepath.Join(t.TempDir(), "disk")
		// Nothing is set aside for root, who runs this: full is full.
		steps = [][]string{
			{"truncate", "-s", diskBytes, image},
			{"mkfs.ext4", "-q", "-F", "-m", "0", image},
			{"mount", "-o", "loop", image, dir},
		}
	}
	if os.Getuid() != 0 {
		parts.Missing(t, "only root may mount a file system: run make soak as root")
	}
	for _, step := range steps {
		if said, err := exec.Command(step[0], step[1:]...).CombinedOutput(); err != nil {
			parts.Missing(t, "this machine refuses a file system for the test: %s: %v: %s", strings.Join(step, " "), err, said)
		}
	}
	t.Cleanup(func() {
		said, err := exec.Command("umount", dir).CombinedOutput()
		testkit.Check(t, err, "umount: %s", said)
	})
	return dir
}
