package broker

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// snapshot is what the meta store keeps of a partition's producers: all that batches
// below upTo say of them, and maybe some of what later ones do.
//
// Its form: a byte for the version, upTo, how many producers there are, and for each its
// id (8 bytes, little-endian), then epoch, last+1 or 0 where nothing is stored, run, how
// many recent batches are known, the size of each, the newest first, and used. All numbers
// but the first byte and the ids are unsigned varints. In version 1 there is always one
// recent batch, of unknown size if that is 0, and its number is left out.
type snapshot struct {
	upTo      eventlog.Sequence
	producers map[int64]record
}

const snapshotVersion = 2

var errSnapshot = errors.New("producers are not in a form known here")

func (s snapshot) encode() []byte {
	b := make([]byte, 0, 16+32*len(s.producers))
	b = append(b, snapshotVersion)
	b = binary.AppendUvarint(b, uint64(s.upTo))
	b = binary.AppendUvarint(b, uint64(len(s.producers)))
	for id, r := range s.producers {
		b = binary.LittleEndian.AppendUint64(b, uint64(id))
		b = r.append(b)
	}
	return b
}

func (r record) append(b []byte) []byte {
	last := uint64(int64(r.last) + 1)
	if r.none {
		last = 0
	}
	b = binary.AppendUvarint(b, uint64(r.epoch))
	b = binary.AppendUvarint(b, last)
	b = binary.AppendUvarint(b, uint64(r.run))
	known := slices.Index(r.recent[:], 0)
	if known < 0 {
		known = maxRecent
	}
	b = binary.AppendUvarint(b, uint64(known))
	for _, n := range r.recent[:known] {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return binary.AppendUvarint(b, uint64(r.used))
}

func decodeSnapshot(b []byte) (snapshot, error) {
	if len(b) == 0 || b[0] < 1 || b[0] > snapshotVersion {
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
	known := uint64(1)
	if d.version > 1 {
		known = d.number(maxRecent)
	}
	for i := range known {
		r.recent[i] = uint32(d.number(maxRun))
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
