package eventhubs

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

const (
	sendRefused   = "Unauthorized access. 'Send' claim(s) are required to perform this operation. Resource: 'sb://localhost/"
	listenRefused = "Unauthorized access. 'Listen' claim(s) are required to perform this operation. Resource: 'sb://localhost/"
)

// H9: the rights that each link needs, however they came.
func TestRightsOfLinks(t *testing.T) {
	y := newOrders(t, 2)
	y.hub("other", 1)
	y.policy("", "sends", auth.Send)
	y.policy("", "listens", auth.Listen)
	y.policy("orders", "local", auth.Manage)
	tests := []struct {
		what   string
		policy string
		// resource is what a token is put for; empty: the policy is logged in as.
		resource                string
		hub, partition, receive bool
		otherHub                bool
	}{
		{what: "nobody"},
		{what: "the root", policy: auth.RootPolicy, hub: true, partition: true, receive: true, otherHub: true},
		{what: "who may send", policy: "sends", hub: true, partition: true, otherHub: true},
		{what: "who may listen", policy: "listens", receive: true},
		{what: "a hub's own", policy: "local", hub: true, partition: true, receive: true},
		{what: "a token for the namespace", policy: "sends", resource: "localhost", hub: true, partition: true, otherHub: true},
		{what: "a token for the hub", policy: auth.RootPolicy, resource: "sb://localhost/orders", hub: true, partition: true, receive: true},
		{what: "a token to listen", policy: "listens", resource: "sb://localhost/orders", receive: true},
		{what: "a token for a partition", policy: auth.RootPolicy, resource: "amqps://h/orders/Partitions/1", partition: true},
		{what: "a token for a group", policy: auth.RootPolicy, resource: "sb://localhost/orders/consumergroups/$default", receive: true},
		{what: "a token for another group", policy: auth.RootPolicy, resource: "sb://localhost/orders/consumergroups/other"},
		{what: "a token for another partition", policy: auth.RootPolicy, resource: "sb://localhost/orders/ConsumerGroups/$Default/Partitions/0"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			y := y.in(t)
			conn := y.dial(nil)
			if tt.policy != "" && tt.resource == "" {
				conn = y.dial(&goamqp.ConnOptions{SASLType: goamqp.SASLTypePlain(tt.policy, keyOf(tt.policy)), HostName: "localhost"})
			}
			if tt.resource != "" {
				authorizeAs(t, conn, tt.policy, tt.resource, time.Hour)
			}
			s := newSession(t, conn)
			check := func(may bool, err error, text string) {
				t.Helper()
				if may {
					testkit.Must(t, err)
					return
				}
				wantError(t, err, condUnauthorized, text)
			}
			_, err := s.NewSender(t.Context(), "orders", nil)
			check(tt.hub, err, sendRefused+"orders'.")
			_, err = s.NewSender(t.Context(), "/Orders/partitions/1", nil)
			check(tt.partition, err, sendRefused+"Orders/Partitions/1'.")
			_, err = s.NewReceiver(t.Context(), "orders/ConsumerGroups/$Default/Partitions/1", listening{}.options())
			check(tt.receive, err, listenRefused+"orders/ConsumerGroups/$Default/Partitions/1'.")
			_, err = s.NewSender(t.Context(), "other", nil)
			check(tt.otherHub, err, sendRefused+"other'.")
			// Who has no right does not learn what there is.
			if !tt.otherHub {
				_, err = s.NewSender(t.Context(), "nope", nil)
				check(false, err, sendRefused+"nope'.")
			}
		})
	}
}

// H9: a wrong password gets nobody in.
func TestLoggingInWithAKey(t *testing.T) {
	y := newYard(t)
	for _, key := range []string{"wrong", ""} {
		nc, err := y.listener.Dial(t.Context())
		testkit.Must(t, err)
		_, err = goamqp.NewConn(t.Context(), nc, &goamqp.ConnOptions{SASLType: goamqp.SASLTypePlain(auth.RootPolicy, key)})
		if err == nil {
			t.Errorf("key %q was accepted", key)
		}
	}
}

// H9: a certificate's common name is a policy's.
func TestLoggingInWithACertificate(t *testing.T) {
	y := newYard(t)
	y.policy("", "device", auth.Send)
	handler := testkit.Value(New(Config{Broker: y.broker, Access: y.policies}))(t)
	state := func(name string) tls.ConnectionState {
		return tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: name}}}}}
	}
	got := testkit.Value(handler.External(t.Context(), "", state("device")))(t)
	if g := got.(auth.Grant); !g.Allows(auth.At("orders"), auth.Send, time.Now()) || g.Allows(auth.At("orders"), auth.Listen, time.Now()) {
		t.Errorf("the grant is %+v", g)
	}
	testkit.ErrorIs(t, testkit.Err(handler.External(t.Context(), "", state("stranger"))), auth.ErrSignature, "a stranger is")
	if _, err := handler.External(t.Context(), "", tls.ConnectionState{}); err == nil {
		t.Error("no certificate was accepted")
	}
}

