package schema

// attribute is one of the members that this package knows by name.
type attribute uint8

const (
	attrID attribute = iota
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

	// attrOther is a name that is none of ours.
	attrOther

	attrTexts = attrContentType + 1
)

// eventGridAttribute tells what a member of an Event Grid event is.
func eventGridAttribute(name []byte) attribute {
	switch string(name) {
	case "id":
		return attrID
	case "subject":
		return attrSubject
	case "eventType":
		return attrType
	case "eventTime":
		return attrTime
	case "data":
		return attrData
	case "dataVersion":
		return attrDataVersion
	case "metadataVersion":
		return attrMetadataVersion
	case "topic":
		return attrTopic
	default:
		return attrOther
	}
}

// cloudEventAttribute tells what a member of a CloudEvent is.
func cloudEventAttribute[T string | []byte](name T) attribute {
	switch string(name) {
	case "id":
		return attrID
	case "source":
		return attrSource
	case "type":
		return attrType
	case "specversion":
		return attrSpecVersion
	case "subject":
		return attrSubject
	case "time":
		return attrTime
	case "dataschema":
		return attrDataSchema
	case "datacontenttype":
		return attrContentType
	case "data":
		return attrData
	case "data_base64":
		return attrBase64
	default:
		return attrOther
	}
}

// named is an attribute and how a schema spells it.
type named struct {
	attribute attribute
	name      string
	key       string // the name as a key of an object: quotes, colon
}

func spell(a attribute, name string) named { return named{a, name, `"` + name + `":`} }

// What is stored and written, in this order.
var (
	eventGridOrder = []named{
		spell(attrID, "id"), spell(attrSubject, "subject"), spell(attrType, "eventType"), spell(attrTime, "eventTime"),
		spell(attrDataVersion, "dataVersion"), spell(attrData, "data"),
	}
	cloudEventOrder = []named{
		spell(attrSpecVersion, "specversion"), spell(attrID, "id"), spell(attrSource, "source"), spell(attrType, "type"), spell(attrSubject, "subject"),
		spell(attrTime, "time"), spell(attrDataSchema, "dataschema"), spell(attrContentType, "datacontenttype"), spell(attrData, "data"),
	}
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
