package eventhubs

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/auth"
)

// rpc is a pair of links to a node that answers requests.
type rpc struct {
	t        testing.TB
	sender   *goamqp.Sender
	receiver *goamqp.Receiver
	replyTo  string
}

func newRPC(t testing.TB, s *goamqp.Session, node string) *rpc {
	t.Helper()
	replyTo := fmt.Sprintf("%s-reply-to-%d", node, time.Now().UnixNano())
	receiver, err := s.NewReceiver(t.Context(), node, &goamqp.ReceiverOptions{TargetAddress: replyTo, Credit: 100})
	must(t, err)
	sender, err := s.NewSender(t.Context(), node, &goamqp.SenderOptions{SourceAddress: replyTo})
	must(t, err)
	return &rpc{t: t, sender: sender, receiver: receiver, replyTo: replyTo}
}

// ask sends a request and awaits its reply.
func (c *rpc) ask(m *goamqp.Message) *goamqp.Message {
	c.t.Helper()
	if m.Properties == nil {
		m.Properties = &goamqp.MessageProperties{ReplyTo: &c.replyTo}
	}
	m.Properties.MessageID = fmt.Sprint(time.Now().UnixNano())
	must(c.t, c.sender.Send(c.t.Context(), m, nil))
	answer, err := c.receiver.Receive(c.t.Context(), nil)
	must(c.t, err)
	if answer.Properties.CorrelationID != m.Properties.MessageID {
		c.t.Errorf("the reply is to %v, the request was %v", answer.Properties.CorrelationID, m.Properties.MessageID)
	}
	return answer
}

func putToken(audience string, value any) *goamqp.Message {
	return &goamqp.Message{Value: value, ApplicationProperties: map[string]any{
		"operation": "put-token", "type": "servicebus.windows.net:sastoken", "name": audience, "expiration": "0",
	}}
}

// wantStatus holds a reply against a code and the beginning of its description.
func wantStatus(t testing.TB, m *goamqp.Message, code int32, text string) {
	t.Helper()
	p := m.ApplicationProperties
	if p["status-code"] != code || p["statusCode"] != code || p["status-description"] != p["statusDescription"] {
		t.Errorf("the status is %v", p)
	}
	description, _ := p["status-description"].(string)
	if !strings.HasPrefix(description, text) {
		t.Errorf("the description is\n%s\nwant\n%s", description, text)
	}
	_, failed := p["error-condition"]
	if failed != (code >= 400) || failed && !trackingEnd.MatchString(description) {
		t.Errorf("the status is %v", p)
	}
}

// authorize puts a good token for a policy on a connection.
func authorizeAs(t testing.TB, conn *goamqp.Conn, policy, resource string, life time.Duration) {
	t.Helper()
	s := newSession(t, conn)
	wantStatus(t, newRPC(t, s, "$cbs").ask(putToken(resource, sasToken(resource, policy, life))), 202, "Accepted")
	must(t, s.Close(t.Context()))
}

