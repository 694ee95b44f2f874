package server

import (
	"errors"
	"fmt"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R1, G12: a topic's key is good over HTTP, and opens nothing over AMQP: neither as a token, whatever is made of it,
// nor as a policy's key. Who has all rights finds no topic there.
func TestTopicKeysOpenNothingOverAMQP(t *testing.T) {
	cfg := everyListener(t)
	cfg.Topics = []Topic{{Name: "shop", Schema: "cloudevents", Key1: "the-first-key-of-the-topic-shop"}}
	r := start(t, cfg)
	key := cfg.Topics[0].Key1
	q := r.request("POST", "/topics/shop/api/events", nil)
	q.Header.Set("aeg-sas-key", key)
	response := testkit.Value(r.client().Do(q))(t)
	response.Body.Close()
	testkit.Equal(t, response.StatusCode != 401 && response.StatusCode != 403, true, "status %d of publishing with the key", response.StatusCode)

	in := time.Now().Add(time.Hour)
	tokens := map[string]string{
		"its own":            testkit.Value(topickey.Sign(r.url+"/topics/shop/api/events", key, in))(t),
		"its own, all of it": testkit.Value(topickey.Sign(r.url, key, in))(t),
	}
	for _, policy := range []string{"shop", auth.RootPolicy} {
		for _, resource := range []string{"sb://localhost/", "sb://localhost/shop", "sb://localhost/topics/shop"} {
			tokens["for "+resource+" by "+policy] = auth.Sign(resource, policy, key, in)
		}
	}
	for what, token := range tokens {
		t.Run(what, func(t *testing.T) {
			for _, audience := range []string{"sb://localhost/", "sb://localhost/shop", r.url + "/topics/shop"} {
				conn := r.connect(t, goamqp.SASLTypeAnonymous())
				testkit.Equal(t, putAMQPToken(t, conn, audience, token), 401, "status of the token for %s", audience)
				for _, node := range []string{"shop", "topics/shop"} {
					wantNoLink(t, conn, node, goamqp.ErrCondUnauthorizedAccess)
				}
			}
		})
	}
	for _, user := range []string{"shop", auth.RootPolicy} {
		_, err := goamqp.NewConn(t.Context(), r.dial("amqp"), &goamqp.ConnOptions{HostName: "localhost", SASLType: goamqp.SASLTypePlain(user, key)})
		testkit.That(t, err != nil, "%s gets in with the topic's key", user)
	}
	all := r.connect(t, goamqp.SASLTypePlain(auth.RootPolicy, auth.DevelopmentKey))
	wantNoLink(t, all, "shop", goamqp.ErrCondNotFound)
	wantNoLink(t, all, "topics/shop", goamqp.ErrCondNotFound)
	r.shutdown()
}

// connect opens a connection for AMQP until the test ends.
func (r *running) connect(t *testing.T, by goamqp.SASLType) *goamqp.Conn {
	t.Helper()
	conn := testkit.Value(goamqp.NewConn(t.Context(), r.dial("amqp"), &goamqp.ConnOptions{HostName: "localhost", SASLType: by}))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// putAMQPToken shows a token on a connection, and gives the status of the answer.
func putAMQPToken(t *testing.T, conn *goamqp.Conn, audience, token string) int32 {
	t.Helper()
	session, replyTo := testkit.Value(conn.NewSession(t.Context(), nil))(t), "replies"
	receiver := testkit.Value(session.NewReceiver(t.Context(), "$cbs", &goamqp.ReceiverOptions{TargetAddress: replyTo}))(t)
	sender := testkit.Value(session.NewSender(t.Context(), "$cbs", &goamqp.SenderOptions{SourceAddress: replyTo}))(t)
	testkit.Must(t, sender.Send(t.Context(), &goamqp.Message{
		Value: token, Properties: &goamqp.MessageProperties{MessageID: "1", ReplyTo: &replyTo},
		ApplicationProperties: map[string]any{"operation": "put-token", "type": "servicebus.windows.net:sastoken", "name": audience},
	}, nil))
	answer := testkit.Value(receiver.Receive(t.Context(), nil))(t)
	status, ok := answer.ApplicationProperties["status-code"].(int32)
	testkit.MustThat(t, ok, "the answer is %v", answer.ApplicationProperties)
	return status
}

// wantNoLink is that nobody sends to a node, for a reason.
func wantNoLink(t *testing.T, conn *goamqp.Conn, node string, condition goamqp.ErrCond) {
	t.Helper()
	session := testkit.Value(conn.NewSession(t.Context(), nil))(t)
	_, err := session.NewSender(t.Context(), node, nil)
	got := fmt.Sprint(err)
	if refused, ok := errors.AsType[*goamqp.Error](err); ok {
		got = string(refused.Condition)
	}
	testkit.Equal(t, got, string(condition), "a link to %s", node)
	testkit.Must(t, session.Close(t.Context()))
}
