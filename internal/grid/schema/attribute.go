package schema

// Attribute is one of the members that this package knows by name.
type Attribute uint8

const (
	attrID Attribute = iota
	attrSubject
	attrType
	attrTime
	attrSource
	attrDataVersion
	attrDataSchema
	attrContentType

	// The following are not among an Envelope's texts.
	attrSpecVersion
	attrTopic
	attrMetadataVersion
	attrData
	attrBase64
	attrDomainTopic

	// attrOther is a name that is none of ours.
	attrOther

	attrTexts = attrContentType + 1
)

// named is an attribute and how a schema spells it.
type named struct {
	attribute Attribute
	name      string
	key       string // the name as a key of an object: quotes, colon
}

func spell(a Attribute, name string) named { return named{a, name, `"` + name + `":`} }

// The members that events of a form may have: first those that are stored and written, in that
// order, with extensions before data; then those that are only read.
var (
	eventGridNames = []named{
		spell(attrID, "id"), spell(attrSubject, "subject"), spell(attrType, "eventType"), spell(attrTime, "eventTime"),
		spell(attrDataVersion, "dataVersion"), spell(attrData, "data"),
		spell(attrTopic, "topic"), spell(attrMetadataVersion, "metadataVersion"),
	}
	cloudEventNames = []named{
		spell(attrSpecVersion, "specversion"), spell(attrID, "id"), spell(attrSource, "source"), spell(attrType, "type"),
		spell(attrSubject, "subject"), spell(attrTime, "time"), spell(attrDataSchema, "dataschema"),
		spell(attrContentType, "datacontenttype"), spell(attrData, "data"),
		spell(attrBase64, "data_base64"),
	}
	eventGridOrder  = eventGridNames[:6]
	cloudEventOrder = cloudEventNames[:9]
)

// order is that of a form's members; extensions come between the last two.
func (f Form) order() []named {
	if f == CloudEventForm {
		return cloudEventOrder
	}
	return eventGridOrder
}

// attributes are the order without data.
func (f Form) attributes() []named {
	order := f.order()
	return order[:len(order)-1]
}

// attribute says what a member of an event of the form is.
func (f Form) attribute(name []byte) Attribute {
	names := eventGridNames
	if f == CloudEventForm {
		names = cloudEventNames
	}
	for i := range names {
		if names[i].name == string(name) {
			return names[i].attribute
		}
	}
	return attrOther
}
