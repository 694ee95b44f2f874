package parts

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// Need looks for a program, and in CI installs the Debian package that has it.
func Need(program, pkg string) error {
	if _, err := exec.LookPath(program); err == nil {
		return nil
	}
	if err := Debian(pkg); err != nil {
		return fmt.Errorf("there is no %s: %w", program, err)
	}
	_, err := exec.LookPath(program)
	return err
}

var debianUpdate = sync.OnceValue(func() error {
	return Step(context.Background(), "", "apt-get", "-q", "update")
})

// Debian installs a Debian package. Only in CI, where the machine is ours to change.
func Debian(pkg string) error {
	if !InCI() || os.Geteuid() != 0 {
		return fmt.Errorf("apt-get install %s (done for you only as root with CI=true)", pkg)
	}
	unlock, err := lock(filepath.Join(os.TempDir(), "eventyard-interop-apt.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	install := []string{"apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300", "install", "--no-install-recommends", pkg}
	if Step(context.Background(), "", install...) == nil {
		return nil
	}
	if err := debianUpdate(); err != nil { // the lists may be old, or missing
		return err
	}
	return Step(context.Background(), "", install...)
}
