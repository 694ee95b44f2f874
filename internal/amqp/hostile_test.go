package amqp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// costlyAttach is an attach whose properties take far more memory decoded than encoded: a
// map of empty lists, a byte each.
func costlyAttach(name string, handle uint32, role wire.Role, n int) []byte {
	b := wire.AppendDescriptor(nil, wire.DescriptorAttach)
	b, list := wire.BeginList(b)
	b = wire.AppendString(b, name)
	b = wire.AppendUint(b, handle)
	b = wire.AppendBool(b, bool(role))
	for range 10 {
		b = wire.AppendNull(b)
	}
	b = binary.BigEndian.AppendUint32(append(b, byte(wire.CodeMap32)), uint32(n+4))
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	b = append(b, bytes.Repeat([]byte{byte(wire.CodeList0)}, n)...)
	return wire.EndList(b, list, 14)
}

// What a peer says in an attach is not kept for as long as the link lives, and not decoded
// while the attach waits for its handle.
func TestAttachesAreNotKept(t *testing.T) {
	f := serve(t, accept(nil, &source{}))
	p := f.raw()
	p.begin()
	const links, size = 32, 15_000
	was := inUse()
	for h := range uint32(links) {
		ask[wire.Attach](p, 0, costlyAttach(fmt.Sprint(h), h, wire.RoleReceiver, size))
	}
	if per := (inUse() - was) / links; per > 64<<10 {
		t.Errorf("%d bytes are kept of each attach", per)
	}
	c := f.only()
	c.mu.Lock()
	for _, l := range c.sessions.byChannel[0].links {
		l.detachLocked(nil)
	}
	c.mu.Unlock()
	for range links {
		expect[wire.Detach](p)
	}
	was = inUse()
	for h := range uint32(links / 2) {
		p.send(0, costlyAttach(fmt.Sprint("heir", h), h, wire.RoleReceiver, size))
	}
	p.barrier()
	if per := (inUse() - was) / (links / 2); per > 64<<10 {
		t.Errorf("%d bytes are kept of each attach that waits", per)
	}
	// They are as good as others.
	for h := range uint32(links / 2) {
		p.send(0, &wire.Detach{Handle: h, Closed: true})
		if a := expect[wire.Attach](p); a.Name != fmt.Sprint("heir", h) {
			t.Fatalf("got %+v", a)
		}
	}
}

// only is the one connection that there is.
func (f *fixture) only() *Conn {
	for c := range f.conns() {
		return c
	}
	f.t.Fatal("there is no connection")
	return nil
}

// Attaches that wait for their handles are bounded.
func TestTooMuchWaitsForHandles(t *testing.T) {
	h := accept(&sink{}, nil)
	h.attach = func(l *Link) (Terminus, error) { return Terminus{}, &Error{Condition: ConditionNotFound} }
	p := serve(t, h).raw()
	p.begin()
	for range 3 { // what waited is not counted any more when the session has ended
		const fit = maxHeirBytes / 15_100
		for handle := range uint32(fit + 1) {
			ask[wire.Attach](p, 0, sender("s", handle))
			expect[wire.Detach](p)
			p.send(0, costlyAttach("heir", handle, wire.RoleSender, 15_000))
		}
		p.expectEnd(ConditionHandleInUse)
		ask[wire.Begin](p, 0, &wire.End{}, newBegin())
	}
}

// An attach that is larger than any client's is refused, and the session goes on.
func TestAttachThatIsTooLarge(t *testing.T) {
	in := &sink{}
	f := serve(t, accept(in, nil))
	p := f.raw()
	p.begin()
	p.send(0, costlyAttach("large", 0, wire.RoleSender, 60_000))
	if a := expect[wire.Attach](p); a.Name != "large" || a.Source != nil || a.Target != nil {
		t.Fatalf("got %+v", a)
	}
	p.expectDetach(0, ConditionResourceLimitExceeded)
	p.send(0, &wire.Detach{Handle: 0, Closed: true}, costlyAttach("small", 0, wire.RoleSender, 15_000))
	if a := expect[wire.Attach](p); a.Name != "small" {
		t.Fatalf("got %+v", a)
	}
	testkit.Equal(t, f.refused(reasonAttach), 1, "not counted")
}

