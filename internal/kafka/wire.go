package kafka

import "encoding/binary"

// What a request is made of on the wire. Newer versions of requests are "flexible" (KIP-482): lengths
// are varints that are one too high, with zero for null, and structures end with tagged fields.

func (b *cut) int16() int16 { return int16(binary.BigEndian.Uint16(b.next(2))) }

func (b *cut) int32() int32 { return int32(binary.BigEndian.Uint32(b.next(4))) }

func (b *cut) uvarint() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := b.next(1)[0]
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v > 1<<32-1 {
				break
			}
			return uint32(v)
		}
	}
	b.fail(errMalformed)
	return 0
}

// length is that of an array, or of bytes; -1 for null. It is at most what is left.
func (b *cut) length(flexible bool) int {
	var n int
	if flexible {
		n = int(b.uvarint()) - 1
	} else {
		n = int(b.int32())
	}
	if b.err != nil {
		return -1
	}
	if n < -1 || n > b.left {
		b.fail(errMalformed)
		return -1
	}
	return n
}

// text is a string, nil for null.
func (b *cut) text(flexible bool) *string {
	var n int
	if flexible {
		n = int(b.uvarint()) - 1
	} else {
		n = int(b.int16())
	}
	if b.err != nil || n == -1 {
		return nil
	}
	if n < 0 || n > maxTextBytes || n > b.left {
		b.fail(errMalformed)
		return nil
	}
	var s string
	if n <= smallReadBytes {
		s = string(b.next(n))
	} else {
		p := make([]byte, n)
		b.full(p)
		s = string(p)
	}
	return &s
}

// tags passes over tagged fields.
func (b *cut) tags() {
	n := b.uvarint()
	if n > maxTags {
		b.fail(errMalformed)
	}
	for ; n > 0 && b.err == nil; n-- {
		b.uvarint()
		size := int(b.uvarint())
		if size > b.left {
			b.fail(errMalformed)
			return
		}
		for size > 0 && b.err == nil {
			part := min(size, smallReadBytes)
			b.next(part)
			size -= part
		}
	}
}
