package amqp

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// R2, R3: the limits that the guide names are those that hold.
func TestLimitsAreDocumented(t *testing.T) {
	guide := string(testkit.Value(os.ReadFile("../../docs/guides/operating.md"))(t))
	cfg := Config{}.withDefaults()
	strangers := cfg.Admission.Limits()
	for _, row := range []string{
		fmt.Sprintf("connections of clients, of one policy or token | %s (`--amqp-max-connections`), half of that", thousands(DefaultConnections)),
		fmt.Sprintf("sessions and links of a connection | %s and %s", thousands(cfg.MaxSessions), thousands(cfg.MaxLinks)),
		fmt.Sprintf("frame, message | %d KiB, %d MiB", cfg.MaxFrameBytes>>10, cfg.MaxMessageBytes>>20),
		fmt.Sprintf("unfinished messages of a connection, of one policy or token, of all | %d MiB, %d MiB, %d MiB; then the next is refused, and who has kept one for %.0f s is cut off",
			maxPartBytes>>20, maxHolderPartBytes>>20, maxAllPartBytes>>20, admission.DefaultPatience.Seconds()),
		fmt.Sprintf("time for a message to come whole | %.0f min", partTime.Minutes()),
		fmt.Sprintf("from the first byte to an open connection | %.0f s", cfg.OpenTimeout.Seconds()),
		fmt.Sprintf("silence of a client, also within a frame | %.0f s (`--amqp-idle-timeout`)", cfg.IdleTimeout.Seconds()),
		fmt.Sprintf("a client that reads nothing of what it is sent | %.0f min", cfg.WriteTimeout.Minutes()),

		fmt.Sprintf("connections, of one address | %s, %s", thousands(admission.DefaultStrangers), thousands(admission.DefaultAddressStrangers)),
		fmt.Sprintf("AMQP: sessions and links of a connection | %d and %d", StrangerSessions, StrangerLinks),
		fmt.Sprintf("AMQP: frame | %d KiB", strangerFrameBytes>>10),
		fmt.Sprintf("AMQP: all that a connection sends | %d MiB", strangerBytes>>20),
		fmt.Sprintf("AMQP: reads of a connection as it sends, rest before each one after that | %d, %d ms", strangerReads, strangerRest.Milliseconds()),
		fmt.Sprintf("AMQP: unfinished messages and waiting requests of all, of one address | %d MiB, %d MiB",
			strangers.StrangerBytes>>20, strangers.AddressBytes>>20),
	} {
		testkit.Equal(t, strings.Contains(guide, "\n| "+row+" |\n"), true, "the guide has the row: %s", row)
	}
}

// thousands writes a number with a comma, as the guides do.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
