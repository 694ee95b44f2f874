package record

import (
	"bytes"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// The annotations by which an event of Kafka's shows what AMQP has no word for.
const (
	// annotationKey has the key, as binary. It is never the partition key: the two choose partitions by
	// different hashes.
	annotationKey = "x-opt-kafka-key"
	// annotationNull is true where the value is null.
	annotationNull = "x-opt-kafka-null"
)

// headerContentType is the header that names the media type of the value.
const headerContentType = "content-type"

// The list of properties (AMQP 1.0, §3.2.4), as far as it is written.
const (
	propertyContentType  = 6
	propertyCreationTime = 9
)

// appendSections appends a record as the log keeps single events. created: its timestamp is the producer's.
func appendSections(dst []byte, r *Record, created bool) []byte {
	headers := newHeaderSet(r.Headers)
	dst = appendAnnotations(dst, r)
	dst = appendProperties(dst, headers.contentType(), r.Timestamp, created && r.Timestamp >= 0)
	dst = appendApplicationProperties(dst, &headers)
	return appendValue(dst, r.Value)
}

// appendAnnotations has key and null. [U] for null.
func appendAnnotations(dst []byte, r *Record) []byte {
	pairs := 0
	out, entries := wire.BeginMap(wire.AppendDescriptor(dst, wire.DescriptorMessageAnnotations))
	if r.Key != nil {
		out = wire.AppendBinary(wire.AppendSymbol(out, annotationKey), r.Key)
		pairs++
	}
	if r.Value == nil {
		out = wire.AppendBool(wire.AppendSymbol(out, annotationNull), true)
		pairs++
	}
	if pairs == 0 {
		return dst
	}
	return wire.EndMap(out, entries, pairs)
}

// appendProperties has the timestamp as the time of creation and, [U], the content type.
func appendProperties(dst, contentType []byte, timestamp int64, created bool) []byte {
	if contentType == nil && !created {
		return dst
	}
	out, list := wire.BeginList(wire.AppendDescriptor(dst, wire.DescriptorProperties))
	for range propertyContentType {
		out = wire.AppendNull(out)
	}
	if contentType == nil {
		out = wire.AppendNull(out)
	} else {
		out = wire.AppendSymbol(out, wire.Symbol(contentType))
	}
	if !created {
		return wire.EndList(out, list, propertyContentType+1)
	}
	out = wire.AppendNull(wire.AppendNull(out)) // content-encoding, absolute-expiry-time
	return wire.EndList(wire.AppendTimestamp(out, timestamp), list, propertyCreationTime+1)
}

// appendApplicationProperties has headers as binary, of those with one name the last, and null as null.
func appendApplicationProperties(dst []byte, headers *headerSet) []byte {
	if len(headers.all) == 0 {
		return dst
	}
	pairs := 0
	out, entries := wire.BeginMap(wire.AppendDescriptor(dst, wire.DescriptorApplicationProperties))
	for i, h := range headers.all {
		if headers.replaced(i) {
			continue
		}
		out = wire.AppendStringBytes(out, h.Name)
		if h.Value == nil {
			out = wire.AppendNull(out)
		} else {
			out = wire.AppendBinary(out, h.Value)
		}
		pairs++
	}
	out, attributes := appendCloudEvent(out, headers)
	return wire.EndMap(out, entries, pairs+attributes)
}

// appendValue has the value as one data section, which is empty for null.
func appendValue(dst, value []byte) []byte {
	return wire.AppendBinary(wire.AppendDescriptor(dst, wire.DescriptorData), value)
}

// headerSet is the headers of a record with names that are text, of which the last of a name counts.
type headerSet struct {
	all []Header
	// last has the number of the last header of each name, where there are many; nil where there are few,
	// and looking is faster.
	last map[string]int
}

// fewHeaders is how many are compared with each other.
const fewHeaders = 16

// newHeaderSet makes the names in all valid UTF-8.
func newHeaderSet(all []Header) headerSet {
	s := headerSet{all: all}
	if len(all) > fewHeaders {
		s.last = make(map[string]int, len(all))
	}
	for i := range all {
		if !utf8.Valid(all[i].Name) {
			all[i].Name = bytes.ToValidUTF8(all[i].Name, []byte("\uFFFD"))
		}
		if s.last != nil {
			s.last[string(all[i].Name)] = i
		}
	}
	return s
}

// find gives the number of the last header of a name, -1 if there is none.
func (s *headerSet) find(name string) int {
	if s.last != nil {
		if i, ok := s.last[name]; ok {
			return i
		}
		return -1
	}
	for i := len(s.all) - 1; i >= 0; i-- {
		if string(s.all[i].Name) == name {
			return i
		}
	}
	return -1
}

// replaced: another header of the same name follows.
func (s *headerSet) replaced(i int) bool {
	if s.last != nil {
		return s.last[string(s.all[i].Name)] != i
	}
	for _, later := range s.all[i+1:] {
		if bytes.Equal(later.Name, s.all[i].Name) {
			return true
		}
	}
	return false
}

// contentType gives the header of that name; nil if it is none that a symbol can hold. [U]
func (s *headerSet) contentType() []byte {
	i := s.find(headerContentType)
	if i < 0 || len(s.all[i].Value) == 0 {
		return nil
	}
	for _, c := range s.all[i].Value {
		if c < ' ' || c > '~' {
			return nil
		}
	}
	return s.all[i].Value
}
