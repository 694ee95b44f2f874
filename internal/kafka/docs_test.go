package kafka

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K6: the limits that the guide names are those that hold.
func TestLimitsAreDocumented(t *testing.T) {
	guide := string(testkit.Value(os.ReadFile("../../docs/guides/operating.md"))(t))
	cfg := Config{}.withDefaults()
	for _, row := range []string{
		fmt.Sprintf("any other request | %d MiB", maxBodyBytes>>20),
		fmt.Sprintf("batches of a Produce request that wait to be stored | %d MiB; then no more of it is read", maxKeptBytes>>20),
		fmt.Sprintf("requests of a connection under way | %d", maxUnderWay),
		fmt.Sprintf("silence of a client while none is | %.0f min", cfg.IdleTimeout.Minutes()),
		fmt.Sprintf("time for a part of a request to come | %.0f min", cfg.ReadTimeout.Minutes()),
		fmt.Sprintf("a client that takes nothing of what it is sent | %.0f min", cfg.WriteTimeout.Minutes()),
		fmt.Sprintf("SCRAM: keys of all policies of one name | %d; more need PLAIN", maxPasswords),
		fmt.Sprintf("record batch, its records when unpacked | %.1f MiB, %d MiB", float64(cfg.MaxRecordsBytes)/(1<<20), record.MaxUnpackedBytes>>20),

		fmt.Sprintf("Kafka: time to show a right | %.0f s", cfg.AuthTimeout.Seconds()),
		fmt.Sprintf("Kafka: requests | ApiVersions and those of SASL, %d KiB each", strangerRequestBytes>>10),
		fmt.Sprintf("Kafka: all that a connection sends, what a request counts for at least | %d MiB, %d bytes", strangerBytes>>20, strangerRequestCost),
		fmt.Sprintf("Kafka: reads and requests of a connection as it sends, rest before each one after that | %d, %d ms",
			strangerReads, strangerRest.Milliseconds()),
	} {
		testkit.That(t, strings.Contains(guide, "\n| "+row+" |\n"), "the guide does not have the row: %s", row)
	}
	// For how many partitions is the handler's.
	said := fmt.Sprintf("\n| Produce request | %d MiB, read in parts, ", cfg.MaxRequestBytes>>20)
	testkit.That(t, strings.Contains(guide, said), "the guide does not say: %s", said)
}
