package handler

import (
	"encoding/binary"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/brokers"
)

// Node is one that clients may turn to.
type Node = brokers.Node

// nodes are those that the connection's client may turn to; there is at least one.
func (p *peer) nodes() []Node {
	if p.handler.cfg.Nodes != nil {
		if all := p.handler.cfg.Nodes(p.conn); len(all) > 0 {
			return all
		}
	}
	host, port := p.handler.cfg.Advertise(p.conn)
	return []Node{{ID: brokers.Alone, Host: host, Port: port, Self: true}}
}

// coordinator is where a client that knows these nodes finds the one that a group belongs to. Where that has no address
// of its own, since one broker stands for several nodes, it is one of those that the client knows.
func (p *peer) coordinator(nodes []Node, group string) Node {
	if of := p.handler.cfg.Coordinator; of != nil {
		id := of(group).ID
		if i := slices.IndexFunc(nodes, func(n Node) bool { return n.ID == id }); i >= 0 {
			return nodes[i]
		}
	}
	return brokers.Choose(nodes, []byte(group))
}

// leader gives the node that clients turn to for a partition. Any could take their requests; that it is
// always the same keeps the numbers of a producer with one node. All nodes say the same, and when one
// leaves only its partitions move.
func leader(nodes []Node, hub broker.Hub, partition int) Node {
	var key [20]byte
	copy(key[:], hub.ID[:])
	binary.BigEndian.PutUint32(key[16:], uint32(partition))
	return brokers.Choose(nodes, key[:])
}

func rackOf(n Node) *string {
	if n.Rack == "" {
		return nil
	}
	return &n.Rack
}

// endpointBrokers is what a client asks for that wants nodes as clients see them.
const endpointBrokers = 1

// describeCluster says which nodes there are.
//
// DescribeCluster (60), versions 0 to 2. Controllers are not for clients.
func (p *peer) describeCluster(r *kmsg.DescribeClusterRequest) kmsg.Response {
	answer := kmsg.NewPtrDescribeClusterResponse()
	answer.ClusterID = p.handler.cfg.Broker.Namespace()
	answer.EndpointType = endpointBrokers
	if r.Version >= 1 && r.EndpointType != endpointBrokers {
		answer.ErrorCode = codeEndpointType
		answer.ErrorMessage = kmsg.StringPtr("clients turn to brokers only: ask for those")
		return answer
	}
	nodes := p.nodes()
	answer.ControllerID = nodes[0].ID
	for _, n := range nodes {
		b := kmsg.NewDescribeClusterResponseBroker()
		b.NodeID, b.Host, b.Port, b.Rack = n.ID, n.Host, n.Port, rackOf(n)
		answer.Brokers = append(answer.Brokers, b)
	}
	if r.IncludeClusterAuthorizedOperations {
		answer.ClusterAuthorizedOperations = p.rights().clusterOperations()
	}
	return answer
}
