// Package archive is the format of a backup: all that a yard keeps, as one stream of bytes that no
// storage engine has a say in. It holds entries, partitions of logs as runs with their numbers, times,
// producers and forms, bodies of blobs, and small files; a list of all of them with their hashes is its
// end. What has no such end is not whole, and no reader takes it for a backup. It does no I/O but by the
// readers and writers that it is given. docs/internals/format/backup.md has every byte.
package archive

import (
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Format is the newest form that this program knows, and the one it writes. It rises when an older
// program could not read, or would misunderstand, what a newer one writes.
const Format = 1

// What can be wrong with an archive.
var (
	// ErrUnfinished: it ends before its end. Who wrote it was interrupted, or a part was lost.
	ErrUnfinished = errors.New("the backup is not whole: it ends before its list")
	// ErrDamaged: its bytes are not what was written.
	ErrDamaged = errors.New("the backup is damaged")
	// ErrNewer: only newer versions of the program know its form.
	ErrNewer = errors.New("the backup is of a newer version")
	// ErrForeign: it is something else.
	ErrForeign = errors.New("not a backup of a yard")
	// ErrFailed: who wrote it could not go on, and says so in it.
	ErrFailed = errors.New("the backup was given up by the yard")
)

// Head says whose backup it is.
type Head struct {
	Format int `json:"format"`
	// Program wrote it. Who cannot read it names this one.
	Program   string `json:"program"`
	Namespace string `json:"namespace"`
	Engine    string `json:"engine"`
	// Replicas is how many servers kept each event; zero where a folder held all.
	Replicas int       `json:"replicas,omitempty"`
	Taken    time.Time `json:"taken"`
}

// The types of items.
const (
	TypeEntries   = "entries"
	TypePartition = "partition"
	TypeBody      = "body"
	TypeFile      = "file"
)

// Item is one part of an archive: all entries, a partition of a log, the body of a blob, or a file.
// What stands below the first two fields is known at its end.
type Item struct {
	Type string `json:"type"`
	// Name is that of the log, the body or the file.
	Name string `json:"name,omitempty"`
	// Partition is set for a partition.
	Partition *Partition `json:"partition,omitempty"`

	// Count is how many entries or events it has, Bytes their size, SHA256 the hash of its records.
	Count  int64  `json:"count,omitempty"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// Keys are the ids of the secret keys that entries are sealed with, Revision their highest.
	Keys     []string `json:"keys,omitempty"`
	Revision uint64   `json:"revision,omitempty"`
	// Missing is why a body could not be read. Then it is not there.
	Missing string `json:"missing,omitempty"`
}

// Partition is one partition of a log.
type Partition struct {
	Number int `json:"number"`
	// Partitions, Kind, RetentionMillis and RetentionBytes are the log's shape. Kind is empty where it
	// is not known.
	Partitions      int    `json:"partitions"`
	Kind            string `json:"kind,omitempty"`
	RetentionMillis int64  `json:"retentionMillis,omitempty"`
	RetentionBytes  int64  `json:"retentionBytes,omitempty"`

	// First and Next bound its numbers, and LastMillis is the newest event's time. Runs below First were
	// removed by retention after they were written here: they are not to be restored. Where the item
	// begins they are as of then.
	First      eventlog.Sequence `json:"first"`
	Next       eventlog.Sequence `json:"next"`
	LastMillis int64             `json:"lastMillis"`
	// Removed: the log was deleted while it was read. It has no events, and goes on at Next.
	Removed bool `json:"removed,omitempty"`
	// Lost are the numbers between First and Next whose events could not be read, in order.
	Lost []Lost `json:"lost,omitempty"`
}

// Lost is a stretch of events that could not be read.
type Lost struct {
	First  eventlog.Sequence `json:"first"`
	Next   eventlog.Sequence `json:"next"`
	Reason string            `json:"reason"`
}

// MaxLost bounds how many stretches of one partition may be lost.
const MaxLost = 2000

// ID says which item it is, for people.
func (i Item) ID() string {
	switch {
	case i.Partition != nil:
		return fmt.Sprintf("partition %d of log %s", i.Partition.Number, i.Name)
	case i.Name != "":
		return i.Type + " " + i.Name
	}
	return i.Type
}

// check says what is wrong with an item that nobody writes.
func (i Item) check() error {
	p := i.Partition
	switch i.Type {
	case TypeEntries, TypeBody, TypeFile:
		if p != nil {
			return fmt.Errorf("%w: %s has a partition", ErrDamaged, i.Type)
		}
		return nil
	case TypePartition:
	default:
		return fmt.Errorf("%w: it has a part of type %q", ErrDamaged, i.Type)
	}
	if p == nil || p.Number < 0 || p.First < 0 || p.Next < p.First || len(p.Lost) > MaxLost {
		return fmt.Errorf("%w: log %s has bounds that no log has", ErrDamaged, i.Name)
	}
	at := p.First
	for _, lost := range p.Lost {
		if lost.First < at || lost.Next <= lost.First || lost.Next > p.Next {
			return fmt.Errorf("%w: log %s has lost events %d to %d of %d to %d", ErrDamaged, i.Name, lost.First, lost.Next-1, p.First, p.Next-1)
		}
		at = lost.Next
	}
	return nil
}

// same tells whether two are the same item, whatever is known of them.
func (i Item) same(other Item) bool {
	return i.Type == other.Type && i.Name == other.Name && (i.Partition == nil) == (other.Partition == nil) &&
		(i.Partition == nil || i.Partition.Number == other.Partition.Number)
}

const (
	magic       = "EVYARDB1"
	footerMagic = "EVYARDBE"
	// footerBytes: where the list begins, the checksum of that, and the magic.
	footerBytes = 8 + 4 + len(footerMagic)
	// headBytes of a record: its kind and the length of its payload.
	headBytes = 1 + 4
	sumBytes  = 4
	// maxPayload is more than the largest batch, entry or list takes.
	maxPayload = eventlog.MaxBatchBytes + 1<<20
	// pieceBytes of a body are a record.
	pieceBytes = 128 << 10
	// listBytes of items are a record of the list, or one item more.
	listBytes = 256 << 10
)

// The kinds of records.
const (
	kindHead byte = 1 + iota
	kindBegin
	kindEntry
	kindRun
	kindPiece
	kindEnd
	kindList
	kindFailure
	kindFooter
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
