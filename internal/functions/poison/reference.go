package poison

import (
	"encoding/json"
	"fmt"

	"github.com/eventyard/eventyard/event"
)

// tooLarge is what stands before the reason of a poison event without its event.
const tooLarge = "too large to be put away with its event: "

// reference is the body of such a poison event: where the event is, as long as its hub keeps it.
type reference struct {
	Hub       string `json:"hub"`
	Partition string `json:"partition"`
	Sequence  int64  `json:"sequence"`
}

// reference is the poison event of an event that leaves no room for one. Nothing of the event is cut: it is left out whole.
func (l Record) reference() event.Event {
	body, err := json.Marshal(reference{l.Hub, l.Partition, l.Sequence})
	if err != nil {
		panic(fmt.Sprintf("poison: a place cannot be written: %v", err)) // texts and a number
	}
	l.Reason, l.Redriven = cut(tooLarge+l.Reason, maxReasonBytes), max(l.Redriven, redrivenOf(l.Event))
	l.Event = event.Event{Key: l.Event.Key}
	entries := l.entries()
	entries[PropertyReference] = true
	return event.Event{Body: body, ContentType: "application/json", Properties: entries}
}
