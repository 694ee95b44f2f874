package archive

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"reflect"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Reader reads an archive from its beginning to its end, and checks all of it: each record's checksum,
// each item's hash, and that the list at the end is of what came before. It is used by one goroutine.
type Reader struct {
	Head   Head
	in     *bufio.Reader
	offset int64
	buf    []byte
	events []eventlog.Event

	item   *Item // under way; nil: none
	sum    hash.Hash
	seen   []Item
	listAt int64 // where the list began; 0: not yet
	listed int   // how many of seen were confirmed by the list
}

// Part is what comes next: the beginning of an item, one of its entries, runs or pieces, or its end. One
// field is set.
type Part struct {
	Begin *Item
	Entry *meta.Entry
	Run   *eventlog.Run
	Piece []byte
	End   *Item
}

// NewReader reads the head. Errors: ErrForeign, ErrNewer, ErrUnfinished, ErrDamaged, or that of in.
func NewReader(in io.Reader) (*Reader, error) {
	r := &Reader{in: bufio.NewReaderSize(in, 64<<10), sum: sha256.New()}
	var begin [len(magic)]byte
	n, err := io.ReadFull(r.in, begin[:])
	switch {
	case n > 0 && string(begin[:n]) != magic[:n]:
		return nil, ErrForeign
	case err != nil:
		return nil, ended(err)
	}
	r.offset = int64(len(magic))
	kind, payload, err := r.record()
	if err != nil {
		return nil, err
	}
	if kind != kindHead {
		return nil, fmt.Errorf("%w: it does not begin with a head", ErrDamaged)
	}
	r.Head, err = parseHead(payload)
	return r, err
}

func parseHead(payload []byte) (Head, error) {
	var head Head
	if err := json.Unmarshal(payload, &head); err != nil || head.Format < 1 {
		return head, fmt.Errorf("%w: its head cannot be read", ErrDamaged)
	}
	if head.Format > Format {
		return head, fmt.Errorf("%w: it has format %d, written by %s; this program knows formats up to %d", ErrNewer, head.Format, head.Program, Format)
	}
	return head, nil
}

// Offset is how many bytes were read.
func (r *Reader) Offset() int64 { return r.offset }

// Items are those that were read to their end.
func (r *Reader) Items() []Item { return r.seen }

// Next gives what comes next, which stays valid until the next call. At the end of an archive that is
// whole it gives io.EOF. Other errors: ErrUnfinished, ErrDamaged, ErrFailed, or that of the reader.
func (r *Reader) Next() (Part, error) {
	for {
		kind, payload, err := r.record()
		if err != nil {
			return Part{}, err
		}
		switch kind {
		case kindList:
			err = r.confirm(payload)
		case kindFailure:
			var f failure
			_ = json.Unmarshal(payload, &f) // without a reason it has failed, too
			return Part{}, fmt.Errorf("%w: %s", ErrFailed, f.Reason)
		case kindFooter:
			return Part{}, r.end(payload)
		default:
			return r.part(kind, payload)
		}
		if err != nil {
			return Part{}, err
		}
	}
}

// part reads what is no part of the list.
func (r *Reader) part(kind byte, payload []byte) (Part, error) {
	inside := kind != kindBegin
	if r.listAt > 0 || inside != (r.item != nil) {
		return Part{}, r.damaged("a record stands where it cannot")
	}
	switch kind {
	case kindBegin:
		var item Item
		if err := json.Unmarshal(payload, &item); err != nil {
			return Part{}, r.damaged("a part cannot be read")
		}
		if err := item.check(); err != nil {
			return Part{}, err
		}
		r.item = &item
		r.sum.Reset()
		return Part{Begin: &item}, nil
	case kindEnd:
		return r.endItem(payload)
	}
	r.sum.Write(payload)
	switch of := r.item.Type; {
	case kind == kindEntry && of == TypeEntries:
		e, err := parseEntry(payload)
		return Part{Entry: &e}, err
	case kind == kindRun && of == TypePartition:
		run, err := parseRun(payload, r.events)
		if cap(run.Events) > cap(r.events) {
			r.events = run.Events
		}
		return Part{Run: &run}, err
	case kind == kindPiece && (of == TypeBody || of == TypeFile):
		return Part{Piece: payload}, nil
	}
	return Part{}, r.damaged("a record does not belong to its part")
}

func (r *Reader) endItem(payload []byte) (Part, error) {
	var item Item
	if err := json.Unmarshal(payload, &item); err != nil || !item.same(*r.item) {
		return Part{}, r.damaged("a part does not end as it began")
	}
	if err := item.check(); err != nil {
		return Part{}, err
	}
	if item.SHA256 != hex.EncodeToString(r.sum.Sum(nil)) {
		return Part{}, r.damaged(item.ID() + " has another hash than was written")
	}
	r.item = nil
	r.seen = append(r.seen, item)
	return Part{End: &item}, nil
}

