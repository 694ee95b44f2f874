package blob

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Bodies keeps the larger bodies, each under a name that is used once: 32 hexadecimal digits. There
// are two: a folder (files.go), and the streams of servers that several nodes share, in package
// internal/storage/jetstream/bodies. All methods may be called by many goroutines at once, and block
// until ctx ends at most. Errors of storage are meta.ErrNoSpace and meta.ErrUnavailable.
type Bodies interface {
	// Put reads a body to its end and stores it, durably when it returns. If reading fails the error
	// is the body's own. Whatever was stored by then may be left: it is listed and can be removed.
	Put(ctx context.Context, name string, body io.Reader) (bytes int64, err error)
	// Open gives some of a body, and how many bytes the whole has; fs.ErrNotExist where there is no
	// whole body of the name. The reader gives exactly those bytes, or an error; it is used by one
	// goroutine, and ends with ctx.
	Open(ctx context.Context, name string, offset, bytes int64) (body io.ReadCloser, stored int64, err error)
	// Remove removes what there is under a name. That there is nothing is no error.
	Remove(ctx context.Context, name string) error
	// List gives the names of all that is stored, whole or not, each once. What is being put at the
	// time may be among them.
	List(ctx context.Context) (names []string, err error)
}

// copyBytes is how much of a body is in memory.
const copyBytes = 128 << 10

// held are the bodies, and who needs which of them.
//
// Who writes a body that no entry names yet, or reads one that may be replaced meanwhile, pins it.
// What is pinned is not removed: it is left to the next sweep. That is all where one process has the
// bodies to itself. Where several nodes share them, others do not see the pins: a body is removed
// only by a sweep, once no entry has named it for as long as grace, which is longer than anybody
// writes or reads.
type held struct {
	Bodies
	limit int64         // of one body; MaxPutBytes but in tests
	grace time.Duration // zero: this process has the bodies to itself
	slow  time.Duration // what takes as long as this to be named may be lost; the grace but in tests

	mu    sync.Mutex
	pins  map[string]int // guarded by mu
	holds int            // guarded by mu: how many want nothing to be removed
	// touched are the names that were pinned at any time since the sweep under way began;
	// nil while there is none. A pin that has ended by the time the sweep removes what it
	// found without a name may have been that of a writer who has named it since.
	touched map[string]bool // guarded by mu

	// nameless is since when sweeps have found bodies without a name. Used by the one sweep that
	// runs at a time.
	nameless map[string]time.Time
}

func newHeld(bodies Bodies, grace time.Duration) *held {
	return &held{Bodies: bodies, limit: MaxPutBytes, grace: grace, slow: grace, pins: map[string]int{}}
}

