package frame

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/transport/admission"
)

// What bodies may take, which are in memory until their requests have been answered: those of one policy or
// token, and all; and those of who needs to show no right, by address and in all. A request with a body counts
// for leastBody at least, as it costs that much besides.
const (
	MaxBodyBytesOfOne     = 64 << 20
	MaxBodyBytes          = 256 << 20
	MaxOpenBodyBytesOfOne = admission.DefaultAddressBytes
	MaxOpenBodyBytes      = admission.DefaultStrangerBytes
	leastBody             = 8 << 10
)

// How long a body may take. One that is not small has to bring MinBodyRate bytes a second, over all; it may pause for
// BodyPause, and be behind by as much.
const (
	BodyTimeout = 2 * time.Minute
	SmallBody   = 64 << 10
	MinBodyRate = 4 << 10
	BodyPause   = 30 * time.Second
)

// errBodiesFull: there is no room for more of bodies.
var errBodiesFull = errors.New("the yard holds too much of requests that are not answered yet, of this policy or in all")

// body is that of a request which was let in. It is counted as it comes, for the request's holder, until the
// request has been answered. Nobody waits for room: who finds none is refused, and of the requests in the way one
// that has been sent for long is cut off.
type body struct {
	io.ReadCloser
	connection *http.ResponseController
	small      bool
	share      *admission.Share
	began      time.Time
	received   int
	next       time.Time // when the deadline is to be moved; zero: it was not yet
	refused    bool

	mu sync.Mutex
	// whole: there is nothing left to cut off. late: it was. Both are guarded by mu.
	whole, late bool
}

// count has the body of a call counted from now on; nil: there is none.
func (f *Frame) count(c *Call) *body {
	if r := c.R; r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 || c.Route.Streams {
		return nil
	}
	b := &body{
		ReadCloser: c.R.Body, connection: http.NewResponseController(c.ResponseWriter), began: time.Now(),
		small: c.R.ContentLength > 0 && c.R.ContentLength <= SmallBody,
	}
	if c.Holder != "" {
		b.share = f.cfg.Bodies.Share(c.Holder, b.cut)
	} else {
		from, _ := admission.Address(c.R.RemoteAddr)
		b.share = f.cfg.OpenBodies.Share(from.String(), b.cut)
	}
	c.R.Body = b
	return b
}

func (b *body) Read(p []byte) (int, error) {
	if b.refused { // what is drained is kept nowhere
		return b.ReadCloser.Read(p)
	}
	if b.received == 0 && !b.share.Grow(leastBody) {
		return 0, b.refuse()
	}
	b.move()
	n, err := b.ReadCloser.Read(p)
	b.received += n
	if n > 0 && b.received > leastBody && !b.share.Grow(b.received) {
		return 0, b.refuse()
	}
	if err == io.EOF {
		b.ended()
	}
	return n, err
}

// refuse makes room, and has somebody else make more.
func (b *body) refuse() error {
	b.refused = true
	b.share.Give()
	b.share.Press(b.received + leastBody)
	return errBodiesFull
}

// move moves the time until which more has to have come.
func (b *body) move() {
	now := time.Now()
	if b.small || !now.After(b.next) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.whole || b.late {
		return
	}
	due := b.began.Add(BodyTimeout)
	for _, earlier := range []time.Time{now.Add(BodyPause), b.began.Add(BodyPause + time.Duration(b.received/MinBodyRate)*time.Second)} {
		if earlier.Before(due) {
			due = earlier
		}
	}
	_ = b.connection.SetReadDeadline(due)
	b.next = now.Add(BodyPause / 8)
}

// ended: all has come. The deadline would now be that of whatever the client sends next.
func (b *body) ended() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.whole {
		return
	}
	b.whole = true
	b.share.Spare() // an answer may take its time, and cutting it makes no room
	if !b.next.IsZero() {
		_ = b.connection.SetReadDeadline(b.began.Add(BodyTimeout))
	}
}

// cut ends a body that others have no room for, if it is the client that it waits for.
func (b *body) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.whole {
		b.late = true
		_ = b.connection.SetReadDeadline(time.Unix(1, 0))
	}
}

// answered gives back what the body has taken, and gives the error that its request failed for.
func (b *body) answered(err error) error {
	if b == nil {
		return err
	}
	b.mu.Lock()
	b.whole = true
	b.mu.Unlock()
	b.share.Give()
	if err != nil && b.refused {
		return errBodiesFull
	}
	return err
}

// ReadBody reads a body whole, of which its client has said how long it is, or -1. Memory is taken as it comes: to say
// so much costs nothing.
func ReadBody(r io.Reader, length int64) ([]byte, error) {
	const first = 16 << 10
	text := make([]byte, 0, min(cmp.Or(max(length, 0), 512), first-1)+1)
	for {
		n, err := r.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case err == io.EOF:
			return text, nil
		case err != nil:
			return nil, err
		case len(text) < cap(text):
		case int64(len(text)) <= length:
			text = slices.Grow(text, min(len(text), int(length)-len(text)+1)) // one more, to see the end
		default:
			text = slices.Grow(text, len(text))
		}
	}
}
