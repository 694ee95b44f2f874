package eventhubs

import (
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/amqp"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// R2: a connection that has shown nothing reaches $cbs, and $management without getting an answer
// there, and has few links; once it has put a token it has what clients have.
func TestStrangersReachFewNodes(t *testing.T) {
	y := newOrders(t, 1)
	conn := y.dial(nil)
	s := newSession(t, conn)
	for _, node := range []string{"$yard", "orders", "nowhere"} {
		_, err := s.NewSender(t.Context(), node, nil)
		wantError(t, err, condUnauthorized, "Unauthorized access. ")
		_, err = s.NewReceiver(t.Context(), node, nil)
		wantError(t, err, condUnauthorized, "Unauthorized access. ")
	}
	// Java attaches these before it puts its token.
	asked := newRPC(t, s, "$management")
	wantStatus(t, asked.ask(read(typeHub, "orders")), 401, "Unauthorized access. 'Listen' claim(s) are required")
	for range amqp.StrangerSessions - 1 {
		newSession(t, conn)
	}
	full := testkit.Value(conn.NewSession(t.Context(), nil))(t)
	_, err := full.NewSender(t.Context(), "$cbs", nil)
	testkit.Equal(t, err != nil && strings.Contains(err.Error(), "too many sessions"), true, "the error is %v", err)

	wantStatus(t, newRPC(t, s, "$cbs").ask(putToken("sb://localhost/orders", sasToken("sb://localhost/orders", auth.RootPolicy, time.Hour))), 202, "Accepted")
	wantStatus(t, asked.ask(read(typeHub, "orders")), 200, "OK")
	for range 10 * amqp.StrangerSessions {
		newRPC(t, newSession(t, conn), "$management")
	}
}

// R2: strangers that ask too much are turned away, and clients are not.
func TestRequestsOfStrangersAreBounded(t *testing.T) {
	y := newYard(t, func(s *setup) {
		s.admission = admission.New(admission.Limits{StrangerBytes: 2 * exchangeOverheadBytes}).Listener(10)
	})
	y.hub("orders", 1)
	c := newRPC(t, newSession(t, y.dial(nil)), "$cbs")
	m := putToken("sb://localhost/orders", "SharedAccessSignature "+strings.Repeat("x", 2*exchangeOverheadBytes))
	wantStatus(t, c.ask(m), 503, "Too many requests are waiting")
	client := newRPC(t, y.session(), "$cbs")
	m.Properties = &goamqp.MessageProperties{ReplyTo: &client.replyTo}
	wantStatus(t, client.ask(m), 401, "Token is malformed")
}

// R2: where other strangers hold all the memory there is for strangers, one of them makes room for who
// comes to show a token.
func TestATokenIsTakenWhateverStrangersHold(t *testing.T) {
	strangers := admission.New(admission.Limits{StrangerBytes: 4 * exchangeOverheadBytes}).Listener(10)
	y := newYard(t, func(s *setup) { s.admission, s.remote = strangers, "192.0.2.1:1000" })
	y.hub("orders", 1)
	var evicted atomic.Int32
	for number := range 4 {
		other := testkit.Value(strangers.Enter(&net.TCPAddr{IP: net.IPv4(198, 51, 100, byte(number%2)), Port: 1000 + number}))(t)
		other.OnEvict(func() { evicted.Add(1) })
		testkit.MustEqual(t, other.Hold(exchangeOverheadBytes), true, "what strangers hold")
	}
	token := sasToken("sb://localhost/orders", auth.RootPolicy, time.Hour)
	wantStatus(t, newRPC(t, newSession(t, y.dial(nil)), "$cbs").ask(putToken("sb://localhost/orders", token)), 202, "Accepted")
	testkit.That(t, evicted.Load() >= 1 && evicted.Load() <= 2, "%d made room", evicted.Load())
}

// R2: links to nodes that answer requests cost no goroutine while nobody asks.
func TestLinksThatNobodyAsksOn(t *testing.T) {
	y := newOrders(t, 1)
	s := y.session()
	newRPC(t, s, "$management").ask(read(typeHub, "orders"))
	const pairs = 200
	// The client's own: one for each link.
	before := runtime.NumGoroutine()
	for range pairs {
		newRPC(t, s, "$management")
		newRPC(t, s, "$yard")
	}
	testkit.Eventually(t, "links without goroutines", func() bool { return runtime.NumGoroutine() <= before+4*pairs+10 })
}

// A client that there is no permit for is told so, by its token or by its key.
func TestNoPermitForOneMoreClient(t *testing.T) {
	y := newYard(t, func(s *setup) {
		s.admission, s.remote = admission.New(admission.Limits{}).Listener(1), "192.0.2.1:1000"
	})
	y.hub("orders", 1)
	first := y.dial(&goamqp.ConnOptions{SASLType: goamqp.SASLTypePlain(auth.RootPolicy, keyOf(auth.RootPolicy)), HostName: "localhost"})
	newSender(t, newSession(t, first), "orders", nil)

	second := y.dial(nil)
	s := newSession(t, second)
	token := sasToken("sb://localhost/orders", auth.RootPolicy, time.Hour)
	c := newRPC(t, s, "$cbs")
	wantStatus(t, c.ask(putToken("sb://localhost/orders", token)), 500, "The connection is refused: ")
	testkit.Must(t, first.Close())
	testkit.Eventually(t, "a permit", func() bool {
		return c.ask(putToken("sb://localhost/orders", token)).ApplicationProperties["status-code"] == int32(202)
	})
}
