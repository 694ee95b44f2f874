package bodies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Put stores a body: its chunks one after the other, then its index.
func (s *Store) Put(ctx context.Context, name string, body io.Reader) (int64, error) {
	x := index{chunkBytes: s.cfg.chunkBytes}
	message := make([]byte, headerBytes+x.chunkBytes)
	for {
		n, err := io.ReadFull(body, message[headerBytes:])
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return 0, err
		}
		if n > 0 {
			seq, storeErr := s.store(ctx, s.chunks(name), seal(kindChunk, message[:headerBytes+n]))
			if storeErr != nil {
				return 0, fmt.Errorf("store a chunk of a body: %w", storeErr)
			}
			x.bytes, x.seqs = x.bytes+int64(n), append(x.seqs, seq)
		}
		if err != nil { // the end
			break
		}
	}
	if _, err := s.store(ctx, s.index(name), x.encode()); err != nil {
		return 0, fmt.Errorf("store the index of a body: %w", err)
	}
	return x.bytes, nil
}

// store has one message stored, and gives its sequence once it is durable. A message of which nothing
// was heard is sent again.
func (s *Store) store(ctx context.Context, subject string, message []byte) (seq uint64, err error) {
	err = s.persist(ctx, func(ctx context.Context) error {
		answer, err := ask(ctx, s.put, subject, message)
		if err != nil {
			return err
		}
		var ack struct {
			Seq   uint64    `json:"seq"`
			Error *apiError `json:"error"`
		}
		if err := json.Unmarshal(answer.Data, &ack); err != nil || ack.Error == nil && ack.Seq == 0 {
			return fmt.Errorf("%w that can be read: %.100q", errAgain, answer.Data)
		}
		seq = ack.Seq
		return ack.Error.judge()
	})
	return seq, err
}

// Open reads the index, and the chunks as they are asked for.
func (s *Store) Open(ctx context.Context, name string, offset, bytes int64) (io.ReadCloser, int64, error) {
	message, err := s.get(ctx, map[string]any{"last_by_subj": s.index(name)})
	if err != nil {
		return nil, 0, fmt.Errorf("read the index of a body: %w", err)
	}
	x, err := decodeIndex(message)
	if err != nil {
		return nil, 0, fmt.Errorf("read body %s: %w", name, err)
	}
	if offset < 0 || bytes < 0 || bytes > x.bytes-offset {
		return nil, 0, fmt.Errorf("read body %s: it has %d bytes, and %d from %d on are asked for", name, x.bytes, bytes, offset)
	}
	return &reader{ctx: ctx, store: s, name: name, index: x, offset: offset, left: bytes}, x.bytes, nil
}

// get reads one message: from whichever server answers and, where that one does not have it, from the
// leader, which does if anybody has.
func (s *Store) get(ctx context.Context, which map[string]any) (message []byte, err error) {
	query, err := json.Marshal(which)
	if err != nil {
		return nil, err
	}
	err = s.persist(ctx, func(ctx context.Context) error {
		answer, err := ask(ctx, s.reads, "$JS.API.DIRECT.GET."+s.Stream(), query)
		if err != nil {
			return err
		}
		if status := answer.Header.Get("Status"); status != "" {
			return fmt.Errorf("%w: %s", fs.ErrNotExist, status)
		}
		message = answer.Data
		return nil
	})
	if !errors.Is(err, fs.ErrNotExist) {
		return message, err
	}
	var answer struct {
		Message struct {
			Data []byte `json:"data"`
		} `json:"message"`
	}
	err = s.call(ctx, s.reads, "STREAM.MSG.GET", which, &answer)
	return answer.Message.Data, err
}

// reader gives a range of a body.
type reader struct {
	ctx    context.Context // of Open: an io.Reader has none
	store  *Store
	name   string
	index  index
	offset int64 // of what comes next
	left   int64 // of the range

	chunk []byte // what was read and not given yet
}

// Read gives what is left of a chunk, and reads the next where nothing is.
func (r *reader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	if len(r.chunk) == 0 {
		if err := r.fetch(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.chunk)
	r.chunk, r.offset, r.left = r.chunk[n:], r.offset+int64(n), r.left-int64(n)
	return n, nil
}

// fetch reads the chunk that the offset lies in, and leaves out what is before and behind the range.
func (r *reader) fetch() error {
	i := int(r.offset / r.index.chunkBytes)
	message, err := r.store.get(r.ctx, map[string]any{"seq": r.index.seqs[i]})
	var chunk []byte
	if err == nil {
		chunk, err = open(kindChunk, message)
	}
	if err == nil && int64(len(chunk)) != r.index.chunkLen(i) {
		err = fmt.Errorf("%w: chunk %d has %d bytes", errDamaged, i, len(chunk))
	}
	if err != nil {
		return fmt.Errorf("read body %s at %d: %w", r.name, r.offset, err)
	}
	chunk = chunk[r.offset-int64(i)*r.index.chunkBytes:]
	r.chunk = chunk[:min(int64(len(chunk)), r.left)]
	return nil
}

// Close ends reading; safe twice.
func (r *reader) Close() error {
	r.left, r.chunk = 0, nil
	return nil
}

// Remove purges index and chunks.
func (s *Store) Remove(ctx context.Context, name string) error {
	if err := s.call(ctx, s.put, "STREAM.PURGE", map[string]any{"filter": s.subjects(name + ".>")}, nil); err != nil {
		return fmt.Errorf("remove body %s: %w", name, err)
	}
	return nil
}

// List gives the names that have an index or a chunk.
func (s *Store) List(ctx context.Context) ([]string, error) {
	names := make(map[string]bool)
	for seen := 0; ; {
		var answer struct {
			Total int `json:"total"`
			State struct {
				Subjects map[string]uint64 `json:"subjects"`
			} `json:"state"`
		}
		query := map[string]any{"subjects_filter": s.subjects(">"), "offset": seen}
		if err := s.call(ctx, s.reads, "STREAM.INFO", query, &answer); err != nil {
			return nil, fmt.Errorf("list bodies: %w", err)
		}
		for subject := range answer.State.Subjects {
			name, _, _ := strings.Cut(strings.TrimPrefix(subject, s.subjects("")), ".")
			names[name] = true
		}
		seen += len(answer.State.Subjects)
		if len(answer.State.Subjects) == 0 || seen >= answer.Total {
			return slices.Sorted(maps.Keys(names)), nil
		}
	}
}
