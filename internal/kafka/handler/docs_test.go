package handler

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// K6: the limits that the guide names are those that hold.
func TestLimitsAreDocumented(t *testing.T) {
	guide := string(testkit.Value(os.ReadFile("../../../docs/guides/operating.md"))(t))
	for _, row := range []string{
		fmt.Sprintf("Produce request | 100 MiB, read in parts, for at most %d,000 partitions", maxProduced/1000),
		fmt.Sprintf("partitions that are kept between fetches, of one session, of all sessions and readers | %d,%d, %d,%03d; then there is no session",
			maxSession/1000, maxSession%1000, maxKept/1000, maxKept%1000),
		fmt.Sprintf("answer to Fetch, of one partition | %d MiB, %d MiB", maxAnswerBytes>>20, maxPartitionBytes>>20),
	} {
		testkit.That(t, strings.Contains(guide, "\n| "+row+" |\n"), "the guide does not have the row: %s", row)
	}
}
