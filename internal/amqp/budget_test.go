package amqp

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

func TestUnfinishedMessagesAreBounded(t *testing.T) {
	const limit = 1 << 20 // of a message
	for _, tt := range []struct {
		name string
		has  int // room that the message has already
		held int // by others of the connection
		each int // that a holder's connections may hold
		all  int // that all connections may hold
		size int
		room int
		err  error
	}{
		{"there is room", 100, 0, 1 << 20, 1 << 20, 100, 100, nil},
		{"a small one gets what it needs", 0, 0, 1 << 30, 1 << 30, 100, 100, nil},
		{"a growing one gets twice what it had", 1000, 0, 1 << 30, 1 << 30, 1001, 2000, nil},
		{"a medium one gets a buffer that is kept", 0, 0, 1 << 30, 1 << 30, smallPartBytes + 1, mediumPartBytes, nil},
		{"a large one as well", 0, 0, 1 << 30, 1 << 30, mediumPartBytes + 1, largePartBytes, nil},
		{"too much on the connection", 0, maxPartBytes, 1 << 30, 1 << 30, 1, 0, errPartsFull},
		{"too much of the holder", 0, 0, 99, 1 << 30, 100, 0, errAllPartsFull},
		{"too much on all of them", 0, 0, 1 << 30, 99, 100, 0, errAllPartsFull},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := serve(t, accept(nil, nil), func(c *Config) { c.Parts = admission.NewMemory(tt.each, tt.all, time.Minute) })
			client, server := net.Pipe()
			defer client.Close()
			defer server.Close()
			r := &newConn(context.Background(), f.server, server, "1", nil).reader.parts
			r.held = tt.held
			var p part
			r.begin(&p)
			if tt.has > 0 {
				testkit.Must(t, r.grow(&p, tt.has, limit))
				p.buf = p.buf[:min(tt.has, 7)]
			}
			testkit.MustErrorIs(t, r.grow(&p, tt.size, limit), tt.err)
			if tt.err == nil && (cap(p.buf) != tt.room || len(p.buf) != min(tt.has, 7)) {
				t.Errorf("%d bytes with room for %d, want %d", len(p.buf), cap(p.buf), tt.room)
			}
			testkit.Equal(t, r.held, tt.held+max(tt.room, tt.has), "bytes are held")
			r.endAll()
			testkit.Equal(t, r.held, tt.held, "bytes are held when it is freed")
			testkit.That(t, f.server.cfg.Parts.Share("somebody", nil).TryTake(min(tt.each, tt.all)), "all is free again")
		})
	}
}

// held is a server whose connections hold what is unfinished for those, in the order in which they come.
func held(t *testing.T, parts *admission.Memory, holders ...string) *fixture {
	return heldUntil(t, parts, nil, holders...)
}

// heldUntil is one that takes messages by a function.
func heldUntil(t *testing.T, parts *admission.Memory, deliver func(*Delivery), holders ...string) *fixture {
	h := accept(&sink{deliver: deliver}, nil)
	h.connected = func(c *Conn) error {
		if n := int(c.ID()[0] - '1'); n < len(holders) {
			return c.Know(holders[n])
		}
		return nil
	}
	return serve(t, h, func(c *Config) { c.Parts = parts })
}

// publish sends a message in two parts, and gives how it was settled.
func (p *rawPeer) publish(id uint32) wire.State {
	p.t.Helper()
	for i := range 2 {
		p.part(0, id, i, 2, strings.Repeat("y", 45_000))
	}
	d := expect[wire.Disposition](p)
	testkit.Equal(p.t, d.First, id)
	return d.State
}

