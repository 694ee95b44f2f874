package kafka

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// reader is the reading goroutine: it takes one request at a time, has it begun, and puts it into the
// queue. Its fields are its own, but for in.stage.
type reader struct {
	conn *Conn
	in   *input
	sasl sasl
	peer Peer // nil until the first request of a client
	// clientID is that of the last request.
	clientID string
	// strange is how many bytes a stranger has sent, small requests counting for more.
	strange int
}

// run completes the TLS layer and then takes requests, until there is a reason to end.
func (r *reader) run() (err error) {
	c := r.conn
	defer c.recoverAs("reading", &err)
	c.expect(c.server.cfg.AuthTimeout)
	if err := r.completeTLS(); err != nil {
		return err
	}
	if err := r.sasl.begin(); err != nil {
		return err
	}
	for {
		if err := r.next(); err != nil {
			return err
		}
	}
}

// completeTLS completes the TLS layer, if there is one.
func (r *reader) completeTLS() error {
	c := r.conn
	layer, ok := c.nc.(*tls.Conn)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.server.cfg.AuthTimeout) // it may wait for its turn until it is cut off
	defer cancel()
	if err := layer.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("%w: %w", errTLS, err)
	}
	state := layer.ConnectionState()
	c.tls = &state
	return nil
}

// next takes one request, or what stands in the place of one. An error ends the connection.
func (r *reader) next() error {
	if err := r.await(); err != nil {
		return err
	}
	r.in.within(r.conn.server.cfg.ReadTimeout)
	size, err := r.size()
	if err != nil {
		return err
	}
	if r.stranger() {
		if !r.conn.permit.Claim(size) {
			return errStrangersFull
		}
		defer r.conn.permit.Free(size)
	}
	b := &cut{in: r.in, left: size}
	if err := r.take(b); err != nil {
		return err
	}
	b.skip(b.left, r.conn.server.cfg.ReadTimeout)
	return b.err
}

// stranger: the client has not shown who it is.
func (r *reader) stranger() bool { return r.conn.who.Load() == nil }

// await waits for a request to begin.
func (r *reader) await() error {
	c := r.conn
	if r.in.unread() > 0 { // of a client that does not wait for answers
		r.in.rest()
		select {
		case <-c.drained:
			return errDraining
		default:
			return nil
		}
	}
	for wait := c.server.cfg.IdleTimeout; wait > 0; wait = c.patience() {
		if !c.await(wait) {
			return errDraining
		}
		r.in.armed = true
		err := r.in.fill(1, 0)
		switch goesOn := c.awaited(); {
		case !goesOn:
			return errDraining
		case err == nil:
			return nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		}
	}
	return errIdle
}

// size reads the size of a request.
func (r *reader) size() (int, error) {
	b := cut{in: r.in, left: 4}
	head := [4]byte(b.next(4))
	if b.err != nil {
		return 0, b.err
	}
	size, limit := int(int32(binary.BigEndian.Uint32(head[:]))), r.conn.server.cfg.MaxRequestBytes
	if r.stranger() {
		limit = strangerRequestBytes
		if r.strange += max(size, strangerRequestCost); size <= limit && r.strange > strangerBytes {
			return 0, errStrangerBytes
		}
	}
	if size < 0 || size > limit {
		return 0, fmt.Errorf("%w: it has %d bytes, and %d are the most: %s", errTooLarge, size, limit, guess(head))
	}
	return size, nil
}

// guess says what the first bytes look like, for who has mixed up two ports.
func guess(head [4]byte) string {
	switch s := string(head[:]); {
	case head[0] == 0x16 && head[1] == 3:
		return "it looks like TLS on the plain port"
	case s == "AMQP":
		return "it looks like AMQP"
	case s == "GET " || s == "POST" || s == "PUT " || s == "HEAD":
		return "it looks like HTTP"
	default:
		return "use smaller batches (max.request.size)"
	}
}

