package handler

import (
	"encoding/binary"
	"hash/fnv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/broker"
)

// Node is one that clients may turn to.
type Node struct {
	ID   int32
	Host string
	Port int32
	// Rack may be empty.
	Rack string
}

// soleNode is the id of a node that is alone.
const soleNode = 1

// nodes are those that the connection's client may turn to; there is at least one.
func (p *peer) nodes() []Node {
	if p.handler.cfg.Brokers != nil {
		if all := p.handler.cfg.Brokers(); len(all) > 0 {
			return all
		}
	}
	host, port := p.handler.cfg.Advertise(p.conn)
	return []Node{{ID: soleNode, Host: host, Port: port}}
}

// leader gives the node that clients turn to for a partition. Any could take their requests; that it is
// always the same keeps the numbers of a producer with one node. All nodes say the same, and when one
// leaves only its partitions move.
func leader(nodes []Node, hub broker.Hub, partition int) Node {
	best, greatest := nodes[0], uint64(0)
	if len(nodes) == 1 {
		return best
	}
	var key [24]byte
	copy(key[:], hub.ID[:])
	binary.BigEndian.PutUint32(key[16:], uint32(partition))
	for _, n := range nodes {
		binary.BigEndian.PutUint32(key[20:], uint32(n.ID))
		h := fnv.New64a()
		_, _ = h.Write(key[:])
		if weight := mix(h.Sum64()); weight >= greatest {
			best, greatest = n, weight
		}
	}
	return best
}

// mix spreads a hash whose last bytes differ in little over all its bits (the end of MurmurHash3).
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
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
