package console

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/hubs/sessions"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R2: the limits of the console that the guide names are those that hold.
func TestLimitsAreDocumented(t *testing.T) {
	guide := strings.ReplaceAll(string(testkit.Value(os.ReadFile("../../../docs/guides/security.md"))(t)), "\n  ", " ")
	for _, said := range []string{
		fmt.Sprintf("for %.0f hours without use and %.0f at most;", sessions.MaxIdle.Hours(), sessions.MaxAge.Hours()),
		fmt.Sprintf(" sessions, %d pages at once and %d live ones.", maxVisitsOfOne, maxStreamsOfOne),
	} {
		testkit.That(t, strings.Contains(guide, said), "the guide does not say: %s", said)
	}
}
