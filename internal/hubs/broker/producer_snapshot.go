package broker

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// snapshot is what the meta store keeps of a partition's producers: all that batches
// below upTo say of them, and maybe some of what later ones do.
//
// Its form: a byte for the version, upTo, how many producers there are, and for each its
// id (8 bytes, little-endian), then epoch, last+1 or 0 where nothing is stored, run, how
// many recent batches are known, the size of each, the newest first, and used. All numbers
// but the first byte and the ids are unsigned varints. In version 1 there is always one
// recent batch, of unknown size if that is 0, and its number is left out. In version 3 each
// size is followed by the batch's position; see appendPosition. It is written only where a position is
// known, since older programs do not read it; and not where it would be too large: positions are
// what can be done without.
type snapshot struct {
	upTo      eventlog.Sequence
	producers map[int64]record
}

const (
	sizesVersion     = 2
	positionsVersion = 3
	// maxPlacedBytes is what a snapshot with positions measures at most: an entry, and something for
	// whoever seals it.
	maxPlacedBytes = meta.MaxValueBytes - 4<<10
)

var errSnapshot = errors.New("producers are not in a form known here")

func (s snapshot) encode() []byte {
	for _, r := range s.producers {
		if !slices.ContainsFunc(r.recent[:], func(p part) bool { return p.end > 0 }) {
			continue
		}
		if b := s.encodeAs(positionsVersion); len(b) <= maxPlacedBytes {
			return b
		}
		break
	}
	return s.encodeAs(sizesVersion)
}

func (s snapshot) encodeAs(version byte) []byte {
	b := make([]byte, 0, 16+64*len(s.producers))
	b = append(b, version)
	b = binary.AppendUvarint(b, uint64(s.upTo))
	b = binary.AppendUvarint(b, uint64(len(s.producers)))
	for id, r := range s.producers {
		b = binary.LittleEndian.AppendUint64(b, uint64(id))
		b = r.append(b, version)
	}
	return b
}

func (r record) append(b []byte, version byte) []byte {
	last := uint64(int64(r.last) + 1)
	if r.none {
		last = 0
	}
	b = binary.AppendUvarint(b, uint64(r.epoch))
	b = binary.AppendUvarint(b, last)
	b = binary.AppendUvarint(b, uint64(r.run))
	known := slices.IndexFunc(r.recent[:], func(p part) bool { return p.count == 0 })
	if known < 0 {
		known = maxRecent
	}
	b = binary.AppendUvarint(b, uint64(known))
	var newer part
	for _, p := range r.recent[:known] {
		b = binary.AppendUvarint(b, uint64(p.count))
		if version >= positionsVersion {
			b, newer = appendPosition(b, p, newer)
		}
	}
	return binary.AppendUvarint(b, uint64(r.used))
}

// appendPosition appends where a batch is: 0 where nobody remembers it; how many events lie between it and
// the newer one, plus 1; or, where the position of that one is not known either, its end.
func appendPosition(b []byte, p, newer part) ([]byte, part) {
	position := uint64(p.end)
	switch {
	case p.end == 0:
	case newer.end > 0 && p.end > newer.first(): // a log that was cut off gives numbers again
		p.end, position = 0, 0
	case newer.end > 0:
		position = uint64(newer.first()-p.end) + 1
	}
	return binary.AppendUvarint(b, position), p
}

func (d *decoder) position(p, newer part) part {
	above := uint64(math.MaxInt64)
	if newer.end > 0 {
		above = uint64(newer.first())
	}
	switch position := d.number(above); {
	case position == 0:
		return p
	case newer.end > 0:
		p.end = newer.first() - eventlog.Sequence(position) + 1
	default:
		p.end = eventlog.Sequence(position)
	}
	d.bad = d.bad || p.first() < 0
	return p
}

func decodeSnapshot(b []byte) (snapshot, error) {
	if len(b) == 0 || b[0] < 1 || b[0] > positionsVersion {
		return snapshot{}, errSnapshot
	}
	d := &decoder{version: b[0], rest: b[1:]}
	s := snapshot{upTo: eventlog.Sequence(d.number(math.MaxInt64)), producers: make(map[int64]record)}
	for n := d.number(uint64(len(b))); n > 0 && !d.bad; n-- {
		id := d.id()
		s.producers[id] = d.record()
	}
	if d.bad || len(d.rest) > 0 {
		return snapshot{}, errSnapshot
	}
	return s, nil
}

// decoder takes numbers off the front of some bytes. Once one was bad, all are zero.
type decoder struct {
	version byte
	rest    []byte
	bad     bool
}

func (d *decoder) record() record {
	r := record{
		epoch: int16(d.number(math.MaxInt16)),
		last:  int32(d.number(math.MaxInt32+1) - 1),
		run:   uint32(d.number(maxRun)),
	}
	r.none = r.last == noNumber
	r.open = r.none
	known := uint64(1)
	if d.version >= sizesVersion {
		known = d.number(maxRecent)
	}
	var newer part
	for i := range known {
		r.recent[i].count = uint32(d.number(maxRun))
		if d.version >= positionsVersion {
			newer = d.position(r.recent[i], newer)
			r.recent[i] = newer
		}
	}
	r.used = int64(d.number(math.MaxInt64))
	return r
}

func (d *decoder) number(most uint64) uint64 {
	n, size := binary.Uvarint(d.rest)
	if d.bad || size <= 0 || n > most {
		d.bad = true
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) id() int64 {
	if d.bad || len(d.rest) < 8 {
		d.bad = true
		return 0
	}
	id := int64(binary.LittleEndian.Uint64(d.rest))
	d.rest = d.rest[8:]
	return id
}
