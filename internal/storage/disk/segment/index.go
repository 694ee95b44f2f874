package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"sort"
)

// IndexEvery is how many bytes of batches lie between two index entries, at least.
const IndexEvery = 64 << 10

const (
	indexMagic   = "EVYARDX2"
	entryBytes   = 32
	trailerBytes = 72
	maxEntries   = 1 << 24

	// What older versions wrote: all times of an index were enqueued times.
	oldIndexMagic   = "EVYARDX1"
	oldEntryBytes   = 24
	oldTrailerBytes = 64
)

// NoTime stands where there is no event that could have a create time.
const NoTime = math.MinInt64

// ErrNoTrailer: the file was not sealed; only a scan tells what it holds.
var ErrNoTrailer = errors.New("segment is not sealed")

// Entry points at the batch at Offset, which begins with event First at Time. MaxTime is the
// greatest create time of all events of the segment up to and with that batch's.
type Entry struct {
	First, Time, Offset, MaxTime int64
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

// Created finds the offset from which a search for the first batch with an event created at that
// time or later begins.
func (x Index) Created(ms int64) int64 {
	return x.before(sort.Search(len(x), func(i int) bool { return x[i].MaxTime >= ms }))
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
	// MaxTime is the greatest create time of the segment's events; NoTime if it has none.
	MaxTime int64
	// Form is that of the newest batch, if FormKnown: a segment without batches does not say it, nor does one that an
	// older version sealed.
	Form      uint8
	FormKnown bool
}

// Begin is the tail of a segment without events.
func (h Head) Begin() Tail {
	return Tail{Offset: HeaderBytes, Next: h.Base, LastTime: h.BaseTime, MaxTime: NoTime}
}

// Take moves the tail and the index behind a batch that stands at the tail and takes so many bytes.
func (t *Tail) Take(x Index, info Info, bytes int64) Index {
	t.MaxTime = max(t.MaxTime, info.Created())
	x = x.Add(Entry{First: info.First, Time: info.Time, Offset: t.Offset, MaxTime: t.MaxTime})
	t.Offset, t.Next, t.LastTime = t.Offset+bytes, info.First+int64(info.Count), info.Time
	t.Form, t.FormKnown = info.Form, true
	return x
}

// Trailer is what a sealed file ends with.
type Trailer struct {
	Tail
	Index Index
	// Durable says that all before the index was on disk when it was written. What older versions
	// sealed does not say so.
	Durable bool
	// Old: it is to be written as older versions do, which know no batches in a form of their own.
	Old bool
}

// The flags of a trailer. With flagNewest, the byte from formShift on is Tail.Form.
const (
	flagDurable = 1
	flagNewest  = 2
	formShift   = 8
)

// AppendTrailer encodes the index and the trailer, to be written at t.Offset; the
// file ends with them.
func AppendTrailer(dst []byte, salt uint64, t Trailer) []byte {
	var flags uint64
	if t.Durable {
		flags = flagDurable
	}
	if t.FormKnown && !t.Old {
		flags |= flagNewest | uint64(t.Form)<<formShift
	}
	start := len(dst)
	for _, e := range t.Index {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(e.First))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(e.Time))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(e.Offset))
		if !t.Old {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(e.MaxTime))
		}
	}
	magic := indexMagic
	if t.Old {
		magic = oldIndexMagic
	}
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint64(dst, salt)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(t.Offset))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(t.Next))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(t.LastTime))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(t.Index)))
	dst = binary.LittleEndian.AppendUint64(dst, flags)
	if !t.Old {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(t.MaxTime))
	}
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// ReadTrailer reads a sealed file's trailer and index, of this version or an older one, and checks
// their sum.
func ReadTrailer(f io.ReaderAt, salt uint64, size int64) (Trailer, error) {
	t, entries, err := readTrailer(f, salt, size)
	if err != nil {
		return Trailer{}, err
	}
	b := make([]byte, size-t.Offset)
	if _, err := f.ReadAt(b, t.Offset); err != nil {
		return Trailer{}, fmt.Errorf("read index: %w", err)
	}
	if crc32.Checksum(b[:len(b)-4], castagnoli) != binary.LittleEndian.Uint32(b[len(b)-4:]) {
		return Trailer{}, ErrNoTrailer
	}
	t.Index = make(Index, entries)
	for i := range t.Index {
		t.Index[i], b = t.parseEntry(b)
	}
	return t, nil
}

// parseEntry decodes the entry at the beginning of b and gives what follows it.
func (t Trailer) parseEntry(b []byte) (Entry, []byte) {
	e := Entry{
		First:  int64(binary.LittleEndian.Uint64(b)),
		Time:   int64(binary.LittleEndian.Uint64(b[8:])),
		Offset: int64(binary.LittleEndian.Uint64(b[16:])),
	}
	if t.Old {
		e.MaxTime = e.Time
		return e, b[oldEntryBytes:]
	}
	e.MaxTime = int64(binary.LittleEndian.Uint64(b[24:]))
	return e, b[entryBytes:]
}

// readTrailer trusts only what fits the file's size and salt.
func readTrailer(f io.ReaderAt, salt uint64, size int64) (t Trailer, entries int, err error) {
	var end [trailerBytes]byte
	n := min(int64(len(end)), size-HeaderBytes)
	if n < oldTrailerBytes {
		return Trailer{}, 0, ErrNoTrailer
	}
	if _, err := f.ReadAt(end[:n], size-n); err != nil {
		return Trailer{}, 0, fmt.Errorf("read trailer: %w", err)
	}
	b, one := end[:n], int64(entryBytes)
	if n < trailerBytes || string(b[:8]) != indexMagic {
		t.Old = true
		b, one = b[n-oldTrailerBytes:], oldEntryBytes
	}
	t.Tail = Tail{
		Offset:   int64(binary.LittleEndian.Uint64(b[16:])),
		Next:     int64(binary.LittleEndian.Uint64(b[24:])),
		LastTime: int64(binary.LittleEndian.Uint64(b[32:])),
	}
	count := binary.LittleEndian.Uint64(b[40:])
	flags := binary.LittleEndian.Uint64(b[48:])
	t.Durable = flags&flagDurable != 0
	magic := oldIndexMagic
	t.MaxTime = t.LastTime
	if !t.Old {
		magic = indexMagic
		t.MaxTime = int64(binary.LittleEndian.Uint64(b[56:]))
		if t.FormKnown = flags&flagNewest != 0; t.FormKnown {
			t.Form = uint8(flags >> formShift)
		}
	}
	if string(b[:8]) != magic || binary.LittleEndian.Uint64(b[8:]) != salt || count > maxEntries ||
		t.Offset < HeaderBytes || t.Offset+int64(count)*one+int64(len(b)) != size {
		return Trailer{}, 0, ErrNoTrailer
	}
	return t, int(count), nil
}
