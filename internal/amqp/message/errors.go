package message

import "errors"

// Why an event cannot be encoded. Besides these, Append passes on what the codec says of a value:
// wire.ErrUnsupported, wire.ErrText, wire.ErrTooDeep. All of them are the sender's to mend.
var (
	// ErrTwoBodies: the event has both a Body and a Value.
	ErrTwoBodies = errors.New("event has both bytes and a value for its body")
	// ErrPropertyType: a standard property is of a type that AMQP does not allow for it.
	ErrPropertyType = errors.New("wrong type for a standard property")
	// ErrPropertyField: a standard property that is a field of the event was put
	// among its System values.
	ErrPropertyField = errors.New("property has a field of its own in the event")
)
