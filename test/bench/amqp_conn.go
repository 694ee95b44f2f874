package main

import (
	"bufio"
	"fmt"
	"io"
	"net"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// Figures of the bare connections: large frames' worth of buffer, windows that never
// have to be moved, and credit that is topped up at half.
const (
	bareBuffer = 256 << 10
	bareFrame  = 64 << 10
	bareWindow = 1<<31 - 1
)

// amqpConn is a connection at its barest, either end of it: it reads and writes frames
// on channel 0 and keeps no state, so that what is measured is the other end.
type amqpConn struct {
	net.Conn
	in   *bufio.Reader
	body []byte
	out  []byte
}

func newAMQPConn(c net.Conn) *amqpConn {
	return &amqpConn{Conn: c, in: bufio.NewReaderSize(c, bareBuffer)}
}

// dialAMQP connects as a client that knows the development key, up to an open session.
func dialAMQP(address string) (*amqpConn, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	c := newAMQPConn(conn)
	if err := c.begin(); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	return c, nil
}

func (c *amqpConn) begin() error {
	if err := c.exchange(wire.ProtocolSASL); err != nil {
		return err
	}
	if _, err := c.await(wire.DescriptorSASLMechanisms); err != nil {
		return err
	}
	err := c.send(wire.FrameSASL, func(dst []byte) []byte {
		return wire.AppendSASLInit(dst, &wire.SASLInit{Mechanism: "PLAIN", HasResponse: true,
			InitialResponse: []byte("\x00" + auth.RootPolicy + "\x00" + auth.DevelopmentKey)})
	})
	if err != nil {
		return err
	}
	if _, err := c.await(wire.DescriptorSASLOutcome); err != nil {
		return err
	}
	if err := c.exchange(wire.ProtocolAMQP); err != nil {
		return err
	}
	err = c.send(wire.FrameAMQP, func(dst []byte) []byte {
		return wire.AppendOpen(dst, &wire.Open{ContainerID: "bench", Hostname: wire.Some("localhost"), MaxFrameSize: wire.Some(uint32(bareFrame))})
	})
	if err != nil {
		return err
	}
	if _, err := c.await(wire.DescriptorOpen); err != nil {
		return err
	}
	err = c.send(wire.FrameAMQP, func(dst []byte) []byte {
		return wire.AppendBegin(dst, &wire.Begin{IncomingWindow: bareWindow, OutgoingWindow: bareWindow})
	})
	if err != nil {
		return err
	}
	_, err = c.await(wire.DescriptorBegin)
	return err
}

// exchange sends a protocol header and reads one.
func (c *amqpConn) exchange(h wire.ProtocolHeader) error {
	if _, err := c.Write(h[:]); err != nil {
		return err
	}
	var got wire.ProtocolHeader
	_, err := io.ReadFull(c.in, got[:])
	return err
}

// send writes one frame.
func (c *amqpConn) send(t wire.FrameType, performative func(dst []byte) []byte) error {
	dst, frame := wire.BeginFrame(c.out[:0], t, 0)
	c.out = wire.EndFrame(performative(dst), frame)
	_, err := c.Write(c.out)
	return err
}

// next reads a frame and gives its body, valid until the next call. Empty frames are
// heartbeats, and skipped.
func (c *amqpConn) next() ([]byte, error) {
	for {
		head, err := c.in.Peek(wire.FrameHeaderBytes)
		if err != nil {
			return nil, err
		}
		h, err := wire.ReadFrameHeader(head)
		if err != nil {
			return nil, err
		}
		if cap(c.body) < int(h.Size) {
			c.body = make([]byte, h.Size)
		}
		if _, err := io.ReadFull(c.in, c.body[:h.Size]); err != nil {
			return nil, err
		}
		if body := c.body[h.DataOffset:h.Size]; len(body) > 0 {
			return body, nil
		}
	}
}

// await reads frames up to one of that kind and gives a reader behind its descriptor.
func (c *amqpConn) await(want wire.Descriptor) (wire.Reader, error) {
	for {
		body, err := c.next()
		if err != nil {
			return wire.Reader{}, fmt.Errorf("wait for performative %#x: %w", uint64(want), err)
		}
		r := wire.NewReader(body)
		got, err := r.ReadDescriptor()
		switch {
		case err != nil:
			return r, err
		case got == want:
			return r, nil
		case got == wire.DescriptorDetach, got == wire.DescriptorClose, got == wire.DescriptorEnd:
			return r, fmt.Errorf("the other end gave up: %q", body)
		}
	}
}

// attachSender makes a link to an address and waits for credit.
func (c *amqpConn) attachSender(address string) (credit uint32, err error) {
	err = c.send(wire.FrameAMQP, func(dst []byte) []byte {
		return wire.AppendAttach(dst, &wire.Attach{Name: "out", Role: wire.RoleSender,
			Source: &wire.Source{}, Target: &wire.Target{Address: wire.Some(address)}, InitialDeliveryCount: wire.Some(uint32(0))})
	})
	if err != nil {
		return 0, err
	}
	if _, err := c.await(wire.DescriptorAttach); err != nil {
		return 0, err
	}
	for credit == 0 {
		r, err := c.await(wire.DescriptorFlow)
		if err != nil {
			return 0, err
		}
		flow, err := r.ReadFlow()
		if err != nil {
			return 0, err
		}
		if flow.Handle.Set {
			credit = flow.LinkCredit.Value
		}
	}
	return credit, nil
}

// attachReceiver makes a link from an address, from its oldest event on, and gives it credit.
func (c *amqpConn) attachReceiver(address string, credit uint32) error {
	err := c.send(wire.FrameAMQP, func(dst []byte) []byte {
		return wire.AppendAttach(dst, &wire.Attach{Name: "in", Role: wire.RoleReceiver,
			Source: &wire.Source{Address: wire.Some(address)}, Target: &wire.Target{Address: wire.Some("bench")}})
	})
	if err != nil {
		return err
	}
	if _, err := c.await(wire.DescriptorAttach); err != nil {
		return err
	}
	return c.grant(0, credit)
}

// grant gives credit beyond what has been received.
func (c *amqpConn) grant(received, credit uint32) error {
	return c.send(wire.FrameAMQP, func(dst []byte) []byte {
		return wire.AppendFlow(dst, &wire.Flow{NextIncomingID: wire.Some(received), IncomingWindow: bareWindow, OutgoingWindow: bareWindow,
			Handle: wire.Some(uint32(0)), DeliveryCount: wire.Some(received), LinkCredit: wire.Some(credit)})
	})
}
