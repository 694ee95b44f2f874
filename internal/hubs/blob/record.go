package blob

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// containerRecord is a container as the meta store keeps it.
type containerRecord struct {
	Container
	// ID is what its blobs are beneath.
	ID string `json:"id"`
}

// record is a blob as the meta store keeps it.
type record struct {
	Blob
	// State changes with the body, and never comes back. Uncommitted blocks belong to it.
	State string `json:"state"`
	// Body is there if it is small, Pieces if it is not, in order.
	Body   []byte  `json:"body,omitempty"`
	Pieces []piece `json:"pieces,omitempty"`
}

// piece is a file of a body.
type piece struct {
	// Block is the id by which it was uploaded; empty if it came as a whole.
	Block string `json:"block,omitempty"`
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

// blockRecord is an uncommitted block.
type blockRecord struct {
	piece
	Blob     string    `json:"blob"`
	Uploaded time.Time `json:"uploaded"`
}

func (r *record) files() []string {
	if r == nil {
		return nil
	}
	names := make([]string, len(r.Pieces))
	for i, p := range r.Pieces {
		names[i] = p.File
	}
	return names
}

// committed is nil also where there are blocks only.
func (r *record) committed() *Blob {
	if r == nil || r.Uncommitted {
		return nil
	}
	return &r.Blob
}

// touch notes a change that readers should see.
func (b *Blob) touch(now time.Time) { b.ETag, b.Modified = newETag(), now }

// newETag looks like one of the service's. It is random: to count would take remembering
// the count of blobs that were deleted.
func newETag() string {
	var bits [8]byte
	rand.Read(bits[:]) // never fails
	return fmt.Sprintf("0x8%015X", binary.BigEndian.Uint64(bits[:])>>4)
}

// newID names a file, a container or a state for good.
func newID() string {
	var bits [16]byte
	rand.Read(bits[:])
	return hex.EncodeToString(bits[:])
}

// now has the precision that entries keep.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// encode cannot fail: the fields are plain values. It escapes no more than it has to, as a
// entry has a greatest length and the limits of its parts are to fit in it.
func encode(stored any) []byte {
	var value bytes.Buffer
	encoder := json.NewEncoder(&value)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(stored); err != nil {
		panic(fmt.Sprintf("encode blob: %v", err))
	}
	return bytes.TrimSuffix(value.Bytes(), []byte("\n"))
}

func decode[T any](e meta.Entry) (*T, error) {
	stored := new(T)
	if err := json.Unmarshal(e.Value, stored); err != nil {
		return nil, fmt.Errorf("read %s: %w", e.Key, err)
	}
	return stored, nil
}
