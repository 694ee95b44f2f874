package eventhubs

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// selectorFilter is the key of the filter that says where reading begins.
const selectorFilter = "apache.org:selector-filter:string"

// The fields that a selector may speak of.
const (
	fieldPrefix   = "amqp.annotation."
	fieldOffset   = wire.AnnotationOffset
	fieldSequence = wire.AnnotationSequenceNumber
	fieldTime     = wire.AnnotationEnqueuedTime
	// fieldOldTime is what old clients call the enqueued time.
	fieldOldTime = "x-opt-enqueuedtimeutc"
)

// latestOffset stands for the end of a partition.
const latestOffset = "@latest"

// errSelector: the filter cannot be understood.
var errSelector = errors.New("the selector filter cannot be understood")

// selector is where a receiver begins. It keeps the client's words for the error that reports a
// position which does not exist.
type selector struct {
	at eventlog.Position
	// field and value are as the client wrote them; empty without a filter.
	field, value string
}

// selectorDescriptor is the number that stands for selectorFilter.
const selectorDescriptor uint64 = 0x468c00000004

// selectorOf finds the position in a source's filters. Without any it is the earliest. The
// clients of Event Hubs agree on the filter's key and each have another descriptor; others
// agree on the descriptor and choose their own keys.
func selectorOf(filters wire.Map) (selector, error) {
	for _, f := range filters {
		key, _ := textOf(f.Key)
		value := f.Value
		described, ok := value.(wire.Described)
		if ok {
			value = described.Value
		}
		if key != selectorFilter && described.Descriptor != wire.Symbol(selectorFilter) && described.Descriptor != selectorDescriptor {
			continue
		}
		text, ok := textOf(value)
		if !ok {
			return selector{}, fmt.Errorf("%w: it is no text", errSelector)
		}
		return parseSelector(text)
	}
	return selector{}, nil
}

// textOf takes text in whatever type a client has put it.
func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case wire.Symbol:
		return string(v), true
	case []byte:
		return string(v), true
	default:
		return "", false
	}
}

// parseSelector reads one comparison:
//
//	field  amqp.annotation.x-opt-offset, -sequence-number or -enqueued-time
//	op     > or >=
//	value  in quotes, or without and up to the end
func parseSelector(text string) (selector, error) {
	field, value, ok := strings.Cut(text, ">")
	if !ok {
		return selector{}, fmt.Errorf("%w: %q has no comparison by > or >=", errSelector, shown(text))
	}
	value, inclusive := strings.CutPrefix(value, "=")
	name, ok := strings.CutPrefix(strings.TrimSpace(field), fieldPrefix)
	if !ok {
		return selector{}, fmt.Errorf("%w: %q is no annotation of an event", errSelector, shown(strings.TrimSpace(field)))
	}
	value = strings.TrimSpace(value)
	if n := len(value); n >= 2 && value[0] == '\'' && value[n-1] == '\'' {
		value = value[1 : n-1]
	}
	s := selector{field: name, value: value}
	return s, s.locate(inclusive)
}

// locate works out the position. An offset is the event's sequence number.
func (s *selector) locate(inclusive bool) error {
	byTime := s.field == fieldTime || s.field == fieldOldTime
	switch {
	case s.field == fieldOffset && s.value == latestOffset:
		s.at = eventlog.Latest()
		return nil
	case s.field != fieldOffset && s.field != fieldSequence && !byTime:
		return fmt.Errorf("%w: events cannot be found by %q", errSelector, shown(s.field))
	}
	n, err := strconv.ParseInt(s.value, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // beyond the range n is the largest, past every end
		return fmt.Errorf("%w: the supplied %s '%s' is no whole number", errSelector, s.what(), shown(s.value))
	}
	switch {
	case byTime && !inclusive && n < math.MaxInt64:
		s.at = eventlog.Since(time.UnixMilli(n + 1)) // times are whole milliseconds
	case byTime:
		s.at = eventlog.Since(time.UnixMilli(n))
	case n < 0:
		s.at = eventlog.Earliest()
	case inclusive || n == math.MaxInt64:
		s.at = eventlog.At(eventlog.Sequence(n))
	default:
		s.at = eventlog.After(eventlog.Sequence(n))
	}
	return nil
}

// what is the field in the words of errors.
func (s *selector) what() string {
	switch s.field {
	case fieldSequence:
		return "sequence number"
	case fieldOffset:
		return "offset"
	default:
		return "enqueued time"
	}
}

// textPastEnd says that the position does not exist yet.
func (s *selector) textPastEnd(e *eventlog.PositionError) string {
	return fmt.Sprintf("The supplied %s '%s' is invalid. The last %[1]s in the system is '%[3]d'",
		s.what(), shown(s.value), e.Last)
}
