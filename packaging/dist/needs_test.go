package main

import (
	"os"
	"os/exec"
	"testing"
)

// inCI: every test has to run there.
func inCI() bool { return os.Getenv("CI") == "true" }

// need looks for a program that a test works with. Where it is not here the test is skipped, and says which
// package of Debian has it; with CI=true that is installed, and if it cannot be, the test fails.
func need(t *testing.T, program, from string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if !inCI() {
		t.Skipf("%s is not here: apt-get install %s (done for you as root with CI=true)", program, from)
	}
	for _, args := range [][]string{{"update"}, {"-y", "install", "--no-install-recommends", from}} {
		cmd := exec.Command("apt-get", append([]string{"-q", "-o", "DPkg::Lock::Timeout=300"}, args...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if _, err := output(cmd); err != nil {
			t.Fatalf("%s is not here, and with CI=true nothing is skipped: %v", program, err)
		}
	}
}

// needRoot skips a test that only root can do, or has it fail with CI=true.
func needRoot(t *testing.T, why string) {
	t.Helper()
	switch {
	case os.Geteuid() == 0:
	case inCI():
		t.Fatal("this needs root: " + why)
	default:
		t.Skip("this needs root: " + why)
	}
}
