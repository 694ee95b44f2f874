package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// The canned peer is what a yard is compared with: a server that does the least a client can live
// with. It takes whatever is sent and throws it away, and gives whatever is asked for from a
// stretch of frames encoded beforehand. One goroutine for each connection, no windows, no checks,
// no storage; or, as the floor of what stores, files that nobody could read anything from.
//
// It runs as a process of its own, this program started again, as the yard does.
const (
	peerCommand = "EVENTYARD_BENCH_PEER" // the variable that makes it so
	peerFolder  = "EVENTYARD_BENCH_KEEP" // one that has it write what it takes to files there, and do no more with it
	peerReplay  = 2000                   // frames in the stretch
)

// runPeer serves until ctx ends.
func runPeer(ctx context.Context, eventBytes int) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	release := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer release()
	fmt.Printf("amqp amqp://%s\n", listener.Addr())
	replay := cannedFrames(peerReplay, eventBytes)
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		p := &peer{amqpConn: newAMQPConn(conn), replay: replay, addresses: map[uint64]string{}, deliveries: map[uint64]uint32{}}
		if p.keep, err = keptFile(os.Getenv(peerFolder)); err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			defer p.keep.Close()
			_ = p.serve() // a client that goes away ends it
		}()
	}
}

// keptFile is where a connection's events go: a file of its own, or nowhere.
func keptFile(dir string) (*os.File, error) {
	if dir == "" {
		return nil, nil
	}
	return os.CreateTemp(dir, "kept-")
}

// cannedFrames are deliveries as the yard sends them.
func cannedFrames(count, eventBytes int) [][]byte {
	stored := dataMessage(randomBytes(eventBytes))
	frames := make([][]byte, count)
	for i := range frames {
		// Numbers of the usual length: those of a hub that has been in use.
		sequence := int64(1_000_000 + i)
		dst, frame := wire.BeginFrame(nil, wire.FrameAMQP, 0)
		dst = wire.AppendTransfer(dst, &wire.Transfer{DeliveryID: wire.Some(uint32(sequence)), DeliveryTag: []byte{0, 1, 2, 3},
			MessageFormat: wire.Some(uint32(0)), Settled: wire.Some(true)})
		dst, err := wire.AppendDelivery(dst, &wire.Delivery{Sequence: sequence, EnqueuedTime: 1_700_000_000_000}, stored)
		if err != nil {
			panic("canned frames: " + err.Error()) // the message is our own
		}
		frames[i] = wire.EndFrame(dst, frame)
	}
	return frames
}

// dataMessage is an event's encoding: one data section.
func dataMessage(body []byte) []byte {
	return wire.AppendBinary(wire.AppendDescriptor(nil, wire.DescriptorData), body)
}

// peer is one connection of the canned peer.
type peer struct {
	*amqpConn
	keep     *os.File // nil: it throws away
	replay   [][]byte
	position int
	// addresses are those of the client's links, by session and handle.
	addresses map[uint64]string
	// deliveries are the ids of those under way, by session and handle.
	deliveries map[uint64]uint32
	replies    uint64 // session and handle of the link that answers of $cbs go to
	channel    uint16
}

func (p *peer) serve() error {
	for {
		head, err := p.in.Peek(8)
		if err != nil {
			return err
		}
		if string(head[:4]) == "AMQP" {
			err = p.greet()
		} else {
			err = p.frame(head)
		}
		if err != nil {
			return err
		}
	}
}

func (p *peer) greet() error {
	var h wire.ProtocolHeader
	if _, err := p.in.Read(h[:]); err != nil {
		return err
	}
	if _, err := p.Write(h[:]); err != nil || h != wire.ProtocolSASL {
		return err
	}
	return p.send(wire.FrameSASL, func(dst []byte) []byte {
		return wire.AppendSASLMechanisms(dst, []wire.Symbol{"ANONYMOUS", "PLAIN"})
	})
}

