package access

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// R2: how failed logins are slowed and logged is what the guides say of it.
func TestPaceOfFailuresIsDocumented(t *testing.T) {
	words := map[int]string{1: "one", 5: "five", 10: "ten", 20: "twenty", 50: "fifty"}
	word := func(n float64) string {
		text, ok := words[int(n)]
		testkit.MustThat(t, ok && n == float64(int(n)), "there is no word for %v: write another sentence, in the guides and here", n)
		return text
	}
	most := float64(admission.DefaultAddressStrangers) / maxFailureDelay.Seconds() // a second, of who waits for all answers at once
	tens := word(float64(int(most/10) * 10))
	for guide, said := range map[string][]string{
		"access.md": {
			fmt.Sprintf("has %s failures at once; after that each answer waits for its turn, %s a second, but %s seconds at most,",
				word(failurePace.Burst), word(failurePace.PerSecond), word(maxFailureDelay.Seconds())),
			fmt.Sprintf("one connection gets an answer every %s seconds when many fail", word(maxFailureDelay.Seconds())),
			fmt.Sprintf("%d, some %s a second", admission.DefaultAddressStrangers, tens),
			fmt.Sprintf("for %s failures and then for one every %s seconds", word(failureLog.Burst), word(1/failureLog.PerSecond)),
		},
		"security.md": {fmt.Sprintf("Failed logins are slowed by address, to some %s a second at worst", tens)},
	} {
		text := string(testkit.Value(os.ReadFile("../../../docs/guides/" + guide))(t))
		text = strings.Join(strings.Fields(text), " ")
		for _, sentence := range said {
			testkit.That(t, strings.Contains(text, sentence), "%s does not say: %s", guide, sentence)
		}
	}
	testkit.Equal(t, maxFailureDelay%time.Second, 0, "the guides know seconds only")
}
