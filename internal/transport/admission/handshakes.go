package admission

import (
	"context"
	"net/netip"
)

// MaxKnown is how many addresses are remembered from which a right was shown.
const MaxKnown = 4096

// handshakes bounds how many handshakes of TLS are computed at once: they cost most of what a stranger costs, before
// anything is known of it. What waits is in two lines: addresses from which a right was shown, or that are this
// machine's, have three turns of four, so that no crowd of strangers keeps clients from coming back. In each line the
// addresses take turns, however many wait from one. All is guarded by the ledger's mutex.
type handshakes struct {
	free           int
	known          map[netip.Prefix]struct{}
	clients, crowd line
	turns          uint // that were given
}

// line is what waits: addresses in turn, each with its own, the oldest first.
type line struct {
	addresses []netip.Prefix
	waiting   map[netip.Prefix][]*turn
}

// turn is one handshake's.
type turn struct {
	granted chan struct{} // closed
	gone    bool          // it waits no more
}

// Handshake waits for a turn to compute a handshake with who comes from an address, given as host:port, or until ctx
// ends. End is called when that has been done, or when it waits for the other side, and may be called once.
func (l *Ledger) Handshake(ctx context.Context, remote string) (end func(), err error) {
	from, _ := Address(remote)
	t := &turn{granted: make(chan struct{})}
	l.mu.Lock()
	h := &l.handshakes
	if _, known := h.known[from]; known || from.Addr().IsLoopback() {
		h.clients.add(from, t)
	} else {
		h.crowd.add(from, t)
	}
	h.grantLocked()
	l.mu.Unlock()
	select {
	case <-t.granted:
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		select {
		case <-t.granted:
			h.endLocked()
		default:
			t.gone = true
		}
		return nil, context.Cause(ctx)
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		h.endLocked()
	}, nil
}

func (h *handshakes) endLocked() {
	h.free++
	h.grantLocked()
}

func (h *handshakes) grantLocked() {
	for h.free > 0 {
		first, second := &h.clients, &h.crowd
		if h.turns%4 == 3 {
			first, second = second, first
		}
		t := first.next()
		if t == nil {
			t = second.next()
		}
		if t == nil {
			return
		}
		h.turns++
		h.free--
		close(t.granted)
	}
}

// knowLocked remembers an address, in place of any other where there are too many.
func (h *handshakes) knowLocked(from netip.Prefix) {
	if _, ok := h.known[from]; !ok && len(h.known) >= MaxKnown {
		for other := range h.known {
			delete(h.known, other)
			break
		}
	}
	h.known[from] = struct{}{}
}

func (w *line) add(from netip.Prefix, t *turn) {
	if w.waiting == nil {
		w.waiting = map[netip.Prefix][]*turn{}
	}
	if len(w.waiting[from]) == 0 {
		w.addresses = append(w.addresses, from)
	}
	w.waiting[from] = append(w.waiting[from], t)
}

// next takes the first of the line; nil: nobody waits.
func (w *line) next() *turn {
	for len(w.addresses) > 0 {
		from := w.addresses[0]
		w.addresses = w.addresses[1:]
		t := w.waiting[from][0]
		if rest := w.waiting[from][1:]; len(rest) > 0 {
			w.waiting[from] = rest
			w.addresses = append(w.addresses, from)
		} else {
			delete(w.waiting, from)
		}
		if !t.gone {
			return t
		}
	}
	return nil
}
