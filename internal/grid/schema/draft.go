package schema

// maxExtensions is how many attributes of its own a CloudEvent may have. It is far more than
// anybody needs, and keeps the search for duplicates short.
const maxExtensions = 128

// draft is an event on its way into the stored form: the raw JSON of its parts, all of it
// checked by a reader. nil: absent, or null, which means the same (but for data).
type draft struct {
	attributes [attrOther][]byte
	extensions []Member
	// domainTopic is the name of the topic of a domain that it is for; empty: none, or the source
	// says it.
	domainTopic string
	// seen has a bit for each attribute that was there, be it as null.
	seen uint16
}

func (d *draft) reset() { *d = draft{extensions: d.extensions[:0]} }

// read reads the members of the object at which the reader stands, an event of a form. other deals
// with those that are none of ours.
func (d *draft) read(r *reader, form Form, other func(name, value []byte) error) error {
	d.reset()
	if err := r.open('{', 1); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := r.more('}', first)
		if err != nil || !more {
			return err
		}
		t, err := r.name()
		if err != nil {
			return err
		}
		value, err := r.raw(2)
		if err != nil {
			return err
		}
		name := t.bytes()
		if a := form.attribute(name); a != attrOther {
			err = d.set(a, name, value)
		} else {
			err = other(name, value)
		}
		if err != nil {
			return err
		}
	}
}

func (d *draft) set(a Attribute, name, value []byte) error {
	if d.seen&(1<<a) != 0 {
		return refuseTwice(name)
	}
	d.seen |= 1 << a
	if string(value) != "null" || a == attrData {
		d.attributes[a] = value
	}
	return nil
}

func refuseTwice(name []byte) error {
	return refuse("the property '%s' is there twice: send it once", brief(name))
}

// text wants an attribute to be a string, if it is there at all.
func (d *draft) text(n named) (t []byte, err error) {
	raw := d.attributes[n.attribute]
	if raw == nil {
		return nil, nil
	}
	if !isText(raw) {
		return nil, refuse("the property '%s' has to be a string", n.name)
	}
	return textOf(raw), nil
}

// appendStored writes the stored form: attributes, extensions, data.
func (d *draft) appendStored(dst []byte, form Form) []byte {
	dst = append(dst, '{')
	for _, n := range form.attributes() {
		if raw := d.attributes[n.attribute]; raw != nil {
			dst = appendRawMember(dst, n.name, raw)
		}
	}
	for _, x := range d.extensions {
		if string(x.Value) != "null" {
			dst = appendRawMember(dst, string(x.Name), x.Value)
		}
	}
	if d.domainTopic != "" {
		dst = appendTextMember(dst, "topic", d.domainTopic)
	}
	if data := d.attributes[attrData]; data != nil {
		dst = appendRawMember(dst, "data", data)
	}
	if base64 := d.attributes[attrBase64]; base64 != nil {
		dst = appendTextMember(dst, "data_base64", textOf(base64))
	}
	return append(dst, '}')
}
