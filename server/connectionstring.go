package server

import (
	"context"
	"errors"
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
	dir vfs.FS
	// at is where the yard is, without policy and key.
	at       auth.ConnectionString
	policies *access.Registry

	// mu is held from reading the key until it is written down, so that of several who
	// make it anew at once the last one writes the last key.
	mu sync.Mutex
}

// keep writes the file with the key as it is now, and gives what it wrote.
func (r *rootString) keep() (auth.ConnectionString, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	root, err := r.policies.Policy("", auth.RootPolicy)
	if err != nil {
		return auth.ConnectionString{}, fmt.Errorf("find the root policy: %w", err)
	}
	kept := r.at
	kept.Policy, kept.Key = root.Name, root.Primary
	if err := replaceFile(r.dir, ConnectionStringFile, kept.String()+"\n"); err != nil {
		return auth.ConnectionString{}, fmt.Errorf("keep the connection string: %w", err)
	}
	return kept, nil
}

// unfinishedSuffix ends the name of a file that is still being written.
const unfinishedSuffix = ".new"

// replaceFile writes a file anew as a whole, for its owner only, and durably. A crash
// leaves the old one or the new one, and perhaps an unfinished one beside it, which the
// next call removes. No two calls for one name may run at once.
func replaceFile(dir vfs.FS, name, text string) error {
	unfinished := name + unfinishedSuffix
	if err := dir.Remove(unfinished); err != nil && !vfs.IsNotExist(err) {
		return err
	}
	f, err := dir.Create(unfinished)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt([]byte(text), 0); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = dir.Rename(unfinished, name)
	}
	if err != nil {
		_ = dir.Remove(unfinished)
		return err
	}
	return dir.SyncDir(".")
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
