//go:build linux

package interop

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// installTime bounds the making of one component; a slow mirror may take minutes.
const installTime = 8 * time.Minute

// component is something that is installed once, in the user's cache, and then used
// by every run until what it is made from changes.
type component struct {
	name string
	// recipe is everything the content depends on.
	recipe string
	// install fills the folder, which is empty.
	install func(ctx context.Context, dir string) error
}

// folder is where the component is, installed.
func (c component) folder(t *testing.T) string {
	t.Helper()
	dir, err := c.ensure()
	if err != nil {
		missing(t, "install %s: %v", c.name, err)
	}
	return dir
}

func (c component) ensure() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(c.recipe))
	dir := filepath.Join(cache, "eventyard-interop", c.name+"-"+hex.EncodeToString(sum[:6]))
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	stamp := dir + ".ready"
	if _, err := os.Stat(stamp); err == nil {
		return dir, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), installTime)
	defer cancel()
	if err := c.install(ctx, dir); err != nil {
		return "", err
	}
	return dir, os.WriteFile(stamp, nil, 0o644)
}

// lock keeps tests, and test processes, that want the same thing apart.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}

// step runs one command of an installation.
func step(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, tail(string(out), 4000))
	}
	return nil
}

// need looks for a program, and in CI installs the package that has it.
func need(program, pkg string) error {
	if _, err := exec.LookPath(program); err == nil {
		return nil
	}
	if err := debian(pkg); err != nil {
		return fmt.Errorf("there is no %s: %w", program, err)
	}
	_, err := exec.LookPath(program)
	return err
}

var debianUpdate = sync.OnceValue(func() error {
	return step(context.Background(), "", "apt-get", "-q", "update")
})

// debian installs a Debian package. Only in CI, where the machine is ours to change.
func debian(pkg string) error {
	if !inCI() || os.Geteuid() != 0 {
		return fmt.Errorf("apt-get install %s (done for you only as root with CI=true)", pkg)
	}
	unlock, err := lock(filepath.Join(os.TempDir(), "eventyard-interop-apt.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	install := []string{"apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300", "install", "--no-install-recommends", pkg}
	if step(context.Background(), "", install...) == nil {
		return nil
	}
	if err := debianUpdate(); err != nil { // the lists may be old, or missing
		return err
	}
	return step(context.Background(), "", install...)
}

func recipeFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
