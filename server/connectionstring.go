package server

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// rootString keeps the root policy's connection string in the data folder, which is how
// an operator gets in.
type rootString struct {
	// dir is the data folder; nil: there is none, and nothing is written.
	dir vfs.FS
	// at is where the yard is, without policy and key.
	at       auth.ConnectionString
	policies *access.Registry

	// mu is held from reading the key until it is written down, so that of several who
	// make it anew at once the last one writes the last key.
	mu sync.Mutex
}

// keep writes the file with the key as it is now, and gives what it wrote, or was to write.
func (r *rootString) keep() (auth.ConnectionString, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	root, err := r.policies.Policy("", auth.RootPolicy)
	if err != nil {
		return auth.ConnectionString{}, fmt.Errorf("find the root policy: %w", err)
	}
	kept := r.at
	kept.Policy, kept.Key = root.Name, root.Primary
	if r.dir == nil {
		return kept, nil
	}
	if err := vfs.ReplaceFile(r.dir, ConnectionStringFile, kept.String()+"\n"); err != nil {
		return kept, fmt.Errorf("keep the connection string: %w", err)
	}
	return kept, nil
}

// rootRegistry is the registry of policies as the HTTP listener has it: when the key of the root
// policy is made anew, so is the file that has it.
type rootRegistry struct {
	*access.Registry
	file *rootString
	log  *slog.Logger
}

func (k *rootRegistry) Regenerate(ctx context.Context, hub, name string, key access.Key) (access.Policy, error) {
	p, err := k.Registry.Regenerate(ctx, hub, name, key)
	if err != nil || p.Hub != "" || p.Name != auth.RootPolicy || key != access.PrimaryKey {
		return p, err
	}
	if _, err := k.file.keep(); err != nil { // the key is made; the next start writes it down
		k.log.Warn("the connection string in the data folder has the old key", "error", err)
	}
	return p, nil
}
