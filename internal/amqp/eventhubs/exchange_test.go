package eventhubs

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// A client that takes no replies may not have us remember them for ever: it gets no more
// credit then. When it takes them it goes on as if nothing had been.
func TestRequestsThatNobodyWantsTheReplyTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests = 3000
		y := newOrders(t, 1)
		s := y.session()
		receiver, err := s.NewReceiver(t.Context(), "$management", &goamqp.ReceiverOptions{Credit: -1, TargetAddress: "me"})
		testkit.Must(t, err)
		sender := newSender(t, s, "$management", &goamqp.SenderOptions{SettlementMode: goamqp.SenderSettleModeSettled.Ptr()})
		sent, done := 0, make(chan struct{})
		go func() {
			defer close(done)
			m := read(typeHub, "orders")
			m.Properties = &goamqp.MessageProperties{ReplyTo: new("me")}
			for i := range requests {
				m.Properties.MessageID = uint64(i)
				testkit.Check(t, sender.Send(t.Context(), m, nil), "request %d", i)
				sent++
			}
		}()
		synctest.Wait()
		if most := maxUntakenBytes/exchangeOverheadBytes + 2*requestCredit; sent < requestCredit || sent > most {
			t.Errorf("%d requests were taken, want %d to %d", sent, requestCredit, most)
		}
		other := newRPC(t, s, "$management") // is not held up, nor is anything else
		wantStatus(t, other.ask(read(typeHub, "orders")), 200, "OK")
		testkit.Must(t, newSender(t, s, "orders", nil).Send(t.Context(), text("x"), nil))
		for i := range requests {
			testkit.Must(t, receiver.IssueCredit(1))
			if got := receive(t, receiver, 1)[0]; got.Properties.CorrelationID != uint64(i) || got.ApplicationProperties["status-code"] != int32(200) {
				t.Fatalf("reply %d is to %v: %v", i, got.Properties.CorrelationID, got.ApplicationProperties)
			}
		}
		<-done
	})
}

// A client that heeds no credit is bounded too: it is told that it is too much, by a reply
// while it takes any, and else on the request.
func TestRequestsBeyondCredit(t *testing.T) {
	y, held := slowYard(t)
	c := y.rawAs(auth.RootPolicy)
	c.attachPair("$cbs", "me")
	c.credit(0, 1, 0, 10)
	request := requestOf(t, "held", "", strings.Repeat("x", 30_000))
	fit := maxQueuedBytes/(len(request)+exchangeOverheadBytes) + 1 // and the one that is being handled
	for range fit {
		c.send(0, 0, true, request)
		<-held.asked
	}
	for i := range 2 {
		id := fmt.Sprint("too much ", i)
		c.send(0, 0, i > 0, requestOf(t, id, "", strings.Repeat("x", 30_000)))
		if got := c.reply(); got.id != id || got.status != 503 || got.condition != condBusy {
			t.Errorf("the reply is %+v", got)
		}
	}
	close(held.release)
	for range 8 { // what the credit is left for
		if got := c.reply(); got.id != "held" || got.status != 202 {
			t.Errorf("the reply is %+v", got)
		}
	}
}

// What has no way back, or an end that takes nothing, is rejected where it is too much.
func TestRequestsBeyondCreditWithoutReplies(t *testing.T) {
	y, held := slowYard(t)
	c := y.rawAs(auth.RootPolicy)
	c.accepted(0, wire.Attach{Name: "alone", Role: wire.RoleSender, Source: &wire.Source{}, Target: &wire.Target{Address: wire.Some("$cbs")}})
	request := requestOf(t, "held", "", strings.Repeat("x", 30_000))
	fit := maxQueuedBytes/(len(request)+exchangeOverheadBytes) + 1
	for range fit + 1 {
		c.send(0, 0, false, request)
		<-held.asked
	}
	if d := c.disposition(); d.First != uint32(fit) || d.State.Error == nil || d.State.Error.Condition != condBusy {
		t.Errorf("the disposition is %+v", d)
	}
	close(held.release)
	if d := c.disposition(); d.First != 0 || d.State.Outcome != wire.OutcomeAccepted {
		t.Errorf("the disposition is %+v", d)
	}
}

// A request is settled when it has been handled, not before: that is what bounds how many
// a client sends.
func TestRequestsAreSettledWhenHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, held := slowYard(t)
		c := newRPC(t, newSession(t, y.dial(nil)), "$cbs")
		settled := make(chan error, 1)
		go func() { settled <- c.sender.Send(t.Context(), putToken("sb://localhost/", "bearer"), nil) }()
		synctest.Wait()
		select {
		case err := <-settled:
			t.Errorf("it was settled before it was handled: %v", err)
		default:
		}
		close(held.release)
		testkit.Must(t, <-settled)
		receive(t, c.receiver, 1)
	})
}

// A reply whose link has gone, or never was, is dropped; a request that is no message is rejected.
func TestRequestsWithoutAWayBack(t *testing.T) {
	y := newOrders(t, 1)
	s := newSession(t, y.dial(nil))
	sender := newSender(t, s, "$cbs", nil)
	testkit.Must(t, sender.Send(t.Context(), putToken("sb://localhost/orders", sasToken("sb://localhost/orders", auth.RootPolicy, time.Hour)), nil))
	c := y.rawAs("")
	c.attachPair("$management", "m")
	c.send(0, 0, false, []byte("hello"))
	if d := c.disposition(); d.State.Outcome == 0 || d.State.Error == nil || d.State.Error.Condition != condDecode {
		t.Errorf("the disposition is %+v", d)
	}
}

