package entries

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// kind is what a message does to its key.
type kind byte

const (
	value    kind = 1 // the key has a value
	deletion kind = 2 // the key is gone
	barrier  kind = 3 // nothing: it is there to be waited for
)

// message is one change, as a bucket keeps it; docs/internals/format/entries.md has its bytes.
type message struct {
	seq  uint64 // in the stream of its bucket; not in the bytes
	kind kind
	// nonce tells the write apart from all others, for who has not heard what became of it.
	nonce uint64
	// before is the sequence that the change replaced, zero if none: what the write expected.
	before uint64
	// was is the sequence of the value when it was stored first, by which users know it; zero: this is that.
	was   uint64
	key   string
	value []byte
}

// revision is what users know the state by: even for values, odd for deletions, so that the
// revision of a deletion is never taken for one of a value.
func (m message) revision() meta.Revision {
	if m.kind == deletion {
		return deletionAfter(2 * meta.Revision(m.seq))
	}
	return 2 * meta.Revision(cmp.Or(m.was, m.seq))
}

// deletionAfter is the least revision of a deletion that follows a value's.
func deletionAfter(r meta.Revision) meta.Revision { return r + 1 }

// change is the message as a watch reports it. It shares the value.
func (m message) change() meta.Change {
	c := meta.Change{Entry: meta.Entry{Key: m.key, Revision: m.revision(), Value: m.value}, Deleted: m.kind == deletion}
	if c.Deleted {
		c.Value = nil
	}
	return c
}

const (
	messageVersion = 1
	againVersion   = 2                 // of a value that was stored again
	messageHeader  = 2 + 8 + 8 + 2     // version, kind, nonce, before, length of the key
	againHeader    = messageHeader + 8 // and was
	checksumBytes  = 4
	// maxMessageBytes is the largest message there is.
	maxMessageBytes = againHeader + meta.MaxKeyBytes + meta.MaxValueBytes + checksumBytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errMessage: bytes are no message, or not the one that was written.
var errMessage = errors.New("message of an entry is damaged or of a later version")

func (m message) encode() []byte {
	b := make([]byte, 0, againHeader+len(m.key)+len(m.value)+checksumBytes)
	version := byte(messageVersion)
	if m.was != 0 {
		version = againVersion
	}
	b = append(b, version, byte(m.kind))
	b = binary.BigEndian.AppendUint64(b, m.nonce)
	b = binary.BigEndian.AppendUint64(b, m.before)
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.key)))
	if m.was != 0 {
		b = binary.BigEndian.AppendUint64(b, m.was)
	}
	b = append(b, m.key...)
	b = append(b, m.value...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decode reads a message. It keeps none of the bytes.
func decode(seq uint64, b []byte) (message, error) {
	header := messageHeader
	if len(b) > 0 && b[0] == againVersion {
		header = againHeader
	}
	if len(b) < header+checksumBytes || b[0] != messageVersion && b[0] != againVersion {
		return message{}, fmt.Errorf("%w: sequence %d, %d bytes", errMessage, seq, len(b))
	}
	body, sum := b[:len(b)-checksumBytes], binary.BigEndian.Uint32(b[len(b)-checksumBytes:])
	m := message{seq: seq, kind: kind(b[1]), nonce: binary.BigEndian.Uint64(b[2:]), before: binary.BigEndian.Uint64(b[10:])}
	if header == againHeader {
		m.was = binary.BigEndian.Uint64(b[messageHeader:])
	}
	keyEnd := header + int(binary.BigEndian.Uint16(b[18:]))
	if keyEnd > len(body) || crc32.Checksum(body, castagnoli) != sum || seq > math.MaxUint64/4 {
		return message{}, fmt.Errorf("%w: sequence %d, %d bytes", errMessage, seq, len(b))
	}
	m.key, m.value = string(body[header:keyEnd]), bytes.Clone(body[keyEnd:])
	if !m.valid() || header == againHeader && (m.was == 0 || m.was >= seq || m.kind != value) {
		return message{}, fmt.Errorf("%w: sequence %d, kind %d, key %q", errMessage, seq, m.kind, m.key)
	}
	return m, nil
}

func (m message) valid() bool {
	switch m.kind {
	case value:
		return meta.CheckKey(m.key) == nil && len(m.value) <= meta.MaxValueBytes
	case deletion:
		return meta.CheckKey(m.key) == nil && len(m.value) == 0
	case barrier:
		return m.key == "" && len(m.value) == 0
	}
	return false
}

// maxAnnounced is the largest message that is sent along with the news of it.
const maxAnnounced = 4 << 10

// announce is what a node sends to the others after a message was stored: its sequence, and its
// bytes where they are few.
func announce(seq uint64, encoded []byte) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(encoded)), seq)
	if len(encoded) <= maxAnnounced {
		b = append(b, encoded...)
	}
	return b
}

// readAnnouncement gives the message, or only its sequence where that has to be fetched.
func readAnnouncement(b []byte) (m message, whole bool, err error) {
	if len(b) < 8 {
		return message{}, false, fmt.Errorf("%w: announcement of %d bytes", errMessage, len(b))
	}
	seq := binary.BigEndian.Uint64(b)
	if len(b) == 8 {
		if seq > math.MaxUint64/4 {
			return message{}, false, fmt.Errorf("%w: announcement of sequence %d", errMessage, seq)
		}
		return message{seq: seq}, false, nil
	}
	m, err = decode(seq, b[8:])
	return m, err == nil, err
}
