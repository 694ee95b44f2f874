package handler

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka"
	"github.com/eventyard/eventyard/internal/testkit"
)

// metadataOf names topics; none: all.
func metadataOf(names ...string) *kmsg.MetadataRequest {
	r := kmsg.NewPtrMetadataRequest()
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		r.Topics = append(r.Topics, t)
	}
	return r
}

// K1: clients of every version find all hubs, and where their partitions are.
func TestMetadataInEveryVersion(t *testing.T) {
	y := newYard(t)
	hub := y.hub("orders", 3)
	y.hub("Others", 1)
	c := y.client()
	for version := int16(0); version <= 13; version++ {
		answer := ask[*kmsg.MetadataResponse](c, version, metadataOf())
		testkit.Equal(t, fmt.Sprintf("%d %s:%d", answer.Brokers[0].NodeID, answer.Brokers[0].Host, answer.Brokers[0].Port), "1 yard.test:9092", "node")
		testkit.Equal(t, len(answer.Topics), 2, "topics in version %d", version)
		orders := answer.Topics[0]
		testkit.Equal(t, *orders.Topic, "orders", "name")
		testkit.Equal(t, len(orders.Partitions), 3, "partitions")
		testkit.Equal(t, orders.Partitions[2].Partition, int32(2), "number")
		testkit.Equal(t, orders.Partitions[2].Leader, int32(1), "leader")
		testkit.Slices(t, orders.Partitions[2].ISR, []int32{1}, "replicas")
		if version >= 10 {
			testkit.Equal(t, orders.TopicID, hub.ID, "id")
		}
	}
}

func TestMetadataOfSingleTopics(t *testing.T) {
	y := newYard(t)
	hub := y.hub("Orders", 1)
	c := y.client()
	named := metadataOf("oRDERS", "nobody", "no/such//name!")
	named.AllowAutoTopicCreation = false
	topics := ask[*kmsg.MetadataResponse](c, 13, named).Topics
	testkit.Equal(t, *topics[0].Topic, "oRDERS", "name as it was asked for")
	testkit.Equal(t, topics[0].ErrorCode, codeNone, "code")
	testkit.Equal(t, topics[0].AuthorizedOperations, int32(math.MinInt32), "operations that nobody asked for")
	testkit.Equal(t, topics[1].ErrorCode, codeUnknownTopic, "code of a hub that is not there")
	testkit.Equal(t, topics[2].ErrorCode, codeUnknownTopic, "code of a name that cannot be")

	none := metadataOf()
	none.Topics = []kmsg.MetadataRequestTopic{}
	testkit.Equal(t, len(ask[*kmsg.MetadataResponse](c, 13, none).Topics), 0, "topics where none is wanted")

	byID := metadataOf("", "")
	byID.Topics[0].Topic, byID.Topics[0].TopicID = nil, hub.ID
	byID.Topics[1].Topic, byID.Topics[1].TopicID = nil, [16]byte{1}
	byID.IncludeTopicAuthorizedOperations = true
	topics = ask[*kmsg.MetadataResponse](c, 13, byID).Topics
	testkit.Equal(t, *topics[0].Topic, "Orders", "name by id")
	testkit.That(t, topics[0].AuthorizedOperations&(1<<opDelete) != 0, "it may not be deleted")
	testkit.Equal(t, topics[1].ErrorCode, codeUnknownID, "code of an id that nobody has")
}

// Where everything is open, a hub that is named is made.
func TestHubsAreMadeByTheirName(t *testing.T) {
	y := newYard(t)
	c := y.client()
	topics := ask[*kmsg.MetadataResponse](c, 0, metadataOf("older")).Topics
	testkit.Equal(t, len(topics[0].Partitions), broker.DefaultPartitions, "partitions")
	wanted := metadataOf("newer", "not/allowed!")
	wanted.AllowAutoTopicCreation = true
	topics = ask[*kmsg.MetadataResponse](c, 13, wanted).Topics
	testkit.Equal(t, topics[0].ErrorCode, codeNone, "code")
	testkit.Equal(t, topics[1].ErrorCode, codeInvalidTopic, "code of a name that cannot be")
	testkit.Equal(t, len(y.broker.Hubs()), 2, "hubs")
}

