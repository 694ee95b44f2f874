package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// SecretKeyFile is the file of the secret keys in a folder, unless they come from elsewhere.
const SecretKeyFile = "secret.key"

// SecretKey says where the secret keys come from that seal entries with secrets. At most one is
// given; none means the file SecretKeyFile beside the data, which is made.
type SecretKey struct {
	// Key is the keys themselves, KeyFile the name of a file that holds them, KeyCommand a command
	// of the shell that prints them. One key a line, the newest first: it seals, the others only
	// open.
	Key, KeyFile, KeyCommand string
}

// Check tells what is wrong with it by itself.
func (k SecretKey) Check() error {
	given := 0
	for _, source := range []string{k.Key, k.KeyFile, k.KeyCommand} {
		if source != "" {
			given++
		}
	}
	if given > 1 {
		return errors.New("the secret key comes from one place: give the key, a file or a command")
	}
	if k.Key != "" {
		if _, err := sealed.ParseKeys(k.Key); err != nil {
			return fmt.Errorf("secrets.key: %w", err)
		}
	}
	return nil
}

// CheckFile reads the keys as a start would, where they come from a file that was named: that one is never made.
func (k SecretKey) CheckFile(ctx context.Context) error {
	if k.KeyFile == "" {
		return nil
	}
	_, err := k.read(ctx, "")
	return err
}

// read gives the keys; fs.ErrNotExist where the file beside the data is yet to be made.
func (k SecretKey) read(ctx context.Context, folder string) (*sealed.Keys, error) {
	text, from := []byte(k.Key), "the secret key"
	switch {
	case k.Key != "":
	case k.KeyCommand != "":
		from = "the output of the secret key's command"
		command := exec.CommandContext(ctx, "sh", "-c", k.KeyCommand)
		var stderr strings.Builder
		command.Stderr = &stderr
		output, err := command.Output()
		if err != nil {
			return nil, fmt.Errorf("run the secret key's command: %w: %.500s", err, cmp.Or(strings.TrimSpace(stderr.String()), "it printed no error"))
		}
		text = output
	default:
		from = k.path(folder)
		info, err := os.Stat(from)
		if err != nil {
			return nil, fmt.Errorf("read the secret key: %w", err)
		}
		// A group may have been given it by who runs the yard, as volumes and credentials are.
		if info.Mode().Perm()&0o007 != 0 && runtime.GOOS != "windows" {
			return nil, fmt.Errorf("read the secret key: everybody can read %s: chmod 600 %s", from, from)
		}
		if text, err = os.ReadFile(from); err != nil {
			return nil, fmt.Errorf("read the secret key: %w", err)
		}
	}
	keys, err := sealed.ParseKeys(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return keys, nil
}

func (k SecretKey) path(folder string) string {
	if k.KeyFile != "" {
		return k.KeyFile
	}
	return filepath.Join(folder, SecretKeyFile)
}

// Rotate puts a new key before those in the file. The next start seals everything with it. Where
// there is no file it fails with fs.ErrNotExist; for a folder that cannot be used, as Open would.
func (k SecretKey) Rotate(folder string) (file string, err error) {
	if k.Key != "" || k.KeyCommand != "" {
		return "", errors.New("the secret key does not come from a file: put a new key before the old one where it comes from")
	}
	file = k.path(folder)
	if _, err := admit(folder, nil); err != nil {
		return file, err
	}
	old, err := os.ReadFile(file)
	if err != nil {
		return file, err
	}
	if _, err := sealed.ParseKeys(string(old)); err != nil {
		return file, fmt.Errorf("%s: %w", file, err)
	}
	return file, vfs.ReplaceFile(vfs.OS(filepath.Dir(file)), filepath.Base(file), sealed.NewKey()+"\n"+string(old))
}

// keys gives the keys for a store, and makes the file that is to hold them where there is none.
func (k SecretKey) keys(ctx context.Context, folder string, inner meta.Store) (*sealed.Keys, error) {
	keys, err := k.read(ctx, folder)
	if errors.Is(err, fs.ErrNotExist) && k.KeyFile == "" {
		return k.create(ctx, folder, inner)
	}
	return keys, err
}

// create makes the file beside the data, durably, before anything is sealed with its key. Where
// something is sealed already its key is lost, and another one would hide that.
func (k SecretKey) create(ctx context.Context, folder string, inner meta.Store) (*sealed.Keys, error) {
	switch some, err := sealed.Some(ctx, inner); {
	case err != nil:
		return nil, err
	case some:
		return nil, k.missing(folder)
	}
	text := sealed.NewKey() + "\n"
	if err := vfs.ReplaceFile(vfs.OS(folder), SecretKeyFile, text); err != nil {
		return nil, fmt.Errorf("make the secret key: %w", err)
	}
	return sealed.ParseKeys(text)
}

// ErrKeyLost: the secret key is not there. ErrUnknownKey: those that were given are others.
var (
	ErrKeyLost    = errors.New("the data was sealed with its key")
	ErrUnknownKey = sealed.ErrUnknownKey
)

// missing is why data cannot be opened whose key is gone.
func (k SecretKey) missing(folder string) error {
	return fmt.Errorf("%s is missing, and %w: restore the file, or give the key by --secrets-key-file or --secrets-key-command", k.path(folder), ErrKeyLost)
}
