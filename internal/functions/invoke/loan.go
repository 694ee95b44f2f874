package invoke

import (
	"bytes"
	"errors"
	"io"
	"sync/atomic"

	"github.com/eventyard/eventyard/internal/transport/egress"
)

// smallBytes is up to where a body is copied for the transport, and given to it in the one shape
// that it knows to be in memory: it then writes head and body at once. For larger bodies the copy
// costs more than the write.
const smallBytes = 16 << 10

// errReturned: a transport asks for the body of a call that has ended.
var errReturned = errors.New("the call has ended, and is not sent again")

// loan is one call's use of a page. A transport may go on reading the body after it has given an
// answer, and begins anew where a connection turns out to be dead: so the page is held by the call
// and by each reader that is not closed, and the last to let go gives it back.
type loan struct {
	*page
	holders atomic.Int32
}

// borrow gives an empty page, which the caller holds.
func borrow() *loan {
	l := &loan{page: pages.Get().(*page)}
	l.holders.Store(1)
	return l
}

func (l *loan) letGo() {
	if l.holders.Add(-1) == 0 {
		l.giveBack()
	}
}

// open gives a reader of the whole body. It is an http.Request's GetBody.
func (l *loan) open() (io.ReadCloser, error) {
	for {
		n := l.holders.Load()
		switch {
		case n == 0:
			return nil, errReturned
		case !l.holders.CompareAndSwap(n, n+1):
		case len(l.body) <= smallBytes:
			copied := bytes.Clone(l.body)
			l.letGo()
			return io.NopCloser(bytes.NewReader(copied)), nil
		default:
			return egress.NewBodyReader(l.body, l.letGo), nil
		}
	}
}
