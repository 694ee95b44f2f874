package admission

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// R2: how many handshakes are computed at once is what the guide says of it.
func TestHandshakesAreDocumented(t *testing.T) {
	guide := string(testkit.Value(os.ReadFile("../../../docs/guides/operating.md"))(t))
	const row = "\n| TLS: handshakes that are computed at once, at all listeners | half as many as there are processors, at least one |\n"
	testkit.That(t, strings.Contains(guide, row), "the guide does not have the row: %s", row)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for processors, most := range map[int]int{1: 1, 2: 1, 3: 1, 4: 2, 16: 8} {
		runtime.GOMAXPROCS(processors)
		testkit.Equal(t, New(Limits{}).handshakes.free, most, "handshakes at once with %d processors", processors)
	}
}
