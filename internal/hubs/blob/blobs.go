package blob

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Content is what a write of a body says besides.
type Content struct {
	Metadata   map[string]string
	Properties Properties
}

// locate finds the container and checks the blob's name.
func (s *Service) locate(ctx context.Context, at Path) (container string, err error) {
	c, err := s.container(ctx, at)
	if err != nil {
		return "", err
	}
	return c.ID, checkBlobName(at.Blob)
}

// Put writes a blob as a whole, which is there, durably, or not at all. The body is read
// to its end; if that fails the error is the body's own.
func (s *Service) Put(ctx context.Context, at Path, body io.Reader, content Content, when Conditions) (Blob, error) {
	if err := content.check(); err != nil {
		return Blob{}, err
	}
	container, err := s.locate(ctx, at)
	if err != nil {
		return Blob{}, err
	}
	// Before the body is read, to spare it; what counts is what is found afterwards.
	old, _, err := get[record](ctx, s, blobKey(container, at.Blob))
	if err == nil {
		err = mayPut(old, when)
	}
	if err != nil {
		return Blob{}, err
	}
	taken, release, err := s.bodies.take(ctx, body, InlineBytes)
	if err != nil {
		return Blob{}, err
	}
	defer release()
	stored, err := s.replace(ctx, container, at.Blob, func(old *record) (*record, error) {
		r, err := next(at.Blob, old, content, when)
		if err != nil {
			return nil, err
		}
		r.Body, r.Bytes = taken.inline, taken.bytes
		if taken.file != "" {
			r.Pieces = []piece{{File: taken.file, Bytes: taken.bytes}}
		}
		if len(r.Properties.ContentMD5) == 0 {
			r.Properties.ContentMD5 = taken.md5
		}
		return r, nil
	})
	if err != nil && taken.file != "" && certain(err) {
		release()
		s.bodies.remove(context.WithoutCancel(ctx), taken.file)
	}
	if err == nil && taken.file != "" {
		err = s.bodies.confirm(ctx, taken.began, taken.file)
	}
	return stored, err
}

// refusals are the errors of a change that is sure to have changed nothing. After another one a
// file stays, and a sweep finds out.
var refusals = []error{
	ErrBlobExists, ErrOverwrite, ErrConditionNotMet, ErrLeaseNeeded, ErrLeaseOther, ErrLeaseAbsent, ErrLeaseLost, ErrBlockList,
	meta.ErrConflict, meta.ErrNotFound, meta.ErrInvalid, meta.ErrNoSpace, meta.ErrUnavailable,
}

func certain(err error) bool {
	return slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) })
}

func mayPut(old *record, when Conditions) error {
	if err := when.forPut(old.committed()); err != nil {
		return err
	}
	var lease Lease
	if old != nil {
		lease = old.Lease
	}
	return lease.permits(when.LeaseID, now())
}

// next is a blob's new state, without its body.
func next(name string, old *record, content Content, when Conditions) (*record, error) {
	if err := mayPut(old, when); err != nil {
		return nil, err
	}
	t := now()
	r := &record{State: newID(), Blob: Blob{
		Name: name, Created: t, Metadata: maps.Clone(content.Metadata), Properties: content.Properties,
	}}
	r.touch(t)
	if old.committed() != nil {
		r.Created, r.Lease = old.Created, old.Lease.afterWrite(t)
	}
	return r, nil
}

// replace changes a blob's body and clears away what the old one leaves.
func (s *Service) replace(ctx context.Context, container, name string, how func(old *record) (*record, error)) (Blob, error) {
	old, changed, err := change(ctx, s, blobKey(container, name), how)
	if err != nil {
		return Blob{}, err
	}
	if old != nil {
		s.forget(ctx, container, old, changed.files())
	}
	return changed.clone(), nil
}

// forget removes the files and uncommitted blocks of a state that has passed, but for the
// files that the new state has. Nobody can name them again: that would take a change of
// the old state. What fails is left to the next sweep.
func (s *Service) forget(ctx context.Context, container string, old *record, kept []string) {
	keep := make(map[string]bool, len(kept))
	for _, name := range kept {
		keep[name] = true
	}
	gone := old.files()
	blocks, _ := s.meta.List(ctx, blocksOf(container, old.Name, old.State))
	for _, e := range blocks {
		if b, err := decode[blockRecord](e); err == nil && s.meta.Delete(ctx, e.Key, e.Revision) == nil {
			gone = append(gone, b.File)
		}
	}
	s.bodies.remove(ctx, slices.DeleteFunc(gone, func(name string) bool { return keep[name] })...)
}

