package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// chunkBytes is how much a scan reads at once.
const chunkBytes = 256 << 10

// Scanner reads a segment's batches in order, checking each. The zero value is not
// usable; see NewScanner. It never reads at or past Limit.
type Scanner struct {
	file  io.ReaderAt
	salt  uint64
	limit int64
	// offset is where the next batch stands; buf holds the file's bytes from bufAt on.
	offset int64
	bufAt  int64
	buf    []byte
}

// NewScanner reads from offset up to limit, using buf's memory for its chunks.
func NewScanner(f io.ReaderAt, salt uint64, offset, limit int64, buf []byte) *Scanner {
	s := &Scanner{}
	s.Reset(f, salt, offset, limit, buf)
	return s
}

// Reset makes the scanner anew.
func (s *Scanner) Reset(f io.ReaderAt, salt uint64, offset, limit int64, buf []byte) {
	*s = Scanner{file: f, salt: salt, limit: limit, offset: offset, bufAt: offset, buf: buf[:0]}
}

// SetLimit moves the end, when the file has grown.
func (s *Scanner) SetLimit(limit int64) { s.limit = limit }

// Limit is where reading ends.
func (s *Scanner) Limit() int64 { return s.limit }

// Offset is where the next batch stands.
func (s *Scanner) Offset() int64 { return s.offset }

// AtEnd reports whether the limit is reached.
func (s *Scanner) AtEnd() bool { return s.offset >= s.limit }

// Release gives the chunk's memory back; the next call of Next reads anew.
func (s *Scanner) Release() []byte {
	b := s.buf
	s.buf, s.bufAt = nil, s.offset
	return b
}

// Adopt gives the scanner memory for its chunks after Release.
func (s *Scanner) Adopt(buf []byte) { s.buf, s.bufAt = buf[:0], s.offset }

// Next gives the batch at the offset and moves behind it. At the limit it answers
// io.EOF; where there is no valid batch ErrInvalid, moving nothing. The batch's body is
// valid until the next call.
func (s *Scanner) Next() (Batch, error) {
	for {
		batch, need, err := Parse(s.buf[min(int(s.offset-s.bufAt), len(s.buf)):], s.salt)
		if err == nil {
			s.offset += int64(batch.Bytes)
			return batch, nil
		}
		if !errors.Is(err, ErrShort) {
			return Batch{}, err
		}
		if s.offset >= s.limit {
			return Batch{}, io.EOF
		}
		if s.offset+int64(need) > s.limit {
			return Batch{}, ErrInvalid
		}
		if err := s.fill(need, chunkBytes); err != nil {
			return Batch{}, err
		}
	}
}

// Skim gives what the header of the batch at the offset says, and moves behind it without reading
// its body, of which it gives the length. Where it has to read it reads so many bytes ahead, for the
// headers that follow.
func (s *Scanner) Skim(ahead int) (info Info, body int, err error) {
	for {
		h, need, err := header(s.buf[min(int(s.offset-s.bufAt), len(s.buf)):], s.salt)
		if err == nil {
			if s.offset+int64(batchBytes(h)) > s.limit {
				return Info{}, 0, ErrInvalid
			}
			s.offset += int64(batchBytes(h))
			return parseInfo(h), int(binary.LittleEndian.Uint32(h[offBodyBytes:])), nil
		}
		if !errors.Is(err, ErrShort) {
			return Info{}, 0, err
		}
		if s.offset >= s.limit {
			return Info{}, 0, io.EOF
		}
		if s.offset+int64(need) > s.limit {
			return Info{}, 0, ErrInvalid
		}
		if err := s.fill(need, max(ahead, FormHeaderBytes)); err != nil {
			return Info{}, 0, err
		}
	}
}

// Ahead reads so many bytes from the offset on, as far as there are any, with one read. What goes
// wrong with it, Next meets again.
func (s *Scanner) Ahead(bytes int) {
	want := int(min(int64(bytes), s.limit-s.offset))
	if len(s.buf)-int(s.offset-s.bufAt) < want {
		_ = s.fill(want, want)
	}
}

// Held tells the length of the body of the batch at the offset if Next gives it without reading.
func (s *Scanner) Held() (body int, ok bool) {
	b := s.buf[min(int(s.offset-s.bufAt), len(s.buf)):]
	h, _, err := header(b, s.salt)
	if err != nil || len(b) < batchBytes(h) {
		return 0, false
	}
	return int(binary.LittleEndian.Uint32(h[offBodyBytes:])), true
}

// fill makes buf hold at least need bytes from offset on, reading more ahead.
func (s *Scanner) fill(need, ahead int) error {
	kept := copy(s.buf[:cap(s.buf)], s.buf[min(int(s.offset-s.bufAt), len(s.buf)):])
	want := int(min(int64(max(need, ahead)), s.limit-s.offset))
	// What a huge batch needed is not kept for small ones: readers count what they hold.
	if huge := cap(s.buf) > 4*chunkBytes && want <= chunkBytes && kept <= want; huge || cap(s.buf) < want {
		other := make([]byte, want)
		copy(other, s.buf[:kept])
		s.buf = other
	}
	s.bufAt = s.offset
	n, err := s.file.ReadAt(s.buf[kept:want], s.offset+int64(kept))
	s.buf = s.buf[:kept+n]
	if len(s.buf) >= need {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return ErrInvalid // the file ends inside the batch
	}
	return fmt.Errorf("read segment at %d: %w", s.offset+int64(kept), err)
}

