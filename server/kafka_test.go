package server

import (
	"crypto/tls"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// dialKafka connects to a Kafka listener.
func (r *running) dialKafka(listener string) *KafkaConn {
	r.t.Helper()
	if listener == "kafka" {
		return DialKafka(r.t, r.host("kafka"))
	}
	conn, err := tls.Dial("tcp", r.host("kafkas"), r.trust())
	testkit.Must(r.t, err)
	return NewKafkaConn(r.t, conn)
}

// K1, K4: a Kafka client gets in by both listeners, is led back to the one that it has come by, and what it sends is
// read over HTTP; it is listed among the connections.
func TestKafkaByBothListeners(t *testing.T) {
	cfg := everyListener(t)
	cfg.Hubs = []Hub{{Name: "h", Partitions: 1}}
	r := start(t, cfg)
	for _, listener := range []string{"kafka", "kafkas"} {
		conn := r.dialKafka(listener)
		known := testkit.Value(conn.Ask(KafkaMetadata("h")))(t).(*kmsg.MetadataResponse)
		testkit.MustEqual(t, len(known.Brokers), 1, "brokers")
		testkit.Equal(t, net.JoinHostPort(known.Brokers[0].Host, strconv.Itoa(int(known.Brokers[0].Port))), r.host(listener), listener)
		testkit.MustEqual(t, len(known.Topics), 1, "topics")
		testkit.Equal(t, len(known.Topics[0].Partitions), 1, "partitions")
		answer := testkit.Value(conn.Ask(KafkaProduce("h", "by "+listener)))(t).(*kmsg.ProduceResponse)
		testkit.Equal(t, answer.Topics[0].Partitions[0].ErrorCode, 0, "%s: %+v", listener, answer)
	}
	events := r.want(200, "GET", "/api/v1/hubs/h/partitions/0/events", "")
	testkit.That(t, strings.Contains(events, "by kafka\"") && strings.Contains(events, "by kafkas\""), "HTTP reads %s", events)

	listed := 0
	for _, one := range testkit.Value(r.admin().Connections(t.Context(), "", 0))(t).Connections {
		if one.Protocol != admin.ProtocolKafka {
			continue
		}
		listed++
		testkit.That(t, one.Requests == 2 && one.ReceivedBytes > 0 && one.SentBytes > 0 && one.Address != "", "it is shown as %+v", one)
	}
	testkit.Equal(t, listed, 2, "connections of Kafka clients")
	r.shutdown()
}

// K5: where others can reach a listener, whichever it is, nobody is let in without a right; on loopback the
// well-known key is as good as none.
func TestWhoHasToShowARightOverKafka(t *testing.T) {
	for name, test := range map[string]struct {
		change func(Config) Config
		open   bool
	}{
		"in development": {func(c Config) Config { return c }, true},
		"beyond it":      {outside, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := quick(t)
			cfg.Kafka, cfg.Hubs = "127.0.0.1:0", []Hub{{Name: "h", Partitions: 1}}
			r := start(t, test.change(cfg))
			testkit.Equal(t, testkit.Err(r.dialKafka("kafka").Ask(KafkaMetadata("h"))) == nil, test.open, "without a right")
			testkit.Equal(t, r.dialKafka("kafka").LogIn(auth.RootPolicy, auth.DevelopmentKey) == nil, test.open, "with the well-known key")
			r.shutdown()
		})
	}
}

// A Kafka connection that nobody speaks on does not keep a yard from stopping.
func TestStoppingEndsKafkaConnections(t *testing.T) {
	r := start(t, everyListener(t))
	for _, listener := range []string{"kafka", "kafkas"} {
		testkit.Must(t, testkit.Err(r.dialKafka(listener).Ask(KafkaMetadata("h"))))
	}
	r.shutdown()
}

// kafkaVisitor is a connection of a Kafka client.
type kafkaVisitor struct {
	tls   bool
	name  string
	local string
}

func (v kafkaVisitor) TLS() bool          { return v.tls }
func (v kafkaVisitor) ServerName() string { return v.name }
func (v kafkaVisitor) LocalAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(v.local))
}

// K1: a client is led where the operator says, where it has asked, or where it is; one on this machine is never
// led away from it.
func TestWhereKafkaClientsAreLed(t *testing.T) {
	both := Config{KafkaAdvertise: "a.example.com:1", KafkasAdvertise: "b.example.com:2"}
	named := Config{Host: "yard.example.com"}
	for name, test := range map[string]struct {
		cfg  Config
		to   kafkaVisitor
		host string
		port int32
	}{
		"as is said":                        {both, kafkaVisitor{local: "127.0.0.1:9092"}, "a.example.com", 1},
		"as is said, with TLS":              {both, kafkaVisitor{tls: true, name: "c.example.com", local: "127.0.0.1:9093"}, "b.example.com", 2},
		"as is said of the other listener":  {Config{KafkaAdvertise: "a:1"}, kafkaVisitor{tls: true, local: "10.0.0.1:9093"}, "10.0.0.1", 9093},
		"to an address of IPv6":             {Config{KafkaAdvertise: "[fd00::1]:9092"}, kafkaVisitor{local: "127.0.0.1:9092"}, "fd00::1", 9092},
		"to the name it asked for":          {named, kafkaVisitor{tls: true, name: "c.example.com", local: "10.0.0.1:9093"}, "c.example.com", 9093},
		"to the name it asked for here":     {named, kafkaVisitor{tls: true, name: "localhost", local: "127.0.0.1:9093"}, "localhost", 9093},
		"to our name":                       {named, kafkaVisitor{tls: true, local: "10.0.0.1:9093"}, "yard.example.com", 9093},
		"here":                              {named, kafkaVisitor{local: "127.0.0.1:9092"}, "127.0.0.1", 9092},
		"here, by IPv6":                     {named, kafkaVisitor{local: "[::1]:9092"}, "::1", 9092},
		"here, by IPv4 within IPv6":         {named, kafkaVisitor{local: "[::ffff:127.0.0.1]:9092"}, "127.0.0.1", 9092},
		"where it is":                       {Config{}, kafkaVisitor{local: "10.0.0.1:19092"}, "10.0.0.1", 19092},
		"where it is, as we have any names": {Config{Host: "*.example.com"}, kafkaVisitor{local: "10.0.0.1:9092"}, "10.0.0.1", 9092},
	} {
		t.Run(name, func(t *testing.T) {
			host, port := test.cfg.advertised(test.to)
			testkit.Equal(t, host, test.host)
			testkit.Equal(t, port, test.port)
		})
	}
}