// pin keeps bodies until release is called, which is safe twice.
func (h *held) pin(names ...string) (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range names {
		h.pins[name]++
		if h.touched != nil {
			h.touched[name] = true
		}
	}
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, name := range names {
			if h.pins[name]--; h.pins[name] == 0 {
				delete(h.pins, name)
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
	began  time.Time // when it may first have been seen without a name
}

// take reads a body to its end. What is larger than inline is stored, durably, when it returns, and
// pinned until release.
func (h *held) take(ctx context.Context, body io.Reader, inline int) (_ written, release func(), err error) {
	sum := md5.New()
	body = io.TeeReader(&limitedReader{cutReader{body}, h.limit}, sum)
	head := make([]byte, inline+1)
	n, err := io.ReadFull(body, head)
	if n <= inline && (err == io.EOF || err == io.ErrUnexpectedEOF) {
		return written{inline: head[:n], bytes: int64(n), md5: sum.Sum(nil)}, func() {}, nil
	}
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return written{}, nil, err
	}
	w := written{file: newID(), began: time.Now()}
	release = h.pin(w.file)
	w.bytes, err = h.Put(ctx, w.file, io.MultiReader(strings.NewReader(string(head[:n])), body))
	if err != nil {
		release()
		if errors.Is(err, meta.ErrNoSpace) {
			err = fmt.Errorf("%w: %w", ErrNoSpace, err)
		}
		return written{}, nil, err
	}
	w.md5 = sum.Sum(nil)
	return w, release, nil
}

// limitedReader ends a body that is larger than it may be with ErrTooLarge.
type limitedReader struct {
	io.Reader
	left int64
}

func (r *limitedReader) Read(p []byte) (int, error) {
	if int64(len(p)) > r.left+1 {
		p = p[:r.left+1]
	}
	n, err := r.Reader.Read(p)
	if r.left -= int64(n); r.left < 0 {
		return n, ErrTooLarge
	}
	return n, err
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

// errSlow: a body has its name too late for anybody to be sure that it stays.
var errSlow = errors.New("a blob's body took too long to be stored and named, and may be removed: send it again")

// confirm makes sure that bodies are there which have just been named, where it took so long that a
// sweep of another node may have taken them for nobody's. A sweep removes only what had no name when
// it was asked for, a grace after another one, so that whoever is faster than that is safe. Later than
// that to look is not enough: a sweep may have looked before them, and be about to remove them.
func (h *held) confirm(ctx context.Context, began time.Time, names ...string) error {
	took := elapsed(began)
	switch {
	case h.grace == 0 || took < h.slow/2:
		return nil
	case took >= h.slow:
		return errSlow
	}
	for _, name := range names {
		body, _, err := h.Open(ctx, name, 0, 0)
		if err == nil {
			err = body.Close()
		}
		if err != nil {
			return fmt.Errorf("a blob's body was removed before it had a name: %w", err)
		}
	}
	return nil
}

// elapsed is the time since another by the clock of the two that has gone further: the one that never
// goes back stands still while a virtual machine is paused.
func elapsed(since time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// remove deletes what nobody names any more. What is pinned, or fails, is left to the next sweep, and
// so is all that other nodes may read.
func (h *held) remove(ctx context.Context, names ...string) {
	if h.grace > 0 {
		return
	}
	for _, name := range names {
		h.removeUnless(ctx, name, func() bool { return h.pins[name] > 0 })
	}
}

// removeUnless calls wantedLocked under the lock. Where only this process has the bodies it holds
// that until the body is gone, for one body only; with a grace nobody can want it any more.
func (h *held) removeUnless(ctx context.Context, name string, wantedLocked func() bool) (removed bool) {
	h.mu.Lock()
	wanted := h.holds > 0 || wantedLocked()
	if h.grace > 0 {
		h.mu.Unlock()
	} else {
		defer h.mu.Unlock()
	}
	return !wanted && h.Remove(ctx, name) == nil
}

// beginSweep lists the bodies there are, and from then on notes what is pinned.
func (h *held) beginSweep(ctx context.Context) ([]string, error) {
	h.mu.Lock()
	h.touched = make(map[string]bool, len(h.pins))
	for name := range h.pins {
		h.touched[name] = true
	}
	h.mu.Unlock()
	names, err := h.List(ctx)
	if err != nil {
		h.stopNoting()
		return nil, fmt.Errorf("list bodies: %w", err)
	}
	return names, nil
}

// stopNoting ends what beginSweep began.
func (h *held) stopNoting() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.touched = nil
}

// endSweep removes the bodies of the list that no entry names, and returns how many. Entries were read
// after asked; where other nodes write bodies, too, only what had no name a grace before that goes.
func (h *held) endSweep(ctx context.Context, asked time.Time, names []string, named map[string]bool) int {
	removed := 0
	nameless := make(map[string]time.Time)
	for _, name := range names {
		if named[name] {
			continue
		}
		if h.grace > 0 {
			since, seen := h.nameless[name]
			if !seen {
				since = time.Now()
			}
			if nameless[name] = since; asked.Sub(since) < h.grace {
				continue
			}
		}
		if h.removeUnless(ctx, name, func() bool { return h.touched[name] }) {
			removed++
			delete(nameless, name)
		}
	}
	h.nameless = nameless
	h.stopNoting()
	return removed
}

// isBody keeps a sweep from what is not ours, whoever has put it there.
func isBody(name string) bool {
	return len(name) == 32 && strings.Trim(name, "0123456789abcdef") == ""
}
