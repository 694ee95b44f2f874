package groupwire

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// Lease says who owns a partition. In requests the times are left out: they are the yard's.
type Lease struct {
	Partition string    `json:"partition"`
	Owner     string    `json:"owner,omitempty"`
	Epoch     int64     `json:"epoch,omitempty"`
	Presence  string    `json:"presence,omitempty"` // only for yards that say KeepsPresence
	Acquired  time.Time `json:"acquired,omitzero"`
	Renewed   time.Time `json:"renewed,omitzero"`
	Version   string    `json:"version,omitempty"`
}

// Checkpoint is how far a group has come with a partition.
type Checkpoint struct {
	Partition string    `json:"partition"`
	Sequence  int64     `json:"sequence"`
	Offset    string    `json:"offset,omitempty"`
	Epoch     int64     `json:"epoch,omitempty"`
	HubID     string    `json:"hubId,omitempty"`
	Updated   time.Time `json:"updated,omitzero"`
	Version   string    `json:"version,omitempty"`
}

// Entry is a small record of a group.
type Entry struct {
	Key     string `json:"key"`
	Value   []byte `json:"value,omitempty"`
	Version string `json:"version,omitempty"`
}

func (l Lease) check() error {
	return checkTexts(l.Partition, l.Owner, l.Presence, l.Version)
}

func (c Checkpoint) check() error {
	return checkTexts(c.Partition, c.Offset, c.HubID, c.Version)
}

func (f Entry) check() error {
	if len(f.Value) > MaxValueBytes {
		return fmt.Errorf("%w: an entry of %d bytes, at most %d are allowed", ErrTooLarge, len(f.Value), MaxValueBytes)
	}
	return checkTexts(f.Key, f.Version)
}

func checkTexts(texts ...string) error {
	for _, text := range texts {
		if len(text) > MaxTextBytes {
			return fmt.Errorf("%w: a text of %d bytes, at most %d are allowed", ErrTooLarge, len(text), MaxTextBytes)
		}
		if !utf8.ValidString(text) { // JSON would say another
			return fmt.Errorf("%w: the text %q is not UTF-8", ErrMalformed, text)
		}
	}
	return nil
}
