package event_test

import (
	"fmt"
	"testing"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/tracing"
)

// V6: an event carries its trace among its properties, and those of others are left alone.
func TestAnEventCarriesItsTrace(t *testing.T) {
	shared := map[string]any{"a": 1}
	one, other := event.Event{Properties: shared}, event.Event{Properties: shared}
	c := tracing.Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "")
	one.SetTrace(c)
	testkit.Equal(t, one.Trace(), c)
	testkit.Equal(t, one.Properties["a"], any(1))
	testkit.Equal(t, other.Trace(), tracing.Context{})
	other.SetTrace(tracing.Context{})
	testkit.Equal(t, len(other.Properties), 1)
}

func ExampleEvent_Trace() {
	placed := event.Text("door opened")
	placed.Properties = map[string]any{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}

	fmt.Println(placed.Trace().Trace())
	// Output: 4bf92f3577b34da6a3ce929d0e0e4736
}