// MoveTo goes to another offset.
func (s *Scanner) MoveTo(offset int64) {
	if offset < s.bufAt || offset > s.bufAt+int64(len(s.buf)) {
		s.buf, s.bufAt = s.buf[:0], offset
	}
	s.offset = offset
}

// Resync finds the first valid batch of the segment at or behind offset and below
// limit. It answers io.EOF where there is none.
func Resync(f io.ReaderAt, salt uint64, offset, limit int64) (Batch, int64, error) {
	var needle [8]byte
	binary.LittleEndian.PutUint64(needle[:], salt)
	buf := make([]byte, chunkBytes)
	for at := (offset + Align - 1) &^ (Align - 1); at < limit; {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), limit-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return Batch{}, 0, fmt.Errorf("read segment at %d: %w", at, err)
		}
		for from := 0; ; {
			i := bytes.Index(buf[from:n], needle[:])
			if i < 0 {
				break
			}
			start := at + int64(from+i-offSalt)
			if start >= offset && start%Align == 0 {
				if b, err := NewScanner(f, salt, start, limit, nil).Next(); err == nil {
					return b, start, nil
				}
			}
			from += i + 1
		}
		if n < len(buf) {
			break
		}
		at += int64(n - 2*offFirst) // the salt may stand across two chunks
	}
	return Batch{}, 0, io.EOF
}

// Hole is a stretch of durable bytes that is damaged: the batches between two offsets.
type Hole struct {
	From, To int64
	// First and Next bound the numbers of the events lost in it.
	First, Next int64
}

// Found is what recovery finds in a segment that was not sealed.
type Found struct {
	Tail
	// Durable is the offset below which the batches themselves prove that all was
	// durable: the newest one says so.
	Durable int64
	Index   Index
	Holes   []Hole
	// whole is an offset up to which all had been written, as a trailer says.
	whole int64
}

// Recover reads a segment that was not sealed, from its header to where its batches
// end: the first place with no valid batch, unless a later one proves that this place
// had been durable: then the damage is a hole and the scan goes on behind it. A batch
// that does not continue the numbering ends it too. Events from stop on (a following
// segment's base; negative: none) are void and not counted.
func Recover(f io.ReaderAt, head Head, size, stop int64) (Found, error) {
	return recoverTo(f, head, size, stop, 0)
}

// RecoverSealed is Recover for a segment whose trailer does not say that all before it was durable.
// Damage is a hole if anything follows it; what is missing at the end, power loss has taken.
func RecoverSealed(f io.ReaderAt, head Head, t Trailer) (Found, error) {
	return recoverTo(f, head, t.Offset, -1, t.Offset)
}

func recoverTo(f io.ReaderAt, head Head, size, stop, whole int64) (Found, error) {
	found := Found{Tail: head.Begin(), whole: whole}
	s := NewScanner(f, head.Salt, HeaderBytes, size, make([]byte, 0, chunkBytes))
	for stop < 0 || found.Next < stop {
		at := s.Offset()
		batch, err := s.Next()
		if err == nil && batch.First != found.Next {
			err = ErrInvalid
		}
		switch {
		case err == nil:
			found.take(batch, at)
		case errors.Is(err, ErrInvalid):
			next, ok, err := found.hole(f, head.Salt, at, size)
			if err != nil || !ok {
				return found, err
			}
			s.MoveTo(next)
		case errors.Is(err, io.EOF):
			return found, nil
		default:
			return found, err
		}
	}
	return found, nil
}

func (f *Found) take(b Batch, at int64) {
	f.Offset = at
	f.Index = f.Tail.Take(f.Index, b.Info, int64(b.Bytes))
	f.Durable = max(f.Durable, b.DurableTo(at))
}

// hole looks behind an invalid place for a batch that vouches for it, which need not be the
// first valid one: those written together with the damaged bytes say nothing of them.
func (f *Found) hole(file io.ReaderAt, salt uint64, at, size int64) (next int64, ok bool, err error) {
	s := NewScanner(file, salt, at, size, nil)
	var first *Batch // behind the damage
	for {
		offset := s.Offset()
		batch, err := s.Next()
		switch {
		case errors.Is(err, io.EOF):
			return 0, false, nil
		case errors.Is(err, ErrInvalid):
			_, offset, err := Resync(file, salt, offset+1, size)
			if errors.Is(err, io.EOF) {
				return 0, false, nil
			}
			if err != nil {
				return 0, false, err
			}
			s.MoveTo(offset)
			continue
		case err != nil:
			return 0, false, err
		}
		if batch.First < f.Next {
			continue
		}
		if first == nil {
			first, next = &batch, offset
		}
		if batch.DurableTo(offset) > at || f.whole > at {
			f.Holes = append(f.Holes, Hole{From: at, To: next, First: f.Next, Next: first.First})
			f.Next, f.Offset = first.First, next
			return next, true, nil
		}
	}
}

// SalvageHead rebuilds the header of a file whose header is damaged from any batch that is
// intact and can be of the segment that the file's name says.
func SalvageHead(f io.ReaderAt, base, size int64) (Head, bool) {
	buf := make([]byte, FormHeaderBytes)
	for at := int64(HeaderBytes); at+BatchHeaderBytes <= size; at += Align {
		h := buf[:min(FormHeaderBytes, size-at)]
		if _, err := f.ReadAt(h, at); err != nil {
			return Head{}, false
		}
		if !isHeader(h) {
			continue
		}
		b, err := NewScanner(f, saltOf(h), at, size, nil).Next()
		if err != nil || saltOf(h) == 0 || b.First < base || at == HeaderBytes && b.First != base {
			continue
		}
		return Head{Salt: saltOf(h), Base: base}, true
	}
	return Head{}, false
}
