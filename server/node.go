package server

import (
	"cmp"
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

const maxNodeName = 64

// instance is the id under which this process takes part in the groups of its yard's functions. Where
// nodes share a yard there is no folder to keep it in, and another process of the same node is
// another instance: it waits for the leases of one that was killed to run out.
func (c Config) instance(folder string) (string, error) {
	if folder == "" {
		return runner.NewInstance(c.nodeName()), nil
	}
	return keptInstance(folder)
}

// nodeName is the name of this node among those that share a yard.
func (c Config) nodeName() string {
	if c.Peer.Bundle != nil {
		return c.Peer.Bundle.Node()
	}
	if c.Node != "" {
		return c.Node
	}
	machine, _ := os.Hostname()
	return plainName(machine)
}

// plainName makes a node's name of a machine's, which may hold anything.
func plainName(machine string) string {
	name := strings.Map(func(r rune) rune {
		if r < 128 && nodeID.MatchString(string(r)) {
			return r
		}
		return '-'
	}, machine)
	return cmp.Or(name[:min(len(name), maxNodeName)], "node")
}

func (c Config) validateNode() error {
	if c.Node != "" && !nodeID.MatchString(c.Node) {
		return fmt.Errorf("node %q: use 1 to %d letters, digits, '.', '_' and '-'", c.Node, maxNodeName)
	}
	return nil
}

// keptInstance reads the id, or makes one.
func keptInstance(dataDir string) (string, error) {
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
