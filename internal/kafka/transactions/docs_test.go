package transactions

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/kafka/transactions/txn"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K6: the limits of transactions that the guide names are those that hold.
func TestLimitsAreDocumented(t *testing.T) {
	guide := string(testkit.Value(os.ReadFile("../../../docs/guides/kafka.md"))(t))
	thousands := func(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }
	for _, row := range []string{
		fmt.Sprintf("`transactional.id` | %d bytes; %s, of which one policy may have made half; forgotten %.0f days after the last use,",
			MaxIDBytes, thousands(DefaultMaxIDs), DefaultRetention.Hours()/24),
		fmt.Sprintf("partitions of a transaction | %s, and offsets of %d groups; of all that go on together %s, half of them of one policy's ids,",
			thousands(txn.MaxPartitions), txn.MaxGroups, thousands(DefaultMaxPartitions)),
		fmt.Sprintf("`transaction.timeout.ms` | 1 ms to %.0f min |", txn.MaxTimeout.Minutes()),
	} {
		testkit.That(t, strings.Contains(guide, "\n| "+row), "the guide does not have the row: %s", row)
	}
}
