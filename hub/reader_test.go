package hub

import (
	"bytes"
	"testing"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H4: an event that cannot be read is told once, and no other is lost or read again for it.
func TestEventsThatCannotBeRead(t *testing.T) {
	unnumbered, err := message.Append(nil, event.Text("x"))
	testkit.Must(t, err)
	broken := bytes.Replace(deliver(t, event.Event{Key: "text"}, 8), []byte("\xa1\x04text"), []byte("\xa0\x04text"), 1)
	for name, test := range map[string]struct {
		raw  []byte
		from Position
	}{
		"without a number":       {unnumbered, After(7)},
		"that is none":           {[]byte("x"), After(7)},
		"with a key of bytes":    {broken, After(8)},
		"that is empty":          {nil, After(7)},
		"with annotations alone": {deliver(t, event.Event{}, 8)[:3], After(7)},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reader{hub: &Hub{name: "h"}, from: After(7)}
			if got := r.append(nil, test.raw); len(got) != 0 || r.from != test.from || r.owed != 1 {
				t.Errorf("gave %v and goes on %s", got, r.from)
			}
			testkit.ErrorIs(t, r.earlier(), ErrUnreadable, "told")
			if err := r.earlier(); err != nil {
				t.Errorf("told again %v", err)
			}
		})
	}
}
