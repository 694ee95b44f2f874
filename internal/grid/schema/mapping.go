package schema

import (
	"fmt"
	"unicode/utf8"
)

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
