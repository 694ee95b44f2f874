package amqp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// The mechanisms of SASL that we know. MSSBCBS is anonymous under another name: the .NET
// client takes nothing else, and shows who it is by a token on the $cbs link.
const (
	mechanismCBS       wire.Symbol = "MSSBCBS"
	mechanismAnonymous wire.Symbol = "ANONYMOUS"
	mechanismPlain     wire.Symbol = "PLAIN"
	mechanismExternal  wire.Symbol = "EXTERNAL"
)

var (
	errMechanism     = errors.New("the mechanism is not offered")
	errPlainResponse = errors.New("PLAIN without user and password")
)

// handshake is what comes before the first frame of AMQP: TLS, the protocol headers (§2.2), and
// SASL where the peer wants it. The reading goroutine's alone until the peer's open, and fixed
// from then on.
type handshake struct {
	conn     *Conn
	tls      *tls.ConnectionState // nil without such a layer
	identity Identity
	agreed   bool // on all protocol headers
}

// run goes through the layers. What begins with AMQP's own header is anonymous.
func (h *handshake) run(in *input) error {
	if err := h.completeTLS(); err != nil {
		return err
	}
	got, err := in.header()
	if err != nil {
		return fmt.Errorf("read protocol header: %w", err)
	}
	want := wire.ProtocolAMQP
	switch got {
	case wire.ProtocolAMQP:
	case wire.ProtocolSASL:
		if err := h.authenticate(in); err != nil {
			return err
		}
		if got, err = in.header(); err != nil {
			return fmt.Errorf("read protocol header: %w", err)
		}
	default:
		want = wire.ProtocolSASL
	}
	// The answer is the header that we want; unless the peer wants the same, that was all.
	c := h.conn
	if h.agreed = got == want; !h.agreed {
		c.server.metrics.refuse(reasonHeader)
	}
	c.mu.Lock()
	c.out.raw(want[:])
	c.mu.Unlock()
	if !h.agreed {
		c.log.Debug("not an AMQP 1.0 client", "header", fmt.Sprintf("%q", got[:]), "perhaps", guess(got))
		return errSaid
	}
	return nil
}

// completeTLS completes the TLS layer, if there is one.
func (h *handshake) completeTLS() error {
	layer, ok := h.conn.nc.(*tls.Conn)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(h.conn.ctx, h.conn.server.cfg.OpenTimeout) // it may wait for its turn until it is cut
	defer cancel()
	if err := layer.HandshakeContext(ctx); err != nil {
		h.conn.server.metrics.refuse(reasonTLS)
		return fmt.Errorf("TLS handshake: %w", err)
	}
	state := layer.ConnectionState()
	h.tls = &state
	return nil
}

// guess says what a stranger's first bytes look like, for who has mixed up two ports.
func guess(h wire.ProtocolHeader) string {
	switch {
	case h[0] == 0x16 && h[1] == 3:
		return "TLS on the plain port"
	case h == wire.ProtocolTLS:
		return "AMQP's own TLS layer, which is not supported"
	case string(h[:4]) == "AMQP":
		return "another version of AMQP"
	case string(h[:4]) == "GET " || string(h[:5]) == "POST " || string(h[:4]) == "PUT ":
		return "HTTP"
	default:
		return "unknown"
	}
}

// authenticate is the SASL layer (§5.3), our side. The mechanisms go out at once, for
// some clients say nothing before they have seen them.
func (h *handshake) authenticate(in *input) error {
	c := h.conn
	offered := []wire.Symbol{mechanismCBS, mechanismAnonymous}
	if c.server.cfg.Auth != nil {
		offered = append(offered, mechanismPlain)
		if h.certified() {
			offered = append(offered, mechanismExternal)
		}
	}
	c.mu.Lock()
	c.out.raw(wire.ProtocolSASL[:])
	c.frameLocked(wire.FrameSASL, 0, func(dst []byte) []byte { return wire.AppendSASLMechanisms(dst, offered) })
	c.mu.Unlock()

	init, err := readInit(in)
	if err != nil {
		return err
	}
	value, err := h.check(init)
	if errors.Is(err, errPanic) {
		return err
	}
	code := wire.SASLOK
	if err != nil {
		code = wire.SASLAuth
		if errors.Is(err, ErrUnchecked) {
			code = wire.SASLTemp
		}
		c.server.metrics.refuse(reasonAuth)
	}
	c.mu.Lock()
	c.frameLocked(wire.FrameSASL, 0, func(dst []byte) []byte { return wire.AppendSASLOutcome(dst, code) })
	c.mu.Unlock()
	if err != nil {
		c.log.Info("AMQP client refused", "mechanism", init.Mechanism, "error", err)
		return errSaid
	}
	h.identity = Identity{Mechanism: string(init.Mechanism), Value: value}
	return nil
}

func readInit(in *input) (init wire.SASLInit, err error) {
	h, body, err := in.frame()
	if err != nil {
		return init, fmt.Errorf("read SASL init: %w", err)
	}
	if h.Type != wire.FrameSASL {
		return init, fmt.Errorf("%w: %d where SASL's 1 is due", errFrameType, h.Type)
	}
	r := wire.NewReader(body)
	d, err := r.ReadDescriptor()
	if err != nil {
		return init, fmt.Errorf("read SASL init: %w", err)
	}
	if d != wire.DescriptorSASLInit {
		return init, fmt.Errorf("%w: 0x%x where SASL's init is due", errPerformative, uint64(d))
	}
	return r.ReadSASLInit()
}

// certified: the peer has shown a certificate, and it was found good.
func (h *handshake) certified() bool { return h.tls != nil && len(h.tls.VerifiedChains) > 0 }

// check gives what the authenticator makes of the client's word; nil for anonymous ones. On a
// connection that will be refused anyway nobody is asked: it passes, so that it gets as far as
// hearing why.
func (h *handshake) check(init wire.SASLInit) (value any, err error) {
	c := h.conn
	defer c.recoverAs("authenticating", &err)
	auth := c.server.cfg.Auth
	switch init.Mechanism {
	case mechanismCBS, mechanismAnonymous:
		return nil, nil
	case mechanismPlain, mechanismExternal:
	default:
		return nil, fmt.Errorf("%w: %q", errMechanism, init.Mechanism)
	}
	switch {
	case c.refusal != nil:
		return nil, nil
	case auth == nil || init.Mechanism == mechanismExternal && !h.certified():
		return nil, errMechanism
	case init.Mechanism == mechanismExternal:
		return auth.External(c.ctx, c.Remote(), *h.tls)
	}
	// PLAIN (RFC 4616): whom to act for, user, password, with zero bytes between them. Whom to act
	// for is ignored: there is nobody else to be.
	parts := bytes.Split(init.InitialResponse, []byte{0})
	if len(parts) != 3 || len(parts[1]) == 0 {
		return nil, errPlainResponse
	}
	return auth.Plain(c.ctx, c.Remote(), string(parts[1]), string(parts[2]))
}
