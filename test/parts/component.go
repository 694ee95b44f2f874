package parts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// installTime bounds the making of one component; a slow mirror may take minutes.
const installTime = 8 * time.Minute

// Component is something that is installed once, in the user's cache, and then used
// by every run until what it is made from changes.
type Component struct {
	Name string
	// Recipe is everything the content depends on.
	Recipe string
	// Install fills the folder, which is empty.
	Install func(ctx context.Context, dir string) error
}

// Folder is where the component is, installed.
func (c Component) Folder(t testing.TB) string {
	t.Helper()
	dir, err := c.Ensure()
	if err != nil {
		Missing(t, "install %s: %v", c.Name, err)
	}
	return dir
}

// Ensure is Folder for programs that are no tests: what cannot be had is an error.
func (c Component) Ensure() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(c.Recipe))
	dir := filepath.Join(cache, "eventyard-interop", c.Name+"-"+hex.EncodeToString(sum[:6]))
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
	if err := c.make(dir); err != nil {
		return "", err
	}
	return dir, os.WriteFile(stamp, nil, 0o644)
}

// make installs into a new folder; what a broken attempt left there goes.
func (c Component) make(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), installTime)
	defer cancel()
	return c.Install(ctx, dir)
}

// lock keeps tests, and test processes, that want the same thing apart.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := lockFile(file); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}

// Step runs one command of an installation.
func Step(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	return runStep(cmd)
}

func runStep(cmd *exec.Cmd) error {
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, Tail(string(out), 4000))
	}
	return nil
}

// Tail is the end of a long text.
func Tail(text string, most int) string {
	if len(text) > most {
		return "…" + text[len(text)-most:]
	}
	return text
}
