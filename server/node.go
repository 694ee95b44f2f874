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

// NodeFile holds the id under which a yard takes part in the groups of its own functions. It is the data folder's, which only one yard can have open, so that
// a yard which was killed takes up soon what it had before; and it outlives the machine's name, which is another in each container.
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
	id := runner.NewInstance(machine())
	if err := replaceFile(vfs.OS(dataDir), NodeFile, id+"\n"); err != nil {
		return "", fmt.Errorf("keep this node's id: %w", err)
	}
	return id, nil
}

func machine() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}