// A byte of an unfinished message holds no more than a byte, whatever was sent before.
func TestUnfinishedMessagesHoldWhatTheySay(t *testing.T) {
	p := serve(t, accept(&sink{}, nil)).raw()
	p.begin()
	const links = 100
	for h := range uint32(links + 1) {
		p.send(0, sender(fmt.Sprint(h), h))
	}
	p.barrier()
	was := inUse()
	piece := strings.Repeat("x", 60_000)
	for h := uint32(1); h <= links; h++ {
		for i := range 16 { // a large one on one link, whole
			p.part(0, 2*h, i, 16, piece)
		}
		p.part(h, 2*h+1, 0, 2, "x") // then the beginning of one on another
	}
	p.barrier()
	if per := (inUse() - was) / links; per > 16<<10 {
		t.Errorf("%d bytes are held for each unfinished message of one byte", per)
	}
}

// All connections together hold so much of unfinished messages; the newest are rejected.
func TestUnfinishedMessagesOfAllConnections(t *testing.T) {
	h := accept(&sink{}, nil)
	left := make(chan struct{}, 2)
	h.disconnected = func() { left <- struct{}{} }
	parts := admission.NewMemory(1<<30, mediumPartBytes+1000, time.Minute) // room for one that is not small
	f := serve(t, h, func(c *Config) { c.Parts = parts })
	p, q := f.raw(), f.raw()
	p.attachSender()
	q.attachSender()
	p.part(0, 0, 0, 2, strings.Repeat("x", 60_000))
	p.barrier()
	for id := range uint32(2) {
		for i := range 3 {
			q.part(0, id, i, 3, strings.Repeat("y", 50_000))
		}
		d := expect[wire.Disposition](q)
		if d.First != id || d.State.Outcome != wire.OutcomeRejected || d.State.Error.Condition != ConditionServerBusy {
			t.Fatalf("got %+v", d)
		}
	}
	q.part(0, 2, 0, 2, "small")
	q.part(0, 2, 1, 2, "enough")
	testkit.MustEqual(t, expect[wire.Disposition](q).State.Outcome, wire.OutcomeAccepted)
	p.leave() // in the midst of it
	receive(t, left, "Disconnected")
	for i := range 2 {
		q.part(0, 3, i, 2, strings.Repeat("y", 45_000))
	}
	testkit.MustEqual(t, expect[wire.Disposition](q).State.Outcome, wire.OutcomeAccepted)
	testkit.Equal(t, f.refused(reasonParts), 2, "were counted")
	q.leave()
	f.stop()
	testkit.That(t, parts.Share("", nil).TryTake(mediumPartBytes+1000), "bytes are still counted")
}

// All connections together let so much of answers wait; the next to add some is closed.
func TestAnswersOfAllConnections(t *testing.T) {
	f := serve(t, accept(nil, nil))
	f.server.answers.limit = 8 * answerStepBytes
	var asks []byte
	for range 4000 {
		asks = appendFrame(asks, 0, &wire.Flow{NextIncomingID: wire.Some(uint32(1)), IncomingWindow: 1, Echo: true}, nil)
	}
	for i := 0; f.refused(reasonOutput) == 0; i++ {
		if i == 100 {
			t.Fatal("it could go on for ever")
		}
		p := quietPeer(t, f.pipe())
		b := append([]byte(nil), wire.ProtocolAMQP[:]...)
		b = appendFrame(b, 0, &wire.Open{ContainerID: "test"}, nil)
		p.write(appendFrame(b, 0, newBegin(), nil))
		if _, err := p.nc.Write(asks); err != nil {
			break // cut off
		}
	}
	f.stop()
	if used := f.server.answers.used.Load(); used != 0 || f.refused(reasonOutput) == 0 {
		t.Errorf("%d bytes are still counted, %v were refused", used, f.refused(reasonOutput))
	}
}

// What is written is not counted any more.
func TestAnswersThatAreTaken(t *testing.T) {
	f := serve(t, accept(nil, nil))
	f.server.answers.limit = 40 * answerStepBytes
	p := f.raw()
	p.begin()
	var asks []byte
	for range 2000 {
		asks = appendFrame(asks, 0, &wire.Flow{NextIncomingID: wire.Some(uint32(1)), IncomingWindow: 1, Echo: true}, nil)
	}
	for range 50 {
		p.write(asks)
		for range 2000 {
			expect[wire.Flow](p)
		}
	}
	p.barrier()
}

