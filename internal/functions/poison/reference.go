package poison

import (
	"encoding/json"
	"fmt"

	"github.com/eventyard/eventyard/event"
)

// tooLarge is what stands before the reason of a letter without its event.
const tooLarge = "too large to be put away with its event: "

// place is the body of such a letter: where the event is, as long as its hub keeps it.
type place struct {
	Hub       string `json:"hub"`
	Partition string `json:"partition"`
	Sequence  int64  `json:"sequence"`
}

// reference is the letter of an event that leaves no room for one. Nothing of the event is cut: it is left out whole.
func (l Letter) reference() event.Event {
	body, err := json.Marshal(place{l.Hub, l.Partition, l.Sequence})
	if err != nil {
		panic(fmt.Sprintf("poison: a place cannot be written: %v", err)) // texts and a number
	}
	l.Reason, l.Redriven = cut(tooLarge+l.Reason, maxReasonBytes), max(l.Redriven, redrivenOf(l.Event))
	l.Event = event.Event{Key: l.Event.Key}
	facts := l.facts()
	facts[PropertyReference] = true
	return event.Event{Body: body, ContentType: "application/json", Properties: facts}
}
