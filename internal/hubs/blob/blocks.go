package blob

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// A blob may be uploaded in blocks, which become its body when a list of them is
// committed. Where there is no blob yet, its first block makes an entry of it that is marked
// as uncommitted, and is no blob to anybody else: so that blocks always belong to a state,
// and that each commit is one compare-and-set from one state to the next.

// Block is a part of a body.
type Block struct {
	ID    string // the text that the client gave
	Bytes int64
}

// BlockSource says which block of an id is meant.
type BlockSource int

const (
	// Latest is the uncommitted one or, if there is none, the committed one.
	Latest BlockSource = iota
	Committed
	Uncommitted
)

// BlockName is a block of a list to commit.
type BlockName struct {
	ID     string
	Source BlockSource
}

// maxBlockID is that of 64 bytes in base64, which is what clients make their ids of.
const maxBlockID = 88

// PutBlock keeps a block until it is committed. When it returns the block is durable.
func (s *Service) PutBlock(ctx context.Context, at Path, id string, body io.Reader, when Conditions) (md5 []byte, err error) {
	if id == "" || len(id) > maxBlockID {
		return nil, ErrBlockList
	}
	container, err := s.locate(ctx, at)
	if err != nil {
		return nil, err
	}
	state, err := s.stateFor(ctx, container, at.Blob, when)
	if err != nil {
		return nil, err
	}
	block, release, err := s.bodies.take(ctx, body, -1)
	if err != nil {
		return nil, err
	}
	defer release()
	// The block that it replaces keeps its file: somebody may be committing it just now.
	// A sweep finds out.
	_, _, err = change(ctx, s, blockKey(container, at.Blob, state, id), func(*blockRecord) (*blockRecord, error) {
		return &blockRecord{Blob: at.Blob, Uploaded: now(), piece: piece{Block: id, File: block.file, Bytes: block.bytes}}, nil
	})
	if err != nil && certain(err) {
		release()
		s.bodies.remove(context.WithoutCancel(ctx), block.file)
	}
	if err == nil {
		err = s.bodies.confirm(ctx, block.began, block.file)
	}
	return block.md5, err
}

// stateFor gives the state that a block is uploaded to, making one if there is no blob.
func (s *Service) stateFor(ctx context.Context, container, name string, when Conditions) (string, error) {
	key := blobKey(container, name)
	old, _, err := get[record](ctx, s, key)
	if err != nil {
		return "", err
	}
	if old == nil {
		_, old, err = change(ctx, s, key, func(old *record) (*record, error) {
			if old != nil {
				return old, nil
			}
			t := now()
			return &record{State: newID(), Blob: Blob{Name: name, ETag: newETag(), Created: t, Modified: t, Uncommitted: true}}, nil
		})
		if err != nil {
			return "", err
		}
	}
	if when.CreateOnly && old.committed() != nil {
		return "", ErrOverwrite
	}
	return old.State, old.Lease.permits(when.LeaseID, now())
}

// uncommitted gives the blocks of a blob's state with the revision of each; none where there is no
// blob.
func (s *Service) uncommitted(ctx context.Context, container string, of *record) (map[string]piece, map[string]meta.Revision, error) {
	if of == nil {
		return nil, nil, nil
	}
	entries, err := s.meta.List(ctx, blocksOf(container, of.Name, of.State))
	if err != nil {
		return nil, nil, err
	}
	blocks, revisions := make(map[string]piece, len(entries)), make(map[string]meta.Revision, len(entries))
	for _, e := range entries {
		b, err := decode[blockRecord](e)
		if err != nil {
			return nil, nil, err
		}
		blocks[b.Block], revisions[b.Block] = b.piece, e.Revision
	}
	return blocks, revisions, nil
}