// frame answers one frame.
func (p *peer) frame(head []byte) error {
	h, err := wire.ReadFrameHeader(head)
	if err != nil {
		return err
	}
	p.channel = h.Channel
	body, err := p.next()
	if err != nil {
		return err
	}
	r := wire.NewReader(body)
	d, err := r.ReadDescriptor()
	if err != nil {
		return err
	}
	switch d {
	case wire.DescriptorSASLInit:
		return p.send(wire.FrameSASL, func(dst []byte) []byte { return wire.AppendSASLOutcome(dst, 0) })
	case wire.DescriptorOpen:
		return p.reply(func(dst []byte) []byte {
			return wire.AppendOpen(dst, &wire.Open{ContainerID: "canned", MaxFrameSize: wire.Some(uint32(bareFrame)), ChannelMax: wire.Some(uint16(4999))})
		})
	case wire.DescriptorBegin:
		return p.reply(func(dst []byte) []byte {
			return wire.AppendBegin(dst, &wire.Begin{RemoteChannel: wire.Some(p.channel), IncomingWindow: bareWindow, OutgoingWindow: bareWindow, HandleMax: wire.Some(uint32(255))})
		})
	case wire.DescriptorAttach:
		return p.attach(&r)
	case wire.DescriptorTransfer:
		return p.transfer(&r, body)
	case wire.DescriptorFlow:
		return p.flow(&r)
	case wire.DescriptorDetach:
		return p.detach(&r)
	case wire.DescriptorEnd:
		return p.reply(func(dst []byte) []byte { return wire.AppendEnd(dst, &wire.End{}) })
	case wire.DescriptorClose:
		return p.reply(func(dst []byte) []byte { return wire.AppendClose(dst, &wire.Close{}) })
	}
	return nil
}

func (p *peer) reply(performative func(dst []byte) []byte) error {
	return p.replyOn(p.channel, performative)
}

func (p *peer) replyOn(channel uint16, performative func(dst []byte) []byte) error {
	dst, frame := wire.BeginFrame(p.out[:0], wire.FrameAMQP, channel)
	p.out = wire.EndFrame(performative(dst), frame)
	_, err := p.Write(p.out)
	return err
}

func (p *peer) linkID(handle uint32) uint64 { return uint64(p.channel)<<32 | uint64(handle) }

func (p *peer) attach(r *wire.Reader) error {
	a, err := r.ReadAttach()
	if err != nil {
		return err
	}
	answer := a
	answer.Role = !a.Role
	answer.MaxMessageSize = wire.Some(uint64(1 << 20))
	id := p.linkID(a.Handle)
	if a.Role == wire.RoleReceiver {
		answer.InitialDeliveryCount, answer.MaxMessageSize = wire.Some(uint32(0)), wire.Opt[uint64]{}
		answer.SenderSettleMode = wire.Some(wire.SenderSettled)
		p.addresses[id], p.position = a.Source.Address.Value, 0 // a link counts its own deliveries
		if a.Source.Address.Value == "$cbs" {
			p.replies = id
		}
	} else {
		p.addresses[id] = a.Target.Address.Value
	}
	if err := p.reply(func(dst []byte) []byte { return wire.AppendAttach(dst, &answer) }); err != nil || a.Role == wire.RoleReceiver {
		return err
	}
	return p.reply(func(dst []byte) []byte {
		return wire.AppendFlow(dst, &wire.Flow{NextIncomingID: wire.Some(uint32(0)), IncomingWindow: bareWindow, OutgoingWindow: bareWindow,
			Handle: wire.Some(a.Handle), DeliveryCount: wire.Some(uint32(0)), LinkCredit: wire.Some(uint32(bareWindow))})
	})
}

