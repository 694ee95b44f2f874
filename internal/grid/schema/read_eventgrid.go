package schema

import "strings"

// eventGridRequired is in the order in which missing ones are reported (reference §5).
var eventGridRequired = []named{
	spell(attrSubject, "subject"), spell(attrID, "id"), spell(attrType, "eventType"), spell(attrTime, "eventTime"),
}

var eventGridOptional = []named{
	spell(attrTopic, "topic"), spell(attrDataVersion, "dataVersion"), spell(attrMetadataVersion, "metadataVersion"),
}

// refuseUnknown: Event Grid's schema is closed (reference §6.1).
func refuseUnknown(name, _ []byte) error {
	return refuse("the topic takes %s, which has no property '%s': put it into 'data'", EventGrid.InputName(), brief(name))
}

func (s *store) checkEventGrid(d *draft) error {
	for _, n := range eventGridRequired {
		t, err := d.text(n)
		if err != nil {
			return err
		}
		// Only a subject may be empty: CloudEvents, as which it may be delivered, need the rest.
		if t == nil || len(t) == 0 && n.attribute != attrSubject {
			return refuse("the topic takes %s, and the property '%s' is missing or empty: set it", EventGrid.InputName(), n.name)
		}
		if _, ok := parseStamp(t); n.attribute == attrTime && !ok {
			return refuseTime(n.name, t)
		}
	}
	for _, n := range eventGridOptional {
		t, err := d.text(n)
		if err != nil {
			return err
		}
		if t == nil {
			continue
		}
		switch n.attribute {
		case attrTopic:
			if err := s.checkTopic(n.name, t); err != nil {
				return err
			}
		case attrMetadataVersion:
			if string(t) != "1" {
				return refuse("the property '%s' is '%s': it can only be '1', or be left out", n.name, brief(t))
			}
		}
	}
	return nil
}

// checkTopic takes this topic's names, and none. What events of a domain say is looked at later.
func (s *store) checkTopic(property string, t []byte) error {
	name := string(t)
	if s.p.Domain || name == "" || strings.EqualFold(name, s.p.TopicID) || strings.EqualFold(name, s.p.TopicName) {
		return nil
	}
	return refuse("the property '%s' is '%s', which is not the topic that it was sent to: leave it out, or use '%s'", property, brief(t), s.p.TopicID)
}

func refuseTime(property string, t []byte) error {
	return refuse("the property '%s' is '%s', which is not a date-time: write it like 2006-01-02T15:04:05.678Z", property, brief(t))
}
