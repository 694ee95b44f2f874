package bodies

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// A message is
//
//	version (1) | kind (1) | CRC-32C of version, kind and content (4) | content
//
// The content of a chunk is its bytes; that of an index are unsigned varints: the size of the body,
// the size of each chunk but the last, and the sequence of each chunk as the distance from the one
// before.
const (
	version     = 1
	kindChunk   = 1
	kindIndex   = 2
	headerBytes = 6
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errDamaged: a message is not what was stored.
var errDamaged = errors.New("a body is damaged")

// seal fills in the header of a message whose content is behind it.
func seal(kind byte, message []byte) []byte {
	message[0], message[1] = version, kind
	binary.BigEndian.PutUint32(message[2:], checksum(message))
	return message
}

func checksum(message []byte) uint32 {
	return crc32.Update(crc32.Checksum(message[:2], castagnoli), castagnoli, message[headerBytes:])
}

// open checks a message and gives its content.
func open(kind byte, message []byte) ([]byte, error) {
	switch {
	case len(message) < headerBytes:
		return nil, fmt.Errorf("%w: a message has %d bytes", errDamaged, len(message))
	case message[0] != version:
		return nil, fmt.Errorf("a body has messages of version %d, and this program reads version %d", message[0], version)
	case message[1] != kind:
		return nil, fmt.Errorf("%w: a message is of kind %d and should be of kind %d", errDamaged, message[1], kind)
	case binary.BigEndian.Uint32(message[2:]) != checksum(message):
		return nil, fmt.Errorf("%w: a message has another checksum", errDamaged)
	}
	return message[headerBytes:], nil
}

// index says where the chunks of a body are.
type index struct {
	bytes, chunkBytes int64
	seqs              []uint64 // rising
}

func (x index) encode() []byte {
	message := make([]byte, headerBytes, headerBytes+20+3*len(x.seqs))
	message = binary.AppendUvarint(message, uint64(x.bytes))
	message = binary.AppendUvarint(message, uint64(x.chunkBytes))
	before := uint64(0)
	for _, seq := range x.seqs {
		message = binary.AppendUvarint(message, seq-before)
		before = seq
	}
	return seal(kindIndex, message)
}

// maxChunkBytes bounds what a reader has in memory, whoever wrote the body.
const maxChunkBytes = 8 << 20

func decodeIndex(message []byte) (index, error) {
	content, err := open(kindIndex, message)
	if err != nil {
		return index{}, err
	}
	next := func() (uint64, bool) {
		n, size := binary.Uvarint(content)
		if size <= 0 {
			return 0, false
		}
		content = content[size:]
		return n, true
	}
	bytes, ok1 := next()
	chunk, ok2 := next()
	if !ok1 || !ok2 || bytes > 1<<62 || chunk == 0 || chunk > maxChunkBytes {
		return index{}, fmt.Errorf("%w: its index has no sizes", errDamaged)
	}
	x := index{bytes: int64(bytes), chunkBytes: int64(chunk)}
	count := (x.bytes + x.chunkBytes - 1) / x.chunkBytes
	if count > int64(len(content)) {
		return index{}, fmt.Errorf("%w: its index is cut short", errDamaged)
	}
	seq := uint64(0)
	for range count {
		step, ok := next()
		if !ok || step == 0 || seq+step < seq {
			return index{}, fmt.Errorf("%w: its index does not rise", errDamaged)
		}
		seq += step
		x.seqs = append(x.seqs, seq)
	}
	if len(content) > 0 {
		return index{}, fmt.Errorf("%w: its index has %d bytes too many", errDamaged, len(content))
	}
	return x, nil
}

// chunkLen is how long a chunk is.
func (x index) chunkLen(i int) int64 { return min(x.chunkBytes, x.bytes-int64(i)*x.chunkBytes) }
