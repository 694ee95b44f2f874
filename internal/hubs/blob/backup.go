package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/holds"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// Stored is the bodies of all blobs, for who copies them with the entries that name them.
type Stored struct {
	bodies *held
	meta   meta.Store // nil where nobody else has the bodies
}

// Stored gives the bodies of the service.
func (s *Service) Stored() Stored {
	if s.bodies.grace == 0 {
		return Stored{bodies: s.bodies}
	}
	return Stored{s.bodies, s.meta}
}

// Hold has every body stay until release is called, which is safe twice: what nobody names any more is
// left to the next sweep. Where other nodes share the bodies it waits for the store, and release tells
// by an error that they may have removed some all the same.
func (s Stored) Hold(ctx context.Context) (release func(context.Context) error, err error) {
	if s.meta != nil {
		hold, err := holds.Begin(ctx, s.meta, holds.Bodies)
		if err != nil {
			return nil, err
		}
		return hold.Release, nil
	}
	s.bodies.mu.Lock()
	defer s.bodies.mu.Unlock()
	s.bodies.holds++
	end := sync.OnceFunc(func() {
		s.bodies.mu.Lock()
		defer s.bodies.mu.Unlock()
		s.bodies.holds--
	})
	return func(context.Context) error {
		end()
		return nil
	}, nil
}

// Named gives the names of the bodies that an entry names: none where it is no blob's, or a small one's.
func (s Stored) Named(e meta.Entry) ([]string, error) {
	switch {
	case strings.HasPrefix(e.Key, blobsPrefix), strings.HasPrefix(e.Key, longPrefix):
		r, err := decode[record](e)
		return r.files(), err
	case strings.HasPrefix(e.Key, blocksPrefix):
		b, err := decode[blockRecord](e)
		if err != nil {
			return nil, err
		}
		return []string{b.File}, nil
	}
	return nil, nil
}

// Open reads a body, until ctx ends. The error is fs.ErrNotExist where there is none.
func (s Stored) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	if !isBody(name) {
		return nil, fmt.Errorf("%q is not the name of a body: %w", name, fs.ErrNotExist)
	}
	bytes, err := s.bytes(ctx, name)
	if err != nil {
		return nil, err
	}
	body, _, err := s.bodies.Open(ctx, name, 0, bytes)
	return body, err
}

// bytes is how many a body has.
func (s Stored) bytes(ctx context.Context, name string) (int64, error) {
	body, bytes, err := s.bodies.Open(ctx, name, 0, 0)
	if err != nil {
		return 0, err
	}
	return bytes, body.Close()
}

// Restore gives a folder that bodies are put into, for a yard to be opened on later.
func Restore(fs vfs.FS) (Stored, error) {
	files, err := openFiles(fs)
	return RestoreTo(files), err
}

// RestoreTo is Restore for bodies that are kept elsewhere.
func RestoreTo(bodies Bodies) Stored { return Stored{bodies: newHeld(bodies, 0)} }

// Put stores a body, durably. One that is there stays, since a name stands for one body only.
func (s Stored) Put(ctx context.Context, name string, body io.Reader) error {
	if !isBody(name) {
		return fmt.Errorf("%q is not the name of a body", name)
	}
	_, err := s.bytes(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = s.bodies.Put(ctx, name, body)
	}
	return err
}
