package sessions

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// R2: how many sessions a policy may have is what the guide says.
func TestLimitsAreDocumented(t *testing.T) {
	guide := string(testkit.Value(os.ReadFile("../../../docs/guides/security.md"))(t))
	said := fmt.Sprintf("A policy has %d,%03d sessions,", maxOfOne/1000, maxOfOne%1000)
	testkit.That(t, strings.Contains(guide, said), "the guide does not say: %s", said)
}