// Commit makes the listed blocks the body of the blob, in that order, and forgets all others.
func (s *Service) Commit(ctx context.Context, at Path, list []BlockName, content Content, when Conditions) (Blob, error) {
	if len(list) > MaxBlocks {
		return Blob{}, ErrTooMany
	}
	if err := content.check(); err != nil {
		return Blob{}, err
	}
	container, err := s.locate(ctx, at)
	if err != nil {
		return Blob{}, err
	}
	release := func() {}
	defer func() { release() }()
	var began time.Time
	var pieces []string
	stored, err := s.replace(ctx, container, at.Blob, func(old *record) (*record, error) {
		r, err := next(at.Blob, old, content, when)
		if err != nil {
			return nil, err
		}
		release() // of the try before
		began = time.Now()
		r.Pieces, release, err = s.resolve(ctx, container, old, list)
		if err != nil {
			return nil, err
		}
		for _, p := range r.Pieces {
			r.Bytes += p.Bytes
		}
		pieces = r.files()
		return r, nil
	})
	if err == nil {
		err = s.bodies.confirm(ctx, began, pieces...)
	}
	return stored, err
}

// resolve finds the blocks of a list, and pins their files: a block uploaded anew leaves
// the file of the old one without a name.
func (s *Service) resolve(ctx context.Context, container string, old *record, list []BlockName) (_ []piece, release func(), err error) {
	committed := map[string]piece{}
	if old != nil {
		for _, p := range old.Pieces {
			if p.Block != "" {
				committed[p.Block] = p
			}
		}
	}
	for {
		blocks, before, err := s.uncommitted(ctx, container, old)
		if err != nil {
			return nil, func() {}, err
		}
		pieces, err := pick(list, committed, blocks)
		if err != nil {
			return nil, func() {}, err
		}
		release := s.bodies.pin((&record{Pieces: pieces}).files()...)
		if len(before) == 0 {
			return pieces, release, nil
		}
		// As in Open: what still has its name now has it together with the pin.
		_, after, err := s.uncommitted(ctx, container, old)
		if err == nil && !slices.ContainsFunc(pieces, func(p piece) bool { return after[p.Block] != before[p.Block] }) {
			return pieces, release, nil
		}
		release()
		if err != nil {
			return nil, func() {}, err
		}
	}
}

// pick finds each block of a list.
func pick(list []BlockName, committed, uncommitted map[string]piece) ([]piece, error) {
	pieces := make([]piece, 0, len(list))
	for _, b := range list {
		p, ok := uncommitted[b.ID]
		if b.Source == Committed || b.Source == Latest && !ok {
			p, ok = committed[b.ID]
		}
		if !ok {
			return nil, ErrBlockList
		}
		pieces = append(pieces, p)
	}
	return pieces, nil
}

// BlockList is what blocks a blob has.
type BlockList struct {
	Blob
	CommittedBlocks, UncommittedBlocks []Block
}

// Blocks lists the blocks of a blob, which may have uncommitted ones only. Of the
// conditions it looks at the lease only.
func (s *Service) Blocks(ctx context.Context, at Path, when Conditions) (BlockList, error) {
	container, err := s.locate(ctx, at)
	if err != nil {
		return BlockList{}, err
	}
	r, _, err := get[record](ctx, s, blobKey(container, at.Blob))
	if err != nil {
		return BlockList{}, err
	}
	if r == nil {
		return BlockList{}, ErrBlobNotFound
	}
	if err := r.Lease.permitsReader(when.LeaseID, now()); err != nil {
		return BlockList{}, err
	}
	list := BlockList{Blob: r.clone()}
	for _, p := range r.Pieces {
		if p.Block != "" {
			list.CommittedBlocks = append(list.CommittedBlocks, Block{p.Block, p.Bytes})
		}
	}
	entries, err := s.meta.List(ctx, blocksOf(container, at.Blob, r.State))
	for _, e := range entries {
		b, err := decode[blockRecord](e)
		if err != nil {
			return BlockList{}, err
		}
		list.UncommittedBlocks = append(list.UncommittedBlocks, Block{b.Block, b.Bytes})
	}
	return list, err
}
