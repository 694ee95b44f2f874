// Package blob is a small blob store: accounts with containers, containers with block blobs that
// have metadata, properties, an ETag and perhaps a lease. It is what the processors of other
// libraries keep their ownership and checkpoints in. It knows no protocol.
//
// A blob is one entry in the meta store (record.go), and every change of it is one compare-and-set:
// of two writers that saw the same state one wins, and the other looks again. A body of at most
// InlineBytes is part of the entry. A larger one is kept apart, or each of its blocks is, durable
// before the entry that names it (bodies.go): as a file (files.go), or where all nodes of a yard
// find it. So a crash can leave bodies that nobody names, which Run collects (sweep.go), and never a
// name without its body.
//
// Uncommitted blocks are entries of their own, beneath the state of the blob that they were
// uploaded to (blocks.go). A write of the body gives the blob another state, and thereby
// forgets them all in that same compare-and-set.
package blob

import (
	"maps"
	"time"
)

// What a blob may measure.
const (
	// InlineBytes is the largest body that is kept in the meta store.
	InlineBytes = 4 << 10
	// MaxPutBytes is the largest body, or block, that one call takes.
	MaxPutBytes = 256 << 20
	// MaxBlocks is how many blocks a blob has at most.
	MaxBlocks = 3000
	// MaxMetadataBytes is for all names and values together.
	MaxMetadataBytes = 8 << 10
	// MaxPropertiesBytes is for all properties together.
	MaxPropertiesBytes = 8 << 10
	// MaxNameBytes is for a blob's name.
	MaxNameBytes = 1024
	// MaxPage is how much one list gives.
	MaxPage = 5000
)

// uncommittedAge is how long blocks wait to be committed: those of a blob that there is each
// for itself, others after the first one of them.
const uncommittedAge = 7 * 24 * time.Hour

// Container holds blobs.
type Container struct {
	Name     string            `json:"name"`
	ETag     string            `json:"etag"` // without quotes
	Created  time.Time         `json:"created"`
	Modified time.Time         `json:"modified"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Lease    Lease             `json:"lease,omitzero"`
}

// Blob is what is known of a blob besides its body.
type Blob struct {
	Name string `json:"name"`
	ETag string `json:"etag"` // without quotes
	// Created and Modified are by the server's clock.
	Created    time.Time         `json:"created"`
	Modified   time.Time         `json:"modified"`
	Bytes      int64             `json:"bytes"`
	Properties Properties        `json:"properties,omitzero"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	Lease      Lease             `json:"lease,omitzero"`
	// Uncommitted: there are blocks only, which is no blob yet.
	Uncommitted bool `json:"uncommitted,omitempty"`
}

// Properties are what a blob's owner says of its body.
type Properties struct {
	ContentType        string `json:"contentType,omitempty"`
	ContentEncoding    string `json:"contentEncoding,omitempty"`
	ContentLanguage    string `json:"contentLanguage,omitempty"`
	ContentDisposition string `json:"contentDisposition,omitempty"`
	CacheControl       string `json:"cacheControl,omitempty"`
	ContentMD5         []byte `json:"contentMD5,omitempty"`
}

// Path names a blob, or a container where Blob is empty.
type Path struct{ Account, Container, Blob string }

func (p Path) String() string {
	if p.Blob == "" {
		return p.Account + "/" + p.Container
	}
	return p.Account + "/" + p.Container + "/" + p.Blob
}

// clone shares nothing that a caller could change.
func (b Blob) clone() Blob {
	b.Metadata = maps.Clone(b.Metadata)
	return b
}
