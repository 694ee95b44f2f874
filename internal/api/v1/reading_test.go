package v1

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	quota "github.com/eventyard/eventyard/internal/transport/admission"
)

// stuck is a client that takes nothing of an answer but its beginning, until its time is up.
type stuck struct {
	header http.Header
	room   int // bytes that it still takes
	mu     sync.Mutex
	late   chan struct{} // closed when the deadline is past; guarded by mu
	timer  *time.Timer
}

func newStuck(room int) *stuck {
	return &stuck{header: http.Header{}, room: room, late: make(chan struct{})}
}

func (s *stuck) Header() http.Header { return s.header }
func (s *stuck) WriteHeader(int)     {}
func (s *stuck) FlushError() error   { return nil }

func (s *stuck) Write(p []byte) (int, error) {
	if s.room -= len(p); s.room >= 0 {
		return len(p), nil
	}
	s.mu.Lock()
	late := s.late
	s.mu.Unlock()
	<-late
	return 0, os.ErrDeadlineExceeded
}

func (s *stuck) SetWriteDeadline(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	late := s.late
	s.timer = time.AfterFunc(time.Until(at), func() { close(late) })
	return nil
}

// R2: clients that take nothing of a tail, an export or a page make room for others who need the
// memory, before their time is up; everybody else gets all there is.
func TestReadersThatTakeNothingMakeRoom(t *testing.T) {
	for name, path := range map[string]string{
		"tails":   "/api/v1/hubs/orders/events?from=earliest&follow=true",
		"exports": "/api/v1/hubs/orders/events?from=earliest",
		"pages":   "/api/v1/hubs/orders/partitions/0/events?from=earliest",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const patience = 5 * time.Second
				all := maxPageBytes + maxRunBytes // as much as one needs
				y := newYard(t, func(c *Config) { c.Memory = quota.NewMemory(all, all, patience) })
				y.hub("orders", 1)
				for range 4 {
					y.send("orders", "0", strings.Repeat("x", 700_000))
				}
				var readers sync.WaitGroup
				ask := func(w http.ResponseWriter) {
					r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost"+path, nil)
					r.Header.Set("Authorization", y.authorization)
					readers.Go(func() {
						defer func() { _ = recover() }() // how an answer breaks off
						y.frame.ServeHTTP(w, r)
					})
				}
				for range 10 {
					ask(newStuck(10_000))
				}
				synctest.Wait()
				begun := time.Now()
				for range 2 {
					if shown := y.page("orders", "0", "from=earliest"); len(shown.Events) != 4 {
						t.Errorf("a page has %d events", len(shown.Events))
					}
				}
				waited := time.Since(begun)
				testkit.That(t, waited > 0 && waited < 20*patience, "waited %s", waited)
				readers.Wait() // those that are left end by their own time
			})
		})
	}
}

// A long poll that waits holds nothing, and what comes is given at once.
func TestLongPollsHoldNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := maxPageBytes + maxRunBytes
		y := newYard(t, func(c *Config) { c.Memory = quota.NewMemory(all, all, time.Hour) })
		y.hub("orders", 1)
		var polls sync.WaitGroup
		for range 5 {
			polls.Go(func() {
				shown := y.page("orders", "0", "from=latest&wait=1m")
				testkit.Equal(t, len(shown.Events), 1, "events on the page")
			})
		}
		synctest.Wait()
		y.send("orders", "0", "x")
		polls.Wait()
	})
}
