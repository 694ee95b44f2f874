package blob

import (
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// unfinishedSuffix ends the name of a file that is still being written.
const unfinishedSuffix = ".new"

// copyBytes is how much of a body is in memory.
const copyBytes = 128 << 10

// files are the bodies, one folder of them. A file is written once, under a name that is
// never used again.
//
// Who writes a file that no entry names yet, or reads one that may be replaced meanwhile,
// pins it. What is pinned is not removed: it is left to the next sweep.
type files struct {
	fs    vfs.FS
	limit int64 // of one body; MaxPutBytes but in tests

	mu   sync.Mutex
	pins map[string]int // guarded by mu
	// touched are the names that were pinned at any time since the sweep under way began;
	// nil while there is none. A pin that has ended by the time the sweep removes what it
	// found without a name may have been that of a writer who has named it since.
	touched map[string]bool // guarded by mu
}

func openFiles(fs vfs.FS) (*files, error) {
	if err := fs.MkdirAll("."); err != nil {
		return nil, fmt.Errorf("make the folder of bodies: %w", err)
	}
	return &files{fs: fs, limit: MaxPutBytes, pins: map[string]int{}}, nil
}

// pin keeps files until release is called, which is safe twice.
func (f *files) pin(names ...string) (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		f.pins[name]++
		if f.touched != nil {
			f.touched[name] = true
		}
	}
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, name := range names {
			if f.pins[name]--; f.pins[name] == 0 {
				delete(f.pins, name)
			}
		}
	})
}

// written is a body, or a block, that was taken in.
type written struct {
	inline []byte // instead of a file, if it is small
	file   string
	bytes  int64
	md5    []byte
}

// take reads a body to its end. What is larger than inline is in a file, durably, when it
// returns, and pinned until release.
func (f *files) take(body io.Reader, inline int) (_ written, release func(), err error) {
	sum := md5.New()
	body = io.TeeReader(io.LimitReader(cutReader{body}, f.limit+1), sum)
	head := make([]byte, inline+1)
	n, err := io.ReadFull(body, head)
	if n <= inline && (err == io.EOF || err == io.ErrUnexpectedEOF) {
		return written{inline: head[:n], bytes: int64(n), md5: sum.Sum(nil)}, func() {}, nil
	}
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return written{}, nil, err
	}
	w := written{file: newID()}
	release = f.pin(w.file)
	w.bytes, err = f.write(w.file, io.MultiReader(strings.NewReader(string(head[:n])), body))
	if err != nil {
		release()
		if vfs.IsNoSpace(err) {
			err = fmt.Errorf("%w: %w", ErrNoSpace, err)
		}
		return written{}, nil, err
	}
	w.md5 = sum.Sum(nil)
	return w, release, nil
}

// write makes a durable file, or none.
func (f *files) write(name string, body io.Reader) (int64, error) {
	unfinished := name + unfinishedSuffix
	bytes, err := f.fill(unfinished, body)
	if err == nil {
		err = f.fs.Rename(unfinished, name)
	}
	if err != nil {
		_ = f.fs.Remove(unfinished)
		return 0, err
	}
	if err := f.fs.SyncDir("."); err != nil {
		_ = f.fs.Remove(name)
		return 0, err
	}
	return bytes, nil
}

func (f *files) fill(name string, body io.Reader) (bytes int64, err error) {
	file, err := f.fs.Create(name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	bytes, err = io.CopyBuffer(plainWriter{io.NewOffsetWriter(file, 0)}, body, make([]byte, copyBytes))
	if err == nil && bytes > f.limit {
		err = ErrTooLarge
	}
	if err != nil {
		return 0, err
	}
	return bytes, file.Sync()
}

// plainWriter hides all but Write, so that a copy is done in pieces of our size.
type plainWriter struct{ io.Writer }

// remove deletes what nobody names any more. What is pinned, or fails, is left to the next sweep.
func (f *files) remove(names ...string) {
	for _, name := range names {
		f.removeUnless(name, func() bool { return f.pins[name] > 0 })
	}
}

// removeUnless calls wantedLocked under the lock, and holds that for one file only.
func (f *files) removeUnless(name string, wantedLocked func() bool) (removed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !wantedLocked() && f.fs.Remove(name) == nil
}

// cutReader distinguishes a body that was cut short from one that has ended: readers here take
// io.ErrUnexpectedEOF for the end of a body that is smaller than their buffer.
type cutReader struct{ io.Reader }

func (r cutReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err == io.ErrUnexpectedEOF {
		err = ErrCutShort
	}
	return n, err
}

// beginSweep lists the files there are, and from then on notes what is pinned.
func (f *files) beginSweep() ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	entries, err := f.fs.List(".")
	if err != nil {
		return nil, fmt.Errorf("list bodies: %w", err)
	}
	f.touched = make(map[string]bool, len(f.pins))
	for name := range f.pins {
		f.touched[name] = true
	}
	var names []string
	for _, e := range entries {
		if e.IsFile() && isBody(e.Name) {
			names = append(names, e.Name)
		}
	}
	return names, nil
}

// isBody keeps a sweep from what is not ours, whoever has put it there.
func isBody(name string) bool {
	id := strings.TrimSuffix(name, unfinishedSuffix)
	return len(id) == 32 && strings.Trim(id, "0123456789abcdef") == ""
}

// endSweep removes the files of the list that no entry names, and returns how many.
func (f *files) endSweep(names []string, named map[string]bool) int {
	removed := 0
	for _, name := range names {
		id := strings.TrimSuffix(name, unfinishedSuffix)
		if name == id && named[id] {
			continue
		}
		if f.removeUnless(name, func() bool { return f.touched[id] }) {
			removed++
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.touched = nil
	return removed
}
