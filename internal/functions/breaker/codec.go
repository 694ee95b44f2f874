package breaker

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	maxRecordBytes = 12 << 10
	maxTallyBytes  = 4 << 10
	maxNameBytes   = 200
	// maxTerm leaves room for changes, and is what every JSON reader can read.
	maxTerm = 1 << 53
)

// ErrUnreadable: a record or tally is not of the form that this package writes.
var ErrUnreadable = errors.New("it cannot be read")

// EncodeRecord gives at most 12 KiB, whatever the samples: they and other texts are cut.
func EncodeRecord(r Record) []byte {
	r.State = cmp.Or(r.State, Closed)
	r.By, r.Reason, r.Samples = cut(r.By, maxByBytes), cut(r.Reason, maxReasonBytes), Newest(r.Samples)
	r.Since, r.Opened = sayable(r.Since), sayable(r.Opened)
	for i := range r.Samples {
		r.Samples[i].At = sayable(r.Samples[i].At)
	}
	for {
		b := encode(r)
		if len(b) <= maxRecordBytes || len(r.Samples) == 0 {
			return b
		}
		r.Samples = r.Samples[1:] // of characters that take six bytes each
	}
}

// DecodeRecord says what is wrong with a record; it is never taken for a closed circuit then.
func DecodeRecord(b []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(b, &r); err != nil {
		return Record{}, fmt.Errorf("circuit record: %w: %w", ErrUnreadable, err)
	}
	if err := r.check(); err != nil {
		return Record{}, fmt.Errorf("circuit record: %w: %w", ErrUnreadable, err)
	}
	return r, nil
}

func (r Record) check() error {
	switch r.State {
	case Closed, Open, HalfOpen, Held:
	default:
		return fmt.Errorf("state %.40q is none of closed, open, half-open and held", r.State)
	}
	switch {
	case r.Term < 0 || r.Term > maxTerm:
		return fmt.Errorf("term %d", r.Term)
	case r.Failures < 0 || r.Trips < 0:
		return fmt.Errorf("%d failures and %d trips", r.Failures, r.Trips)
	case slices.ContainsFunc(slices.Collect(maps.Values(r.Decided)), func(n int64) bool { return n < 0 || n > maxTerm }):
		return fmt.Errorf("decided %v", r.Decided)
	case len(r.Incident) > maxNameBytes || len(r.Prober) > maxNameBytes:
		return fmt.Errorf("an incident of %d bytes and a prober of %d", len(r.Incident), len(r.Prober))
	case r.Tries != nil && (r.Tries.Sequence < 0 || len(r.Tries.Partition) > maxNameBytes):
		return fmt.Errorf("event %d of a partition of %d bytes is tried", r.Tries.Sequence, len(r.Tries.Partition))
	}
	return nil
}

// EncodeTally gives at most 4 KiB: buckets of many digits are joined.
func EncodeTally(t Tally) []byte {
	for {
		b := encode(t)
		if len(b) <= maxTallyBytes || len(t.Buckets) < 2 {
			return b
		}
		t.Buckets = joined(t.Buckets)
	}
}

// joined makes one bucket of each two, of the younger's age.
func joined(buckets []Bucket) []Bucket {
	var half []Bucket
	for i := 0; i < len(buckets); i += 2 {
		b := buckets[i]
		if i+1 < len(buckets) {
			b = Bucket{Age: min(b.Age, buckets[i+1].Age), Count: plus(b.Count, buckets[i+1].Count)}
		}
		half = append(half, b)
	}
	return half
}

// DecodeTally says what is wrong with a tally.
func DecodeTally(b []byte) (Tally, error) {
	var t Tally
	if err := json.Unmarshal(b, &t); err != nil {
		return Tally{}, fmt.Errorf("tally of failures: %w: %w", ErrUnreadable, err)
	}
	if t.Term < 0 || t.Term > maxTerm || t.Total < 0 {
		return Tally{}, fmt.Errorf("tally of failures: %w: term %d, total %d", ErrUnreadable, t.Term, t.Total)
	}
	if t.Down < 0 || t.Up < 0 || t.Good < 0 {
		return Tally{}, fmt.Errorf("tally of failures: %w: down for %v, up %v ago, good %v ago", ErrUnreadable, t.Down, t.Up, t.Good)
	}
	for _, b := range t.Buckets {
		if b.Age < 0 || b.Count < 0 {
			return Tally{}, fmt.Errorf("tally of failures: %w: %d of age %v", ErrUnreadable, b.Count, b.Age)
		}
	}
	return t, nil
}

// encode is for the types above, which cannot fail: their times are sayable. Nothing is escaped for
// HTML, as it would take six bytes.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// sayable is a time that JSON has a form for, or none.
func sayable(t time.Time) time.Time {
	t = clock(t)
	if y := t.Year(); y < 0 || y > 9999 {
		return time.Time{}
	}
	return t
}
