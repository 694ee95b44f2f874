package v1

import (
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// The id of a tail's events holds the next number of every partition, so that a tail
// can be resumed at any event, exactly, by a yard that remembers nothing of it.
//
// For a few partitions it is written as people can: 0:17,1:4. For many that would be
// more than the event itself, and it is packed: the version, then in base64url
// stretches of neighbouring partitions, each being the first partition's number, how
// many there are, and for each of them how far its place is from that of the one
// before. In a hub whose partitions fill evenly these differences are small.

// maxPlainPositions is how many partitions an id names in plain text.
const maxPlainPositions = 32

// packedVersion begins a packed id.
const packedVersion = "p1."

// appendPositions writes an id. The partitions are named as the broker names them.
func appendPositions(dst []byte, partitions []string, next []eventlog.Sequence) []byte {
	if len(partitions) > maxPlainPositions {
		return appendPacked(dst, partitions, next)
	}
	for i, id := range partitions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, id...)
		dst = append(dst, ':')
		dst = strconv.AppendInt(dst, int64(next[i]), 10)
	}
	return dst
}

func appendPacked(dst []byte, partitions []string, next []eventlog.Sequence) []byte {
	packed := make([]byte, 0, 4*len(next))
	before := eventlog.Sequence(0)
	for i := 0; i < len(partitions); {
		first, _ := strconv.Atoi(partitions[i])
		n := neighbours(partitions[i:], first)
		packed = binary.AppendUvarint(packed, uint64(first))
		packed = binary.AppendUvarint(packed, uint64(n))
		for _, position := range next[i : i+n] {
			packed = binary.AppendVarint(packed, int64(position-before))
			before = position
		}
		i += n
	}
	dst = append(dst, packedVersion...)
	return base64.RawURLEncoding.AppendEncode(dst, packed)
}

// neighbours counts the partitions that follow each other from the first.
func neighbours(partitions []string, first int) int {
	for n, id := range partitions {
		if number, _ := strconv.Atoi(id); number != first+n {
			return n
		}
	}
	return len(partitions)
}

// parsePositions reads an id, in either form.
func parsePositions(s string) (map[string]eventlog.Sequence, bool) {
	if packed, ok := strings.CutPrefix(s, packedVersion); ok {
		return parsePacked(packed)
	}
	positions := map[string]eventlog.Sequence{}
	for part := range strings.SplitSeq(s, ",") {
		id, number, _ := strings.Cut(part, ":")
		n, ok := parseSequence(number)
		if _, twice := positions[id]; !ok || twice || id == "" {
			return nil, false
		}
		positions[id] = n
	}
	return positions, true
}

func parsePacked(s string) (map[string]eventlog.Sequence, bool) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil {
		return nil, false
	}
	r := varints{data: data}
	positions := map[string]eventlog.Sequence{}
	position := int64(0)
	for len(r.data) > 0 && !r.bad {
		first, n := r.unsigned(), r.unsigned()
		if r.bad || n == 0 || first >= broker.MaxPartitions || n > broker.MaxPartitions-first {
			return nil, false
		}
		for number := first; number < first+n; number++ {
			position += r.signed()
			id := strconv.FormatUint(number, 10)
			if _, twice := positions[id]; r.bad || twice || position < 0 || position > maxSequence {
				return nil, false
			}
			positions[id] = eventlog.Sequence(position)
		}
	}
	return positions, len(positions) > 0 && !r.bad
}

// varints reads numbers until there is one that it cannot read.
type varints struct {
	data []byte
	bad  bool
}

func (r *varints) unsigned() uint64 {
	v, n := binary.Uvarint(r.data)
	r.advance(n)
	return v
}

func (r *varints) signed() int64 {
	v, n := binary.Varint(r.data)
	r.advance(n)
	return v
}

func (r *varints) advance(n int) {
	if n <= 0 {
		r.bad = true
		return
	}
	r.data = r.data[n:]
}

// maxSequence is the largest number that a position may name. One behind it, as in
// after:N, is still a number.
const maxSequence = 1<<62 - 1

func parseSequence(s string) (eventlog.Sequence, bool) {
	n, err := strconv.ParseUint(s, 10, 62)
	return eventlog.Sequence(n), err == nil
}
