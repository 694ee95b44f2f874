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
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// Stored is the bodies of all blobs, for who copies them with the entries that name them.
type Stored struct{ bodies *held }

// Stored gives the bodies of the service.
func (s *Service) Stored() Stored { return Stored{s.bodies} }

// Hold has this process remove no body until release is called, which is safe twice: what nobody names
// any more is left to the next sweep. Other nodes that share the bodies do not see it.
func (s Stored) Hold() (release func()) {
	s.bodies.mu.Lock()
	defer s.bodies.mu.Unlock()
	s.bodies.holds++
	return sync.OnceFunc(func() {
		s.bodies.mu.Lock()
		defer s.bodies.mu.Unlock()
		s.bodies.holds--
	})
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
	return Stored{newHeld(files, 0)}, err
}

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
