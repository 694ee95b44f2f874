package azureblob

import (
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/blob"
)

// span is the part of a body that is asked for.
type span struct {
	first, last int64 // last included; without end math.MaxInt64
}

// rangeOf reads the range of a request, the service's own header before the usual one; nil if all
// is wanted.
func rangeOf(r *http.Request) (*span, error) {
	for _, name := range []string{"x-ms-range", "Range"} {
		text := r.Header.Get(name)
		if text == "" {
			continue
		}
		s, ok := parseRange(text)
		if !ok {
			return nil, invalidHeader(name, text)
		}
		return &s, nil
	}
	return nil, nil
}

// parseRange reads bytes=FIRST-LAST and bytes=FIRST-, the forms that the service has.
func parseRange(text string) (s span, ok bool) {
	rest, prefix := strings.CutPrefix(strings.TrimSpace(text), "bytes=")
	first, last, dash := strings.Cut(rest, "-")
	s.last = math.MaxInt64
	var err error
	if s.first, err = parseOffset(first); err == nil && last != "" {
		s.last, err = parseOffset(last)
	}
	return s, prefix && dash && err == nil && s.last >= s.first
}

// parseOffset takes digits only.
func parseOffset(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err
}

// within cuts the range to a body's length, and gives where it begins and how long it is.
func (s *span) within(bytes int64) (offset, length int64, err error) {
	if s == nil {
		return 0, bytes, nil
	}
	if s.first >= bytes {
		return 0, 0, blob.ErrRange
	}
	return s.first, min(s.last, bytes-1) - s.first + 1, nil
}