// H9: what a token is worth.
func TestPuttingTokens(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	y.hub("Other", 1)
	y.policy("", "sender", auth.Send)
	y.policy("orders", "local", auth.Listen)
	conn := y.dial(nil)
	c := newRPC(t, newSession(t, conn), "$cbs")
	const root, host, orders = auth.RootPolicy, "sb://localhost/", "sb://localhost/orders"
	good := sasToken(orders, root, time.Hour)
	tests := []struct {
		what, audience string
		token          any
		code           int32
		text           string
	}{
		{"the root's", orders, good, 202, "Accepted"},
		{"for a partition of the hub", "amqps://localhost/orders/ConsumerGroups/$Default/Partitions/0", good, 202, "Accepted"},
		{"for the hub's management", orders + "/$management", good, 202, "Accepted"},
		{"for the namespace", host, sasToken("localhost", root, time.Hour), 202, "Accepted"},
		{"for a hub, by one for the namespace", orders, sasToken("localhost", root, time.Hour), 202, "Accepted"},
		{"on any host", "amqp://10.0.0.1:5672/orders", good, 202, "Accepted"},
		{"a hub's policy", orders, sasToken(orders, "local", time.Hour), 202, "Accepted"},
		{"any case", "SB://LocalHost/ORDERS", sasToken("sb://LOCALHOST/Orders/", root, time.Hour), 202, "Accepted"},
		{"the secondary key", orders, auth.Sign(orders, "sender", keyOf("sender")+"2", time.Now().Add(time.Hour)), 202, "Accepted"},

		{"signed with another key", orders, auth.Sign(orders, root, "wrong", time.Now().Add(time.Hour)), 401, textSignature},
		{"of a policy that does not exist", orders, sasToken(orders, "nobody", time.Hour), 401, textSignature},
		{"of another hub's policy", "sb://localhost/other", sasToken("sb://localhost/other", "local", time.Hour), 401, textSignature},
		{"expired", orders, sasToken(orders, root, -time.Minute), 401, "ExpiredToken: The token is expired. Expiration time: "},
		{"for another hub", "sb://localhost/other", good, 401, textAudience},
		{"for more than it covers", host, good, 401, textAudience},
		{"for a hub that does not exist", "sb://localhost/nope/Partitions/0", sasToken(host, root, time.Hour), 404,
			"The messaging entity 'sb://localhost/nope/Partitions/0' could not be found."},
		{"a bad one for a hub that does not exist", "sb://localhost/nope", auth.Sign(host, root, "wrong", time.Now().Add(time.Hour)), 401, textSignature},
		{"that is none", orders, "SharedAccessSignature sr=x", 400, "Token is malformed"},
		{"that is empty", orders, "", 400, "Token is malformed"},
		{"that is no text", orders, int64(5), 400, "Token is malformed"},
		{"that is a bearer's", orders, "eyJ.x.y", 401, "Tokens of this kind are not accepted"},
		{"for nothing", "", good, 400, "The request names no audience."},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) { wantStatus(t, c.ask(putToken(tt.audience, tt.token)), tt.code, tt.text) })
	}
	wantStatus(t, c.ask(&goamqp.Message{Value: "x", ApplicationProperties: map[string]any{"operation": "delete-token"}}), 501, "$cbs does not know the operation 'delete-token'")
	if n := y.metric("eventyard_amqp_tokens_total"); n != float64(len(tests)+1) {
		t.Errorf("%v tokens were counted", n)
	}
}

// One link in each direction, and the place free the moment the session has ended.
func TestOnePairOfLinksToTheClaims(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	conn := y.dial(nil)
	for range 3 { // as one client does, for each token
		s := newSession(t, conn)
		newRPC(t, s, "$cbs").ask(putToken("sb://localhost/orders", sasToken("sb://localhost/orders", auth.RootPolicy, time.Hour)))
		must(t, s.Close(t.Context()))
	}
	s, other := newSession(t, conn), newSession(t, conn)
	newRPC(t, s, "$cbs")
	_, err := other.NewSender(t.Context(), "$cbs", nil)
	wantError(t, err, condNotAllowed, "A link to connection '")
	if !strings.Contains(err.Error(), "' $cbs node has already been opened.") {
		t.Errorf("the error is %v", err)
	}
	_, err = other.NewReceiver(t.Context(), "$cbs", nil)
	wantError(t, err, condNotAllowed, "A link to connection '")
	newRPC(t, y.session(), "$cbs") // another connection is another matter
}

// A client that takes no replies may not have us remember them for ever, and holds up
// nothing else.
func TestRequestsThatNobodyWantsTheReplyTo(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	conn := y.dial(nil)
	s := newSession(t, conn)
	receiver, err := s.NewReceiver(t.Context(), "$cbs", &goamqp.ReceiverOptions{Credit: -1, TargetAddress: "me"})
	must(t, err)
	sender := newSender(t, s, "$cbs", nil)
	m := putToken("sb://localhost/orders", sasToken("sb://localhost/orders", auth.RootPolicy, time.Hour))
	m.Properties = &goamqp.MessageProperties{ReplyTo: new(string)}
	*m.Properties.ReplyTo = "me"
	for i := range maxPending {
		m.Properties.MessageID = uint64(i)
		must(t, sender.Send(t.Context(), m, nil))
	}
	err = sender.Send(t.Context(), m, nil)
	if remote := remoteError(t, err); string(remote.Condition) != string(condLimit) {
		t.Errorf("one more is %v", err)
	}
	must(t, receiver.IssueCredit(maxPending))
	for i := range maxPending {
		if got := receive(t, receiver, 1)[0].Properties.CorrelationID; got != uint64(i) {
			t.Fatalf("reply %d is to %v", i, got)
		}
	}
	must(t, receiver.IssueCredit(1))
	must(t, sender.Send(t.Context(), m, nil))
	receive(t, receiver, 1)
	newReceiver(t, s, firstPartition, listening{}) // the rights are there, too
}

