package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// MaxUnpackedBytes is the most that the records of a batch may measure when they are unpacked.
const MaxUnpackedBytes = 32 << 20

// codec is how the records of a batch are packed.
type codec uint8

const (
	codecNone codec = iota
	codecGzip
	codecSnappy
	codecLZ4
	codecZstd
)

// unpack gives the records of a batch as they were before they were packed. They are packed itself, or the
// workspace's.
func (w *workspace) unpack(c codec, packed []byte) ([]byte, error) {
	var err error
	switch c {
	case codecNone:
		return packed, nil
	case codecGzip:
		w.packed.Reset(packed)
		if err = w.gzip.Reset(&w.packed); err == nil {
			w.unpacked, err = readAll(w.unpacked[:0], &w.gzip)
		}
	case codecSnappy:
		w.unpacked, err = unpackSnappy(w.unpacked[:0], packed)
	case codecLZ4:
		// A new reader each time: one that is reset keeps its window, and what another producer has sent
		// must never be what a match refers to.
		w.packed.Reset(packed)
		w.unpacked, err = readAll(w.unpacked[:0], lz4.NewReader(&w.packed))
	case codecZstd:
		w.unpacked, err = unpackZstd(w.unpacked[:0], packed)
	default:
		return nil, fmt.Errorf("%w: codec %d", ErrCompression, c)
	}
	switch {
	case errors.Is(err, ErrTooLarge):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: its records cannot be unpacked: %v", ErrInvalid, err)
	}
	return w.unpacked, nil
}

var errUnpacked = fmt.Errorf("%w: unpacked, its records have at most %d bytes", ErrTooLarge, MaxUnpackedBytes)

// readAll appends all that a reader gives, unless that is too much.
func readAll(dst []byte, r io.Reader) ([]byte, error) {
	for len(dst) <= MaxUnpackedBytes {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, min(max(len(dst), 64<<10), MaxUnpackedBytes+1-len(dst)))
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return dst, err
		}
	}
	if len(dst) > MaxUnpackedBytes {
		return dst, errUnpacked
	}
	return dst, nil
}

// Snappy is a format of single blocks. Java's clients write several of them in a framing of their own, which
// begins with a mark and two numbers of its version; others write one block and nothing else.
const (
	xerialMark      = "\x82SNAPPY\x00"
	xerialHeadBytes = len(xerialMark) + 4 + 4
	// snappyRatio: a block of snappy never holds more than so many times its length.
	snappyRatio = 32
)

var errSnappy = errors.New("a block of snappy is cut off, or claims more than it can hold")

func unpackSnappy(dst, packed []byte) (_ []byte, err error) {
	if !bytes.HasPrefix(packed, []byte(xerialMark)) {
		return appendSnappy(dst, packed)
	}
	if len(packed) < xerialHeadBytes {
		return dst, errSnappy
	}
	for left := packed[xerialHeadBytes:]; len(left) > 0; {
		if len(left) < 4 || uint64(binary.BigEndian.Uint32(left)) > uint64(len(left)-4) {
			return dst, errSnappy
		}
		end := 4 + int(binary.BigEndian.Uint32(left))
		if dst, err = appendSnappy(dst, left[4:end]); err != nil {
			return dst, err
		}
		left = left[end:]
	}
	return dst, nil
}

// appendSnappy is strict: what only newer dialects of snappy allow, consumers could not read.
func appendSnappy(dst, block []byte) ([]byte, error) {
	n, err := snappy.DecodedLen(block)
	switch {
	case err != nil:
		return dst, err
	case n > snappyRatio*len(block):
		return dst, errSnappy
	case n > MaxUnpackedBytes-len(dst):
		return dst, errUnpacked
	}
	dst = slices.Grow(dst, n)
	end := len(dst) + n
	if _, err := snappy.DecodeStrict(dst[len(dst):end:end], block); err != nil {
		return dst, err
	}
	return dst[:end], nil
}

// unzstd is made at the start, and not when it is needed: what is made in a bubble of testing/synctest
// cannot be used outside.
var unzstd = newZstd()

func newZstd() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(cap(workspaces)), zstd.WithDecoderMaxMemory(MaxUnpackedBytes), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return d
}

// The beginning of a frame of zstd: a mark, a descriptor, and the window, unless the descriptor has the bit of
// a single segment. The window is 2 to the power of ten and the upper five bits.
const (
	zstdMark          = "\x28\xb5\x2f\xfd"
	zstdDescriptorAt  = 4
	zstdWindowAt      = 5
	zstdSingleSegment = 1 << 5
	zstdLargestWindow = (25 - 10) << 3 // MaxUnpackedBytes
)

func unpackZstd(dst, packed []byte) ([]byte, error) {
	out, err := unzstd.DecodeAll(packed, dst)
	if errors.Is(err, zstd.ErrWindowSizeExceeded) && hasWindow(packed) {
		// The highest levels reserve a window larger than all that we unpack, and cannot need it.
		narrow := bytes.Clone(packed)
		narrow[zstdWindowAt] = zstdLargestWindow
		out, err = unzstd.DecodeAll(narrow, dst)
	}
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || len(out) > MaxUnpackedBytes {
		return dst, errUnpacked
	}
	return out, err
}

func hasWindow(packed []byte) bool {
	return len(packed) > zstdWindowAt && bytes.HasPrefix(packed, []byte(zstdMark)) && packed[zstdDescriptorAt]&zstdSingleSegment == 0
}
