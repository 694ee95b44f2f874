// Package parts gives tests the real components that the product works with: PostgreSQL, Redis,
// Azurite and Chromium, each started for the test process alone and gone when it ends, however it
// ends. What is not on the machine is installed in the user's cache folder or, as root with
// CI=true, as a Debian package. Otherwise the test is skipped and says what to install; with
// CI=true that is a failure, since a part that never runs proves nothing.
package parts

import (
	"os"
	"testing"
)

// InCI tells whether the machine is ours to change, and nothing may be skipped.
func InCI() bool { return os.Getenv("CI") == "true" }

// Missing ends a test whose component cannot be had here: a failure in CI, else a skip.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if InCI() {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
