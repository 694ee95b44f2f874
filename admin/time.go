package admin

import "time"

// Time is a time as the API writes those of hubs, groups, policies and partitions: in UTC and whole
// milliseconds.
type Time struct{ time.Time }

// MarshalJSON writes it like 2026-01-31T18:00:00.000Z.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(t.UTC().Format(`"2006-01-02T15:04:05.000Z07:00"`)), nil
}
