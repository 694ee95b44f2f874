package wire

// headerKept is the number of header fields that are stored: durable, priority, ttl,
// first-acquirer. The one behind them is delivery-count (§3.2.1), which is about the
// way to us and means nothing to a consumer.
const headerKept = 4

// Normalize appends the stored form of a sender's message to dst, with which it must
// not overlap. The stored form is what consumers get, less what the hub adds for them:
//
//   - the header without delivery-count;
//   - no delivery annotations, which are meant for the next hop only;
//   - message annotations without the hub's own;
//   - everything else byte for byte, except that a section's descriptor is always in
//     the short form 00 53 xx, the only one that every client understands, and that the
//     sections are in the standard's order, the only one that every client expects.
//
// A section of which nothing is left is not written. A message that is in this form
// already comes out as it is. After an error dst is returned as it was.
func Normalize(dst, msg []byte) ([]byte, Own, error) {
	m, err := newSections(msg)
	if err != nil {
		return dst, Own{}, err
	}
	return normalize(dst, &m)
}

// Stored is Normalize without the copy where none is needed: the stored form is a part of
// out, which is dst and what was appended, or it is msg itself and dst was left alone.
func Stored(dst, msg []byte) (out, stored []byte, own Own, err error) {
	m, err := newSections(msg)
	if err != nil {
		return dst, nil, Own{}, err
	}
	if len(m.Tail) == len(msg) && !m.longDescriptor { // has a Tail, hence is in order
		return dst, msg[:len(msg):len(msg)], Own{}, nil
	}
	out, own, err = normalize(dst, &m)
	return out, out[len(dst):len(out):len(out)], own, err
}

func normalize(dst []byte, m *Message) ([]byte, Own, error) {
	out, err := appendStoredHeader(dst, m.Header)
	if err != nil {
		return dst, Own{}, err
	}
	out, own, err := appendForeignAnnotations(out, m.MessageAnnotations)
	if err != nil {
		return dst, Own{}, err
	}
	if !m.longDescriptor && !m.disordered {
		return append(out, m.Tail...), own, nil
	}
	for _, sections := range [...][]byte{m.Properties, m.ApplicationProperties, m.Body, m.Footer} {
		for r := NewReader(sections); r.Len() > 0; {
			if out, err = appendSection(out, &r); err != nil {
				return dst, Own{}, err
			}
		}
	}
	return out, own, nil
}

// appendSection copies the reader's next section under a short descriptor.
func appendSection(dst []byte, r *Reader) ([]byte, error) {
	d, err := r.ReadDescriptor()
	if err != nil {
		return dst, err
	}
	start := r.off
	if err := r.Skip(); err != nil {
		return dst, err
	}
	return append(AppendDescriptor(dst, d), r.buf[start:r.off]...), nil
}

// appendStoredHeader copies the header, cutting off delivery-count if it is set.
func appendStoredHeader(dst, header []byte) ([]byte, error) {
	if header == nil {
		return dst, nil
	}
	r := NewReader(header)
	if _, err := r.ReadDescriptor(); err != nil {
		return dst, err
	}
	fields, err := r.EnterList()
	if err != nil {
		return dst, err
	}
	whole := NewReader(header)
	if fields.Count <= headerKept {
		return appendSection(dst, &whole)
	}
	start, anySet := r.off, false
	for range headerKept {
		if r.TryNull() {
			continue
		}
		anySet = true
		if err := r.Skip(); err != nil {
			return dst, err
		}
	}
	end := r.off
	if r.TryNull() {
		return appendSection(dst, &whole)
	}
	if !anySet {
		return dst, nil
	}
	dst, list := BeginList(AppendDescriptor(dst, DescriptorHeader))
	return EndList(append(dst, header[start:end]...), list, headerKept), nil
}

// appendForeignAnnotations copies the annotations that are not ours. The new section is
// written as it is found out what stays, and thrown away again when that is everything:
// the sender's own encoding is the one to keep.
func appendForeignAnnotations(dst, section []byte) ([]byte, Own, error) {
	if section == nil {
		return dst, Own{}, nil
	}
	r := NewReader(section)
	if _, err := r.ReadDescriptor(); err != nil {
		return dst, Own{}, err
	}
	entries, err := r.EnterMap()
	if err != nil {
		return dst, Own{}, err
	}
	var own Own
	pairs, kept := entries.Count/2, 0
	out, list := BeginMap(AppendDescriptor(dst, DescriptorMessageAnnotations))
	for range pairs {
		start := r.off
		ours, err := r.skipAnnotation(&own)
		if err != nil {
			return dst, Own{}, err
		}
		if !ours {
			out = append(out, section[start:r.off]...)
			kept++
		}
	}
	switch kept {
	case pairs:
		whole := NewReader(section)
		out, err = appendSection(out[:len(dst)], &whole)
		return out, own, err
	case 0:
		return dst, own, nil
	default:
		return EndMap(out, list, kept), own, nil
	}
}