// Who has not opened yet gets no large buffer.
func TestLargeFrameBeforeTheOpen(t *testing.T) {
	f := serve(t, accept(nil, nil))
	p := f.raw()
	p.write(wire.ProtocolAMQP[:])
	ask[wire.Open](p, 0, &wire.Open{ContainerID: strings.Repeat("x", openFrameBytes)})
	p.expectClose(ConditionFramingError)

	p = f.raw() // all at once, and more than the small buffer holds
	b := append([]byte(nil), wire.ProtocolAMQP[:]...)
	b = appendFrame(b, 0, &wire.Open{ContainerID: strings.Repeat("x", 3000)}, nil)
	b = appendFrame(b, 0, newBegin(), nil)
	p.write(appendFrame(b, 0, sender(strings.Repeat("x", 3000), 0), nil))
	expect[wire.Open](p)
	expect[wire.Begin](p)
	expect[wire.Attach](p)
}

func TestInputStaysSmallBeforeTheOpen(t *testing.T) {
	frame := appendFrame(nil, 0, make([]byte, 3000), nil)
	in := inputOf(bytes.NewReader(bytes.Repeat(frame, 10)), openFrameBytes, newBufferPool(128<<10))
	for range 10 {
		_, body, err := in.frame()
		if err != nil || len(body) != 3000 || in.large != nil {
			t.Fatalf("got %d bytes, %v, large: %v", len(body), err, in.large != nil)
		}
	}
	testkit.Equal(t, testkit.Err3(in.frame()), io.EOF)
}

// A link whose name does not fit the peer's frames cannot even be refused: its session ends.
func TestNameThatDoesNotFit(t *testing.T) {
	in := &sink{}
	p := serve(t, accept(in, nil)).raw()
	p.open(func(o *wire.Open) { o.MaxFrameSize = wire.Some(uint32(512)) })
	ask[wire.Begin](p, 0, newBegin(), sender(strings.Repeat("n", 5000), 0))
	p.expectEnd(ConditionFrameSizeTooSmall)
	testkit.Equal(t, in.closed.Load(), 1, "the sink was not closed")
}

// An error's words are cut where a frame ends, also where what is no text makes them longer.
func TestBadTextInASmallFrame(t *testing.T) {
	for name, words := range map[string]string{
		"not text":   strings.Repeat("x\xff", 300),
		"not to cut": strings.Repeat("x\u20ac\u20ac", 300),
	} {
		t.Run(name, func(t *testing.T) {
			h := accept(nil, nil)
			h.attach = func(*Link) (Terminus, error) {
				return Terminus{}, &Error{Condition: ConditionNotFound, Description: words}
			}
			p := serve(t, h).raw()
			p.open(func(o *wire.Open) { o.MaxFrameSize = wire.Some(uint32(512)) })
			ask[wire.Begin](p, 0, newBegin(), sender("s", 0))
			expect[wire.Attach](p)
			got := p.next()
			d := got.body.(*wire.Detach)
			if got.size > 512 || !strings.HasPrefix(strings.ToValidUTF8(words, "\ufffd"), d.Error.Description) {
				t.Fatalf("got %d bytes: %q", got.size, d.Error.Description)
			}
		})
	}
}

// What was lent for one message is lent again for the next, and nothing is lent twice.
func TestBuffersOfUnfinishedMessages(t *testing.T) {
	for need, want := range map[int]int{
		1: 1, smallPartBytes: smallPartBytes, smallPartBytes + 1: mediumPartBytes, mediumPartBytes: mediumPartBytes,
		mediumPartBytes + 1: largePartBytes, largePartBytes: largePartBytes, largePartBytes + 1: largePartBytes + 1,
	} {
		testkit.Equal(t, partRoom(need), want, "who needs %d is lent", need)
		var pool partPool
		one, two := pool.get(want), pool.get(want)
		if cap(one) != want || len(one) != 0 || &one[:1][0] == &two[:1][0] {
			t.Errorf("lent were %d and %d bytes", cap(one), cap(two))
		}
		pool.put(one)
		pool.put(two)
		if again := pool.get(want); cap(again) != want || len(again) != 0 {
			t.Errorf("lent again were %d of %d bytes", len(again), cap(again))
		}
	}
}
