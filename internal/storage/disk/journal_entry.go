package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// entry says that bytes stand at an offset of a segment.
type entry struct {
	id     eventlog.PartitionID
	base   eventlog.Sequence
	salt   uint64 // the segment's
	offset int64
	bytes  []byte
}

// An entry in a journal file, numbers little-endian; docs/internals/format/journal.md.
const (
	entryMagic       = 0x314a5945 // "EYJ1"
	entryHeaderBytes = 64
	entryAlign       = 8

	entryOffSum      = 4
	entryOffJournal  = 8
	entryOffPosition = 16
	entryOffSalt     = 24
	entryOffBase     = 32
	entryOffOffset   = 40
	entryOffBytes    = 48
	entryOffNumber   = 52
	entryOffLogBytes = 56
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendEntry encodes an entry, all but what depends on its place in a journal file.
func appendEntry(dst []byte, e entry) []byte {
	var h [entryHeaderBytes]byte
	binary.LittleEndian.PutUint32(h[0:], entryMagic)
	binary.LittleEndian.PutUint64(h[entryOffSalt:], e.salt)
	binary.LittleEndian.PutUint64(h[entryOffBase:], uint64(e.base))
	binary.LittleEndian.PutUint64(h[entryOffOffset:], uint64(e.offset))
	binary.LittleEndian.PutUint32(h[entryOffBytes:], uint32(len(e.bytes)))
	binary.LittleEndian.PutUint32(h[entryOffNumber:], uint32(e.id.Number))
	binary.LittleEndian.PutUint32(h[entryOffLogBytes:], uint32(len(e.id.Log)))
	dst = append(dst, h[:]...)
	dst = append(dst, e.id.Log...)
	dst = append(dst, e.bytes...)
	for len(dst)%entryAlign != 0 {
		dst = append(dst, 0)
	}
	return dst
}

// sealEntries makes the entries in buf, which are about to be written at offset, part of a
// journal file's life.
func sealEntries(buf []byte, journal uint64, offset int64) {
	for at := 0; at < len(buf); {
		total, unpadded := entrySize(buf[at:])
		e := buf[at : at+unpadded]
		binary.LittleEndian.PutUint64(e[entryOffJournal:], journal)
		binary.LittleEndian.PutUint64(e[entryOffPosition:], uint64(offset+int64(at)))
		binary.LittleEndian.PutUint32(e[entryOffSum:], crc32.Checksum(e[entryOffJournal:], castagnoli))
		at += total
	}
}

// entrySize is the room an entry takes, by its header, with and without padding.
func entrySize(h []byte) (total, unpadded int) {
	unpadded = entryHeaderBytes + int(binary.LittleEndian.Uint32(h[entryOffBytes:])) + int(binary.LittleEndian.Uint32(h[entryOffLogBytes:]))
	return (unpadded + entryAlign - 1) &^ (entryAlign - 1), unpadded
}

// readEntries gives the entries of a journal file's present life, which is the first
// entry's, in order, up to where there is none. What it gives is valid during the call.
func readEntries(f vfs.File, size int64, give func(entry) error) error {
	var life uint64
	var header [entryHeaderBytes]byte
	var body []byte
	for at := int64(0); at+entryHeaderBytes <= size; {
		if _, err := f.ReadAt(header[:], at); err != nil {
			return fmt.Errorf("read journal at %d: %w", at, err)
		}
		total, unpadded := entrySize(header[:])
		if binary.LittleEndian.Uint32(header[0:]) != entryMagic || unpadded < 0 || at+int64(unpadded) > size {
			return nil
		}
		if cap(body) < unpadded {
			body = make([]byte, unpadded)
		}
		body = body[:unpadded]
		if _, err := f.ReadAt(body, at); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read journal at %d: %w", at, err)
		}
		e, journal, ok := parseEntry(body, at)
		if at == 0 {
			life = journal
		}
		if !ok || journal != life {
			return nil
		}
		if err := give(e); err != nil {
			return err
		}
		at += int64(total)
	}
	return nil
}

// parseEntry decodes an entry, given whole, and checks its sum and that it is for this place.
func parseEntry(b []byte, at int64) (e entry, journal uint64, ok bool) {
	if crc32.Checksum(b[entryOffJournal:], castagnoli) != binary.LittleEndian.Uint32(b[entryOffSum:]) ||
		binary.LittleEndian.Uint64(b[entryOffPosition:]) != uint64(at) {
		return entry{}, 0, false
	}
	log := int(binary.LittleEndian.Uint32(b[entryOffLogBytes:]))
	if log > len(b)-entryHeaderBytes {
		return entry{}, 0, false
	}
	e = entry{
		id: eventlog.PartitionID{
			Log:    string(b[entryHeaderBytes : entryHeaderBytes+log]),
			Number: int(binary.LittleEndian.Uint32(b[entryOffNumber:])),
		},
		base:   eventlog.Sequence(binary.LittleEndian.Uint64(b[entryOffBase:])),
		salt:   binary.LittleEndian.Uint64(b[entryOffSalt:]),
		offset: int64(binary.LittleEndian.Uint64(b[entryOffOffset:])),
		bytes:  b[entryHeaderBytes+log:],
	}
	return e, binary.LittleEndian.Uint64(b[entryOffJournal:]), checkID(e.id) == nil && e.offset >= 0 && e.base >= 0
}