func (p *peer) transfer(r *wire.Reader, body []byte) error {
	t, err := r.ReadTransfer()
	if err != nil {
		return err
	}
	id := p.linkID(t.Handle)
	if t.DeliveryID.Set { // only the first frame of a delivery need have it
		p.deliveries[id] = t.DeliveryID.Value
	}
	if p.addresses[id] == "$cbs" {
		return p.welcome(p.deliveries[id], body[r.Offset():])
	}
	if p.keep != nil {
		if _, err := p.keep.Write(body[r.Offset():]); err != nil {
			return err
		}
	}
	if t.More || t.Settled.Value {
		return nil
	}
	return p.accept(p.deliveries[id])
}

func (p *peer) accept(delivery uint32) error {
	return p.reply(func(dst []byte) []byte {
		return wire.AppendDisposition(dst, &wire.Disposition{Role: wire.RoleReceiver, First: delivery, Settled: true,
			State: wire.State{Outcome: wire.OutcomeAccepted}})
	})
}

// welcome answers a put-token request, whatever the token.
func (p *peer) welcome(delivery uint32, message []byte) error {
	m, err := wire.Sections(message)
	if err != nil {
		return err
	}
	properties := wire.NewReader(m.Properties)
	if _, err := properties.ReadDescriptor(); err != nil {
		return err
	}
	if _, err := properties.EnterList(); err != nil {
		return err
	}
	id, err := properties.ReadAny()
	if err != nil {
		return err
	}
	if err := p.accept(delivery); err != nil {
		return err
	}
	reply, err := welcomeMessage(id)
	if err != nil {
		return err
	}
	return p.replyOn(uint16(p.replies>>32), func(dst []byte) []byte {
		dst = wire.AppendTransfer(dst, &wire.Transfer{Handle: uint32(p.replies), DeliveryID: wire.Some(uint32(0)), DeliveryTag: []byte{1},
			MessageFormat: wire.Some(uint32(0)), Settled: wire.Some(true)})
		return append(dst, reply...)
	})
}

// welcomeMessage says 202 to the request of that id.
func welcomeMessage(id any) ([]byte, error) {
	dst, list := wire.BeginList(wire.AppendDescriptor(nil, wire.DescriptorProperties))
	for range 5 {
		dst = wire.AppendNull(dst)
	}
	dst, err := wire.AppendAny(dst, id)
	if err != nil {
		return nil, err
	}
	dst = wire.EndList(dst, list, 6)
	dst, m := wire.BeginMap(wire.AppendDescriptor(dst, wire.DescriptorApplicationProperties))
	dst = wire.AppendInt(wire.AppendString(dst, "status-code"), 202)
	dst = wire.AppendString(wire.AppendString(dst, "status-description"), "Accepted")
	dst = wire.EndMap(dst, m, 2)
	return wire.AppendNull(wire.AppendDescriptor(dst, wire.DescriptorValue)), nil
}

// flow gives as many canned frames as there is credit for.
func (p *peer) flow(r *wire.Reader) error {
	f, err := r.ReadFlow()
	if err != nil || !f.Handle.Set {
		return err
	}
	if strings.HasPrefix(p.addresses[p.linkID(f.Handle.Value)], "$") || p.addresses[p.linkID(f.Handle.Value)] == "" {
		return nil
	}
	sent := uint32(p.position) // deliveries so far; the client has counted some of them
	for due := f.DeliveryCount.Value + f.LinkCredit.Value; int32(due-sent) > 0; sent = uint32(p.position) {
		if err := p.give(int(due - sent)); err != nil {
			return err
		}
	}
	return nil
}

// give writes up to count frames at once.
func (p *peer) give(count int) error {
	p.out = p.out[:0]
	for range min(count, peerReplay) {
		p.out = append(p.out, p.replay[p.position%peerReplay]...)
		p.position++
	}
	_, err := p.Write(p.out)
	return err
}

func (p *peer) detach(r *wire.Reader) error {
	d, err := r.ReadDetach()
	if err != nil {
		return err
	}
	delete(p.addresses, p.linkID(d.Handle))
	return p.reply(func(dst []byte) []byte { return wire.AppendDetach(dst, &wire.Detach{Handle: d.Handle, Closed: true}) })
}
