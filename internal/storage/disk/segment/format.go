// Package segment is one file format: a header, batches behind each other, and, once
// the file is full, an index and a trailer. It appends nothing and opens nothing by
// itself: it encodes, decodes, checks and finds, over bytes and over a vfs.File.
//
// docs/internals/format/segment.md has the picture. What matters most:
//
//   - Each segment has a random salt, repeated in each of its batches, so that the bytes
//     of an earlier life of a recycled file are never taken for this one's.
//   - Each batch says how far the file was known to be durable when it was written. So
//     damage in durable bytes (bit rot) can be told from an append that power loss cut
//     short: the former has a later batch that vouches for it.
package segment

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// Sizes of the fixed parts. Batches begin at multiples of Align.
const (
	HeaderBytes      = 64
	BatchHeaderBytes = 64
	FormHeaderBytes  = 72 // of a batch in a form of its own
	Align            = 8
)

const (
	fileMagic  = "EVYARDS1"
	batchMagic = 0x31425945 // "EYB1"
	formMagic  = 0x32425945 // "EYB2"
)

// ErrHeader: the file does not begin with a segment header.
var ErrHeader = errors.New("no segment header")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Head is what a segment's first bytes say.
type Head struct {
	// Salt is random and never zero.
	Salt uint64
	// Base is the number of the first event.
	Base int64
	// BaseTime is the enqueued time, in milliseconds, of the last event before the
	// segment; zero if there is none.
	BaseTime int64
}

// AppendHead encodes a file header of HeaderBytes.
func AppendHead(dst []byte, h Head) []byte {
	var b [HeaderBytes]byte
	copy(b[:], fileMagic)
	binary.LittleEndian.PutUint64(b[16:], h.Salt)
	binary.LittleEndian.PutUint64(b[24:], uint64(h.Base))
	binary.LittleEndian.PutUint64(b[32:], uint64(h.BaseTime))
	binary.LittleEndian.PutUint32(b[8:], headSum(b[:]))
	return append(dst, b[:]...)
}

// ParseHead decodes a file header.
func ParseHead(b []byte) (Head, error) {
	if len(b) < HeaderBytes || string(b[:8]) != fileMagic || binary.LittleEndian.Uint32(b[8:]) != headSum(b) {
		return Head{}, ErrHeader
	}
	return Head{
		Salt:     binary.LittleEndian.Uint64(b[16:]),
		Base:     int64(binary.LittleEndian.Uint64(b[24:])),
		BaseTime: int64(binary.LittleEndian.Uint64(b[32:])),
	}, nil
}

// headSum covers all of the header but the sum itself.
func headSum(b []byte) uint32 {
	sum := crc32.Update(0, castagnoli, b[:8])
	return crc32.Update(sum, castagnoli, b[12:HeaderBytes])
}
