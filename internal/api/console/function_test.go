package console

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V4, F7: the page of a circuit that is half-open says who tries which event and leads there, that no other event is
// handled, and where a node of before does not say which event, that there is one.
func TestAHalfOpenCircuitSaysWhatItTries(t *testing.T) {
	answers := fixed()
	_, _, h := newFixture(answers)
	page := func(tried *admin.TriedEvent) string {
		c := admin.Circuit{Function: "elsewhere", Hub: "sensors", Group: "other", CircuitState: admin.CircuitState{State: "half-open", By: "yard-7f2a", Trying: tried}}
		f := admin.Function{Name: "score", Hub: "sensors", Group: "score", State: "half-open", Circuit: c.CircuitState}
		answers["GET /api/v1/circuits/{function}"], answers["GET /api/v1/functions/{function}"] = c, f
		return get(h, base+"functions/score").Body.String() + get(h, circuitPath(refOfCircuit(c))).Body.String()
	}
	for says, tried := range map[string]*admin.TriedEvent{
		"<h2>yard-7f2a tries one event</h2>":                    nil,
		"<h2>yard-7f2a tries event 4,112 of partition 7</h2>":   {Partition: "7", Sequence: 4112},
		`href="/console/hubs/sensors/partitions/7/events/4112"`: {Partition: "7", Sequence: 4112},
		"No other event is handled, no checkpoint moves":        nil,
	} {
		testkit.Equal(t, strings.Count(page(tried), says), 2, says)
	}
	testkit.That(t, !strings.Contains(page(nil), "No event is handled"), "it says that no event is handled while one is tried")
}
