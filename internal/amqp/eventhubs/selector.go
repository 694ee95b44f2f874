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

// selector says where a receiver begins, with the words it was said in: who asks for
// something that is not there wants to hear of what he asked for.
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
		if !isSelector(f) {
			continue
		}
		value := f.Value
		if described, ok := value.(wire.Described); ok {
			value = described.Value
		}
		text, ok := textOf(value)
		if !ok {
			return selector{}, fmt.Errorf("%w: it is no text", errSelector)
		}
		return parseSelector(text)
	}
	return selector{}, nil
}

func isSelector(f wire.Pair) bool {
	if key, ok := textOf(f.Key); ok && key == selectorFilter {
		return true
	}
	described, ok := f.Value.(wire.Described)
	return ok && (described.Descriptor == wire.Symbol(selectorFilter) || described.Descriptor == selectorDescriptor)
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
	s := selector{field: name, value: unquote(strings.TrimSpace(value))}
	return s, s.locate(inclusive)
}

func unquote(value string) string {
	if n := len(value); n >= 2 && value[0] == '\'' && value[n-1] == '\'' {
		return value[1 : n-1]
	}
	return value
}

// locate works out the position.
func (s *selector) locate(inclusive bool) error {
	switch s.field {
	case fieldOffset:
		if s.value == latestOffset {
			s.at = eventlog.Latest()
			return nil
		}
		return s.locateNumber(inclusive)
	case fieldSequence:
		return s.locateNumber(inclusive)
	case fieldTime, fieldOldTime:
		return s.locateTime(inclusive)
	default:
		return fmt.Errorf("%w: events cannot be found by %q", errSelector, shown(s.field))
	}
}

// locateNumber is for sequence numbers and for offsets, which are the same. Below zero
// there is nothing, so that everything follows.
func (s *selector) locateNumber(inclusive bool) error {
	n, err := s.integer()
	if err != nil {
		return err
	}
	switch {
	case n < 0:
		s.at = eventlog.Earliest()
	case inclusive || n == math.MaxInt64:
		s.at = eventlog.At(eventlog.Sequence(n))
	default:
		s.at = eventlog.After(eventlog.Sequence(n))
	}
	return nil
}

// locateTime: times are whole milliseconds, so that the next one is what comes after.
func (s *selector) locateTime(inclusive bool) error {
	ms, err := s.integer()
	if err != nil {
		return err
	}
	if !inclusive && ms < math.MaxInt64 {
		ms++
	}
	s.at = eventlog.Since(time.UnixMilli(ms))
	return nil
}

// integer reads the value. What is too large for a number is as good as the largest one:
// it is past every end all the same.
func (s *selector) integer() (int64, error) {
	n, err := strconv.ParseInt(s.value, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("%w: the supplied %s '%s' is no whole number", errSelector, s.what(), shown(s.value))
	}
	return n, nil
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
