package breaker

import (
	"strings"
	"unicode/utf8"
)

const (
	maxSamples     = 5
	maxErrorBytes  = 300
	maxReasonBytes = 600
	maxByBytes     = 200
)

// Newest gives the last few of the samples, each short and of valid text, in a slice of its own.
func Newest(samples []Sample) []Sample {
	samples = samples[max(0, len(samples)-maxSamples):]
	if len(samples) == 0 {
		return nil
	}
	short := make([]Sample, len(samples))
	for i, s := range samples {
		s.Error = cut(s.Error, maxErrorBytes)
		s.Partition = cut(s.Partition, maxByBytes)
		short[i] = s
	}
	return short
}

// cut gives at most so many bytes of a text, and only valid ones: errors quote whatever a handler
// met.
func cut(s string, most int) string {
	const dots = "…"
	whole := len(s) <= most
	if !whole {
		s = s[:most] // so that a text of megabytes is not gone through
	}
	s = strings.ToValidUTF8(s, "?")
	if whole {
		return s
	}
	for len(s) > most-len(dots) {
		_, last := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-last]
	}
	return s + dots
}
