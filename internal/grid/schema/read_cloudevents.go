package schema

import "bytes"

var cloudEventRequired = []named{
	spell(attrSpecVersion, "specversion"), spell(attrID, "id"), spell(attrSource, "source"), spell(attrType, "type"),
}

var cloudEventOptional = []named{
	spell(attrSubject, "subject"), spell(attrTime, "time"), spell(attrDataSchema, "dataschema"), spell(attrContentType, "datacontenttype"),
	spell(attrBase64, "data_base64"),
}

func (d *draft) readCloudEvent(r *reader) error {
	if err := d.read(r, CloudEventForm, d.extend); err != nil {
		return err
	}
	return d.checkCloudEvent()
}

// headerNameBytes are what the name of an extension may have, so that it can stand in a header, as
// in binary mode it has to. This is more than CloudEvents allow: what other people's receivers make
// of it is theirs to say.
const headerNameBytes = alphanumeric + "_-."

const (
	lowerCase    = "abcdefghijklmnopqrstuvwxyz"
	alphanumeric = lowerCase + "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
)

// extend adds an extension attribute, as which every other member counts. Null is as good as
// absent (CloudEvents JSON format, 2.2), and not stored.
func (d *draft) extend(name, value []byte) error {
	if len(name) == 0 || len(bytes.TrimLeft(name, headerNameBytes)) > 0 {
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
		if t == nil {
			continue
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
	}
	return nil
}

// isBase64 takes standard base64 with padding.
func isBase64(t []byte) bool {
	padding := string(bytes.TrimLeft(t, alphanumeric+"+/"))
	return len(t)%4 == 0 && (padding == "" || padding == "=" || padding == "==")
}
