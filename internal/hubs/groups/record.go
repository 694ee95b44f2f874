package groups

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/processor"
)

// recordVersion is written with each record, so that a later form can be told from it.
const recordVersion = 1

// What texts may measure: all leases, or all checkpoints, of the largest hub have to go into one
// reply, where a quotation mark measures two bytes.
const (
	maxOwnerBytes  = 256
	maxLifeBytes   = 64
	maxOffsetBytes = 128
	maxHubIDBytes  = 128
)

type leaseRecord struct {
	V        int       `json:"v"`
	Owner    string    `json:"owner,omitempty"`
	Epoch    int64     `json:"epoch"`
	Acquired time.Time `json:"acquired"`
	Renewed  time.Time `json:"renewed"`
	// Presence is the life of its owner's presence that the lease hangs on; empty: none.
	Presence string `json:"presence,omitempty"`
	bond
}

func (r leaseRecord) version() int { return r.V }

// renewed is when the lease was renewed, given its owner's presence, if that is there: also when the
// presence was that it hangs on.
func (r leaseRecord) renewed(p *entryRecord) time.Time {
	if p != nil && r.hangsOn(*p) && p.Put.After(r.Renewed) {
		return p.Put
	}
	return r.Renewed
}

// hangsOn reports whether a presence, which is the owner's, renews the lease: written by who wrote
// the lease, and not ended.
func (r leaseRecord) hangsOn(p entryRecord) bool {
	said := said(p.Value)
	return r.Presence != "" && r.Presence == said.Life && !said.Ended && r.Hash == p.Hash
}

// versioned is a record that says which form it has.
type versioned interface{ version() int }

// checkpointRecord exists from a partition's first Begin on; Saved is zero until a position is
// stored.
type checkpointRecord struct {
	V        int       `json:"v"`
	Sequence int64     `json:"sequence"`
	Offset   string    `json:"offset,omitempty"`
	Epoch    int64     `json:"epoch,omitempty"`
	HubID    string    `json:"hub,omitempty"`
	Saved    time.Time `json:"saved,omitzero"`
	// Fence is the highest epoch that has begun.
	Fence int64 `json:"fence,omitempty"`
}

func (r checkpointRecord) version() int { return r.V }

type entryRecord struct {
	V     int       `json:"v"`
	Put   time.Time `json:"put"`
	Value []byte    `json:"value,omitempty"`
	// Yard: the yard's own process wrote it, of whatever node and life, and no client.
	Yard bool `json:"yard,omitempty"`
	bond
}

func (r entryRecord) version() int { return r.V }

// decode reads a record and refuses one of a later form rather than guess at it.
func decode[R versioned](e meta.Entry) (R, error) {
	var r R
	if err := json.Unmarshal(e.Value, &r); err != nil {
		return r, fmt.Errorf("read %s: %w", e.Key, err)
	}
	if r.version() != recordVersion {
		return r, fmt.Errorf("read %s: it has format %d, this eventyard knows %d", e.Key, r.version(), recordVersion)
	}
	return r, nil
}

// encode cannot fail: the fields are plain values.
func encode(v any) []byte {
	value, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return value
}

func (r leaseRecord) lease(partition string, revision meta.Revision) processor.Lease {
	return processor.Lease{
		Partition: partition, Owner: r.Owner, Epoch: r.Epoch, Presence: r.Presence,
		Acquired: r.Acquired, Renewed: r.Renewed, Version: versionOf(revision),
	}
}

func (r checkpointRecord) checkpoint(partition string, revision meta.Revision) processor.Checkpoint {
	return processor.Checkpoint{
		Partition: partition, Sequence: r.Sequence, Offset: r.Offset, Epoch: r.Epoch, HubID: r.HubID,
		Updated: r.Saved, Version: fencedVersion(revision, r.Fence),
	}
}

// versionOf is a revision as callers see it. Revisions rise whatever the key, also over
// deletions, so that no version comes back.
func versionOf(revision meta.Revision) processor.Version {
	return processor.Version(strconv.FormatUint(uint64(revision), 10))
}

// revisionOf reads a version. What we never gave is no record's: such a version conflicts.
func revisionOf(v processor.Version) (revision meta.Revision, ok bool) {
	if v == "" {
		return 0, true
	}
	n, err := strconv.ParseUint(string(v), 10, 64)
	return meta.Revision(n), err == nil && n > 0
}

// fencedVersion is that of a checkpoint: the revision and the fence it has.
func fencedVersion(revision meta.Revision, fence int64) processor.Version {
	return versionOf(revision) + processor.Version("."+strconv.FormatInt(fence, 10))
}

func fencedRevisionOf(v processor.Version) (revision meta.Revision, fence int64, ok bool) {
	if v == "" {
		return 0, 0, true
	}
	number, text, _ := strings.Cut(string(v), ".")
	revision, ok = revisionOf(processor.Version(number))
	fence, err := strconv.ParseInt(text, 10, 64)
	return revision, fence, ok && err == nil && revision > 0
}

// checkText refuses what JSON would not give back as it was, or nobody needs.
func checkText(what, text string, most int) error {
	if len(text) > most || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return fmt.Errorf("%s %.64q: %w: use text of at most %d bytes, without control characters", what, text, ErrInvalid, most)
	}
	return nil
}

// partitionNumber reads a partition's name as the broker does.
func partitionNumber(name string) (int, bool) {
	n, err := strconv.Atoi(name)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == name
}
