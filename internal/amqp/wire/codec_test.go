package wire

import (
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// codec is one kind of frame body, with the two directions between its bytes and its value.
type codec struct {
	name       string
	descriptor Descriptor
	fields     int
	append     func(dst []byte, v any) []byte
	read       func(r *Reader) (any, error)
}

func codecOf[T any](name string, d Descriptor, fields int, write func([]byte, *T) []byte, read func(*Reader) (T, error)) codec {
	return codec{name, d, fields,
		func(dst []byte, v any) []byte { x := v.(T); return write(dst, &x) },
		func(r *Reader) (any, error) { return read(r) }}
}

// codecs are all there are, with the number of fields that the standard gives each.
func codecs() []codec {
	return []codec{
		codecOf("open", DescriptorOpen, 10, AppendOpen, (*Reader).ReadOpen),
		codecOf("begin", DescriptorBegin, 8, AppendBegin, (*Reader).ReadBegin),
		codecOf("attach", DescriptorAttach, 14, AppendAttach, (*Reader).ReadAttach),
		codecOf("flow", DescriptorFlow, 11, AppendFlow, (*Reader).ReadFlow),
		codecOf("transfer", DescriptorTransfer, 11, AppendTransfer, (*Reader).ReadTransfer),
		codecOf("disposition", DescriptorDisposition, 6, AppendDisposition, (*Reader).ReadDisposition),
		codecOf("detach", DescriptorDetach, 3, AppendDetach, (*Reader).ReadDetach),
		codecOf("end", DescriptorEnd, 1, AppendEnd, (*Reader).ReadEnd),
		codecOf("close", DescriptorClose, 1, AppendClose, (*Reader).ReadClose),
		codecOf("sasl-mechanisms", DescriptorSASLMechanisms, 1,
			func(dst []byte, v *[]Symbol) []byte { return AppendSASLMechanisms(dst, *v) }, (*Reader).ReadSASLMechanisms),
		codecOf("sasl-init", DescriptorSASLInit, 3, AppendSASLInit, (*Reader).ReadSASLInit),
		codecOf("sasl-outcome", DescriptorSASLOutcome, 2,
			func(dst []byte, v *uint8) []byte { return AppendSASLOutcome(dst, *v) }, (*Reader).ReadSASLOutcome),
	}
}

func codecFor(d Descriptor) (codec, bool) {
	for _, c := range codecs() {
		if c.descriptor == d {
			return c, true
		}
	}
	return codec{}, false
}

// readBody reads descriptor and list of whatever kind is there.
func readBody(b []byte) (v any, c codec, rest []byte, err error) {
	r := NewReader(b)
	d, err := r.ReadDescriptor()
	if err != nil {
		return nil, c, nil, err
	}
	c, known := codecFor(d)
	if !known {
		return nil, c, nil, r.fail(0, "performative", ErrMalformed)
	}
	v, err = c.read(&r)
	return v, c, r.Rest(), err
}

// checkFullList checks what clients insist on: a short descriptor, then a list8 or list32
// with every field.
func checkFullList(t interface{ Fatalf(string, ...any) }, b []byte, d Descriptor, fields int) {
	if len(b) < 4 || b[0] != 0x00 || b[1] != 0x53 || b[2] != byte(d) || b[3] != 0xc0 && b[3] != 0xd0 {
		t.Fatalf("% x does not begin with the descriptor %#x and a list that is not list0", b, uint64(d))
	}
	r := NewReader(b[3:])
	s, err := r.EnterList()
	if err != nil || s.Count != fields {
		t.Fatalf("% x has %d fields, want %d; %v", b, s.Count, fields, err)
	}
}

func TestEveryDescriptorHasItsName(t *testing.T) {
	names := map[Descriptor]Symbol{
		0x10: "amqp:open:list", 0x11: "amqp:begin:list", 0x12: "amqp:attach:list", 0x13: "amqp:flow:list",
		0x14: "amqp:transfer:list", 0x15: "amqp:disposition:list", 0x16: "amqp:detach:list", 0x17: "amqp:end:list",
		0x18: "amqp:close:list", 0x1d: "amqp:error:list", 0x23: "amqp:received:list", 0x24: "amqp:accepted:list",
		0x25: "amqp:rejected:list", 0x26: "amqp:released:list", 0x27: "amqp:modified:list", 0x28: "amqp:source:list",
		0x29: "amqp:target:list", 0x30: "amqp:coordinator:list", 0x40: "amqp:sasl-mechanisms:list",
		0x41: "amqp:sasl-init:list", 0x42: "amqp:sasl-challenge:list", 0x43: "amqp:sasl-response:list",
		0x44: "amqp:sasl-outcome:list", 0x70: "amqp:header:list", 0x71: "amqp:delivery-annotations:map",
		0x72: "amqp:message-annotations:map", 0x73: "amqp:properties:list", 0x74: "amqp:application-properties:map",
		0x75: "amqp:data:binary", 0x76: "amqp:amqp-sequence:list", 0x77: "amqp:amqp-value:*", 0x78: "amqp:footer:map",
	}
	for d, name := range names {
		r := NewReader(AppendSymbol([]byte{0}, name))
		if got, err := r.ReadDescriptor(); got != d || err != nil {
			t.Errorf("%s is %#x, %v; want %#x", name, uint64(got), err, uint64(d))
		}
	}
	for _, c := range codecs() {
		testkit.Equal(t, names[c.descriptor], Symbol("amqp:"+c.name+":list"), "descriptor %#x is", uint64(c.descriptor))
	}
}
