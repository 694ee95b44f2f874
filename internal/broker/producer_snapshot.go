package broker

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/eventyard/eventyard/internal/eventlog"
)

// snapshot is what the meta store keeps of a partition's producers: all that batches
// below upTo say of them, and maybe some of what later ones do.
//
// Its form: a byte for the version, upTo, how many producers there are, and for each its
// id (8 bytes, little-endian), then epoch, last+1, run, newest and used. All numbers
// but the first byte and the ids are unsigned varints.
type snapshot struct {
	upTo      eventlog.Sequence
	producers map[int64]record
}

const snapshotVersion = 1

var errSnapshot = errors.New("producers are not in a form known here")

func (s snapshot) encode() []byte {
	b := make([]byte, 0, 16+32*len(s.producers))
	b = append(b, snapshotVersion)
	b = binary.AppendUvarint(b, uint64(s.upTo))
	b = binary.AppendUvarint(b, uint64(len(s.producers)))
	for id, r := range s.producers {
		b = binary.LittleEndian.AppendUint64(b, uint64(id))
		b = binary.AppendUvarint(b, uint64(r.epoch))
		b = binary.AppendUvarint(b, uint64(int64(r.last)+1))
		b = binary.AppendUvarint(b, uint64(r.run))
		b = binary.AppendUvarint(b, uint64(r.newest))
		b = binary.AppendUvarint(b, uint64(r.used))
	}
	return b
}

func decodeSnapshot(b []byte) (snapshot, error) {
	d := &decoder{rest: b}
	if len(b) == 0 || b[0] != snapshotVersion {
		return snapshot{}, errSnapshot
	}
	d.rest = b[1:]
	s := snapshot{upTo: eventlog.Sequence(d.number(math.MaxInt64)), producers: make(map[int64]record)}
	for n := d.number(uint64(len(b))); n > 0 && !d.bad; n-- {
		id := d.id()
		s.producers[id] = record{
			epoch:  int16(d.number(math.MaxInt16)),
			last:   int32(d.number(math.MaxInt32+1) - 1),
			run:    uint32(d.number(maxRun)),
			newest: uint32(d.number(maxRun)),
			used:   int64(d.number(math.MaxInt64)),
		}
	}
	if d.bad || len(d.rest) > 0 {
		return snapshot{}, errSnapshot
	}
	return s, nil
}

// decoder takes numbers off the front of some bytes. Once one was bad, all are zero.
type decoder struct {
	rest []byte
	bad  bool
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
