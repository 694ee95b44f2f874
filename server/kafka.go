package server

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/kafka"
	"github.com/eventyard/eventyard/internal/kafka/brokers"
	kafkagroups "github.com/eventyard/eventyard/internal/kafka/groups"
	"github.com/eventyard/eventyard/internal/kafka/handler"
	"github.com/eventyard/eventyard/internal/kafka/transactions"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// newKafka puts the Kafka server in front of a yard. In development nobody is asked who he is.
func (y *yard) newKafka(clients *admission.Listener, memory *admission.Memory) (*kafka.Server, error) {
	log := y.cfg.Log
	front, err := handler.New(handler.Config{
		Broker: y.broker, Access: y.access, Groups: y.kafkaGroups.Coordinator, Transactions: y.transactions, Open: y.development(), AutoCreate: y.cfg.KafkaAutoCreate, Log: log, Metrics: y.registry, Tracer: y.cfg.Tracer,
		Advertise:   func(c *kafka.Conn) (host string, port int32) { return y.cfg.advertised(c) },
		Nodes:       func(c *kafka.Conn) []brokers.Node { return y.kafkaNodes(c.TLS()) },
		Coordinator: y.brokers.Coordinator, Elsewhere: y.kafkaElsewhere(),
	})
	if err != nil {
		return nil, fmt.Errorf("make the Kafka listener: %w", err)
	}
	y.kafkaGroups.front.Store(front)
	cfg := kafka.Config{Handler: front, Admission: clients, Memory: memory, Log: log, Metrics: y.registry}
	if !y.development() {
		cfg.Auth = front
	}
	server, err := kafka.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("make the Kafka server: %w", err)
	}
	return server, nil
}

// kafkaNodes are those that clients of a Kafka listener hear of; none: one alone, at what is advertised to the client.
func (y *yard) kafkaNodes(tls bool) []brokers.Node {
	if y.cfg.KafkaBrokers == config.BrokersOne {
		return nil
	}
	return y.brokers.At(tls)
}

// endpoints are where other nodes lead Kafka clients to find this one: where the operator says, by the yard's own name,
// by the address that the listener is bound to, or by this machine's name. What the client has asked for says nothing
// of other nodes, and all have to say the same of each.
func (o openListeners) endpoints(cfg Config) (at cluster.Endpoints) {
	for _, d := range o {
		switch d.Name {
		case "kafka":
			at.Kafka = d.endpoint(cfg.KafkaAdvertise, cfg.Host)
		case "kafkas":
			at.Kafkas = d.endpoint(cfg.KafkasAdvertise, cfg.Host)
		}
	}
	return at
}

func (d openListener) endpoint(set, host string) string {
	bound, port, err := net.SplitHostPort(d.Address)
	switch {
	case set != "":
		return set
	case err != nil: // a listener that is not of TCP
		return ""
	case d.OnLoopback(): // whatever others call this machine does not lead there
		return d.Address
	case strings.HasPrefix(host, "*"):
		host = ""
	}
	return net.JoinHostPort(hostName(host, bound), port)
}

// kafkaClient is what is known of a connection when its client asks where to go on.
type kafkaClient interface {
	TLS() bool
	ServerName() string
	LocalAddr() net.Addr
}

// advertised is where a client is led: where the operator says, by the name that it has asked for with TLS, by
// the yard's own name, or where it is. Who came over loopback stays there, since others' names for this machine
// need not lead to a listener on loopback.
func (c Config) advertised(to kafkaClient) (host string, port int32) {
	set := c.KafkaAdvertise
	if to.TLS() {
		set = c.KafkasAdvertise
	}
	if host, port, err := config.SplitAdvertised(set); err == nil {
		return host, port
	}
	local, err := netip.ParseAddrPort(to.LocalAddr().String())
	if err != nil {
		return "localhost", 0 // a listener that is not of TCP
	}
	address := local.Addr().Unmap().WithZone("")
	host, port = address.String(), int32(local.Port())
	switch {
	case to.ServerName() != "":
		host = to.ServerName()
	case c.Host != "" && !strings.HasPrefix(c.Host, "*") && !address.IsLoopback():
		host = c.Host
	}
	return host, port
}

// initialRebalanceDelay is how long the first generation of a Kafka group waits for more members, as with Kafka.
const initialRebalanceDelay = 3 * time.Second

// openKafkaGroups makes the coordinators of the groups of Kafka's consumers, and of its producers' transactions. In development, where one starts a
// consumer to see what comes, a group waits for nobody.
func (y *yard) openKafkaGroups() (err error) {
	cfg := kafkagroups.Config{
		Meta: y.storage.Meta, Broker: y.broker, Node: y.nodes.Self().ID, Notes: y.notes, Log: y.cfg.Log, Metrics: y.registry,
		Several: !y.nodes.Single(), Mine: func(group string) bool { return coordinates(y.nodes, y.brokers, group) },
	}
	if !y.development() {
		cfg.InitialDelay = initialRebalanceDelay
	}
	y.kafkaGroups = new(kafkaCoordinator)
	y.nodes.Handle(kafkaSubject, func(ctx context.Context, r cluster.Request) ([]byte, error) {
		if front := y.kafkaGroups.front.Load(); front != nil {
			return front.Forwarded(ctx, r.Body)
		}
		return nil, nil // no client is served here yet
	})
	if y.kafkaGroups.Coordinator, err = kafkagroups.New(cfg); err != nil {
		return err
	}
	y.transactions, err = transactions.New(transactions.Config{
		Meta: y.storage.Meta, Broker: y.broker, Groups: y.kafkaGroups.Coordinator, Log: y.cfg.Log,
		Several: cfg.Several, Mine: func(id string) bool { return y.brokers.Coordinator(id).Self },
	})
	return err
}

// kafkaCoordinator coordinates the groups of Kafka's consumers, also for clients at other nodes.
type kafkaCoordinator struct {
	*kafkagroups.Coordinator
	// front answers what other nodes pass on; nil until there are listeners.
	front atomic.Pointer[handler.Handler]
}

// kafkaSubject is what nodes pass requests of Kafka clients on by, about groups that belong to the other.
const kafkaSubject = "kafka.group"

// kafkaElsewhere is how this node asks others; nil: there are none.
func (y *yard) kafkaElsewhere() handler.Elsewhere {
	if y.nodes.Single() {
		return nil
	}
	return func(ctx context.Context, group string, body []byte) ([]byte, error) {
		node, known := y.brokers.Holder(group)
		if !known {
			return nil, cluster.ErrNoNode
		}
		return y.nodes.Ask(ctx, node, kafkaSubject, body)
	}
}

// coordinates: a group is this node's, as far as it knows, and no other can have taken it yet. A node that the store does
// not hear of would else go on telling members that all is well, while another one gives their partitions away.
func coordinates(nodes interface{ MayAct() bool }, brokers interface {
	Coordinator(group string) brokers.Node
}, group string) bool {
	return nodes.MayAct() && brokers.Coordinator(group).Self
}
