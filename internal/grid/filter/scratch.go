package filter

import (
	"sync"

	"github.com/eventyard/eventyard/internal/grid/schema"
)

// scratch holds the values of one event at a time. It belongs to one goroutine, and keeps
// its room from event to event.
type scratch struct {
	values []value
	// filled are the slots that have a value.
	filled []int32
	// name is room for a member's folded name, plain for its unescaped one.
	name, plain []byte

	// event is the number of this event: what has another in found was noted for one before.
	event uint64
	found []found
	// loose are members whose name fits in another case only, and that wait for the end of
	// their object because one that fits exactly goes first.
	loose []looseMember
}

// found is how a node of the layout was met in the event.
type found struct {
	event uint64
	exact bool
}

type looseMember struct {
	node int32
	at   int
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// load finds the values of an event that a layout asks for.
func (s *scratch) load(l *layout, e *schema.Envelope) {
	if n := l.slots - len(s.values); n > 0 {
		s.values = append(s.values, make([]value, n)...)
	}
	if n := len(l.nodes) - len(s.found); n > 0 {
		s.found = append(s.found, make([]found, n)...)
	}
	s.event++
	for _, a := range l.attributes {
		text, isTopic := e.Text(a.attribute)
		if isTopic && e.Topic != "" {
			v := &s.values[a.slot]
			v.room = append(v.room[:0], e.TopicID()...)
			text = v.room
		}
		if text != nil {
			v := s.fill(a.slot)
			v.kind, v.attribute, v.text = str, true, text
		}
	}
	if e.Form == schema.CloudEventForm && len(l.extensions) > 0 {
		s.loadExtensions(l, e.Extensions)
	}
	if len(l.nodes) > 0 && len(e.Data) > 0 {
		if at := skipSpace(e.Data, 0); at < len(e.Data) {
			s.take(l, 0, e.Data, at)
		}
	}
}

// fill gives the value of a slot to be set.
func (s *scratch) fill(slot int32) *value {
	v := &s.values[slot]
	if v.kind == missing {
		s.filled = append(s.filled, slot)
	}
	return v
}

func (s *scratch) loadExtensions(l *layout, extensions []schema.Member) {
	for i := len(extensions) - 1; i >= 0; i-- { // of several with one name the first counts
		member := &extensions[i]
		s.name = appendFolded(s.name[:0], member.Name)
		slot, ok := l.extensions[string(s.name)]
		if !ok {
			continue
		}
		at := skipSpace(member.Value, 0)
		if end := skipValue(member.Value, at); end > 0 {
			v := s.fill(slot)
			v.reset()
			v.setJSON(member.Value[at:end])
			v.attribute = true
		}
	}
}

// release forgets the event, so that its bytes can go.
func (s *scratch) release() {
	for _, slot := range s.filled {
		s.values[slot].reset()
	}
	s.filled = s.filled[:0]
	s.loose = s.loose[:0]
}
