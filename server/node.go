package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/eventyard/eventyard/internal/functions/runner"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// NodeFile holds the id under which a yard takes part in the groups of its own functions. It
// belongs to the data folder, which only one yard can have open: a yard that was killed takes up at
// once what it had before, even if the machine's name has changed, as it does with each container.
const NodeFile = "node"

var nodeID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// node reads the id, or makes one.
func node(dataDir string) (string, error) {
	kept, err := os.ReadFile(filepath.Join(dataDir, NodeFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read this node's id: %w", err)
	}
	if id := strings.TrimSpace(string(kept)); nodeID.MatchString(id) {
		return id, nil
	}
	machine, _ := os.Hostname() // the id begins with it, if there is one
	id := runner.NewInstance(machine)
	if err := vfs.ReplaceFile(vfs.OS(dataDir), NodeFile, id+"\n"); err != nil {
		return "", fmt.Errorf("keep this node's id: %w", err)
	}
	return id, nil
}
