package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

const (
	recordVersion = 1
	// Where a record's parts begin; doc.go has the picture.
	recordRevision = 1
	recordSum      = 9
	recordValue    = 13
)

// newRecord makes room for a record and copies the value into it. It is no record
// before sealRecord.
func newRecord(value []byte) []byte {
	record := make([]byte, recordValue+len(value))
	copy(record[recordValue:], value)
	return record
}

// sealRecord fills in what is known only once the change has its revision.
func sealRecord(record []byte, key string, revision meta.Revision) {
	record[0] = recordVersion
	binary.BigEndian.PutUint64(record[recordRevision:], uint64(revision))
	binary.BigEndian.PutUint32(record[recordSum:], recordChecksum(record, key))
}

// openRecord gives a record's revision and value; the value lies in the record.
func openRecord(record []byte, key string) (meta.Revision, []byte, error) {
	switch {
	case len(record) < recordValue:
		return 0, nil, fmt.Errorf("%w: record of %q has %d bytes", ErrCorrupt, key, len(record))
	case recordSumOf(record) != recordChecksum(record, key):
		return 0, nil, fmt.Errorf("%w: checksum of %q does not match", ErrCorrupt, key)
	case record[0] != recordVersion:
		return 0, nil, fmt.Errorf("%w: record of %q has version %d", ErrFormat, key, record[0])
	}
	return meta.Revision(binary.BigEndian.Uint64(record[recordRevision:])), record[recordValue:], nil
}

func recordChecksum(record []byte, key string) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(0, table, []byte(key))
	sum = crc32.Update(sum, table, record[:recordSum])
	return crc32.Update(sum, table, record[recordValue:])
}

// recordSumOf is a sealed record's checksum as it is stored.
func recordSumOf(record []byte) uint32 { return binary.BigEndian.Uint32(record[recordSum:]) }
