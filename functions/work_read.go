package functions

import (
	"context"
	"sync"

	"github.com/eventyard/eventyard/internal/panics"
	"github.com/eventyard/eventyard/processor"
)

// workReader reads the records of all partitions of a function, as a store gives them only
// together. An instance that gets a thousand partitions would read a million records if each read
// for itself: so who comes while others wait for a read to begin shares it with them.
type workReader struct {
	mu      sync.Mutex
	current *sharedRead // guarded by mu: under way; nil: none
	next    *sharedRead // guarded by mu: begins when that has ended; nil: nobody waits for one
}

// sharedRead is one read of the store.
type sharedRead struct {
	begin   chan struct{} // closed when its first waiter may begin
	done    chan struct{} // closed when entries and err are set
	entries []processor.Entry
	err     error
}

// read gives what a read that began after the call of this function found.
func (w *workReader) read(ctx context.Context, read func(context.Context) ([]processor.Entry, error)) ([]processor.Entry, error) {
	r, first := w.join()
	if first {
		<-r.begin      // the one before it is bounded in time
		defer func() { // lets the next begin
			w.mu.Lock()
			defer w.mu.Unlock()
			close(r.done)
			w.current, w.next = w.next, nil
			if w.current != nil {
				close(w.current.begin)
			}
		}()
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		r.err = panics.Call(func() (err error) { r.entries, err = read(ctx); return err })
		return r.entries, r.err
	}
	select {
	case <-r.done:
		return r.entries, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// join gives the read that has not begun yet; first: the caller is to make it.
func (w *workReader) join() (r *sharedRead, first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next != nil {
		return w.next, false
	}
	r = &sharedRead{begin: make(chan struct{}), done: make(chan struct{})}
	if w.current == nil {
		w.current = r
		close(r.begin)
	} else {
		w.next = r
	}
	return r, true
}
