package eventhubs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// style is how one of the five clients speaks: what of it the others do differently.
type style struct {
	name string
	// mechanism empty: no SASL layer at all.
	mechanism wire.Symbol
	// first is the first handle that it uses.
	first uint32
	// names of the links for requests and replies, replyTo in the request, target of the
	// link for replies; "NODE" stands for the node's address.
	requestName, replyName, replyTo, target string
	id                                      any
	credit                                  uint32
	settled                                 bool
	expiration                              any
	audience                                string
	sender, receiver                        string
	from                                    any
	properties                              wire.Map
	capabilities                            []wire.Symbol
	senderMode, receiverMode                wire.Opt[wire.SettleMode]
}

var styles = []style{
	{
		name: "Go", mechanism: "ANONYMOUS",
		requestName: "a", replyName: "b", replyTo: "NODE$NODE-reply-to-1", target: "NODE$NODE-reply-to-1",
		id: "text", credit: 1000, expiration: "0",
		audience: "amqp://localhost:5672/orders/ConsumerGroups/$Default/Partitions/0",
		sender:   "orders/Partitions/0", receiver: "orders/ConsumerGroups/$Default/Partitions/0",
		from:         wire.Described{Descriptor: uint64(0x0000468C00000004), Value: "amqp.annotation.x-opt-sequence-number > '0'"},
		capabilities: []wire.Symbol{"com.microsoft:georeplication"}, receiverMode: wire.Some(wire.ReceiverFirst),
	},
	{
		name: "Python", mechanism: "ANONYMOUS", first: 1,
		requestName: "a", replyName: "b", target: "NODE",
		id: wire.UUID{1, 2, 3, 4}, credit: 10000, expiration: time.Now().UTC().Truncate(time.Millisecond),
		audience: "sb://localhost/orders",
		sender:   "amqps://localhost/orders/Partitions/0", receiver: "amqps://localhost/orders/ConsumerGroups/$default/Partitions/0",
		from:       wire.Described{Descriptor: wire.Symbol(selectorFilter), Value: "amqp.annotation.x-opt-offset > '0'"},
		properties: wire.Map{{Key: wire.Symbol("com.microsoft:timeout"), Value: int64(60000)}},
		senderMode: wire.Some(wire.SenderUnsettled), receiverMode: wire.Some(wire.ReceiverSecond),
	},
	{
		name:        "JavaScript",
		requestName: "x", replyName: "cbs-1", replyTo: "cbs-1",
		id: "uuid-as-text", credit: 1000,
		audience: "sb://localhost/orders",
		sender:   "orders/Partitions/0", receiver: "orders/ConsumerGroups/$Default/Partitions/0",
		from: wire.Described{Descriptor: uint64(0x468C00000004), Value: "amqp.annotation.x-opt-sequence-number > '0'"},
	},
	{
		name: "Java", mechanism: "ANONYMOUS",
		requestName: "cbs", replyName: "cbs", replyTo: "cbs-client-reply-to", target: "cbs-client-reply-to",
		id: uint64(1 << 40), credit: 1, settled: true, expiration: time.Now().UTC().Truncate(time.Millisecond),
		audience: "amqp://localhost/orders",
		sender:   "orders/Partitions/0", receiver: "orders/ConsumerGroups/$Default/Partitions/0",
		from:       wire.Described{Descriptor: wire.Symbol(selectorFilter), Value: "amqp.annotation.x-opt-offset > '0'"},
		senderMode: wire.Some(wire.SenderUnsettled), receiverMode: wire.Some(wire.ReceiverSecond),
	},
	{
		name: ".NET", mechanism: "MSSBCBS",
		requestName: "duplex1:sender", replyName: "duplex1:receiver", replyTo: "guid", target: "guid",
		id: "request1", credit: 50, settled: true, expiration: time.Now().UTC().Truncate(time.Millisecond),
		audience: "amqps://localhost/orders/",
		sender:   "/orders/Partitions/0", receiver: "/orders/ConsumerGroups/%24Default/Partitions/0",
		from: wire.Described{Descriptor: uint64(0x137000000A), Value: "amqp.annotation.x-opt-offset > 0"},
		properties: wire.Map{
			{Key: wire.Symbol("com.microsoft:entity-type"), Value: int32(8)}, {Key: wire.Symbol("com.microsoft:timeout"), Value: uint32(60000)},
			{Key: propertyReceiverName, Value: "me"}, {Key: propertyEpoch, Value: int64(0)},
		},
		capabilities: []wire.Symbol{capabilityMetrics},
	},
}

// H8: each of the five clients from its first byte to events both ways.
func TestTheFiveClients(t *testing.T) {
	for _, s := range styles {
		t.Run(s.name, func(t *testing.T) {
			y := newOrders(t, 1)
			y.store("orders", "0", "a", "b")
			c := y.raw()
			if s.mechanism != "" {
				c.sasl(s.mechanism)
			}
			c.open()

			put := s.ask(c, 0, wordClaims, wire.Map{
				{Key: "operation", Value: "put-token"}, {Key: "type", Value: "servicebus.windows.net:sastoken"},
				{Key: "name", Value: s.audience}, {Key: "expiration", Value: s.expiration},
			}, sasToken("sb://localhost/orders", auth.RootPolicy, time.Hour))
			if put.status["status-code"] != int32(202) {
				t.Fatalf("put-token is answered with %v", put.status)
			}
			// Each link in a session of its own, as .NET does.
			info := s.ask(c, 1, wordManagement, wire.Map{
				{Key: "operation", Value: "READ"}, {Key: "name", Value: "orders"}, {Key: "type", Value: typeHub},
				{Key: "security_token", Value: sasToken("sb://localhost/orders", auth.RootPolicy, time.Hour)},
			}, nil)
			if info.status["status-code"] != int32(200) {
				t.Fatalf("READ is answered with %v", info.status)
			}
			s.publish(t, c)
			s.consume(t, c)
		})
	}
}