// confirm compares a piece of the list with what was read.
func (r *Reader) confirm(payload []byte) error {
	if r.item != nil {
		return r.damaged("the list begins inside a part")
	}
	if r.listAt == 0 {
		r.listAt = r.offset - int64(headBytes+len(payload)+sumBytes)
	}
	var items []Item
	if err := json.Unmarshal(payload, &items); err != nil || len(items) > len(r.seen)-r.listed {
		return r.damaged("the list is not of what it follows")
	}
	for _, item := range items {
		if !reflect.DeepEqual(item, r.seen[r.listed]) {
			return r.damaged("the list has another " + item.ID())
		}
		r.listed++
	}
	return nil
}

// end wants nothing to be missing, and nothing to follow.
func (r *Reader) end(footer []byte) error {
	list, ok := parseFooter(footer)
	if r.listAt == 0 {
		r.listAt = list // there is nothing in it
	}
	if !ok || r.item != nil || r.listed != len(r.seen) || list != r.listAt {
		return r.damaged("its end does not fit")
	}
	if _, err := r.in.ReadByte(); err == nil {
		return r.damaged("something follows its end")
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return io.EOF
}

func (r *Reader) damaged(what string) error {
	return fmt.Errorf("%w near byte %d: %s", ErrDamaged, r.offset, what)
}

// record reads one. The payload is valid until the next.
func (r *Reader) record() (kind byte, payload []byte, err error) {
	var head [headBytes]byte
	if head[0], err = r.in.ReadByte(); err != nil {
		return 0, nil, ended(err)
	}
	if head[0] == kindFooter {
		payload, err = r.take(footerBytes)
		r.offset += int64(1 + footerBytes)
		return kindFooter, payload, err
	}
	if _, err := io.ReadFull(r.in, head[1:]); err != nil {
		return 0, nil, ended(err)
	}
	n := int(binary.BigEndian.Uint32(head[1:]))
	if n > maxPayload {
		return 0, nil, r.damaged("a record is longer than any")
	}
	whole, err := r.take(n + sumBytes)
	if err != nil {
		return 0, nil, err
	}
	payload = whole[:n:n]
	if crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, payload) != binary.BigEndian.Uint32(whole[n:]) {
		return 0, nil, r.damaged("a checksum is wrong")
	}
	r.offset += int64(headBytes + n + sumBytes)
	return head[0], payload, nil
}

// take reads so many bytes. It trusts no length: memory grows with what is there.
func (r *Reader) take(n int) ([]byte, error) {
	if cap(r.buf) > 2*pieceBytes && n <= pieceBytes {
		r.buf = nil
	}
	r.buf = r.buf[:0]
	for len(r.buf) < n {
		step := min(n-len(r.buf), max(len(r.buf), pieceBytes))
		at := len(r.buf)
		r.buf = append(r.buf, make([]byte, step)...)
		if _, err := io.ReadFull(r.in, r.buf[at:]); err != nil {
			return nil, ended(err)
		}
	}
	return r.buf, nil
}

// ended tells an end that came too early.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrUnfinished
	}
	return err
}

// ReadList reads only the head and the list of an archive of a length, so that who restores it knows
// what comes before it does. Errors: as of Reader. What comes is still to be checked.
func ReadList(in io.ReaderAt, bytes int64) (Head, []Item, error) {
	r, err := NewReader(io.NewSectionReader(in, 0, bytes))
	if err != nil {
		return Head{}, nil, err
	}
	var footer [footerBytes]byte
	if _, err := in.ReadAt(footer[:], max(bytes-int64(footerBytes), 0)); err != nil && !errors.Is(err, io.EOF) {
		return r.Head, nil, err
	}
	at, ok := parseFooter(footer[:])
	if !ok || at >= bytes {
		return r.Head, nil, ErrUnfinished
	}
	list := &Reader{in: bufio.NewReader(io.NewSectionReader(in, at, bytes-at)), offset: at}
	var items []Item
	for {
		kind, payload, err := list.record()
		var some []Item
		switch {
		case err != nil:
			return r.Head, nil, err
		case kind == kindFooter:
			return r.Head, items, nil
		case kind != kindList || json.Unmarshal(payload, &some) != nil:
			return r.Head, nil, list.damaged("there is no list where the end says")
		}
		for _, item := range some {
			if err := item.check(); err != nil {
				return r.Head, nil, err
			}
		}
		items = append(items, some...)
	}
}