// K1: of several nodes each partition has the same one, whoever says so, and only those of a node that
// leaves move.
func TestLeaders(t *testing.T) {
	nodes := []Node{{ID: 1}, {ID: 2}, {ID: 3}}
	count := map[int32]int{}
	for h := range byte(50) {
		hub := broker.Hub{ID: [16]byte{h}}
		for p := range 32 {
			with := leader(nodes, hub, p)
			count[with.ID]++
			turned := leader([]Node{nodes[2], nodes[0], nodes[1]}, hub, p)
			testkit.MustEqual(t, turned.ID, with.ID, "leader in another order")
			without := leader(slices.DeleteFunc(slices.Clone(nodes), func(n Node) bool { return n.ID == 2 }), hub, p)
			testkit.That(t, with.ID == 2 || without.ID == with.ID, "a partition of node %d moved to %d when another left", with.ID, without.ID)
		}
	}
	for _, n := range nodes {
		testkit.That(t, count[n.ID] > 400 && count[n.ID] < 700, "node %d leads %d of 1600", n.ID, count[n.ID])
	}
}

// K1: all nodes are in every answer that names nodes, and each partition has one of them.
func TestSeveralNodes(t *testing.T) {
	nodes := []Node{{ID: 4, Host: "a", Port: 1, Rack: "r"}, {ID: 7, Host: "b", Port: 2}}
	y := newYard(t, func(_ *yard, c *Config) {
		c.Nodes = func(*kafka.Conn) []Node { return nodes }
	})
	hub := y.hub("orders", 16)
	known := ask[*kmsg.MetadataResponse](y.client(), 13, metadataOf("orders"))
	testkit.Equal(t, len(known.Brokers), 2, "nodes")
	testkit.Equal(t, known.ControllerID, int32(4), "controller")
	described := ask[*kmsg.DescribeTopicPartitionsResponse](y.client(), 0, kmsg.NewPtrDescribeTopicPartitionsRequest())
	leads := map[int32]int{}
	for i, p := range known.Topics[0].Partitions {
		testkit.Equal(t, p.Leader, leader(nodes, hub, i).ID, "leader of partition %d", i)
		testkit.Equal(t, p.LeaderEpoch, int32(0), "epoch")
		testkit.Equal(t, described.Topics[0].Partitions[i].LeaderID, p.Leader, "leader of partition %d, described", i)
		leads[p.Leader]++
	}
	testkit.That(t, leads[4] > 0 && leads[7] > 0, "partitions are led as %v", leads)
	answer := ask[*kmsg.DescribeClusterResponse](y.client(), 2, kmsg.NewPtrDescribeClusterRequest())
	testkit.Equal(t, len(answer.Brokers), 2, "nodes")
	testkit.Equal(t, *answer.Brokers[0].Rack, "r", "rack")
	testkit.Equal(t, answer.ControllerID, int32(4), "controller")
	testkit.Equal(t, answer.ClusterID, y.broker.Namespace(), "cluster")
	controllers := kmsg.NewPtrDescribeClusterRequest()
	controllers.EndpointType = 2
	testkit.Equal(t, ask[*kmsg.DescribeClusterResponse](y.client(), 2, controllers).ErrorCode, codeEndpointType, "code for controllers")
}

