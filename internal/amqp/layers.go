package amqp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// handshake completes the TLS layer, if there is one.
func (c *Conn) handshake(ctx context.Context) error {
	layer, ok := c.nc.(*tls.Conn)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.server.cfg.OpenTimeout)
	defer cancel()
	if err := layer.HandshakeContext(ctx); err != nil {
		c.server.metrics.refuse(reasonTLS)
		return fmt.Errorf("TLS handshake: %w", err)
	}
	state := layer.ConnectionState()
	c.tls = &state
	return nil
}

// layers goes through the protocol headers (§2.2), and SASL where the peer wants it. What
// begins with AMQP's own header is anonymous.
func (c *Conn) layers() error {
	h, err := c.in.header()
	if err != nil {
		return fmt.Errorf("read protocol header: %w", err)
	}
	if h == wire.ProtocolSASL {
		if err := c.authenticate(); err != nil {
			return err
		}
		if h, err = c.in.header(); err != nil {
			return fmt.Errorf("read protocol header: %w", err)
		}
		return c.agree(h, wire.ProtocolAMQP)
	}
	if h != wire.ProtocolAMQP {
		return c.agree(h, wire.ProtocolSASL)
	}
	return c.agree(h, wire.ProtocolAMQP)
}

// agree answers a header with the one that we want, and ends the connection unless the
// peer wants the same.
func (c *Conn) agree(got, want wire.ProtocolHeader) error {
	if got != want {
		c.server.metrics.refuse(reasonHeader)
	}
	c.mu.Lock()
	c.rawLocked(want[:])
	c.mu.Unlock()
	if got == want {
		c.layered = true
		return nil
	}
	c.log.Debug("not an AMQP 1.0 client", "header", fmt.Sprintf("%q", got[:]), "perhaps", guess(got))
	return errSaid
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
func (c *Conn) authenticate() error {
	c.mu.Lock()
	c.rawLocked(wire.ProtocolSASL[:])
	c.frameLocked(wire.FrameSASL, 0, func(dst []byte) []byte {
		return wire.AppendSASLMechanisms(dst, c.mechanisms())
	})
	c.mu.Unlock()

	init, err := c.readInit()
	if err != nil {
		return err
	}
	value, err := c.check(init)
	if errors.Is(err, errPanic) {
		return err
	}
	code := wire.SASLOK
	if err != nil {
		code = wire.SASLAuth
		c.server.metrics.refuse(reasonAuth)
	}
	c.mu.Lock()
	c.frameLocked(wire.FrameSASL, 0, func(dst []byte) []byte { return wire.AppendSASLOutcome(dst, code) })
	c.mu.Unlock()
	if err != nil {
		c.log.Info("AMQP client refused", "mechanism", init.Mechanism, "error", err)
		return errSaid
	}
	c.identity = Identity{Mechanism: string(init.Mechanism), Value: value}
	return nil
}

func (c *Conn) readInit() (wire.SASLInit, error) {
	h, body, err := c.in.frame()
	if err != nil {
		return wire.SASLInit{}, fmt.Errorf("read SASL init: %w", err)
	}
	if h.Type != wire.FrameSASL {
		return wire.SASLInit{}, fmt.Errorf("%w: %d where SASL's 1 is due", errFrameType, h.Type)
	}
	r := wire.NewReader(body)
	d, err := r.ReadDescriptor()
	if err != nil {
		return wire.SASLInit{}, fmt.Errorf("read SASL init: %w", err)
	}
	if d != wire.DescriptorSASLInit {
		return wire.SASLInit{}, fmt.Errorf("%w: 0x%x where SASL's init is due", errPerformative, uint64(d))
	}
	return r.ReadSASLInit()
}
