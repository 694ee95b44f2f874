package schema

// eventGridRequired is in the order in which missing ones are reported (reference §5).
var eventGridRequired = []named{
	spell(attrSubject, "subject"), spell(attrID, "id"), spell(attrType, "eventType"), spell(attrTime, "eventTime"),
}

var eventGridOptional = []named{
	spell(attrTopic, "topic"), spell(attrDataVersion, "dataVersion"), spell(attrMetadataVersion, "metadataVersion"),
}

// eventGrid reads an event in Event Grid's schema, which is closed (reference §6.1).
func (s *store) eventGrid() error {
	d := &s.draft
	if err := d.read(&s.r, eventGridAttribute, refuseUnknown); err != nil {
		return err
	}
	if err := s.checkEventGrid(d); err != nil {
		return err
	}
	s.out = d.appendStored(s.out, EventGridForm)
	return nil
}

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
		if err := s.checkOptional(n, t); err != nil {
			return err
		}
	}
	return nil
}

// checkOptional checks what an event need not say, and if it does has to get right.
func (s *store) checkOptional(n named, t []byte) error {
	switch {
	case t == nil:
		return nil
	case n.attribute == attrTopic:
		return s.checkTopic(n.name, t)
	case n.attribute == attrMetadataVersion && string(t) != "1":
		return refuse("the property '%s' is '%s': it can only be '1', or be left out", n.name, brief(t))
	default:
		return nil
	}
}

// checkTopic takes this topic's names, and none.
func (s *store) checkTopic(property string, t []byte) error {
	if len(t) == 0 || equalFold(t, s.p.TopicID) || equalFold(t, s.p.TopicName) {
		return nil
	}
	return refuse("the property '%s' is '%s', which is not the topic that it was sent to: leave it out, or use '%s'", property, brief(t), s.p.TopicID)
}

func refuseTime(property string, t []byte) error {
	return refuse("the property '%s' is '%s', which is not a date-time: write it like 2006-01-02T15:04:05.678Z", property, brief(t))
}