// modify changes a blob that exists, but for its body.
func (s *Service) modify(ctx context.Context, at Path, how func(*record) error) (Blob, error) {
	container, err := s.locate(ctx, at)
	if err != nil {
		return Blob{}, err
	}
	_, changed, err := change(ctx, s, blobKey(container, at.Blob), func(old *record) (*record, error) {
		if old.committed() == nil {
			return nil, ErrBlobNotFound
		}
		changed := *old
		return &changed, how(&changed)
	})
	if err != nil {
		return Blob{}, err
	}
	return changed.clone(), nil
}

// mayWrite gives the reason why a blob that exists may not be written to; nil if it may.
func (b *Blob) mayWrite(when Conditions) error {
	if err := when.forWrite(b.ETag, b.Modified); err != nil {
		return err
	}
	return b.Lease.permits(when.LeaseID, now())
}

// write is modify for what readers should see.
func (s *Service) write(ctx context.Context, at Path, when Conditions, how func(*Blob)) (Blob, error) {
	return s.modify(ctx, at, func(r *record) error {
		if err := r.mayWrite(when); err != nil {
			return err
		}
		t := now()
		r.touch(t)
		r.Lease = r.Lease.afterWrite(t)
		how(&r.Blob)
		return nil
	})
}

// SetMetadata replaces all metadata of a blob.
func (s *Service) SetMetadata(ctx context.Context, at Path, metadata map[string]string, when Conditions) (Blob, error) {
	if err := checkMetadata(metadata); err != nil {
		return Blob{}, err
	}
	return s.write(ctx, at, when, func(b *Blob) { b.Metadata = maps.Clone(metadata) })
}

// SetProperties replaces all properties of a blob.
func (s *Service) SetProperties(ctx context.Context, at Path, properties Properties, when Conditions) (Blob, error) {
	if err := (Content{Properties: properties}).check(); err != nil {
		return Blob{}, err
	}
	return s.write(ctx, at, when, func(b *Blob) { b.Properties = properties })
}

// Delete removes a blob.
func (s *Service) Delete(ctx context.Context, at Path, when Conditions) error {
	container, err := s.locate(ctx, at)
	if err != nil {
		return err
	}
	old, _, err := change(ctx, s, blobKey(container, at.Blob), func(old *record) (*record, error) {
		if old.committed() == nil {
			return nil, ErrBlobNotFound
		}
		return nil, old.mayWrite(when)
	})
	if err != nil {
		return err
	}
	s.forget(ctx, container, old, nil)
	return nil
}

// Lease works on a blob's lease. That is no change of the blob: its ETag stays.
func (s *Service) Lease(ctx context.Context, at Path, action LeaseAction, when Conditions) (Blob, error) {
	return s.modify(ctx, at, func(r *record) (err error) {
		if err := when.forWrite(r.ETag, r.Modified); err != nil {
			return err
		}
		r.Lease, err = r.Lease.apply(action, now())
		return err
	})
}

// Blob shows a blob without its body.
func (s *Service) Blob(ctx context.Context, at Path, when Conditions) (Blob, error) {
	r, _, err := s.read(ctx, at, when)
	if err != nil {
		return Blob{}, err
	}
	return r.Blob, nil
}

// read finds a blob and the id of its container.
func (s *Service) read(ctx context.Context, at Path, when Conditions) (*record, string, error) {
	container, err := s.locate(ctx, at)
	if err != nil {
		return nil, "", err
	}
	r, _, err := get[record](ctx, s, blobKey(container, at.Blob))
	switch {
	case err != nil:
		return nil, "", err
	case r.committed() == nil:
		return nil, "", ErrBlobNotFound
	}
	if err := when.forRead(r.ETag, r.Modified); err != nil {
		return nil, "", err
	}
	return r, container, r.Lease.permitsReader(when.LeaseID, now())
}
