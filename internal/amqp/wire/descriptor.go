package wire

import "math"

// Descriptor is the number of a described type that the standard defines. Each has a
// symbolic name as well, and senders may use either.
type Descriptor uint64

// The performatives (§2.7), delivery states (§3.4), ends of links (§3.5, §4.5.1) and SASL
// frames (§5.3.3).
const (
	DescriptorOpen           Descriptor = 0x10
	DescriptorBegin          Descriptor = 0x11
	DescriptorAttach         Descriptor = 0x12
	DescriptorFlow           Descriptor = 0x13
	DescriptorTransfer       Descriptor = 0x14
	DescriptorDisposition    Descriptor = 0x15
	DescriptorDetach         Descriptor = 0x16
	DescriptorEnd            Descriptor = 0x17
	DescriptorClose          Descriptor = 0x18
	DescriptorError          Descriptor = 0x1d
	DescriptorReceived       Descriptor = 0x23
	DescriptorAccepted       Descriptor = 0x24
	DescriptorRejected       Descriptor = 0x25
	DescriptorReleased       Descriptor = 0x26
	DescriptorModified       Descriptor = 0x27
	DescriptorSource         Descriptor = 0x28
	DescriptorTarget         Descriptor = 0x29
	DescriptorCoordinator    Descriptor = 0x30
	DescriptorSASLMechanisms Descriptor = 0x40
	DescriptorSASLInit       Descriptor = 0x41
	DescriptorSASLChallenge  Descriptor = 0x42
	DescriptorSASLResponse   Descriptor = 0x43
	DescriptorSASLOutcome    Descriptor = 0x44
)

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
	if d, ok := r.shortDescriptor(); ok {
		r.off += smallDescriptorBytes
		return d, nil
	}
	d, known, err := r.readDescriptor()
	if err == nil && !known {
		err = r.fail(at, "known descriptor", ErrMalformed)
	}
	return d, err
}

// shortDescriptor looks whether the form 00 53 xx comes next.
func (r *Reader) shortDescriptor() (Descriptor, bool) {
	b := r.buf[r.off:]
	if len(b) < smallDescriptorBytes || Code(b[0]) != CodeDescribed || Code(b[1]) != CodeSmallUlong {
		return 0, false
	}
	return Descriptor(b[2]), true
}

// readDescriptor also takes a name that it does not know.
func (r *Reader) readDescriptor() (d Descriptor, known bool, err error) {
	at := r.off
	c, err := r.code("descriptor")
	if err != nil {
		return 0, false, err
	}
	if c != CodeDescribed {
		return 0, false, r.wrong(at, c, "described value")
	}
	if c, err = r.code("descriptor"); err != nil {
		return 0, false, err
	}
	if c != CodeSymbol8 && c != CodeSymbol32 {
		n, err := r.ulong(c)
		return Descriptor(n), err == nil, err
	}
	name, err := r.variable(c)
	if err != nil {
		return 0, false, err
	}
	d, known = descriptorNames[string(name)]
	return d, known, nil
}