// Requests are bounded in bytes as well: many large ones are not remembered either.
func TestLargeRequestsAreBounded(t *testing.T) {
	y := newYard(t)
	s := newSession(t, y.dial(nil))
	_, err := s.NewReceiver(t.Context(), "$cbs", &goamqp.ReceiverOptions{Credit: -1})
	must(t, err)
	sender := newSender(t, s, "$cbs", nil)
	m := putToken("sb://localhost/orders", strings.Repeat("x", 50_000))
	taken := 0
	for range 50 {
		if err = sender.Send(t.Context(), m, nil); err != nil {
			break
		}
		taken++
	}
	if remote := remoteError(t, err); string(remote.Condition) != string(condLimit) || taken != maxPendingBytes/50_000 {
		t.Errorf("%d were taken, then %v", taken, err)
	}
}

// A reply whose link has gone, or never was, is dropped; a request that is no message is
// rejected.
func TestRequestsWithoutAWayBack(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	s := newSession(t, y.dial(nil))
	sender := newSender(t, s, "$cbs", nil)
	must(t, sender.Send(t.Context(), putToken("sb://localhost/orders", sasToken("sb://localhost/orders", auth.RootPolicy, time.Hour)), nil))
	c := y.raw()
	c.sasl("ANONYMOUS")
	c.open()
	c.attachPair("$management", "m")
	c.send(0, 0, false, []byte("hello"))
	if d := c.disposition(); d.State.Outcome == 0 || d.State.Error == nil || d.State.Error.Condition != condDecode {
		t.Errorf("the disposition is %+v", d)
	}
}

// slowBearer answers when it is let.
type slowBearer struct{ release chan struct{} }

func (b slowBearer) Verify(ctx context.Context, token string) (auth.Grant, error) {
	select {
	case <-b.release:
	case <-ctx.Done():
		return auth.Grant{}, ctx.Err()
	}
	return auth.Grant{Scopes: []auth.Scope{{Rights: auth.Manage}}, Holder: token}, nil
}

// A token whose check takes long holds up nothing but the requests behind it.
func TestASlowTokenHoldsUpNothingElse(t *testing.T) {
	slow := slowBearer{make(chan struct{})}
	y := newYard(t, func(s *setup) { s.bearer = slow })
	y.hub("orders", 1)
	conn := y.dial(&goamqp.ConnOptions{SASLType: goamqp.SASLTypePlain(auth.RootPolicy, keyOf(auth.RootPolicy))})
	s := newSession(t, conn)
	c := newRPC(t, s, "$cbs")
	m := putToken("sb://localhost/orders", "bearer")
	m.Properties = &goamqp.MessageProperties{MessageID: "slow"}
	must(t, c.sender.Send(t.Context(), m, nil))
	must(t, newSender(t, s, "orders", nil).Send(t.Context(), text("x"), nil)) // while it waits
	quick := putToken("sb://localhost/orders", sasToken("sb://localhost/orders", auth.RootPolicy, time.Hour))
	quick.Properties = &goamqp.MessageProperties{MessageID: "quick"}
	must(t, c.sender.Send(t.Context(), quick, nil))
	close(slow.release)
	for _, want := range []string{"slow", "quick"} {
		if got := receive(t, c.receiver, 1)[0].Properties.CorrelationID; got != want {
			t.Errorf("the reply is to %v, want %s", got, want)
		}
	}
}

// A connection that ends does not wait for an answer that does not come.
func TestAConnectionEndsWithItsRequests(t *testing.T) {
	never := slowBearer{make(chan struct{})}
	y := newYard(t, func(s *setup) { s.bearer = never })
	conn := y.dial(nil)
	c := newRPC(t, newSession(t, conn), "$cbs")
	must(t, c.sender.Send(t.Context(), putToken("sb://localhost/", "bearer"), nil))
	must(t, conn.Close()) // and the yard's end waits for the connection's
}
