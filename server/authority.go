package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/transport/certs"
)

// authorityEntry is the key of an entry in the meta store: the certificate authority of a yard that
// has no folder, with its private key. It is sealed, as all entries that are not said to be plain.
const authorityEntry = "server/authority"

// authorityEntries keeps the authority in the meta store, for all nodes.
type authorityEntries struct{ meta meta.Store }

var _ certs.AuthorityStore = authorityEntries{}

// Get reads the authority; it may be old by a moment, which Set finds out.
func (a authorityEntries) Get(ctx context.Context) ([]byte, uint64, error) {
	entry, err := a.meta.Get(ctx, authorityEntry)
	if errors.Is(err, meta.ErrNotFound) {
		return nil, 0, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return entry.Value, uint64(entry.Revision), err
}

// Set stores the authority. Where it is not known whether it did, to look again finds out as well.
func (a authorityEntries) Set(ctx context.Context, text []byte, revision uint64) (uint64, error) {
	stored, err := a.meta.CompareAndSet(ctx, authorityEntry, meta.Revision(revision), text)
	if errors.Is(err, meta.ErrConflict) || errors.Is(err, meta.ErrUncertain) {
		err = fmt.Errorf("%w: %w", certs.ErrChanged, err)
	}
	return uint64(stored), err
}