func TestWhatAHandlerNeeds(t *testing.T) {
	y := newYard(t)
	for what, cfg := range map[string]Config{
		"no broker":         {Access: y.policies},
		"no access":         {Broker: y.broker},
		"no room":           {Broker: y.broker, Access: y.policies, MaxMessageBytes: -1},
		"the metrics twice": {Broker: y.broker, Access: y.policies, Metrics: y.registry},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
}

// H9: links end a little after their token, in both directions; whose token was renewed goes on.
func TestLinksEndWithTheirToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newOrders(t, 1)
		const resource = "sb://localhost/orders"
		lapsing, renewed := y.dial(nil), y.dial(nil)
		authorizeAs(t, lapsing, auth.RootPolicy, resource, time.Minute)
		authorizeAs(t, renewed, auth.RootPolicy, resource, time.Minute)
		began := time.Now()

		s := newSession(t, lapsing)
		sender := newSender(t, s, "orders", nil)
		receiver := newReceiver(t, s, firstPartition, listening{})
		other := newReceiver(t, newSession(t, renewed), firstPartition, listening{})
		otherSender := newSender(t, newSession(t, renewed), "orders", nil)
		testkit.Must(t, sender.Send(t.Context(), text("early"), nil))
		receive(t, receiver, 1)
		receive(t, other, 1)

		time.Sleep(50 * time.Second)
		authorizeAs(t, renewed, auth.RootPolicy, resource, time.Minute)
		_, err := receiver.Receive(t.Context(), nil)
		wantError(t, err, condUnauthorized, "ExpiredToken: The token is expired. Expiration time: 2000-01-01T00:01:00Z.")
		testkit.Equal(t, time.Since(began), time.Minute+grace, "the link lived for")
		synctest.Wait() // the other link ends at the same moment
		wantError(t, sender.Send(t.Context(), text("late"), nil), condUnauthorized, "ExpiredToken: ")
		_, err = newSession(t, lapsing).NewSender(t.Context(), "orders", nil)
		wantError(t, err, condUnauthorized, sendRefused)

		testkit.Must(t, otherSender.Send(t.Context(), text("renewed"), nil))
		testkit.Equal(t, texts(receive(t, other, 1)), "renewed", "it reads")
		// A connection that has lost its links may put a token and begin again.
		authorizeAs(t, lapsing, auth.RootPolicy, resource, time.Minute)
		testkit.Must(t, newSender(t, newSession(t, lapsing), "orders", nil).Send(t.Context(), text("again"), nil))
		testkit.Equal(t, texts(receive(t, other, 1)), "again", "it reads")
		_, err = other.Receive(t.Context(), nil)
		wantError(t, err, condUnauthorized, "ExpiredToken: The token is expired. Expiration time: 2000-01-01T00:01:50Z.")
	})
}

// Who logged in with a key has no token to lose.
func TestAKeyDoesNotExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newOrders(t, 1)
		sender := newSender(t, y.session(), "orders", nil)
		time.Sleep(24 * time.Hour)
		testkit.Must(t, sender.Send(t.Context(), text("x"), nil))
	})
}

func TestLinksThatNameNothing(t *testing.T) {
	y := newYard(t)
	c := y.rawAs(auth.RootPolicy)
	tests := []struct {
		what      string
		attach    wire.Attach
		condition wire.Symbol
		text      string
	}{
		{"no target", wire.Attach{Role: wire.RoleSender, Source: &wire.Source{}}, condInvalidField, "The link has no target."},
		{"no source", wire.Attach{Role: wire.RoleReceiver, Target: &wire.Target{}}, condInvalidField, "The link has no source."},
		{"no address", wire.Attach{Role: wire.RoleSender, Source: &wire.Source{}, Target: &wire.Target{}}, condInvalidField, "The link's address names nothing."},
	}
	for _, tt := range tests {
		tt.attach.Name = tt.what
		_, refused := c.attach(0, tt.attach)
		if refused == nil || refused.Condition != tt.condition || !strings.HasPrefix(refused.Description, tt.text) {
			t.Errorf("%s: refused with %v", tt.what, refused)
		}
		c.write(0, wire.AppendDetach(nil, &wire.Detach{Closed: true}), nil)
	}
}