func (s style) inPlace(text, node string) string {
	switch text {
	case "NODE":
		return node
	case "NODE$NODE-reply-to-1":
		return node + "$" + node + "-reply-to-1"
	default:
		return text
	}
}

// ask attaches a pair of links in a session and sends one request.
func (s style) ask(c *raw, channel uint16, node string, application wire.Map, body any) decoded {
	c.t.Helper()
	if channel > 0 {
		c.begin(channel)
	}
	replies := wire.Attach{
		Name: s.replyName, Handle: s.first, Role: wire.RoleReceiver, Source: &wire.Source{Address: wire.Some(node)}, Target: &wire.Target{},
		SenderSettleMode: s.senderMode, ReceiverSettleMode: s.receiverMode,
	}
	if s.target != "" {
		replies.Target.Address = wire.Some(s.inPlace(s.target, node))
	}
	requests := wire.Attach{
		Name: s.requestName, Handle: s.first + 1, Role: wire.RoleSender, Source: &wire.Source{}, Target: &wire.Target{Address: wire.Some(node)},
		SenderSettleMode: s.senderMode, ReceiverSettleMode: s.receiverMode,
	}
	for _, a := range []wire.Attach{replies, requests} {
		answer := c.accepted(channel, a)
		if answer.SenderSettleMode != s.senderMode && s.senderMode.Set || answer.ReceiverSettleMode != s.receiverMode && s.receiverMode.Set {
			c.t.Errorf("modes are answered with %v and %v", answer.SenderSettleMode, answer.ReceiverSettleMode)
		}
	}
	c.credit(channel, s.first, 0, s.credit)
	var replyTo any
	if s.replyTo != "" {
		replyTo = s.inPlace(s.replyTo, node)
	}
	c.send(channel, s.first+1, s.settled, encode(c.t,
		wire.DescriptorProperties, []any{s.id, nil, nil, nil, replyTo},
		wire.DescriptorApplicationProperties, application, wire.DescriptorValue, body))
	reply := decodeReply(c.t, c.receive())
	if got := reply.properties[propertyCorrelationID]; !cmp.Equal(got, s.id) {
		c.t.Errorf("the reply is to %T %v, the request was %T %v", got, got, s.id, s.id)
	}
	return reply
}

// publish sends one event and awaits its settlement.
func (s style) publish(t *testing.T, c *raw) {
	t.Helper()
	c.begin(2)
	answer := c.accepted(2, wire.Attach{
		Name: "orders", Handle: s.first, Role: wire.RoleSender, Source: &wire.Source{Address: wire.Some("client")},
		Target: &wire.Target{Address: wire.Some(s.sender)}, SenderSettleMode: s.senderMode, ReceiverSettleMode: s.receiverMode,
		DesiredCapabilities: s.capabilities, Properties: s.properties, MaxMessageSize: wire.Some(uint64(0)),
	})
	testkit.Equal(t, answer.MaxMessageSize.Value, 1<<20, "the answer is")
	testkit.Equal(t, answer.Target.Address.Value, s.sender, "the answer is")
	c.send(2, s.first, false, plain(t, "c"))
	for { // those of the requests come before
		if d := c.disposition(); d.First == c.sent-1 || d.Last.Value == c.sent-1 {
			if d.State.Outcome != wire.OutcomeAccepted || !d.Settled || d.Role != wire.RoleReceiver {
				t.Errorf("the disposition is %+v", d)
			}
			return
		}
	}
}

// consume reads what is behind the first event.
func (s style) consume(t *testing.T, c *raw) {
	t.Helper()
	c.begin(3)
	answer := c.accepted(3, wire.Attach{
		Name: "receiver", Handle: s.first, Role: wire.RoleReceiver, Target: &wire.Target{Address: wire.Some("client")},
		Source:           &wire.Source{Address: wire.Some(s.receiver), Filter: wire.Map{{Key: wire.Symbol(selectorFilter), Value: s.from}}},
		SenderSettleMode: s.senderMode, ReceiverSettleMode: s.receiverMode,
		DesiredCapabilities: s.capabilities, Properties: s.properties,
	})
	if answer.SenderSettleMode.Value != wire.SenderSettled || answer.ReceiverSettleMode.Or(wire.ReceiverFirst) != s.receiverMode.Value ||
		!answer.InitialDeliveryCount.Set || answer.MaxMessageSize.Value != 0 || answer.Source.Address.Value != s.receiver {
		t.Errorf("the answer is %+v", answer)
	}
	c.credit(3, s.first, 0, 300)
	for _, want := range []string{"b", "c"} {
		m := testkit.Value(wire.Sections(c.receive()))(t)
		r := wire.NewReader(m.Body)
		testkit.Equal(t, string(testkit.Value(r.ReadData())(t)), want, "it reads")
		if asked := len(s.capabilities) > 0 && s.capabilities[0] == capabilityMetrics; (m.DeliveryAnnotations != nil) != asked {
			t.Errorf("delivery annotations are %x", m.DeliveryAnnotations)
		}
	}
}
