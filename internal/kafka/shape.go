package kafka

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A shape is how the body of a request lies on the wire. Package kmsg decodes requests, but believes what
// they say: of an array it allocates up to as many elements as there are bytes left, and it goes through as
// many tagged fields as are announced, be it four billion of none. So a request's counts are held against
// its bytes first. What this finds good kmsg decodes in bounded time, and in about as much memory as measure
// says.
type shape []field

// field is one field of a structure.
type field struct {
	kind kind
	// size is that of a fixed field, in bytes.
	size int
	// from and to are the versions that have it.
	from, to int16
	// of is an array's element, or an optional structure. plain: the elements are values, which have no
	// tagged fields.
	of    shape
	plain bool
}

type kind uint8

const (
	fixed kind = iota
	text
	blob
	array
	// optional is a structure behind a byte that says whether it is there.
	optional
	// refused is no field: a tagged field of that number, which has a structure of its own and which only
	// servers send.
	refused
)

func ofBytes(n int) field { return field{kind: fixed, size: n, to: never} }

var (
	i8, i16, i32, i64, uuid = ofBytes(1), ofBytes(2), ofBytes(4), ofBytes(8), ofBytes(16)
	str                     = field{kind: text, to: never}
	raw                     = field{kind: blob, to: never}
)

// list is an array of structures, and plain one of values.
func list(of ...field) field { return field{kind: array, to: never, of: of} }

func plain(of field) field { return field{kind: array, to: never, of: shape{of}, plain: true} }

func maybe(of ...field) field { return field{kind: optional, to: never, of: of} }

func noTag(number int) field { return field{kind: refused, size: number, to: never} }

// since and until bound the versions that have a field.
func since(version int16, f field) field {
	f.from = version
	return f
}

func until(version int16, f field) field {
	f.to = version
	return f
}

// What a structure takes in memory, at most: of each field, and of a tagged field that is not known.
const (
	fieldBytes = 32
	tagBytes   = 320
)

// walk goes through a body.
type walk struct {
	body     []byte
	version  int16
	flexible bool
	cost     int
	bad      bool
}

// measure gives about how many bytes a body takes when it is decoded; false: it is none of that shape.
// What follows behind is ignored, as Kafka does.
func (s shape) measure(body []byte, version int16, flexible bool) (bytes int, ok bool) {
	w := walk{body: body, version: version, flexible: flexible}
	w.structure(s)
	return w.cost, !w.bad
}

func (w *walk) structure(s shape) {
	w.cost += fieldBytes * (len(s) + 1)
	no := -1
	for _, f := range s {
		if f.kind == refused {
			no = f.size
		} else if w.version >= f.from && w.version <= f.to {
			w.field(f)
		}
	}
	if w.flexible {
		w.tags(no)
	}
}

func (w *walk) field(f field) {
	switch f.kind {
	case fixed:
		w.skip(f.size)
	case text:
		n := w.length(2)
		w.cost += max(n, 0)
		w.skip(max(n, 0))
	case blob:
		w.skip(max(w.length(4), 0))
	case optional:
		if int8(w.skip(1)[0]) != -1 {
			w.structure(f.of)
		}
	case array:
		for n := w.length(4); n > 0 && !w.bad; n-- {
			if f.plain {
				w.cost += fieldBytes
				w.field(f.of[0])
			} else {
				w.structure(f.of)
			}
		}
	}
}

// tags goes through the tagged fields of a structure. There must be none of that number.
func (w *walk) tags(no int) {
	n := w.uvarint()
	if n > maxTags {
		w.bad = true
	}
	for ; n > 0 && !w.bad; n-- {
		if w.uvarint() == no {
			w.bad = true
		}
		w.cost += tagBytes
		w.skip(w.uvarint())
	}
}

// length is that of an array, a string or bytes, whose length has so many bytes where it is not compact;
// negative for null.
func (w *walk) length(bytes int) int {
	if w.flexible {
		return w.uvarint() - 1
	}
	p := w.skip(bytes)
	if bytes == 2 {
		return int(int16(binary.BigEndian.Uint16(p)))
	}
	return int(int32(binary.BigEndian.Uint32(p)))
}

func (w *walk) uvarint() int {
	v, n := binary.Uvarint(w.body)
	if n <= 0 || n > 5 || v > 1<<32-1 {
		w.bad = true
		return 0
	}
	w.body = w.body[n:]
	return int(v)
}

var zeros [16]byte

// skip passes over bytes, and gives them.
func (w *walk) skip(n int) []byte {
	if n > len(w.body) {
		w.bad = true
	}
	if w.bad {
		return zeros[:min(n, len(zeros))]
	}
	p := w.body[:n]
	w.body = w.body[n:]
	return p
}

// decode decodes a body, for which there has to be memory: take is asked for as much as it will be.
func decode(o Offer, version int16, body []byte, take func(bytes int) error) (kmsg.Request, error) {
	s, ok := shapes[o.Key]
	if !ok {
		return nil, errKey
	}
	bytes, ok := s.measure(body, version, version >= o.Flexible)
	if !ok {
		return nil, errMalformed
	}
	if err := take(len(body) + bytes); err != nil {
		return nil, err
	}
	r := kmsg.RequestForKey(o.Key)
	r.SetVersion(version)
	if err := r.ReadFrom(body); err != nil {
		return nil, errMalformed
	}
	return r, nil
}
