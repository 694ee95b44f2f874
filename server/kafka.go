package server

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/kafka"
	"github.com/eventyard/eventyard/internal/kafka/handler"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// newKafka puts the Kafka server in front of a yard. In development nobody is asked who he is.
func (y *yard) newKafka(clients *admission.Listener, memory *admission.Memory) (*kafka.Server, error) {
	log := y.cfg.Log
	front, err := handler.New(handler.Config{
		Broker: y.broker, Access: y.access, Open: y.development(), Log: log, Metrics: y.registry,
		Advertise: func(c *kafka.Conn) (host string, port int32) { return y.cfg.advertised(c) },
	})
	if err != nil {
		return nil, fmt.Errorf("make the Kafka listener: %w", err)
	}
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