// A reply is for the session that the request came from, by whatever it is found: not for
// one that has its number, or a link that has its name, later.
func TestRepliesAreNotForLaterSessions(t *testing.T) {
	for _, replyTo := range []string{"", "me", "pair"} {
		t.Run(replyTo, func(t *testing.T) {
			y, held := slowYard(t)
			c := y.rawAs("")
			c.attachPair("$cbs", "me")
			c.credit(0, 1, 0, 100)
			c.send(0, 0, true, requestOf(t, "old", replyTo, "bearer"))
			c.write(0, wire.AppendEnd(nil, &wire.End{}), nil)
			c.expect(wire.DescriptorEnd)

			c.begin(0)
			c.attachPair("$cbs", "me")
			c.credit(0, 1, 0, 100)
			close(held.release)
			for i := range 20 {
				id := fmt.Sprint("new ", i)
				c.send(0, 0, true, requestOf(t, id, replyTo, "bearer"))
				if got := c.reply(); got.id != id {
					t.Fatalf("the reply to %q is to %q", id, got.id)
				}
			}
		})
	}
}

// slowBearer answers when it is let.
type slowBearer struct {
	release chan struct{}
	// asked is closed when it was asked for the first time.
	asked chan struct{}
	once  *sync.Once
}

// slowYard has its bearer tokens checked by one.
func slowYard(t *testing.T) (*yard, slowBearer) {
	b := slowBearer{release: make(chan struct{}), asked: make(chan struct{}), once: new(sync.Once)}
	return newYard(t, func(s *setup) { s.bearer = b }), b
}

func (b slowBearer) Verify(ctx context.Context, token string) (auth.Grant, error) {
	b.once.Do(func() { close(b.asked) })
	select {
	case <-b.release:
	case <-ctx.Done():
		return auth.Grant{}, ctx.Err()
	}
	return auth.Grant{Scopes: []auth.Scope{{Rights: auth.Manage}}, Holder: "bearer"}, nil
}

// A token whose check takes long holds up nothing but the requests behind it.
func TestASlowTokenHoldsUpNothingElse(t *testing.T) {
	y, slow := slowYard(t)
	y.hub("orders", 1)
	conn := y.dial(&goamqp.ConnOptions{SASLType: goamqp.SASLTypePlain(auth.RootPolicy, keyOf(auth.RootPolicy))})
	s := newSession(t, conn)
	c := newRPC(t, s, "$cbs")
	c.sender = newSenderAgain(t, c.sender, s)
	m := putToken("sb://localhost/orders", "bearer")
	m.Properties = &goamqp.MessageProperties{MessageID: "slow"}
	testkit.Must(t, c.sender.Send(t.Context(), m, nil))
	testkit.Must(t, newSender(t, s, "orders", nil).Send(t.Context(), text("x"), nil)) // while it waits
	quick := putToken("sb://localhost/orders", sasToken("sb://localhost/orders", auth.RootPolicy, time.Hour))
	quick.Properties = &goamqp.MessageProperties{MessageID: "quick"}
	testkit.Must(t, c.sender.Send(t.Context(), quick, nil))
	close(slow.release)
	for _, want := range []string{"slow", "quick"} {
		if got := receive(t, c.receiver, 1)[0].Properties.CorrelationID; got != want {
			t.Errorf("the reply is to %v, want %s", got, want)
		}
	}
}

// newSenderAgain replaces a sender to the claims by one that does not wait for what becomes
// of its messages.
func newSenderAgain(t testing.TB, old *goamqp.Sender, s *goamqp.Session) *goamqp.Sender {
	t.Helper()
	testkit.Must(t, old.Close(t.Context()))
	return newSender(t, s, "$cbs", &goamqp.SenderOptions{SettlementMode: goamqp.SenderSettleModeSettled.Ptr()})
}

// A connection that ends does not wait for an answer that does not come.
func TestAConnectionEndsWithItsRequests(t *testing.T) {
	y, _ := slowYard(t) // which is never let go
	conn := y.dial(nil)
	s := newSession(t, conn)
	c := newRPC(t, s, "$cbs")
	c.sender = newSenderAgain(t, c.sender, s)
	testkit.Must(t, c.sender.Send(t.Context(), putToken("sb://localhost/", "bearer"), nil))
	testkit.Must(t, conn.Close()) // and the yard's end waits for the connection's
}

// requestOf encodes a put-token request.
func requestOf(t testing.TB, id, replyTo, token string) []byte {
	t.Helper()
	m := putToken("sb://localhost/", token)
	m.Properties = &goamqp.MessageProperties{MessageID: id}
	if replyTo != "" {
		m.Properties.ReplyTo = &replyTo
	}
	return testkit.Value(m.MarshalBinary())(t)
}

// reported is what a reply says.
type reported struct {
	id        any
	status    any
	condition wire.Symbol
}

// reply awaits a message and reads it as a reply.
func (c *raw) reply() reported {
	c.t.Helper()
	var m goamqp.Message
	testkit.Must(c.t, m.UnmarshalBinary(c.receive()))
	got := reported{id: m.Properties.CorrelationID, status: m.ApplicationProperties["status-code"]}
	if condition, ok := m.ApplicationProperties["error-condition"].(string); ok {
		got.condition = wire.Symbol(condition)
	}
	if status, ok := got.status.(int32); ok {
		got.status = int(status)
	}
	return got
}
