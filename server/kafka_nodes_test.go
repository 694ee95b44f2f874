package server

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/cluster/clustertest"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/kafka/brokers"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// K1: where other nodes lead clients to find this one.
func TestWhereOtherNodesLeadKafkaClients(t *testing.T) {
	machine := testkit.Value(os.Hostname())(t)
	both := Config{KafkaAdvertise: "a.example.com:1", KafkasAdvertise: "b.example.com:2", Host: "yard.example.com"}
	for name, test := range map[string]struct {
		cfg           Config
		kafka, kafkas string // where the listeners are bound; empty: closed
		want          cluster.Endpoints
	}{
		"as is said":                         {both, "0.0.0.0:9092", "127.0.0.1:9093", cluster.Endpoints{Kafka: "a.example.com:1", Kafkas: "b.example.com:2"}},
		"nowhere":                            {both, "", "", cluster.Endpoints{}},
		"by one listener":                    {both, "", "[::]:9093", cluster.Endpoints{Kafkas: "b.example.com:2"}},
		"by our name":                        {Config{Host: "yard.example.com"}, "", "0.0.0.0:9093", cluster.Endpoints{Kafkas: "yard.example.com:9093"}},
		"here, whatever we are called":       {Config{Host: "yard.example.com"}, "127.0.0.1:9092", "[::1]:9093", cluster.Endpoints{Kafka: "127.0.0.1:9092", Kafkas: "[::1]:9093"}},
		"by the address of the listener":     {Config{}, "10.0.0.1:9092", "[fd00::1]:9093", cluster.Endpoints{Kafka: "10.0.0.1:9092", Kafkas: "[fd00::1]:9093"}},
		"by the machine's name":              {Config{}, "[::]:9092", "", cluster.Endpoints{Kafka: net.JoinHostPort(machine, "9092")}},
		"not by a name that stands for many": {Config{Host: "*.example.com"}, "", "10.0.0.1:9093", cluster.Endpoints{Kafkas: "10.0.0.1:9093"}},
	} {
		t.Run(name, func(t *testing.T) {
			var open openListeners
			for listener, address := range map[string]string{"kafka": test.kafka, "kafkas": test.kafkas, "https": "10.9.9.9:8443"} {
				if address != "" {
					open = append(open, openListener{Listener: config.Listener{Name: listener, Address: address}})
				}
			}
			testkit.Equal(t, open.endpoints(test.cfg), test.want)
		})
	}
}

// kafkaNodes are the brokers that clients of a listener hear of, as NUMBER HOST:PORT.
func (r *running) kafkaNodes(listener string) (all []string) {
	r.t.Helper()
	for _, b := range testkit.Value(r.dialKafka(listener).Ask(KafkaMetadata("h")))(r.t).(*kmsg.MetadataResponse).Brokers {
		all = append(all, fmt.Sprint(b.NodeID, " ", net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))))
	}
	return all
}

// K1: clients of every node hear of all nodes, by the listener that they have come by, and of no node that has stopped.
// Behind a balancer they hear of one, which is where they are.
func TestKafkaClientsHearOfAllNodes(t *testing.T) {
	s := newShared(t)
	s.prompt, s.wire = true, &clustertest.Network{}
	var nodes []*running
	for i, name := range []string{"a", "b", "c"} {
		cfg := s.config()
		cfg.Node, cfg.Kafka, cfg.Kafkas, cfg.Hubs = name, "127.0.0.1:0", "127.0.0.1:0", []Hub{{Name: "h", Partitions: 1}}
		if i == 2 {
			cfg.KafkaBrokers = "one"
		}
		nodes = append(nodes, start(t, cfg))
	}
	for _, listener := range []string{"kafka", "kafkas"} {
		var want []string
		for i, r := range nodes {
			want = append(want, fmt.Sprint(i+1, " ", r.host(listener)))
		}
		for _, r := range nodes[:2] {
			testkit.Eventually(t, "clients hear of all nodes", func() bool { return len(r.kafkaNodes(listener)) == 3 })
			testkit.Slices(t, r.kafkaNodes(listener), want, listener)
		}
		testkit.Slices(t, nodes[2].kafkaNodes(listener), []string{"1 " + nodes[2].host(listener)}, "%s of a node behind a balancer", listener)
	}
	nodes[0].shutdown()
	testkit.Eventually(t, "the node that stopped is gone", func() bool { return len(nodes[1].kafkaNodes("kafka")) == 2 })
	testkit.Slices(t, nodes[1].kafkaNodes("kafkas"), []string{"2 " + nodes[1].host("kafkas"), "3 " + nodes[2].host("kafkas")})
}

// K1, K5: clients with TLS are led to a name that the yard's own certificate has.
func TestTheCertificateHasTheNameThatKafkaClientsAreLedTo(t *testing.T) {
	cfg := quick(t)
	cfg.Kafkas, cfg.KafkasAdvertise = "127.0.0.1:0", "node-1.example.com:9093"
	r := start(t, cfg)
	trust := r.trust()
	trust.ServerName = "node-1.example.com"
	conn, err := tls.Dial("tcp", r.host("kafkas"), trust)
	testkit.Must(t, err)
	known := testkit.Value(NewKafkaConn(t, conn).Ask(KafkaMetadata("h")))(t).(*kmsg.MetadataResponse)
	testkit.Equal(t, fmt.Sprint(known.Brokers[0].Host, ":", known.Brokers[0].Port), cfg.KafkasAdvertise)
	r.shutdown()
}

// acting is a node that may act, or is quiet; owning is one that a group belongs to, or does not.
type (
	acting bool
	owning bool
)

func (a acting) MayAct() bool                    { return bool(a) }
func (o owning) Coordinator(string) brokers.Node { return brokers.Node{Self: bool(o)} }

// K2: a node coordinates the Kafka groups that are its own, and none while others may have seen it dead.
func TestWhichKafkaGroupsANodeCoordinates(t *testing.T) {
	testkit.That(t, coordinates(acting(true), owning(true), "g"), "not its own")
	testkit.That(t, !coordinates(acting(true), owning(false), "g"), "another's")
	testkit.That(t, !coordinates(acting(false), owning(true), "g"), "its own, while it is quiet")
}
