package schema

var cloudEventRequired = []named{
	spell(attrSpecVersion, "specversion"), spell(attrID, "id"), spell(attrSource, "source"), spell(attrType, "type"),
}

var cloudEventOptional = []named{
	spell(attrSubject, "subject"), spell(attrTime, "time"), spell(attrDataSchema, "dataschema"), spell(attrContentType, "datacontenttype"),
	spell(attrBase64, "data_base64"),
}

// cloudEvent reads a structured CloudEvent.
func (s *store) cloudEvent() error {
	d := &s.draft
	if err := d.readCloudEvent(&s.r); err != nil {
		return err
	}
	s.out = d.appendStored(s.out, CloudEventForm)
	return nil
}

func (d *draft) readCloudEvent(r *reader) error {
	if err := d.read(r, cloudEventAttribute[[]byte], d.extend); err != nil {
		return err
	}
	return d.checkCloudEvent()
}

// extend adds an extension attribute, as which every other member counts. Null is as good as
// absent (CloudEvents JSON format, 2.2), and not stored.
func (d *draft) extend(name, value []byte) error {
	if !isToken(name) {
		return refuse("the property '%s' is none of a CloudEvent's, and cannot be an extension attribute: use lower-case letters and digits only", brief(name))
	}
	if len(d.extensions) == maxExtensions {
		return refuse("there are more than %d extension attributes: put them into 'data'", maxExtensions)
	}
	for _, x := range d.extensions {
		if string(x.Name) == string(name) {
			return refuseTwice(name)
		}
	}
	d.extensions = append(d.extensions, Member{name, value})
	return nil
}

// isToken tells whether a name can stand in a header, as in binary mode it has to. This is more
// than CloudEvents allow: what other people's receivers make of it is theirs to say.
func isToken(name []byte) bool {
	for _, c := range name {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '.':
		default:
			return false
		}
	}
	return len(name) > 0
}

func (d *draft) checkCloudEvent() error {
	for _, n := range cloudEventRequired {
		t, err := d.text(n)
		if err != nil {
			return err
		}
		if len(t) == 0 {
			return refuse("the topic takes %s, and the property '%s' is missing or empty: set it", CloudEvents.InputName(), n.name)
		}
		if n.attribute == attrSpecVersion && string(t) != "1.0" {
			return refuse("the property '%s' is '%s': it has to be '1.0'", n.name, brief(t))
		}
	}
	for _, n := range cloudEventOptional {
		t, err := d.text(n)
		if err != nil {
			return err
		}
		if err := d.checkOptional(n, t); err != nil {
			return err
		}
	}
	return nil
}

func (d *draft) checkOptional(n named, t []byte) error {
	if t == nil {
		return nil
	}
	switch n.attribute {
	case attrTime:
		if s, ok := parseStamp(t); !ok || !s.strict {
			return refuseTime(n.name, t)
		}
	case attrContentType:
		if !isHeaderText(t) {
			return refuse("the property '%s' is not a media type: write it like application/json", n.name)
		}
	case attrBase64:
		if !isBase64(t) {
			return refuse("the property '%s' is not base64: encode the data, with padding", n.name)
		}
		if d.attributes[attrData] != nil {
			return refuse("there are both 'data' and '%s': send one of them", n.name)
		}
	}
	return nil
}

// isBase64 takes standard base64 with padding.
func isBase64(t []byte) bool {
	if len(t)%4 != 0 {
		return false
	}
	for padding := 0; padding < 2 && len(t) > 0 && t[len(t)-1] == '='; padding++ {
		t = t[:len(t)-1]
	}
	for _, c := range t {
		if !base64Digits[c] {
			return false
		}
	}
	return true
}

var base64Digits = func() (digits [256]bool) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" {
		digits[c] = true
	}
	return digits
}()
