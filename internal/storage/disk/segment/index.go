package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sort"
)

// IndexEvery is how many bytes of batches lie between two index entries, at least.
const IndexEvery = 64 << 10

const (
	indexMagic   = "EVYARDX1"
	entryBytes   = 24
	trailerBytes = 64
	maxEntries   = 1 << 24
)

// ErrNoTrailer: the file was not sealed; only a scan tells what it holds.
var ErrNoTrailer = errors.New("segment is not sealed")

// Entry points at the batch at Offset, which begins with event First at Time.
type Entry struct {
	First, Time, Offset int64
}

// Index points sparsely into a segment, in order.
type Index []Entry

// Add notes a batch if the last entry is far enough behind.
func (x Index) Add(e Entry) Index {
	if len(x) > 0 && e.Offset-x[len(x)-1].Offset < IndexEvery {
		return x
	}
	return append(x, e)
}

// Sequence finds the offset from which a search for an event's number begins.
func (x Index) Sequence(first int64) int64 {
	return x.before(sort.Search(len(x), func(i int) bool { return x[i].First > first }))
}

// Time finds the offset from which a search for the first event of that time or
// later begins. Batches of equal time may stand before an entry, hence the strict order.
func (x Index) Time(ms int64) int64 {
	return x.before(sort.Search(len(x), func(i int) bool { return x[i].Time >= ms }))
}

func (x Index) before(i int) int64 {
	if i == 0 {
		return HeaderBytes
	}
	return x[i-1].Offset
}

// Tail says where a segment's batches end.
type Tail struct {
	// Offset is where the next batch would stand, Next the number of its first event.
	Offset, Next int64
	// LastTime is the enqueued time of the newest event, or the header's BaseTime.
	LastTime int64
}

// Trailer is what a sealed file ends with.
type Trailer struct {
	Tail
	Index Index
	// Durable says that all before the index was on disk when it was written. What older versions
	// sealed does not say so.
	Durable bool
}

const flagDurable = 1

// AppendTrailer encodes the index and the trailer, to be written at t.Offset; the
// file ends with them.
func AppendTrailer(dst []byte, salt uint64, t Trailer) []byte {
	var flags uint64
	if t.Durable {
		flags = flagDurable
	}
	start := len(dst)
	for _, e := range t.Index {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(e.First))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(e.Time))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(e.Offset))
	}
	dst = append(dst, indexMagic...)
	dst = binary.LittleEndian.AppendUint64(dst, salt)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(t.Offset))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(t.Next))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(t.LastTime))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(t.Index)))
	dst = binary.LittleEndian.AppendUint64(dst, flags)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// ReadTrailer reads a sealed file's trailer and index and checks their sum.
func ReadTrailer(f io.ReaderAt, salt uint64, size int64) (Trailer, error) {
	t, entries, err := readTrailer(f, salt, size)
	if err != nil {
		return Trailer{}, err
	}
	b := make([]byte, entries*entryBytes+trailerBytes)
	if _, err := f.ReadAt(b, t.Offset); err != nil {
		return Trailer{}, fmt.Errorf("read index: %w", err)
	}
	if crc32.Checksum(b[:len(b)-4], castagnoli) != binary.LittleEndian.Uint32(b[len(b)-4:]) {
		return Trailer{}, ErrNoTrailer
	}
	t.Index = make(Index, entries)
	for i := range t.Index {
		e := b[i*entryBytes:]
		t.Index[i] = Entry{
			First:  int64(binary.LittleEndian.Uint64(e)),
			Time:   int64(binary.LittleEndian.Uint64(e[8:])),
			Offset: int64(binary.LittleEndian.Uint64(e[16:])),
		}
	}
	return t, nil
}

// readTrailer trusts only what fits the file's size and salt.
func readTrailer(f io.ReaderAt, salt uint64, size int64) (Trailer, int, error) {
	if size < HeaderBytes+trailerBytes {
		return Trailer{}, 0, ErrNoTrailer
	}
	var b [trailerBytes]byte
	if _, err := f.ReadAt(b[:], size-trailerBytes); err != nil {
		return Trailer{}, 0, fmt.Errorf("read trailer: %w", err)
	}
	t := Trailer{Tail: Tail{
		Offset:   int64(binary.LittleEndian.Uint64(b[16:])),
		Next:     int64(binary.LittleEndian.Uint64(b[24:])),
		LastTime: int64(binary.LittleEndian.Uint64(b[32:])),
	}, Durable: binary.LittleEndian.Uint64(b[48:])&flagDurable != 0}
	entries := binary.LittleEndian.Uint64(b[40:])
	if string(b[:8]) != indexMagic || binary.LittleEndian.Uint64(b[8:]) != salt || entries > maxEntries ||
		t.Offset < HeaderBytes || t.Offset+int64(entries)*entryBytes+trailerBytes != size {
		return Trailer{}, 0, ErrNoTrailer
	}
	return t, int(entries), nil
}