// K2: a client is led to the node that a group belongs to, by the address that it knows, or to the one that stands for
// several.
func TestWhereCoordinatorsAreFound(t *testing.T) {
	all := []Node{{ID: 1, Host: "a"}, {ID: 2, Host: "b"}, {ID: 3, Host: "c"}}
	for name, test := range map[string]struct {
		known []Node
		of    int32
		want  []string // hosts, one of which it is
	}{
		"each by its address":      {all, 2, []string{"b"}},
		"one for all":              {nil, 2, []string{"yard.test"}},
		"one for two, and it":      {[]Node{all[0], all[2]}, 3, []string{"c"}},
		"one for two, and not it":  {[]Node{all[0], all[2]}, 2, []string{"a", "c"}},
		"nobody knows whose it is": {all, 0, []string{"a", "b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{
				Nodes:     func(*kafka.Conn) []Node { return test.known },
				Advertise: func(*kafka.Conn) (string, int32) { return "yard.test", 9092 },
			}
			if test.of != 0 {
				cfg.Coordinator = func(string) Node { return Node{ID: test.of} }
			}
			p := &peer{handler: &Handler{cfg: cfg}}
			found := p.coordinator(p.nodes(), "readers")
			testkit.That(t, slices.Contains(test.want, found.Host), "it is at %s, want one of %q", found.Host, test.want)
		})
	}
}

// Partitions are described in pages.
func TestDescribeTopicPartitions(t *testing.T) {
	y := newYard(t)
	y.hub("a", 3)
	y.hub("b", 2)
	c := y.client()
	r := kmsg.NewPtrDescribeTopicPartitionsRequest()
	r.ResponsePartitionLimit = 2
	var all []string
	for {
		answer := ask[*kmsg.DescribeTopicPartitionsResponse](c, 0, r)
		for _, topic := range answer.Topics {
			for _, p := range topic.Partitions {
				all = append(all, fmt.Sprintf("%s%d", *topic.Topic, p.Partition))
				testkit.That(t, p.EligibleLeaderReplicas != nil && p.LastKnownELR != nil, "a list is null, on which Java's admin client fails")
			}
		}
		if answer.NextCursor == nil {
			break
		}
		next := kmsg.NewDescribeTopicPartitionsRequestCursor()
		next.Topic, next.Partition = answer.NextCursor.Topic, answer.NextCursor.Partition
		r.Cursor = &next
	}
	testkit.Slices(t, all, []string{"a0", "a1", "a2", "b0", "b1"})
	named := kmsg.NewPtrDescribeTopicPartitionsRequest()
	named.Topics = []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: "nobody"}}
	testkit.Equal(t, ask[*kmsg.DescribeTopicPartitionsResponse](c, 0, named).Topics[0].ErrorCode, codeUnknownTopic)
}

func TestCoordinators(t *testing.T) {
	y := newYard(t)
	c := y.client()
	for kind, code := range map[int8]int16{coordinatorGroup: codeNone, coordinatorTransaction: codeNone, 2: codeInvalidRequest} {
		r := kmsg.NewPtrFindCoordinatorRequest()
		r.CoordinatorKey, r.CoordinatorKeys, r.CoordinatorType = "g", []string{"g", "h", "g"}, kind
		for _, version := range []int16{3, 6} {
			answer := ask[*kmsg.FindCoordinatorResponse](c, version, r)
			got, text := answer.ErrorCode, answer.ErrorMessage
			if version >= 4 {
				testkit.Equal(t, len(answer.Coordinators), 2, "answers")
				got, text = answer.Coordinators[1].ErrorCode, answer.Coordinators[1].ErrorMessage
			}
			testkit.Equal(t, got, code, "code of kind %d in version %d", kind, version)
			testkit.Equal(t, text != nil, code != codeNone, "there is a text")
		}
	}
}

// K6: what is named again and again, in whatever spelling, is told of once.
func TestTopicsNamedTwice(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 4)
	c := y.client()
	topics := ask[*kmsg.MetadataResponse](c, 8, metadataOf("orders", "ORDERS", "orders", "orders")).Topics
	testkit.Equal(t, len(topics), 1, "topics")
	r := kmsg.NewPtrDescribeConfigsRequest()
	for _, name := range []string{"orders", "Orders", "orders"} {
		one := kmsg.NewDescribeConfigsRequestResource()
		one.ResourceType, one.ResourceName = kmsg.ConfigResourceTypeTopic, name
		r.Resources = append(r.Resources, one)
	}
	testkit.Equal(t, len(ask[*kmsg.DescribeConfigsResponse](c, 4, r).Resources), 1, "resources")
}
