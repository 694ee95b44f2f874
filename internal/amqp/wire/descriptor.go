package wire

import "math"

// Descriptor is the number of a described type that the standard defines. Each has a
// symbolic name as well, and senders may use either.
type Descriptor uint64

// The sections of a message (§3.2).
const (
	DescriptorHeader                Descriptor = 0x70
	DescriptorDeliveryAnnotations   Descriptor = 0x71
	DescriptorMessageAnnotations    Descriptor = 0x72
	DescriptorProperties            Descriptor = 0x73
	DescriptorApplicationProperties Descriptor = 0x74
	DescriptorData                  Descriptor = 0x75
	DescriptorSequence              Descriptor = 0x76
	DescriptorValue                 Descriptor = 0x77
	DescriptorFooter                Descriptor = 0x78
)

// AppendDescriptor writes the beginning of a described value. Numbers below 256, all
// that the standard has, become 00 53 xx: the Python client takes the third byte for
// the number without looking at the first two.
func AppendDescriptor(dst []byte, d Descriptor) []byte {
	if d <= math.MaxUint8 {
		return append(dst, byte(CodeDescribed), byte(CodeSmallUlong), byte(d))
	}
	return AppendUlong(append(dst, byte(CodeDescribed)), uint64(d))
}

// ReadDescriptor reads the beginning of a described value, up to the value itself. It
// understands a number in every encoding, and the symbolic names of the constants here.
func (r *Reader) ReadDescriptor() (Descriptor, error) {
	at := r.off
	c, err := r.code("descriptor")
	if err != nil {
		return 0, err
	}
	if c != CodeDescribed {
		return 0, r.wrong(at, c, "described value")
	}
	at = r.off
	c, err = r.code("descriptor")
	if err != nil {
		return 0, err
	}
	if c != CodeSymbol8 && c != CodeSymbol32 {
		n, err := r.ulong(c)
		return Descriptor(n), err
	}
	name, err := r.variable(c, "descriptor")
	if err != nil {
		return 0, err
	}
	d, known := descriptorByName(name)
	if !known {
		return 0, r.fail(at, "known descriptor", ErrMalformed)
	}
	return d, nil
}

// descriptorByName switches on the bytes because that neither allocates nor needs a
// table to be built.
func descriptorByName(name []byte) (Descriptor, bool) {
	switch string(name) {
	case "amqp:header:list":
		return DescriptorHeader, true
	case "amqp:delivery-annotations:map":
		return DescriptorDeliveryAnnotations, true
	case "amqp:message-annotations:map":
		return DescriptorMessageAnnotations, true
	case "amqp:properties:list":
		return DescriptorProperties, true
	case "amqp:application-properties:map":
		return DescriptorApplicationProperties, true
	case "amqp:data:binary":
		return DescriptorData, true
	case "amqp:amqp-sequence:list":
		return DescriptorSequence, true
	case "amqp:amqp-value:*":
		return DescriptorValue, true
	case "amqp:footer:map":
		return DescriptorFooter, true
	default:
		return 0, false
	}
}
