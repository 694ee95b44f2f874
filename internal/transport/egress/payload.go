package egress

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
)

// smallBytes is up to where a body is copied, if its bytes are wanted back, and given to the
// transport in the one shape that it knows to be in memory: it then writes head and body at
// once. Any other shape costs a write more for each request, which for small ones is more than
// the copy; for larger ones it is the other way round.
const smallBytes = 16 << 10

// payload is a request's body while somebody may read it: a transport may go on reading after
// it has given an answer, and begins anew where a connection turns out to be dead.
type payload struct {
	bytes   []byte
	release func()
	// holders are the exchange, which may want to send it again, and each reader that is not
	// closed. The last to let go releases the bytes. Small ones are not released, but collected.
	holders atomic.Int32
}

func (p *payload) hold(body []byte, release func()) {
	if len(body) <= smallBytes && release != nil {
		body = bytes.Clone(body)
		release()
		release = nil
	}
	p.bytes, p.release = body, release
	p.holders.Store(1)
}

// open gives a reader of the whole. It fails if the bytes have been released. It is an
// http.Request's GetBody.
func (p *payload) open() (io.ReadCloser, error) {
	if len(p.bytes) <= smallBytes {
		return io.NopCloser(bytes.NewReader(p.bytes)), nil
	}
	for {
		n := p.holders.Load()
		if n == 0 {
			return nil, errLeft
		}
		if p.holders.CompareAndSwap(n, n+1) {
			return NewBodyReader(p.bytes, p.letGo), nil
		}
	}
}

func (p *payload) letGo() {
	if p.holders.Add(-1) == 0 && p.release != nil {
		p.release()
	}
}

// bodyReader reads a body that is given back. Transports close a body while they read it: hence
// the lock.
type bodyReader struct {
	letGo func()

	mu     sync.Mutex
	rest   []byte // guarded by mu
	closed bool   // guarded by mu
}

// NewBodyReader gives a request's body whose bytes are used again afterwards. It calls letGo when
// it is closed, once however often that is; until then the bytes must stay as they are.
func NewBodyReader(body []byte, letGo func()) io.ReadCloser {
	return &bodyReader{letGo: letGo, rest: body}
}

func (r *bodyReader) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, io.ErrClosedPipe
	}
	n := copy(b, r.rest)
	if r.rest = r.rest[n:]; len(r.rest) == 0 {
		return n, io.EOF
	}
	return n, nil
}

func (r *bodyReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed, r.rest = true, nil
		r.letGo()
	}
	return nil
}
