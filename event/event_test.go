package event_test

import (
	"testing"

	"github.com/eventyard/eventyard/event"
)

// H3: an empty body is a body of bytes, and not a body of another kind.
func TestAnEmptyBodyIsNotNil(t *testing.T) {
	for name, e := range map[string]event.Event{
		"text without characters": event.Text(""),
		"no bytes":                event.Bytes([]byte{}),
		"nil":                     event.Bytes(nil),
	} {
		if e.Body == nil || len(e.Body) != 0 {
			t.Errorf("%s: body is %#v, want an empty slice that is not nil", name, e.Body)
		}
	}
}
