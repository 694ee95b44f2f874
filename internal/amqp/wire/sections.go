package wire

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
// sections, descriptors included; nil where the message has no such section.
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

	// Tail is everything from the properties to the end: what no hub on the way may change.
	Tail []byte

	// longDescriptor: some section's descriptor is not in the form 00 53 xx.
	longDescriptor bool
}

// Sections finds the sections of an encoded message. It decodes nothing and allocates
// nothing, but looks at every value, so that what it lets through can be read later:
// sections are in order, each of its proper type, and everything inside well-formed.
func Sections(msg []byte) (Message, error) {
	var (
		m    Message
		last Descriptor
		r    = NewReader(msg)
	)
	for r.Len() > 0 {
		start := r.off
		d, err := r.ReadDescriptor()
		if err != nil {
			return Message{}, err
		}
		if !mayFollow(last, d) {
			return Message{}, r.fail(start, "section in its place", ErrOrder)
		}
		if r.off-start != smallDescriptorBytes {
			m.longDescriptor = true
		}
		if err := r.skipSection(d); err != nil {
			return Message{}, err
		}
		m.position(d, last, msg, start, r.off)
		last = d
	}
	return m, nil
}

// smallDescriptorBytes is the length of 00 53 xx. No other descriptor of a section is
// as long: the numbers start at 0x70, and so are never zero.
const smallDescriptorBytes = 3

// mayFollow knows the order of sections. Their numbers rise in that order, so only the
// bodies need a second thought: they may be repeated but not mixed.
func mayFollow(last, next Descriptor) bool {
	switch {
	case next < DescriptorHeader || next > DescriptorFooter:
		return false
	case next == last:
		return next == DescriptorData || next == DescriptorSequence
	case isBody(last) && isBody(next):
		return false
	default:
		return next > last
	}
}

func isBody(d Descriptor) bool { return d >= DescriptorData && d <= DescriptorValue }

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
	if c.widest() != want {
		return r.wrong(r.off, c, want.typeName())
	}
	return r.Skip()
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

// ReadData reads one data section and gives its bytes, which it shares with the reader.
// The sections of a batch's body are read one by one this way.
func (r *Reader) ReadData() ([]byte, error) {
	at := r.off
	d, err := r.ReadDescriptor()
	if err != nil {
		return nil, err
	}
	if d != DescriptorData {
		return nil, r.fail(at, "data section", ErrMalformed)
	}
	return r.ReadBinary()
}
