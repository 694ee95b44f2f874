package record

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

const (
	// MaxBatchBytes is the most that a batch may measure, and a record of it when it is unpacked. So a reader
	// of single events, who has the frame and a part of its events, holds no more than eventlog.MaxHeldBytes.
	MaxBatchBytes = eventlog.MaxBatchBytes / 2
	// maxHeaders is how many headers a record may have. Kafka has no bound.
	maxHeaders = 10_000
	// minRecordBytes is the shortest record: its length, and six fields of a byte each.
	minRecordBytes = 7
)

// Record is one record of a batch. What was decoded shares the batch's bytes.
type Record struct {
	// Timestamp is in milliseconds since 1970; -1 means none.
	Timestamp int64
	// Key and Value are nil where they are null, which is not the same as empty.
	Key, Value []byte
	Headers    []Header
}

// Header is one header of a record. Names need not be unique, nor text; a nil value is null.
type Header struct{ Name, Value []byte }

var (
	errLength    = fmt.Errorf("%w: its length goes beyond the batch", ErrInvalid)
	errLarge     = fmt.Errorf("%w: it may have %d bytes", ErrTooLarge, MaxBatchBytes)
	errMalformed = fmt.Errorf("%w: its fields are not what its length says, or a header has no name, or there are more than %d", ErrInvalid, maxHeaders)
	errDelta     = fmt.Errorf("%w: offset deltas are not 0, 1, 2 and so on", ErrInvalid)
	errRest      = fmt.Errorf("%w: there are bytes behind the last record", ErrInvalid)
	errCount     = fmt.Errorf("%w: there are more records than bytes for them", ErrInvalid)
)

// Each gives the records of the batch that the head is of, in order, until each is false. A record is valid
// until each returns, which must neither wait nor come back here: it has one of few workspaces.
func (h Head) Each(raw []byte, each func(i int, r *Record) bool) error {
	w := takeWorkspace()
	defer w.give()
	unpacked, err := h.unpack(w, raw)
	if err != nil {
		return err
	}
	for i := range int(h.Count) {
		if unpacked, err = h.next(&w.record, i, unpacked); err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
		if !each(i, &w.record) {
			return nil
		}
	}
	if len(unpacked) > 0 {
		return errRest
	}
	return nil
}

// part is Each from a record on, for who may come again for those behind it: then a packed batch stays open.
func (h Head) part(open *openFrames, raw []byte, from int, each func(r *Record) bool) error {
	w := takeWorkspace()
	defer w.give()
	packed := h.Attributes.codec() != codecNone
	var records []byte
	var at mark
	var err error
	if packed {
		records, at = open.find(raw, from)
	}
	if records == nil {
		if records, err = h.unpack(w, raw); err != nil {
			return err
		}
	}
	left := records[at.at:]
	for i := at.number; i < int(h.Count); i++ {
		begins := len(records) - len(left)
		if left, err = h.next(&w.record, i, left); err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
		if i < from || each(&w.record) {
			continue
		}
		if next := (mark{i, begins}); packed && !open.mark(raw, next) && open.keep(raw, records) {
			w.unpacked = nil // it is the open frame's
			open.mark(raw, next)
		}
		return nil
	}
	if packed {
		open.drop(raw)
	}
	if len(left) > 0 {
		return errRest
	}
	return nil
}

// unpack gives the batch's records as they were before they were packed.
func (h Head) unpack(w *workspace, raw []byte) ([]byte, error) {
	unpacked, err := w.unpack(h.Attributes.codec(), raw[HeadBytes:])
	if err == nil && int(h.Count) > len(unpacked)/minRecordBytes {
		err = errCount
	}
	return unpacked, err
}

// next reads the record at the beginning of left, and gives what is behind it.
func (h *Head) next(to *Record, i int, left []byte) ([]byte, error) {
	s := scanner{left: left}
	size := s.varint()
	switch {
	case s.bad || size < 0 || size > len(s.left):
		return nil, errLength
	case size > MaxBatchBytes:
		return nil, errLarge
	}
	left = s.left[size:]
	s.left = s.left[:size]
	s.byte() // attributes, which Kafka does not use
	to.Timestamp = h.BaseTimestamp + s.varlong()
	delta := s.varint()
	to.Key = s.bytes()
	to.Value = s.bytes()
	to.Headers = s.headers(to.Headers[:0])
	switch {
	case s.bad || len(s.left) > 0:
		return nil, errMalformed
	case delta != i:
		return nil, errDelta
	}
	if h.Attributes&AppendTime != 0 {
		to.Timestamp = h.MaxTimestamp
	}
	return left, nil
}

// scanner reads the fields of a record. After the first that is not there nothing is, and bad is set.
type scanner struct {
	left []byte
	bad  bool
}

func (s *scanner) fail() { s.left, s.bad = nil, true }

func (s *scanner) byte() {
	if len(s.left) == 0 {
		s.fail()
		return
	}
	s.left = s.left[1:]
}

// varint reads a number of 32 bits; most have one byte.
func (s *scanner) varint() int {
	if len(s.left) == 0 || s.left[0] >= 0x80 {
		return s.longVarint()
	}
	v := int(s.left[0])
	s.left = s.left[1:]
	return v>>1 ^ -(v & 1)
}

func (s *scanner) longVarint() int {
	v, n := binary.Uvarint(s.left)
	if n <= 0 || n > binary.MaxVarintLen32 || v > math.MaxUint32 {
		s.fail()
		return 0
	}
	s.left = s.left[n:]
	return int(int32(v>>1) ^ -int32(v&1))
}

// varlong reads a number of 64 bits.
func (s *scanner) varlong() int64 {
	v, n := binary.Varint(s.left)
	if n <= 0 {
		s.fail()
		return 0
	}
	s.left = s.left[n:]
	return v
}

// bytes reads a length and so many bytes; nil where the length is -1.
func (s *scanner) bytes() []byte {
	n := s.varint()
	if n == -1 {
		return nil
	}
	if n < 0 || n > len(s.left) {
		s.fail()
		return nil
	}
	b := s.left[:n:n]
	s.left = s.left[n:]
	return b
}

func (s *scanner) headers(to []Header) []Header {
	n := s.varint()
	if n < 0 || n > maxHeaders || 2*n > len(s.left) {
		s.fail()
		return to
	}
	for range n {
		name := s.bytes()
		if name == nil {
			s.fail()
			return to
		}
		to = append(to, Header{Name: name, Value: s.bytes()})
	}
	return to
}
