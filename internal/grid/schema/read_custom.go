package schema

import (
	"fmt"
	"unicode/utf8"
)

// custom reads an object of any shape. Its envelope is what the mapping finds in it; the
// object itself becomes the data, as it is.
func (s *store) custom(d *draft) error {
	start := s.r.i
	found, err := s.mapped()
	if err != nil {
		return err
	}
	d.reset()
	for _, f := range s.p.fields() {
		raw, err := f.value(found[f.attribute])
		if err != nil {
			return err
		}
		d.attributes[f.attribute] = raw
	}
	if err := s.checkCustom(d); err != nil {
		return err
	}
	d.attributes[attrData] = s.r.b[start:s.r.i]
	return nil
}

// mappedField is a field of the mapping, and the attribute that it is for.
type mappedField struct {
	attribute Attribute
	name      string
	Field
}

func (p *Publication) fields() [6]mappedField {
	m := &p.Mapping
	return [6]mappedField{
		{attrSubject, "subject", m.Subject},
		{attrID, "id", m.ID},
		{attrType, "eventType", m.EventType},
		{attrTime, "eventTime", m.EventTime},
		{attrDataVersion, "dataVersion", m.DataVersion},
		{attrTopic, "topic", m.Topic},
	}
}

// mapped finds the members that the mapping names; one may serve for several attributes.
func (s *store) mapped() (found [attrOther][]byte, err error) {
	if err := s.r.open('{', 2); err != nil {
		return found, err
	}
	fields := s.p.fields()
	for first := true; ; first = false {
		more, err := s.r.more('}', first)
		if err != nil || !more {
			return found, err
		}
		t, err := s.r.name()
		if err != nil {
			return found, err
		}
		value, err := s.r.raw(3)
		if err != nil {
			return found, err
		}
		name := t.bytes()
		for _, f := range fields {
			if f.Source == "" || f.Source != string(name) {
				continue
			}
			if found[f.attribute] != nil {
				return found, refuseTwice(name)
			}
			found[f.attribute] = value
		}
	}
}

// value is the JSON string that a field's raw value, nil if there is none, stands for.
func (f mappedField) value(raw []byte) ([]byte, error) {
	missing := raw == nil || string(raw) == "null"
	switch {
	case missing && f.Default != "":
		return appendQuoted(nil, f.Default), nil
	case missing && f.Source != "":
		return nil, refuse("the property '%s' is missing, which is mapped to '%s' without a default value: set it", f.Source, f.name)
	case missing:
		return nil, nil
	case raw[0] == '{' || raw[0] == '[':
		return nil, refuse("the property '%s' is mapped to '%s' and has to be a string, a number or a boolean", f.Source, f.name)
	case isText(raw):
		return raw, nil
	default:
		return appendQuoted(nil, raw), nil
	}
}

// checkCustom checks what was mapped and fills in what was not.
func (s *store) checkCustom(d *draft) error {
	m, p := &s.p.Mapping, s.p
	if raw := d.attributes[attrTopic]; raw != nil {
		if err := s.checkTopic(m.Topic.Source, textOf(raw)); err != nil {
			return err
		}
	}
	if raw := d.attributes[attrTime]; raw == nil {
		d.attributes[attrTime] = append(appendTime([]byte{'"'}, p.Now), '"')
	} else if _, ok := parseStamp(textOf(raw)); !ok {
		return refuseTime(m.EventTime.Source, textOf(raw))
	}
	if err := d.notEmpty(attrID, m.ID.Source, p.NewID); err != nil {
		return err
	}
	if err := d.notEmpty(attrType, m.EventType.Source, func() string { return customType }); err != nil {
		return err
	}
	if d.attributes[attrSubject] == nil {
		d.attributes[attrSubject] = []byte(`""`)
	}
	return nil
}

// notEmpty fills in what was not mapped, and refuses what was mapped to nothing.
func (d *draft) notEmpty(a Attribute, property string, otherwise func() string) error {
	raw := d.attributes[a]
	if raw == nil {
		d.attributes[a] = appendQuoted(nil, otherwise())
		return nil
	}
	if len(raw) == len(`""`) {
		return refuse("the property '%s' is empty: set it", property)
	}
	return nil
}

// Mapping says where a custom topic's events have what an envelope needs (reference §6.3).
// What it does not map is filled in: an id is made, the time is that of the publication, the
// type is Eventyard.Custom.Event, subject and data version are empty.
type Mapping struct {
	ID          Field `json:"id,omitzero"`
	Topic       Field `json:"topic,omitzero"`
	EventTime   Field `json:"eventTime,omitzero"`
	EventType   Field `json:"eventType,omitzero"`
	Subject     Field `json:"subject,omitzero"`
	DataVersion Field `json:"dataVersion,omitzero"`
}

// Field is one mapped field: the name of a top-level member, and what stands in for it.
type Field struct {
	Source  string `json:"sourceField,omitempty"`
	Default string `json:"defaultValue,omitempty"`
}

// customType is the type of events whose mapping gives none: CloudEvents must have one.
const customType = "Eventyard.Custom.Event"

// maxMapped is how long names and defaults may be. A default is stored with each event: five
// thousand empty ones in a request of a few kilobytes must not become gigabytes.
const maxMapped = 1024

// Check says what is wrong with a mapping.
func (m Mapping) Check() error {
	for _, f := range []struct {
		name       string
		field      Field
		sourceOnly bool
	}{
		{"id", m.ID, true},
		{"topic", m.Topic, true},
		{"eventTime", m.EventTime, true},
		{"eventType", m.EventType, false},
		{"subject", m.Subject, false},
		{"dataVersion", m.DataVersion, false},
	} {
		if f.sourceOnly && f.field.Default != "" {
			return fmt.Errorf("mapping of %s: it cannot have a default value: give a source field, or leave it out to have it filled in", f.name)
		}
		if n := max(len(f.field.Source), len(f.field.Default)); n > maxMapped {
			return fmt.Errorf("mapping of %s: its source field or default value has %d bytes: give at most %d", f.name, n, maxMapped)
		}
		if !utf8.ValidString(f.field.Source) || !utf8.ValidString(f.field.Default) {
			return fmt.Errorf("mapping of %s: it is not valid UTF-8: no event could have such a field", f.name)
		}
	}
	return nil
}
