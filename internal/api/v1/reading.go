package v1

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	quota "github.com/eventyard/eventyard/internal/transport/admission" // v1 has an admission of its own
)

// reading is what one request for events holds of the memory that all readers have. It belongs to the
// request's goroutine, but for press.
type reading struct {
	share   *quota.Share
	control *http.ResponseController

	mu sync.Mutex
	// over: the request has ended. off: it is to end, since its client takes nothing and others need
	// the memory. Both are guarded by mu.
	over, off bool
}

func (d *Handler) newReading(w http.ResponseWriter, r *http.Request) *reading {
	g := &reading{control: http.NewResponseController(w)}
	g.share = d.cfg.Memory.Share(grantOf(r).Account(), g.press)
	return g
}

// runBytes is what a run costs, as it is stored and as it is written.
func runBytes(r eventlog.Run) int { return 2 * eventlog.HeldBytes(r) }

// maxRunBytes is what the next run may cost.
const maxRunBytes = 2 * eventlog.MaxHeldBytes

// hold takes memory for what is read next. The caller holds none while it waits: no cursor.
func (g *reading) hold(ctx context.Context, bytes int) error {
	if g.share.TryTake(bytes) {
		return nil
	}
	return g.share.Take(ctx, bytes)
}

// extend gives the next write its time, unless there is to be none. A writer without deadlines has
// none to set.
func (g *reading) extend(timeout time.Duration) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.off {
		return errClientGone
	}
	_ = g.control.SetWriteDeadline(time.Now().Add(timeout))
	return nil
}

// press ends a write that takes too long while others wait for memory.
func (g *reading) press() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over {
		g.off = true
		_ = g.control.SetWriteDeadline(time.Unix(1, 0))
	}
}

// end gives everything back. The connection may be another request's from then on.
func (g *reading) end() {
	g.share.Give()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
}

// pieceBytes is what is written at once of an answer that is made as a whole.
const pieceBytes = 64 << 10

// pieces writes in pieces, so that a client that takes them, slowly, is known to.
type pieces struct {
	http.ResponseWriter
	reading *reading
}

func (p pieces) Write(b []byte) (written int, err error) {
	for len(b) > 0 && err == nil {
		var n int
		n, err = p.ResponseWriter.Write(b[:min(len(b), pieceBytes)])
		written, b = written+n, b[n:]
		p.reading.share.Touch()
	}
	return written, err
}
