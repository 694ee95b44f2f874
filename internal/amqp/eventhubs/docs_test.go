package eventhubs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// R2, R3: the limits that the guide names are those that hold.
func TestLimitsAreDocumented(t *testing.T) {
	guide := string(testkit.Value(os.ReadFile("../../../docs/guides/operating.md"))(t))
	for _, row := range []string{
		fmt.Sprintf("senders of one policy or token, of all | %d,%03d, %d,%03d", MaxSendersOfOne/1000, MaxSendersOfOne%1000, MaxSenders/1000, MaxSenders%1000),
		fmt.Sprintf("receivers of one policy or token, of all | %d,%03d, %d,%03d", MaxReceiversOfOne/1000, MaxReceiversOfOne%1000, MaxReceivers/1000, MaxReceivers%1000),
		fmt.Sprintf("publications of a connection that are not stored yet | %d MiB; then its sender waits", maxUnderWay>>20),
		fmt.Sprintf("AMQP: time to show a right | %.0f s", DefaultTokenTimeout.Seconds()),
		fmt.Sprintf("AMQP: nodes | `%s`, and `%s` without an answer", wordClaims, wordManagement),
	} {
		testkit.Equal(t, strings.Contains(guide, "\n| "+row+" |\n"), true, "the guide has the row: %s", row)
	}
}