// R2: what the clients of one policy do not finish takes nothing from those of another. Who finds no room is
// to come again, in the words that clients know.
func TestUnfinishedMessagesOfOneHolder(t *testing.T) {
	f := held(t, admission.NewMemory(mediumPartBytes, 2*mediumPartBytes, time.Minute), "least", "least", "other")
	var peers [3]*rawPeer
	for i := range peers {
		peers[i] = f.raw()
		peers[i].attachSender() // before the next one comes
	}
	hostile, same, other := peers[0], peers[1], peers[2]
	hostile.part(0, 0, 0, 2, strings.Repeat("x", 60_000))
	hostile.barrier()
	testkit.Equal(t, other.publish(0).Outcome, wire.OutcomeAccepted)
	refused := same.publish(0)
	testkit.MustEqual(t, refused.Outcome, wire.OutcomeRejected)
	testkit.Equal(t, refused.Error.Condition, ConditionServerBusy)
}

// R2: where there is no room, who has kept a message unfinished for the longest makes some; not before it had
// the time that a client needs.
func TestUnfinishedMessagesMakeRoom(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := held(t, admission.NewMemory(mediumPartBytes, mediumPartBytes, 5*time.Second), "least", "other")
		hostile := f.raw()
		hostile.attachSender()
		other := f.raw()
		other.attachSender()
		hostile.part(0, 0, 0, 2, strings.Repeat("x", 60_000))
		hostile.barrier()
		time.Sleep(4 * time.Second)
		testkit.Equal(t, other.publish(0).Outcome, wire.OutcomeRejected)
		synctest.Wait()
		testkit.Equal(t, f.refused(reasonParts), 1, "refused; nobody was cut off")
		time.Sleep(time.Second)
		testkit.Equal(t, other.publish(1).Outcome, wire.OutcomeRejected)
		hostile.expectDetach(0, ConditionConnectionForced)
		hostile.expectClose(ConditionConnectionForced)
		hostile.expectGone()
		synctest.Wait() // until what it held is given back
		testkit.Equal(t, other.publish(2).Outcome, wire.OutcomeAccepted)
	})
}

// R2: a message that is not finished ends its connection, however often that says that it lives.
func TestUnfinishedMessagesEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := serve(t, accept(&sink{}, nil))
		hostile := f.raw()
		hostile.attachSender()
		start := time.Now()
		hostile.part(0, 0, 0, 2, strings.Repeat("x", 60_000))
		for range 4 {
			time.Sleep(partTime / 5)
			hostile.write(wire.AppendEmptyFrame(nil))
		}
		hostile.expectDetach(0, ConditionConnectionForced)
		hostile.expectClose(ConditionConnectionForced)
		testkit.Equal(t, time.Since(start), partTime)
	})
}

// R2: a message that is whole has all the time that it takes to store it, however many others find no room
// meanwhile, and so have those that its client cannot finish because the yard does not read.
func TestUnfinishedMessagesWaitForStorage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		parts := admission.NewMemory(2*mediumPartBytes, 2*mediumPartBytes, admission.DefaultPatience)
		slowly := func(d *Delivery) {
			time.Sleep(2 * partTime)
			d.Accept()
		}
		f := heldUntil(t, parts, slowly, "least", "least")
		slow := f.raw()
		slow.attachSender()
		slow.send(0, sender("second", 1))
		expect[wire.Attach](slow)
		expect[wire.Flow](slow)
		other := f.raw()
		other.attachSender()
		slow.part(1, 0, 0, 2, strings.Repeat("x", 60_000)) // it waits for its end behind the other
		slow.part(0, 1, 0, 2, strings.Repeat("y", 60_000))
		slow.part(0, 1, 1, 2, "end")
		for id := range uint32(39) {
			time.Sleep(admission.DefaultPatience + time.Second)
			testkit.Equal(t, other.publish(id).Outcome, wire.OutcomeRejected)
		}
		testkit.Equal(t, expect[wire.Disposition](slow).State.Outcome, wire.OutcomeAccepted)
		parts.Share("least", nil).Press(2 * mediumPartBytes) // its client had no time to finish it yet
		slow.part(1, 0, 1, 2, "end")
		testkit.Equal(t, expect[wire.Disposition](slow).State.Outcome, wire.OutcomeAccepted)
	})
}
