package wire

import (
	"encoding/binary"
	"math"
	"strconv"
)

// Delivery is what the hub adds to an event for a consumer. The event's offset is the
// decimal of its sequence number. Times are in milliseconds since 1970 UTC.
type Delivery struct {
	Sequence     int64
	EnqueuedTime int64
	// Key is the partition key, nil for none.
	Key []byte
	// Metrics, when not nil, are added as well; a consumer asks for them when it attaches.
	Metrics *DeliveryMetrics
}

// DeliveryMetrics is the state of the partition at the time of a delivery.
type DeliveryMetrics struct {
	LastSequence int64
	LastTime     int64
	Retrieved    int64
}

// The sections that the hub writes are, but for their last entries, always of one form: a
// template is copied, and numbers are put at their offsets. So that the offsets are fixed,
// numbers are in full width, and what varies in length comes last.
const (
	eight     = "\x00\x00\x00\x00\x00\x00\x00\x00"
	longZero  = "\x81" + eight
	timeZero  = "\x83" + eight
	maxDigits = 20 // of an int64 in decimal, with its sign
	smallHead = 6  // 00 53 7x c1 size count
	largeHead = 12 // 00 53 7x d1 size count

	metricsSequence  = "\xa3\x1d" + AnnotationLastSequence + longZero
	metricsTime      = metricsSequence + "\xa3\x16" + AnnotationLastTime + timeZero
	metricsRetrieved = metricsTime + "\xa3\x1f" + AnnotationRetrieved + timeZero
	metricsTemplate  = metricsRetrieved + "\xa3\x14" + AnnotationLastOffset

	eventSequence = "\xa3\x15" + AnnotationSequenceNumber + longZero
	eventTime     = eventSequence + "\xa3\x13" + AnnotationEnqueuedTime + timeZero
	eventTemplate = eventTime + "\xa3\x0c" + AnnotationOffset

	keyName = "\xa3\x13" + AnnotationPartitionKey

	metricsHead = "\x00\x53\x71\xc1\x00\x08" // size to be filled in; four pairs
	eventHead   = "\x00\x53\x72\xc1\x00\x00" // size and count to be filled in

	eventValues = 6 // keys and values of the template
)

// AppendDelivery appends a stored message, which is one that Normalize has written, in the
// form in which a consumer gets it: the stored header, delivery annotations if there are
// metrics, message annotations that are the hub's own and then the stored ones, and all
// the rest as it is. It does not allocate. After an error dst is returned as it was.
func AppendDelivery(dst []byte, d *Delivery, stored []byte) ([]byte, error) {
	s, err := splitStored(stored)
	if err != nil {
		return dst, err
	}
	dst = append(dst, s.header...)
	if d.Metrics != nil {
		dst = appendMetrics(dst, d.Metrics)
	}
	dst = appendEventAnnotations(dst, d, &s)
	return append(dst, s.tail...), nil
}

// storedParts is a stored message taken apart.
type storedParts struct {
	header  []byte
	foreign []byte // the entries of the message annotations
	values  int    // keys and values in foreign
	tail    []byte
}

// splitStored looks at no more than where sections begin: Normalize has seen all the rest.
func splitStored(stored []byte) (s storedParts, err error) {
	r := NewReader(stored)
	next, _ := r.shortDescriptor()
	if next == DescriptorHeader {
		if _, _, err = r.passSection(CodeList32); err != nil {
			return s, err
		}
		s.header = stored[:r.off]
		next, _ = r.shortDescriptor()
	}
	if next == DescriptorMessageAnnotations {
		if s.foreign, s.values, err = r.passSection(CodeMap32); err != nil {
			return s, err
		}
		next, _ = r.shortDescriptor()
	}
	if s.tail = r.Rest(); len(s.tail) > 0 && next < DescriptorProperties {
		return s, r.fail(r.off, "stored message", ErrSection)
	}
	return s, nil
}

// passSection passes a section with a short descriptor, and gives what is inside its list or map.
func (r *Reader) passSection(of Code) (inside []byte, count int, err error) {
	r.off += smallDescriptorBytes
	s, err := r.enter(of)
	if err != nil {
		return nil, 0, err
	}
	inside = r.buf[r.off:s.end]
	r.off = s.end
	return inside, s.Count, nil
}

func appendMetrics(dst []byte, m *DeliveryMetrics) []byte {
	at := len(dst)
	dst = append(dst, metricsHead+metricsTemplate...)
	entries := dst[at+smallHead:]
	putEight(entries, len(metricsSequence), m.LastSequence)
	putEight(entries, len(metricsTime), m.LastTime)
	putEight(entries, len(metricsRetrieved), m.Retrieved)
	return endSmall(appendDecimal(dst, m.LastSequence), Mark(at))
}

func appendEventAnnotations(dst []byte, d *Delivery, s *storedParts) []byte {
	at, values := len(dst), eventValues+s.values
	if d.Key != nil {
		values += 2
	}
	// An upper bound will do: the larger form is as good, only longer.
	most := len(eventTemplate) + 2 + maxDigits + len(keyName) + 5 + len(d.Key) + len(s.foreign)
	if most >= math.MaxUint8 || values > math.MaxUint8 {
		return appendLargeAnnotations(dst, d, s, values)
	}
	dst = append(dst, eventHead+eventTemplate...)
	dst[at+smallSizeAt+1] = byte(values)
	return endSmall(appendEventEntries(dst, at+smallHead, d, s), Mark(at))
}

func appendLargeAnnotations(dst []byte, d *Delivery, s *storedParts, values int) []byte {
	at := len(dst)
	dst = append(AppendDescriptor(dst, DescriptorMessageAnnotations), byte(CodeMap32))
	dst = append(dst, eight+eventTemplate...)
	dst = appendEventEntries(dst, at+largeHead, d, s)
	binary.BigEndian.PutUint32(dst[at+4:], uint32(len(dst)-at-8))
	binary.BigEndian.PutUint32(dst[at+8:], uint32(values))
	return dst
}

// appendEventEntries fills in the template at an offset, and goes on behind it.
func appendEventEntries(dst []byte, at int, d *Delivery, s *storedParts) []byte {
	entries := dst[at:]
	putEight(entries, len(eventSequence), d.Sequence)
	putEight(entries, len(eventTime), d.EnqueuedTime)
	dst = appendDecimal(dst, d.Sequence)
	if d.Key != nil {
		dst = append(dst, keyName...)
		dst = append(appendLength(dst, CodeString8, CodeString32, len(d.Key)), d.Key...)
	}
	return append(dst, s.foreign...)
}

// putEight sets the number that ends at an offset.
func putEight(b []byte, end int, v int64) { binary.BigEndian.PutUint64(b[end-8:], uint64(v)) }

// appendDecimal writes a string of digits.
func appendDecimal(dst []byte, v int64) []byte {
	at := len(dst)
	dst = strconv.AppendInt(append(dst, byte(CodeString8), 0), v, 10)
	dst[at+1] = byte(len(dst) - at - 2)
	return dst
}
