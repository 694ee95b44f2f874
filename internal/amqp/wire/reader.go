package wire

import "encoding/binary"

// MaxDepth is how deep lists, maps, arrays and described values may nest.
const MaxDepth = 32

// maxFreeElements bounds the array elements that take no bytes at all (§1.6.24 allows
// an array of nulls): nothing else keeps a count of four billion from being believed.
// It holds for a reader's whole life, so that many small arrays are no way around it.
const maxFreeElements = 1024

// Reader decodes values from a slice, one after the other. The typed reads take every
// encoding of their type and nothing else. After an error the position is undefined
// and the reader of no further use.
//
// A Reader allocates nothing but errors, strings, and what ReadAny returns. It is
// meant to live on the stack and be passed by pointer.
type Reader struct {
	buf  []byte
	off  int
	free int // array elements without bytes, seen so far
	// incoming has Skip refuse maps with keys that are no simple values.
	incoming bool
}

// NewReader reads from b, which must not change meanwhile.
func NewReader(b []byte) Reader { return Reader{buf: b} }

// Len is the number of bytes not read yet.
func (r *Reader) Len() int { return len(r.buf) - r.off }

// Offset is the number of bytes read.
func (r *Reader) Offset() int { return r.off }

// Rest is what has not been read yet. It shares the reader's bytes.
func (r *Reader) Rest() []byte { return r.buf[r.off:] }

// Peek gives the constructor of the next value without reading it.
func (r *Reader) Peek() (Code, error) {
	if r.off == len(r.buf) {
		return 0, r.fail(r.off, "value", ErrTruncated)
	}
	return Code(r.buf[r.off]), nil
}

// TryNull reads the next value if it is null, and reports whether it was.
func (r *Reader) TryNull() bool {
	if r.off < len(r.buf) && Code(r.buf[r.off]) == CodeNull {
		r.off++
		return true
	}
	return false
}

// ReadBool reads a boolean.
func (r *Reader) ReadBool() (bool, error) {
	c, err := r.code("boolean")
	if err != nil {
		return false, err
	}
	return r.bool(c)
}

// ReadUbyte reads a ubyte.
func (r *Reader) ReadUbyte() (uint8, error) {
	b, err := r.fixed(CodeUbyte, 1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// ReadUshort reads a ushort.
func (r *Reader) ReadUshort() (uint16, error) {
	b, err := r.fixed(CodeUshort, 2)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint16(b), nil
}

// ReadUint reads a uint.
func (r *Reader) ReadUint() (uint32, error) {
	c, err := r.code("uint")
	if err != nil {
		return 0, err
	}
	return r.uint(c)
}

// ReadUlong reads a ulong.
func (r *Reader) ReadUlong() (uint64, error) {
	c, err := r.code("ulong")
	if err != nil {
		return 0, err
	}
	return r.ulong(c)
}

// ReadShort reads a short.
func (r *Reader) ReadShort() (int16, error) {
	b, err := r.fixed(CodeShort, 2)
	if err != nil {
		return 0, err
	}
	return int16(binary.BigEndian.Uint16(b)), nil
}

// ReadInt reads an int.
func (r *Reader) ReadInt() (int32, error) {
	c, err := r.code("int")
	if err != nil {
		return 0, err
	}
	return r.int(c)
}

// ReadLong reads a long.
func (r *Reader) ReadLong() (int64, error) {
	c, err := r.code("long")
	if err != nil {
		return 0, err
	}
	return r.long(c)
}

// ReadTimestamp reads a timestamp, in milliseconds since 1970 UTC.
func (r *Reader) ReadTimestamp() (int64, error) {
	b, err := r.fixed(CodeTimestamp, 8)
	if err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64(b)), nil
}

// ReadBinary reads a binary. The result shares the reader's bytes.
func (r *Reader) ReadBinary() ([]byte, error) { return r.bytes(CodeBinary32) }

// ReadString reads a string.
func (r *Reader) ReadString() (string, error) {
	b, err := r.bytes(CodeString32)
	return string(b), err
}

// ReadStringBytes reads a string without copying: the result shares the reader's bytes.
func (r *Reader) ReadStringBytes() ([]byte, error) { return r.bytes(CodeString32) }

// ReadSymbol reads a symbol.
func (r *Reader) ReadSymbol() (Symbol, error) {
	b, err := r.bytes(CodeSymbol32)
	return Symbol(b), err
}

// ReadSymbolBytes reads a symbol without copying: the result shares the reader's bytes.
func (r *Reader) ReadSymbolBytes() ([]byte, error) { return r.bytes(CodeSymbol32) }
