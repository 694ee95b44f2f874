package wire

import (
	"encoding/binary"
	"math"
)

// Lists, maps and arrays state their size in front of elements whose size is known only when they
// are written. So Begin reserves room for the large form, the caller appends the elements, and End
// fills in what is now known, moving the elements up when the small form will do (at most 254 bytes
// to move). Marks nest: closing an inner value moves only bytes behind every outer mark.
//
//	dst, list := wire.BeginList(dst)
//	dst = wire.AppendString(dst, "a")
//	dst = wire.AppendNull(dst)
//	dst = wire.EndList(dst, list, 2)

// Mark remembers where an open list, map or array begins.
type Mark int

// compoundHead is the room of the large form: constructor, size, count.
const compoundHead = 9

func begin(dst []byte) ([]byte, Mark) {
	return append(dst, 0, 0, 0, 0, 0, 0, 0, 0, 0), Mark(len(dst))
}

// BeginList opens a list.
func BeginList(dst []byte) ([]byte, Mark) { return begin(dst) }

// EndList closes a list of count elements. An empty one is written as list8, never as
// list0: the Python client misreads list0 where it expects the fields of a performative.
func EndList(dst []byte, m Mark, count int) []byte { return end(dst, m, count, CodeList8, CodeList32) }

// BeginMap opens a map.
func BeginMap(dst []byte) ([]byte, Mark) { return begin(dst) }

// EndMap closes a map of so many pairs.
func EndMap(dst []byte, m Mark, pairs int) []byte { return end(dst, m, 2*pairs, CodeMap8, CodeMap32) }

// BeginArray opens an array. What follows are elements without constructors, each in
// exactly the encoding that the one given here asks for.
func BeginArray(dst []byte, of Code) ([]byte, Mark) {
	dst, m := begin(dst)
	return append(dst, byte(of)), m
}

// EndArray closes an array of count elements.
func EndArray(dst []byte, m Mark, count int) []byte {
	return end(dst, m, count, CodeArray8, CodeArray32)
}

func end(dst []byte, m Mark, count int, small, large Code) []byte {
	at := int(m)
	body := len(dst) - at - compoundHead
	if body+1 <= math.MaxUint8 && count <= math.MaxUint8 {
		dst[at] = byte(small)
		dst[at+1] = byte(body + 1) // the size counts the count's own byte
		dst[at+2] = byte(count)
		copy(dst[at+3:], dst[at+compoundHead:])
		return dst[:at+3+body]
	}
	dst[at] = byte(large)
	binary.BigEndian.PutUint32(dst[at+1:], uint32(body+4))
	binary.BigEndian.PutUint32(dst[at+5:], uint32(count))
	return dst
}
