package kafka

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// K6: the limits that the guide names are those that hold.
func TestLimitsAreDocumented(t *testing.T) {
	guide := string(testkit.Value(os.ReadFile("../../docs/guides/operating.md"))(t))
	for _, row := range []string{
		fmt.Sprintf("any other request | %d MiB", maxBodyBytes>>20),
		fmt.Sprintf("batches of a Produce request that wait to be stored | %d MiB; then no more of it is read", maxKeptBytes>>20),
		fmt.Sprintf("requests of a connection under way | %d", maxUnderWay),
		fmt.Sprintf("SCRAM: keys of all policies of one name | %d; more need PLAIN", maxPasswords),
	} {
		testkit.That(t, strings.Contains(guide, "\n| "+row+" |\n"), "the guide does not have the row: %s", row)
	}
}
