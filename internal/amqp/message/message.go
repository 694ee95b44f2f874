// Package message translates between [event.Event], which programs use, and the AMQP
// sections that the log keeps. An event is a view: it shows neither the AMQP header nor
// the footer, and where a consumer speaks AMQP it gets the stored bytes themselves.
//
// The partition key is not in those bytes. The log keeps it beside them.
package message

import (
	"fmt"
	"maps"
	"slices"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// Append writes the event's stored form behind dst. The same event gives the same bytes:
// what is in a map is written in the order of its keys. Key, Partition, Sequence,
// Offset and Enqueued are not part of it. After an error dst is returned as it was.
func Append(dst []byte, e event.Event) ([]byte, error) {
	out := dst
	for _, section := range [...]func([]byte, event.Event) ([]byte, error){
		appendAnnotations, appendProperties, appendApplicationProperties, appendBody,
	} {
		var err error
		if out, err = section(out, e); err != nil {
			return dst, fmt.Errorf("encode event: %w", err)
		}
	}
	return out, nil
}

// appendAnnotations writes the System values that are no standard properties, and
// leaves out those that only the hub may set.
func appendAnnotations(dst []byte, e event.Event) ([]byte, error) {
	var names []string
	for name := range e.System {
		if _, standard := fieldOf(name); !standard && !wire.IsOwnAnnotation([]byte(name)) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return dst, nil
	}
	slices.Sort(names)
	dst, entries := wire.BeginMap(wire.AppendDescriptor(dst, wire.DescriptorMessageAnnotations))
	for _, name := range names {
		var err error
		if dst, err = appendPair(dst, wire.Symbol(name), e.System[name]); err != nil {
			return dst, fmt.Errorf("system value %q: %w", name, err)
		}
	}
	return wire.EndMap(dst, entries, len(names)), nil
}

func appendApplicationProperties(dst []byte, e event.Event) ([]byte, error) {
	if len(e.Properties) == 0 {
		return dst, nil
	}
	dst, entries := wire.BeginMap(wire.AppendDescriptor(dst, wire.DescriptorApplicationProperties))
	for _, name := range slices.Sorted(maps.Keys(e.Properties)) {
		var err error
		if dst, err = appendPair(dst, name, e.Properties[name]); err != nil {
			return dst, fmt.Errorf("application property %q: %w", name, err)
		}
	}
	return wire.EndMap(dst, entries, len(e.Properties)), nil
}

func appendPair(dst []byte, key, value any) ([]byte, error) {
	dst, err := wire.AppendAny(dst, key)
	if err != nil {
		return dst, err
	}
	return wire.AppendAny(dst, value)
}

// Null is a Value for who writes an event that was read and had neither a Body nor a Value: its body
// is null once more, where a new event with neither gets an empty one.
type Null struct{}

// Again gives an event that was read as it is to be written, so that a body that was null stays so.
func Again(e event.Event) event.Event {
	if e.Body == nil && e.Value == nil {
		e.Value = Null{}
	}
	return e
}

// appendBody writes bytes, also when there are none: a message has to have a body.
func appendBody(dst []byte, e event.Event) ([]byte, error) {
	if e.Value == (Null{}) && e.Body == nil {
		return wire.AppendNull(wire.AppendDescriptor(dst, wire.DescriptorData)), nil
	}
	if e.Value == nil {
		return wire.AppendBinary(wire.AppendDescriptor(dst, wire.DescriptorData), e.Body), nil
	}
	if e.Body != nil {
		return dst, ErrTwoBodies
	}
	dst, err := wire.AppendAny(wire.AppendDescriptor(dst, wire.DescriptorValue), e.Value)
	if err != nil {
		return dst, fmt.Errorf("body value: %w", err)
	}
	return dst, nil
}
