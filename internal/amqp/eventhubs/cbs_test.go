package eventhubs

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
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
	replyTo := fmt.Sprintf("%s-reply-to-%s", node, rand.Text())
	receiver, err := s.NewReceiver(t.Context(), node, &goamqp.ReceiverOptions{TargetAddress: replyTo, Credit: 100})
	testkit.Must(t, err)
	sender := testkit.Value(s.NewSender(t.Context(), node, &goamqp.SenderOptions{SourceAddress: replyTo}))(t)
	return &rpc{t: t, sender: sender, receiver: receiver, replyTo: replyTo}
}

// ask sends a request and awaits its reply.
func (c *rpc) ask(m *goamqp.Message) *goamqp.Message {
	c.t.Helper()
	if m.Properties == nil {
		m.Properties = &goamqp.MessageProperties{ReplyTo: &c.replyTo}
	}
	m.Properties.MessageID = fmt.Sprint(time.Now().UnixNano())
	testkit.Must(c.t, c.sender.Send(c.t.Context(), m, nil))
	answer := testkit.Value(c.receiver.Receive(c.t.Context(), nil))(c.t)
	testkit.Equal(c.t, answer.Properties.CorrelationID, m.Properties.MessageID, "the reply is to")
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
	testkit.Equal(t, strings.HasPrefix(description, text), true, "the description is\n%s\nwant\n%s", description, text)
	if _, reported := p["error-condition"]; reported && code < 400 || code >= 400 && !trackingEnd.MatchString(description) {
		t.Errorf("the status is %v", p)
	}
}

// authorizeAs puts a good token for a policy on a connection.
func authorizeAs(t testing.TB, conn *goamqp.Conn, policy, resource string, life time.Duration) {
	t.Helper()
	s := newSession(t, conn)
	wantStatus(t, newRPC(t, s, "$cbs").ask(putToken(resource, sasToken(resource, policy, life))), 202, "Accepted")
	testkit.Must(t, s.Close(t.Context()))
}

// H9: what a token is worth.
func TestPuttingTokens(t *testing.T) {
	y := newOrders(t, 1)
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
		{"that lacks a part", orders, "SharedAccessSignature sr=x", 401, "Token is malformed: it lacks sig."},
		{"that has a part twice", orders, good + "&se=1", 401, "Token is malformed: it has se twice."},
		{"whose time is none", orders, strings.Replace(good, "&se=", "&se=x", 1), 401, "Token is malformed: se is"},
		{"whose signature is none", orders, strings.Replace(good, "&sig=", "&sig=x", 1), 401, "Token is malformed: sig is not"},
		{"whose resource has no host", orders, strings.Replace(good, "sr=sb%3A%2F%2Flocalhost", "sr=", 1), 401, "Token is malformed: resource"},
		{"whose escapes are none", orders, strings.Replace(good, "sr=sb%3A", "sr=sb%zz", 1), 401, "Token is malformed: sr:"},
		{"that is too long", orders, good + "&x=" + strings.Repeat("x", auth.MaxTokenBytes), 401, "Token is malformed: it has"},
		{"that is empty", orders, "", 401, "Token is malformed"},
		{"that is no text", orders, int64(5), 401, "Token is malformed"},
		{"for what is no audience", "ftp://localhost/orders", good, 401, "Token is malformed: resource"},
		{"that is a bearer's", orders, "eyJ.x.y", 401, "Tokens of this kind are not accepted"},
		{"for nothing", "", good, 400, "The request names no audience."},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			answer := c.ask(putToken(tt.audience, tt.token))
			wantStatus(t, answer, tt.code, tt.text)
			// One client that finds it loses code and text.
			if condition := answer.ApplicationProperties["error-condition"]; condition != nil {
				t.Errorf("the condition is %v", condition)
			}
		})
	}
	wantStatus(t, c.ask(&goamqp.Message{Value: "x", ApplicationProperties: map[string]any{"operation": "delete-token"}}), 501, "$cbs does not know the operation 'delete-token'")
	testkit.Equal(t, y.metric("eventyard_amqp_tokens_total"), float64(len(tests)+1), "tokens were counted")
}

// One link in each direction, and the place free the moment the session has ended.
func TestOnePairOfLinksToTheClaims(t *testing.T) {
	y := newOrders(t, 1)
	conn := y.dial(nil)
	for range 3 { // as one client does, for each token
		s := newSession(t, conn)
		newRPC(t, s, "$cbs").ask(putToken("sb://localhost/orders", sasToken("sb://localhost/orders", auth.RootPolicy, time.Hour)))
		testkit.Must(t, s.Close(t.Context()))
	}
	s, other := newSession(t, conn), newSession(t, conn)
	newRPC(t, s, "$cbs")
	_, err := other.NewSender(t.Context(), "$cbs", nil)
	wantError(t, err, condNotAllowed, "A link to connection '")
	testkit.Equal(t, strings.Contains(err.Error(), "' $cbs node has already been opened."), true, "the error is %v", err)
	_, err = other.NewReceiver(t.Context(), "$cbs", nil)
	wantError(t, err, condNotAllowed, "A link to connection '")
	newRPC(t, y.session(), "$cbs") // another connection is another matter
}

// R4: a bad token is refused the later the more there were; a good one behind it is accepted at
// once, and so is what follows.
func TestAGoodTokenDoesNotWaitForBadOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bad = 20 + maxLate // more than an address has at once
		y := newYard(t, func(s *setup) { s.remote = "192.0.2.1:1000" })
		y.hub("orders", 1)
		s := newSession(t, y.dial(nil))
		c := newRPC(t, s, "$cbs")
		c.sender = newSenderAgain(t, c.sender, s)
		put := func(id, token string) {
			m := putToken("sb://localhost/orders", token)
			m.Properties = &goamqp.MessageProperties{MessageID: id}
			testkit.Must(t, c.sender.Send(t.Context(), m, nil))
		}
		wrong := auth.Sign("sb://localhost/orders", auth.RootPolicy, keyOf("wrong"), time.Now().Add(time.Hour))
		began := time.Now()
		for range bad {
			put("bad", wrong)
		}
		put("good", sasToken("sb://localhost/orders", auth.RootPolicy, time.Hour))
		late := 0
		for range bad + 1 {
			reply := receive(t, c.receiver, 1)[0]
			if reply.Properties.CorrelationID == "good" {
				testkit.Equal(t, time.Since(began), 0, "the good one has waited")
				testkit.Equal(t, reply.ApplicationProperties["status-code"], any(int32(202)))
				newSender(t, s, "orders", nil)
				continue
			}
			testkit.Equal(t, reply.ApplicationProperties["status-code"], any(int32(401)))
			if time.Since(began) > 0 {
				late++
			}
		}
		testkit.Equal(t, late, maxLate, "refusals that came late")
	})
}
