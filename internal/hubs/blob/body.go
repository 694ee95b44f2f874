package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Body is a blob opened for reading. It stays what it was when the blob is replaced or
// deleted, on another node for an hour at least. It is used by one goroutine, and closed by it.
type Body struct {
	Blob
	record  *record
	bodies  Bodies
	release func()
}

// Open gives a blob with its body.
func (s *Service) Open(ctx context.Context, at Path, when Conditions) (*Body, error) {
	for {
		r, container, err := s.read(ctx, at, when)
		if err != nil {
			return nil, err
		}
		release := s.bodies.pin(r.files()...)
		// The files may have gone before they were pinned. Who replaces the body removes
		// them afterwards, and meets the pin if the state is still the same now.
		again, _, err := get[record](ctx, s, blobKey(container, at.Blob))
		if err == nil && again != nil && again.State == r.State {
			return &Body{Blob: r.clone(), record: r, bodies: s.bodies, release: release}, nil
		}
		release()
		if err != nil {
			return nil, err
		}
	}
}

// Close ends reading; safe twice.
func (b *Body) Close() { b.release() }

// WriteRange writes some of the body to w. The error is ErrRange if there are not so many bytes.
func (b *Body) WriteRange(ctx context.Context, w io.Writer, offset, bytes int64) error {
	if offset < 0 || bytes < 0 || bytes > b.Bytes-offset {
		return ErrRange
	}
	if len(b.record.Pieces) == 0 {
		_, err := w.Write(b.record.Body[offset : offset+bytes])
		return err
	}
	for _, p := range b.record.Pieces {
		if bytes == 0 {
			return nil
		}
		if offset >= p.Bytes {
			offset -= p.Bytes
			continue
		}
		n := min(bytes, p.Bytes-offset)
		if err := b.writePiece(ctx, w, p, offset, n); err != nil {
			return err
		}
		offset, bytes = 0, bytes-n
	}
	return nil
}

func (b *Body) writePiece(ctx context.Context, w io.Writer, p piece, offset, bytes int64) (err error) {
	body, stored, err := b.bodies.Open(ctx, p.File, offset, bytes)
	if err != nil {
		return fmt.Errorf("open a blob's body: %w", err)
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	if stored != p.Bytes {
		return fmt.Errorf("a blob's body, file %s, has %d bytes where %d were stored", p.File, stored, p.Bytes)
	}
	n, err := io.CopyBuffer(plainWriter{w}, body, make([]byte, copyBytes))
	if err == nil && n != bytes {
		err = fmt.Errorf("a blob's body, file %s, ends at %d", p.File, offset+n)
	}
	return err
}
