package functions

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/processor"

	"github.com/eventyard/eventyard/internal/testkit"
)

// Whoever reads sees what was there when it asked, and many who ask at once share few reads.
func TestReadsOfTheWorkAreSharedAndNeverOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w workReader
		var reads, version atomic.Int64
		read := func(ctx context.Context) ([]processor.Entry, error) {
			reads.Add(1)
			found := version.Load()
			time.Sleep(10 * time.Millisecond)
			return []processor.Entry{{Value: []byte{byte(found)}}}, nil
		}
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				asked := version.Add(1)
				entries, err := w.read(t.Context(), read)
				if err != nil || int64(entries[0].Value[0]) < asked {
					t.Errorf("asked at %d, got %v, %v", asked, entries, err)
				}
			})
		}
		all.Wait()
		if n := reads.Load(); n > 25 {
			t.Errorf("%d reads", n)
		}
		testkit.That(t, w.current == nil && w.next == nil, "something is left")
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = w.read(t.Context(), read) }()
		go func() { _, _ = w.read(t.Context(), read) }()
		synctest.Wait()
		cancel()
		testkit.That(t, testkit.Err(w.read(ctx, read)) != nil, "who has to go got an answer")
		time.Sleep(time.Second) // for the others
	})
}
