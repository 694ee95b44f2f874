package wire

import "cmp"

// BodyKind is which of the three kinds of body a message has (§3.2).
type BodyKind uint8

const (
	// BodyNone: no body section at all. The standard wants one, yet some senders
	// leave it out for an empty body, and so does an empty batch.
	BodyNone BodyKind = iota
	// BodyData: one or more sections of bytes.
	BodyData
	// BodySequence: one or more lists.
	BodySequence
	// BodyValue: a single value of any type.
	BodyValue
)

// Message is an encoded message taken apart. Each field is a sub-slice with whole
// sections, descriptors included; nil where the message has no such section. A data or sequence
// section may hold null in place of its bytes or its list: one client's event without a body.
type Message struct {
	Header                []byte
	DeliveryAnnotations   []byte
	MessageAnnotations    []byte
	Properties            []byte
	ApplicationProperties []byte
	// Body is all body sections in a row, BodyCount of them, all of one kind.
	Body      []byte
	BodyKind  BodyKind
	BodyCount int
	Footer    []byte

	// Tail is everything from the properties to the end: what no hub on the way may change. Nil
	// where the sections are not in the standard's order.
	Tail []byte

	// longDescriptor: some section's descriptor is not in the form 00 53 xx. disordered: the
	// sections are not in the standard's order.
	longDescriptor, disordered bool
}

// Sections finds the sections of an encoded message. It decodes nothing and allocates
// nothing, but looks at every value, so that what it lets through can be read later: each section
// is there once and of its proper type, bodies are of one kind and in a row, and everything inside
// is well-formed.
//
// The standard also wants the sections in the order of their numbers (§3.2). That is not asked for:
// rhea writes the footer before the body, and pyamqp the delivery annotations behind everything.
func Sections(msg []byte) (Message, error) { return sections(Reader{buf: msg}) }

// newSections is Sections for a message that comes in, and refuses what stops clients for good that
// read it: application properties whose keys are not strings (§3.2.5), and maps with keys that are
// no simple values. What was stored before there was this rule can still be read.
func newSections(msg []byte) (Message, error) { return sections(Reader{buf: msg, incoming: true}) }

func sections(r Reader) (Message, error) {
	var (
		m    Message
		seen sectionSet
		last Descriptor
		msg  = r.buf
	)
	for r.Len() > 0 {
		start := r.off
		d, err := r.ReadDescriptor()
		if err != nil {
			return Message{}, err
		}
		if !seen.add(d, last) {
			return Message{}, r.fail(start, "section that can be here", ErrSection)
		}
		m.disordered = m.disordered || d < last
		m.longDescriptor = m.longDescriptor || r.off-start != smallDescriptorBytes
		if err := r.skipSection(d); err != nil {
			return Message{}, err
		}
		m.position(d, last, msg, start, r.off)
		last = d
	}
	if m.disordered {
		m.Tail = nil
	}
	return m, nil
}

// smallDescriptorBytes is the length of 00 53 xx. No other descriptor of a section is
// as long: the numbers start at 0x70, and so are never zero.
const smallDescriptorBytes = 3

// sectionSet has a bit for each section that a message has.
type sectionSet uint16

const bodySections sectionSet = 1<<(DescriptorData-DescriptorHeader) |
	1<<(DescriptorSequence-DescriptorHeader) | 1<<(DescriptorValue-DescriptorHeader)

// add reports whether a section may come behind the one that came last. None may come twice,
// but for data and sequences, which may be repeated in a row; kinds of bodies are not mixed.
func (s *sectionSet) add(d, last Descriptor) bool {
	if d < DescriptorHeader || d > DescriptorFooter {
		return false
	}
	bit := sectionSet(1) << (d - DescriptorHeader)
	taken := *s & bit
	if bit&bodySections != 0 {
		taken = *s & bodySections
	}
	*s |= bit
	return taken == 0 || d == last && (d == DescriptorData || d == DescriptorSequence)
}

// skipSection passes a section's value, which has to be of the section's type.
func (r *Reader) skipSection(d Descriptor) error {
	want := CodeMap32
	switch d {
	case DescriptorHeader, DescriptorProperties, DescriptorSequence:
		want = CodeList32
	case DescriptorData:
		want = CodeBinary32
	case DescriptorValue:
		return r.Skip()
	}
	c, err := r.Peek()
	if err != nil {
		return err
	}
	nothing := c == CodeNull && (d == DescriptorData || d == DescriptorSequence)
	if c.widest() != want && !nothing {
		return r.wrong(r.off, c, want.typeName())
	}
	if r.incoming && d == DescriptorApplicationProperties {
		return r.skipApplicationProperties()
	}
	return r.Skip()
}

// skipApplicationProperties passes a map whose keys have to be strings.
func (r *Reader) skipApplicationProperties() error {
	s, err := r.EnterMap()
	if err != nil {
		return err
	}
	for range s.Count / 2 {
		if c, err := r.Peek(); err != nil || c.widest() != CodeString32 {
			return cmp.Or(err, r.wrong(r.off, c, "string as the key of an application property"))
		}
		for range 2 { // key and value
			if err := r.skip(1); err != nil {
				return err
			}
		}
	}
	return r.Leave(s)
}

// position enters the section msg[start:end].
func (m *Message) position(d, last Descriptor, msg []byte, start, end int) {
	section := msg[start:end:end]
	if m.Tail == nil && d >= DescriptorProperties {
		m.Tail = msg[start:len(msg):len(msg)]
	}
	switch d {
	case DescriptorHeader:
		m.Header = section
	case DescriptorDeliveryAnnotations:
		m.DeliveryAnnotations = section
	case DescriptorMessageAnnotations:
		m.MessageAnnotations = section
	case DescriptorProperties:
		m.Properties = section
	case DescriptorApplicationProperties:
		m.ApplicationProperties = section
	case DescriptorFooter:
		m.Footer = section
	default:
		if d == last { // grows the slice that ends where this section begins
			section = msg[start-len(m.Body) : end : end]
		}
		m.Body = section
		m.BodyKind = BodyKind(d-DescriptorData) + BodyData
		m.BodyCount++
	}
}

// ReadData reads one data section and gives its bytes, which it shares with the reader; nil if it
// holds null. The sections of a batch's body are read one by one this way.
func (r *Reader) ReadData() ([]byte, error) {
	at := r.off
	d, err := r.ReadDescriptor()
	if err != nil {
		return nil, err
	}
	if d != DescriptorData {
		return nil, r.fail(at, "data section", ErrMalformed)
	}
	if r.TryNull() {
		return nil, nil
	}
	return r.ReadBinary()
}
