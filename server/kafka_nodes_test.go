package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"os"
	"strconv"
	"testing"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/cluster/clustertest"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/kafka/brokers"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
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

// K2: behind a balancer, where clients know one broker and reach any node, a group has members at all nodes: each partition
// is given to one of them, what they commit is known to all, and tools that reach any node see the group.
func TestKafkaGroupsBehindABalancer(t *testing.T) {
	for _, protocol := range []string{"classic", "consumer"} {
		t.Run(protocol, func(t *testing.T) {
			s := newShared(t)
			s.prompt, s.wire = true, &clustertest.Network{}
			const groups = 3 // so that some belong to each node
			var nodes []*running
			for _, name := range []string{"a", "b"} {
				cfg := s.config()
				cfg.Node, cfg.Kafka, cfg.KafkaBrokers, cfg.Hubs = name, "127.0.0.1:0", "one", []Hub{{Name: "h", Partitions: 4}}
				nodes = append(nodes, start(t, cfg))
			}
			client := func(at int, options ...kgo.Opt) *kgo.Client {
				if protocol == "consumer" {
					options = append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
				}
				c := testkit.Value(kgo.NewClient(append(options, kgo.SeedBrokers(nodes[at].host("kafka")))...))(t)
				t.Cleanup(c.Close)
				return c
			}
			var ids []string
			for i := range groups {
				id := fmt.Sprint("g", i)
				ids = append(ids, id)
				var members []*kgo.Client
				has := make(chan map[int32]string) // partitions that a member was given, or has lost
				ctx, cancel := context.WithCancel(t.Context())
				change := func(name string) func(context.Context, *kgo.Client, map[string][]int32) {
					return func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
						all := make(map[int32]string)
						for _, p := range topics["h"] {
							all[p] = name
						}
						select {
						case has <- all:
						case <-ctx.Done():
						}
					}
				}
				for at := range nodes {
					members = append(members, client(at, kgo.ConsumerGroup(id), kgo.ConsumeTopics("h"), kgo.DisableAutoCommit(),
						kgo.OnPartitionsAssigned(change(fmt.Sprint(at))), kgo.OnPartitionsRevoked(change("")), kgo.OnPartitionsLost(change(""))))
				}
				owners := map[int32]string{}
				for shared := false; !shared; {
					maps.Copy(owners, <-has)
					count := map[string]int{}
					for _, owner := range owners {
						count[owner]++
					}
					shared = count["0"] == 2 && count["1"] == 2
				}
				for p, owner := range owners {
					at := map[string]int{"0": 0, "1": 1}[owner]
					testkit.Must(t, commitAt(ctx, members[at], p), "a commit at node %d", at)
				}
				r := kmsg.NewPtrDescribeGroupsRequest()
				r.Groups = ids
				for at := range nodes {
					described := testkit.Value(r.RequestWith(t.Context(), client(at)))(t)
					testkit.Equal(t, len(described.Groups), len(ids), "groups that are described at node %d", at)
					fetch := kmsg.NewPtrOffsetFetchRequest()
					for _, id := range ids {
						asked := kmsg.NewOffsetFetchRequestGroup()
						asked.Group = id
						fetch.Groups = append(fetch.Groups, asked)
					}
					testkit.Eventually(t, "what is committed is known at every node", func() bool {
						answer := testkit.Value(fetch.RequestWith(t.Context(), client(at)))(t)
						total := 0
						for _, g := range answer.Groups {
							testkit.Equal(t, g.ErrorCode, 0, "code of the offsets of %s at node %d", g.Group, at)
							for _, topic := range g.Topics {
								total += len(topic.Partitions)
							}
						}
						return total == 4*len(ids)
					})
					listed := testkit.Value(kmsg.NewPtrListGroupsRequest().RequestWith(t.Context(), client(at)))(t)
					testkit.Equal(t, len(listed.Groups), len(ids), "groups that are listed at node %d", at)
				}
				cancel()
				for _, m := range members {
					m.Close()
				}
			}
			remove := kmsg.NewPtrDeleteGroupsRequest()
			remove.Groups = ids
			testkit.Eventually(t, "all groups are deleted at one node", func() bool {
				gone := 0
				for _, g := range testkit.Value(remove.RequestWith(t.Context(), client(1)))(t).Groups {
					if g.ErrorCode == 0 || g.ErrorCode == 69 { // GROUP_ID_NOT_FOUND
						gone++
					}
				}
				return gone == groups
			})
		})
	}
}

// commitAt has a member commit that it has come to the first event of a partition.
func commitAt(ctx context.Context, member *kgo.Client, partition int32) (err error) {
	offsets := map[string]map[int32]kgo.EpochOffset{"h": {partition: {Epoch: -1, Offset: 0}}}
	member.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, failed error) {
		if err = failed; err == nil {
			err = kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode)
		}
	})
	return err
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