// take has a request begun.
func (r *reader) take(b *cut) error {
	if r.sasl.raw {
		return r.sasl.token(b)
	}
	h, offer, err := readHeader(b, r.clientID)
	if err != nil {
		return err
	}
	r.clientID = h.clientID
	r.conn.traffic.request(h.clientID)
	switch {
	case h.key == keyApiVersions:
		r.enqueue(&pending{header: h, finish: func(_ context.Context, w *Writer) error { return w.Respond(apiVersions(h.version)) }})
		return nil
	case !offer.serves(h.version): // no response has a place for it, in any version that we do not serve
		return fmt.Errorf("%w: %s %d", errVersion, kmsg.NameForKey(h.key), h.version)
	case h.key == keySASLHandshake:
		return r.sasl.handshake(h, b)
	case h.key == keySASLAuthenticate:
		return r.sasl.authenticate(h, b)
	case r.stranger():
		return errStranger
	}
	if err := r.connect(); err != nil {
		return err
	}
	req := &Request{Key: h.key, Version: h.version, ClientID: h.clientID}
	if h.key == keyProduce {
		return r.produce(h, req, b)
	}
	return r.other(h, offer, req, b)
}

// connect asks the handler for its side.
func (r *reader) connect() error {
	if r.peer != nil {
		return nil
	}
	peer, err := r.conn.server.cfg.Handler.Connected(r.conn)
	if err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	r.peer = peer
	return nil
}

// produce has a Produce request begun, which is read meanwhile.
func (r *reader) produce(h header, req *Request, b *cut) error {
	hold := r.conn.newProduceHold()
	r.in.stage.begin(hold)
	req.Produce = newProduce(r.conn, hold, h.version, b)
	return r.holding(hold, func() error {
		defer req.Produce.buffer.putBack()
		if b.err != nil {
			return b.err
		}
		return r.begin(h, req, hold)
	})
}

// other has any other request begun, which is read and decoded whole.
func (r *reader) other(h header, offer Offer, req *Request, b *cut) error {
	if b.left > maxBodyBytes {
		return fmt.Errorf("%w: it has %d bytes, and %d are the most", errTooLarge, b.left, maxBodyBytes)
	}
	hold := r.conn.newHold()
	r.in.stage.begin(hold)
	return r.holding(hold, func() error {
		if err := r.decode(h, offer, req, b, hold); err != nil {
			return err
		}
		return r.begin(h, req, hold)
	})
}

// holding gives the memory of a request back that could not be begun, also where a handler panics.
func (r *reader) holding(hold *hold, begin func() error) error {
	begun := false
	defer func() {
		if !begun {
			hold.give()
		}
	}()
	err := begin()
	begun = err == nil
	return err
}

func (r *reader) decode(h header, offer Offer, req *Request, b *cut, hold *hold) (err error) {
	take := func(bytes int) error { return hold.take(r.conn.ctx, bytes) }
	if err := take(b.left); err != nil {
		return err
	}
	body := make([]byte, b.left) // its own: what is decoded lies in it
	if b.full(body); b.err != nil {
		return b.err
	}
	req.Body, err = decode(offer, h.version, body, take)
	return err
}

// begin calls the handler.
func (r *reader) begin(h header, req *Request, hold *hold) error {
	finish := r.peer.Begin(r.conn.ctx, req)
	if finish == nil {
		return errNoFinish
	}
	broken := false
	if p := req.Produce; p != nil {
		broken = p.Err() != nil
		p.end()
	}
	r.enqueue(&pending{header: h, finish: finish, hold: hold, mute: broken})
	return nil
}

// answer answers a request that is the server's own.
func (r *reader) answer(h header, resp kmsg.Response) {
	r.enqueue(&pending{header: h, finish: func(_ context.Context, w *Writer) error { return w.Respond(resp) }})
}

// enqueue has a request finished in its turn. It waits where too many are under way.
func (r *reader) enqueue(p *pending) {
	r.conn.server.metrics.request(p.header.key)
	if p.hold != nil {
		p.hold.queued.Store(true)
	}
	r.conn.underWay.Add(1)
	r.conn.queue <- p
}
