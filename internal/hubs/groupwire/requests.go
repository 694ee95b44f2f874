package groupwire

import (
	"cmp"
	"fmt"
)

// Request is the body of a request.
type Request interface {
	// Of is the group that it is about.
	Of() string
	check() error
}

// About is the group that a request is about, which each of them names.
type About struct {
	Group string `json:"group"`
}

func (a About) Of() string { return a.Group }

func (a About) check() error {
	if a.Group == "" {
		return fmt.Errorf("%w: it names no group", ErrMalformed)
	}
	return checkTexts(a.Group)
}

// LeasesRequest asks for all leases.
type LeasesRequest struct{ About }

// ClaimRequest writes leases, each on condition of its version.
type ClaimRequest struct {
	About
	Leases []Lease `json:"leases"`
}

// CheckpointsRequest asks for all checkpoints.
type CheckpointsRequest struct{ About }

// BeginRequest fences earlier owners of a partition, and asks for its checkpoint.
type BeginRequest struct {
	About
	Lease Lease `json:"lease"`
}

// SaveRequest stores a checkpoint under a lease.
type SaveRequest struct {
	About
	Lease      Lease      `json:"lease"`
	Checkpoint Checkpoint `json:"checkpoint"`
}

// EntriesRequest asks for entries whose key begins with Prefix and comes after After, in the byte
// order of the keys.
type EntriesRequest struct {
	About
	Prefix string `json:"prefix,omitempty"`
	After  string `json:"after,omitempty"`
}

// PutRequest stores an entry on condition of its version.
type PutRequest struct {
	About
	Entry Entry `json:"fact"`
}

// RemoveRequest deletes an entry on condition of its version. It has no value.
type RemoveRequest struct {
	About
	Entry Entry `json:"fact"`
}

// WatchRequest asks to be answered when something has changed since the reply whose token
// it names, or after a while. Without a token, or with one that the yard does not know any
// more, it is answered as soon as nothing is missed from then on.
type WatchRequest struct {
	About
	Since string `json:"since,omitempty"`
}

func (r ClaimRequest) check() error {
	if len(r.Leases) > MaxLeases {
		return fmt.Errorf("%w: %d leases, at most %d are allowed", ErrTooLarge, len(r.Leases), MaxLeases)
	}
	for _, l := range r.Leases {
		if err := l.check(); err != nil {
			return err
		}
	}
	return r.About.check()
}

func (r BeginRequest) check() error { return cmp.Or(r.About.check(), r.Lease.check()) }

func (r SaveRequest) check() error {
	return cmp.Or(r.About.check(), r.Lease.check(), r.Checkpoint.check())
}

func (r EntriesRequest) check() error {
	return cmp.Or(r.About.check(), checkTexts(r.Prefix, r.After))
}

func (r PutRequest) check() error    { return cmp.Or(r.About.check(), r.Entry.check()) }
func (r RemoveRequest) check() error { return cmp.Or(r.About.check(), r.Entry.check()) }
func (r WatchRequest) check() error  { return cmp.Or(r.About.check(), checkTexts(r.Since)) }
