package amqp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	azure "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// A client may take our detach for the end of the link, and use the handle anew before it
// has said its own detach. What comes until then is still about the old link.
func TestHandleIsUsedAnewBeforeTheOwedDetach(t *testing.T) { // H8
	old := map[string]struct {
		attach *wire.Attach
		late   *wire.Transfer // what the old link may still say after the new attach
	}{
		"a sender's":   {sender("old", 3), message(3, 0)},
		"a receiver's": {receiver("old", 3), nil},
		"a refused":    {sender("refused", 3), message(3, 0)},
	}
	for name, tt := range old {
		t.Run(name+" handle", func(t *testing.T) {
			f, got := serveAnew(t)
			p := f.raw()
			p.begin()
			p.send(0, tt.attach)
			p.skipTo(func(d *wire.Detach) bool { return d.Handle == 3 })

			p.send(0, sender("new", 3))
			if tt.late != nil {
				p.transfer(0, tt.late, []byte("for the old one"))
			}
			p.send(0, credit(3, 77, 5))
			p.send(0, &wire.Detach{Handle: 3, Closed: true}) // the old one's, at last
			if a := expect[wire.Attach](p); a.Name != "new" || a.Handle != 3 || a.Target == nil {
				t.Fatalf("got %+v", a)
			}
			testkit.Equal(t, expect[wire.Flow](p).DeliveryCount, wire.Some(uint32(0)), "the new link begins with")
			p.transfer(0, message(3, 1), []byte("for the new one"))
			expect[wire.Disposition](p)
			testkit.Equal(t, <-got, "new: for the new one")
			// Its own detach is answered, and the handle is free again.
			p.send(0, &wire.Detach{Handle: 3, Closed: true})
			p.expectDetach(3, "")
			ask[wire.Attach](p, 0, sender("third", 3))
		})
	}
}

// serveAnew detaches links that are named old as soon as they are there, refuses those
// that are named so, and tells what the others get.
func serveAnew(t *testing.T) (*fixture, chan string) {
	got := make(chan string, 10)
	return serve(t, &handler{attach: func(l *Link) (Terminus, error) {
		switch name := l.Request().Name; {
		case name == "refused":
			return Terminus{}, &Error{Condition: ConditionNotFound}
		case name == "old":
			l.Detach(&Error{Condition: ConditionDetachForced})
			fallthrough
		default:
			in := &sink{deliver: func(d *Delivery) {
				got <- fmt.Sprintf("%s: %s", name, d.Payload)
				d.Accept()
			}}
			return Terminus{Sink: in, Source: &source{}}, nil
		}
	}}), got
}

// skipTo drops frames until one that is looked for.
func (p *rawPeer) skipTo(found func(d *wire.Detach) bool) {
	p.t.Helper()
	for {
		if d, ok := p.next().body.(*wire.Detach); ok && found(d) {
			return
		}
	}
}

// Only one link may wait for a handle, and none for that of a link that is alive.
func TestHandleInUse(t *testing.T) {
	for name, attaches := range map[string][]any{
		"alive":     {sender("a", 3), sender("b", 3)},
		"waits too": {sender("old", 3), sender("a", 3), sender("b", 3)},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := serveAnew(t)
			p := f.raw()
			p.begin()
			p.send(0, attaches...)
			for {
				if e, ok := p.next().body.(*wire.End); ok {
					p.checkError(e.Error, ConditionHandleInUse)
					break
				}
			}
			ask[wire.Begin](p, 0, &wire.End{}, newBegin()) // the channel is free again
		})
	}
}

// A link that waits for a handle ends with its session, and nobody hears of it.
func TestSessionEndsWhileALinkWaitsForItsHandle(t *testing.T) {
	var attached []string
	h := &handler{attach: func(l *Link) (Terminus, error) {
		attached = append(attached, l.Request().Name)
		l.Detach(nil)
		return Terminus{Sink: &sink{}}, nil
	}}
	p := serve(t, h, func(c *Config) { c.MaxLinks = 1 }).raw()
	p.begin()
	for range 10 { // more often than there are links allowed
		p.send(0, sender("old", 0))
		p.skipTo(func(*wire.Detach) bool { return true })
		p.send(0, sender("new", 0), &wire.End{}, newBegin())
		p.expectEnd("")
		expect[wire.Begin](p)
	}
	for _, name := range attached {
		testkit.Equal(t, name, "old", "was attached")
	}
}

// The Go client of Azure frees a handle when our detach comes, and its own may be behind
// the attach that uses the handle next.
func TestAzureClientUsesHandlesAnew(t *testing.T) { // H8
	out := &source{run: func(context.Context, *Link) error { return &Error{Condition: ConditionStolen} }}
	f := serve(t, accept(nil, out))
	_, session := f.azureSession(nil)
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 100 {
				r, err := session.NewReceiver(t.Context(), "hub", nil)
				if err == nil {
					_, err = r.Receive(t.Context(), nil)
				}
				if link, ok := errors.AsType[*azure.LinkError](err); !ok || link.RemoteErr == nil || link.RemoteErr.Condition != "amqp:link:stolen" {
					t.Errorf("got %v", err)
					return
				}
			}
		})
	}
	clients.Wait()
}

// What that client still sends on a link that we have detached never reaches the link
// that has its handle next.
func TestAzureClientSendsToTheRightLink(t *testing.T) { // H2, H8
	f := serve(t, &handler{attach: func(l *Link) (Terminus, error) {
		return Terminus{Sink: &sink{deliver: func(d *Delivery) {
			var m azure.Message
			if err := m.UnmarshalBinary(d.Payload); err != nil || string(m.GetData()) != l.Request().Name {
				t.Errorf("%s got %q (%v)", l.Request().Name, m.GetData(), err)
			}
			d.Accept()
			l.Detach(nil)
		}}}, nil
	}})
	_, session := f.azureSession(nil)
	var clients sync.WaitGroup
	for id := range 4 {
		clients.Go(func() {
			for i := range 50 {
				name := fmt.Sprintf("%d-%d", id, i)
				s, err := session.NewSender(t.Context(), "hub", &azure.SenderOptions{Name: name})
				if err != nil {
					t.Errorf("open %s: %v", name, err)
					return
				}
				sendUntilDetached(t, s, name)
			}
		})
	}
	clients.Wait()
}

func sendUntilDetached(t *testing.T, s *azure.Sender, text string) {
	var senders sync.WaitGroup
	for range 3 {
		senders.Go(func() {
			var err error
			for err == nil {
				err = s.Send(t.Context(), azure.NewMessage([]byte(text)), nil)
			}
			if _, ok := errors.AsType[*azure.LinkError](err); !ok {
				t.Errorf("%s: %v", text, err)
			}
		})
	}
	senders.Wait()
}
