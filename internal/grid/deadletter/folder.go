package deadletter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// Letters are nobody else's business on a shared machine.
const (
	filePerm = 0o600
	dirPerm  = 0o700
)

// ownNames are what the yard itself keeps in the data folder, as they are or with more behind a
// dot: nobody else writes there.
var ownNames = []string{
	"log", "journal", "spare", "trash", "blobs", "tls", "meta", "lock", "connection-string", "node", "eventyard-data", "secret.key",
}

func isOwn(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(ownNames, func(own string) bool { return name == own || strings.HasPrefix(name, own+".") })
}

// folder writes files to a folder, at rest inside base: the data folder, or one that was allowed.
type folder struct{ base, rest string }

// folder finds a folder and refuses one that is elsewhere, be it by way of "..", or of a symbolic
// link in the part of the path that exists.
func (c Config) folder(dir string) (target, error) {
	if c.DataDir == "" {
		return c.sharedFolder(dir)
	}
	root, err := filepath.Abs(c.DataDir)
	if err != nil {
		return nil, err
	}
	full := filepath.Clean(dir)
	if !filepath.IsAbs(full) {
		full = filepath.Join(root, full)
	}
	real, err := resolve(full)
	if err != nil {
		return nil, fmt.Errorf("%w: dead-letter folder %s: %w", topics.ErrInvalid, dir, err)
	}
	if base, rest, ok := beneath(root, real); ok && rest != "." {
		first, _, _ := strings.Cut(filepath.ToSlash(rest), "/")
		if isOwn(first) {
			return nil, fmt.Errorf("%w: dead-letter folder %s: %s in the data folder is the yard's own: choose another, like folder:dead", topics.ErrInvalid, dir, first)
		}
		return folder{base, rest}, nil
	}
	if found, ok := c.allowed(real); ok {
		return found, nil
	}
	return nil, fmt.Errorf("%w: dead-letter folder %s is not inside the data folder: name one inside, or allow it with grid.deadFolders in eventyard.yaml (--grid-dead-folders)",
		topics.ErrInvalid, dir)
}

// sharedFolder finds a folder where several nodes share a yard: each of them may write the next file,
// so the operator has to name a file system that all of them have.
func (c Config) sharedFolder(dir string) (target, error) {
	if full := filepath.Clean(dir); filepath.IsAbs(full) {
		real, err := resolve(full)
		if err != nil {
			return nil, fmt.Errorf("%w: dead-letter folder %s: %w", topics.ErrInvalid, dir, err)
		}
		if found, ok := c.allowed(real); ok {
			return found, nil
		}
	}
	return nil, fmt.Errorf("%w: dead-letter folder %s: several nodes share this yard, and there is no data folder: use a container or a hub, or allow a folder that all nodes share with grid.deadFolders in eventyard.yaml (--grid-dead-folders), and name it with its full path",
		topics.ErrInvalid, dir)
}

// allowed finds a folder without links inside one that the operator has allowed.
func (c Config) allowed(real string) (folder, bool) {
	for _, allowed := range c.AllowDirs {
		if base, rest, ok := beneath(allowed, real); ok {
			return folder{base, rest}, true
		}
	}
	return folder{}, false
}

// beneath says whether a folder without links is inside another, and where there.
func beneath(outer, dir string) (base, rest string, ok bool) {
	base, err := filepath.Abs(outer)
	if err == nil {
		base, err = resolve(base)
	}
	if err != nil {
		return "", "", false
	}
	rest, err = filepath.Rel(base, dir)
	return base, rest, err == nil && filepath.IsLocal(rest)
}

// resolve follows the symbolic links of the part of a path that exists.
func resolve(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	switch {
	case err == nil:
		return real, nil
	case errors.Is(err, os.ErrNotExist) && filepath.Dir(dir) != dir:
		if _, err := os.Lstat(dir); err == nil {
			return "", errors.New("a part of it is a link that leads nowhere")
		}
		parent, err := resolve(filepath.Dir(dir))
		return filepath.Join(parent, filepath.Base(dir)), err
	case errors.Is(err, syscall.ENOTDIR):
		return "", errors.New("a part of it is a file")
	}
	return "", err
}

// write puts a file in place in one step: whoever lists the folder sees it whole or not at all. All
// is done through os.Root: what was checked cannot be swapped for a link that leads out of base,
// nor a folder inside for one that leads out of it.
func (f folder) write(_ context.Context, name string, l load) (put, error) {
	base, err := f.open()
	if err != nil {
		return put{}, fmt.Errorf("open dead-letter folder %s: %w", f.path(), err)
	}
	defer base.Close()
	root, err := base.OpenRoot(f.rest)
	if err != nil {
		return put{}, fmt.Errorf("open dead-letter folder %s: %w", f.path(), err)
	}
	defer root.Close()
	name, body := local(name), l.array()
	if err := writeWhole(root, filepath.FromSlash(name), body); err != nil {
		return put{}, fmt.Errorf("write dead letters to folder %s: %w", f.path(), err)
	}
	if err := errors.Join(syncUp(root, path.Dir(name)), syncUp(base, filepath.ToSlash(f.rest))); err != nil {
		return put{}, fmt.Errorf("write dead letters to folder %s: %w", f.path(), err)
	}
	full := filepath.Join(f.path(), filepath.FromSlash(name))
	return put{
		show: full, url: (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(filepath.ToSlash(full), "/")}).String(),
		subject: "/folders/" + filepath.Base(f.path()) + "/blobs/" + name, bytes: len(body),
	}, nil
}

func (f folder) path() string { return filepath.Join(f.base, f.rest) }

// open makes the folder and opens what it is in.
func (f folder) open() (*os.Root, error) {
	if err := vfs.OS(f.base).MkdirAll("."); err != nil {
		return nil, err
	}
	base, err := os.OpenRoot(f.base)
	if err != nil {
		return nil, err
	}
	if err := base.MkdirAll(f.rest, dirPerm); err != nil {
		return nil, errors.Join(err, base.Close())
	}
	return base, nil
}

// writeWhole writes a file beside its name first, over what an earlier try may have left, and
// leaves nothing there if that fails.
func writeWhole(root *os.Root, name string, body []byte) (err error) {
	if err := root.MkdirAll(filepath.Dir(name), dirPerm); err != nil {
		return err
	}
	part := name + ".part"
	defer func() {
		if err != nil {
			_ = root.Remove(part)
		}
	}()
	if err := root.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, filePerm)
	if err != nil {
		return err
	}
	_, err = file.Write(body)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return root.Rename(part, name)
}

// syncUp makes the names in a folder durable, and in those that it is in: any of them may be new,
// or be left by a try whose sync failed. Windows does so by itself, and has no call for it.
func syncUp(root *os.Root, dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	for {
		f, err := root.Open(filepath.FromSlash(dir))
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
		if dir == "." {
			return nil
		}
		dir = path.Dir(dir)
	}
}

// local gives a name whose parts all are names of files here: Windows has some that are none.
func local(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		if !filepath.IsLocal(p) {
			parts[i] = "_" + p
		}
	}
	return strings.Join(parts, "/")
}
