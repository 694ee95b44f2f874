package server_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/server"
	"github.com/eventyard/eventyard/servertest"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What becomes of a request, besides server.LetIn.
const (
	outside      = "out"
	topicRefused = "29"
	groupRefused = "30"
	yardRefused  = "31"
)

// R1, K5: every request of Kafka's that a yard says it answers, asked with every kind of credential, lets in whom
// testdata/rights-kafka.txt says, and nobody else.
func TestRightsOverKafka(t *testing.T) {
	want, columns := server.ReadTable(t, "rights-kafka.txt", 2, server.LetIn, topicRefused, groupRefused, yardRefused, outside)
	y := newKafkaRights(t)
	for _, column := range columns { // what one credential has deleted is not what the next is to delete
		y.commit(t, "orders", doomed+"-"+column)
	}
	y.commit(t, "orders", "readers")
	for _, key := range y.offered(t) {
		name := fmt.Sprintf("%d %s", key, kmsg.NameForKey(key))
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, column := range columns {
				got = append(got, y.ask(t, key, column))
			}
			expected, found := want[name]
			delete(want, name)
			testkit.That(t, found && slices.Equal(got, expected), "it does not let in whom it should\n%s\nwant\n%s\ngot\n%s",
				server.RightsLine("", columns), server.RightsLine(name, expected), server.RightsLine(name, got))
		})
	}
	for name := range want {
		t.Errorf("testdata/rights-kafka.txt has %s, and the yard does not say that it answers it", name)
	}
}

// kafkaRights is a yard that others can reach, with policies of every kind, a topic and a blob account.
type kafkaRights struct{ address, blobKey string }

// Hubs of the yard: requests are about orders, but for those that delete.
const doomed, doomedToo = "doomed", "doomed-too"

func newKafkaRights(t *testing.T) kafkaRights {
	t.Helper()
	y := servertest.Start(t, servertest.Listeners, server.AnyFailures, func(c *server.Config) {
		c.AMQPS = "0.0.0.0:0"
		for _, hub := range []string{"orders", "other", doomed, doomedToo} {
			c.Hubs = append(c.Hubs, server.Hub{Name: hub, Partitions: 1})
		}
		for name, right := range map[string]string{"sender": "Send", "listener": "Listen", "manager": "Manage", "scraper": "Metrics"} {
			c.Policies = append(c.Policies, server.Policy{Name: name, Rights: []string{right}, PrimaryKey: policyKeys[name]})
		}
		for _, hub := range []string{"orders", doomed} {
			c.Policies = append(c.Policies, server.Policy{Name: "own", Hub: hub, Rights: []string{"Manage"}, PrimaryKey: policyKeys["own"]})
		}
		c.Policies = append(c.Policies, server.Policy{Name: "other", Hub: "other", Rights: []string{"Manage"}, PrimaryKey: policyKeys["other"]})
		c.Topics = append(c.Topics, server.Topic{Name: "invoices", Key1: topicKeys["invoices"]})
	})
	client := testkit.Value(admin.New(admin.Config{Server: y.Addresses()["http"], ConnectionString: y.Access().ConnectionString}))(t)
	defer client.Close()
	_, address, _ := strings.Cut(y.Addresses()["kafka"], "://")
	return kafkaRights{address: address, blobKey: testkit.Value(client.BlobAccount(t.Context()))(t).PrimaryKey}
}

// offered are the requests that the yard says it answers, without those of SASL.
func (y kafkaRights) offered(t *testing.T) (keys []int16) {
	t.Helper()
	answer := testkit.Value(server.DialKafka(t, y.address).Ask(kmsg.NewPtrApiVersionsRequest()))(t).(*kmsg.ApiVersionsResponse)
	for _, one := range answer.ApiKeys {
		if key := kmsg.Key(one.ApiKey); key != kmsg.SASLHandshake && key != kmsg.SASLAuthenticate {
			keys = append(keys, one.ApiKey)
		}
	}
	return keys
}

// ask sends one request with a credential, and gives what became of it.
func (y kafkaRights) ask(t *testing.T, key int16, column string) string {
	t.Helper()
	hub := hubFor(key, column)
	request := kafkaRequests[kmsg.Key(key)]
	testkit.MustThat(t, request != nil, "no request of this kind is here: say whom it lets in")
	conn := server.DialKafka(t, y.address)
	if column != "none" && conn.LogIn("$ConnectionString", y.connectionString(t, column, hub)) != nil {
		return outside
	}
	asked := request(hub)
	if r, deletes := asked.(*kmsg.DeleteGroupsRequest); deletes {
		r.Groups = []string{doomed + "-" + column}
	}
	answer, err := conn.Ask(asked)
	if err != nil {
		return outside
	}
	refused := server.LetIn
	forEachCode(reflect.ValueOf(answer), func(code int16) {
		if text := fmt.Sprint(code); text == topicRefused || text == groupRefused || text == yardRefused {
			refused = text
		}
	})
	return refused
}

// commit has a group commit an offset of a hub.
func (y kafkaRights) commit(t *testing.T, hub, group string) {
	t.Helper()
	conn := server.DialKafka(t, y.address)
	testkit.Must(t, conn.LogIn("$ConnectionString", y.connectionString(t, "manage", hub)))
	r := kafkaRequests[kmsg.OffsetCommit](hub).(*kmsg.OffsetCommitRequest)
	r.Group = group
	answer := testkit.Value(conn.Ask(r))(t).(*kmsg.OffsetCommitResponse)
	testkit.MustEqual(t, answer.Topics[0].Partitions[0].ErrorCode, int16(0), "code")
}

// hubFor is the hub that a request is about. What one credential has deleted is not what the next is to delete.
func hubFor(key int16, column string) string {
	switch {
	case kmsg.Key(key) != kmsg.DeleteTopics:
		return "orders"
	case column == "manage":
		return doomedToo
	}
	return doomed
}

// connectionString gives what stands for a column.
func (y kafkaRights) connectionString(t *testing.T, column, hub string) string {
	t.Helper()
	const host = "sb://localhost/"
	signed := func(path, policy, key string, lasts time.Duration) string {
		return "Endpoint=" + host + ";SharedAccessSignature=" + auth.Sign(host+path, policy, key, time.Now().Add(lasts))
	}
	named := func(policy, key string) string {
		return "Endpoint=" + host + ";SharedAccessKeyName=" + policy + ";SharedAccessKey=" + key
	}
	switch column {
	case "send":
		return named("sender", policyKeys["sender"])
	case "listen":
		return named("listener", policyKeys["listener"])
	case "manage":
		return named("manager", policyKeys["manager"])
	case "metrics":
		return named("scraper", policyKeys["scraper"])
	case "ownHub":
		return named("own", policyKeys["own"]) + ";EntityPath=" + hub
	case "otherHub":
		return named("other", policyKeys["other"]) + ";EntityPath=other"
	case "wrong":
		return named("manager", key("nobody's"))
	case "expired":
		return signed("", "manager", policyKeys["manager"], -time.Hour)
	case "topicKey":
		token := testkit.Value(topickey.Sign("https://localhost/topics/invoices/api/events", topicKeys["invoices"], time.Now().Add(time.Hour)))(t)
		return "Endpoint=" + host + ";SharedAccessSignature=" + token
	case "blobKey":
		return signed("", "manager", y.blobKey, time.Hour)
	case "publisher":
		return signed(hub+"/publishers/dev1", "sender", policyKeys["sender"], time.Hour)
	case "group":
		return signed(hub+"/consumergroups/readers", "listener", policyKeys["listener"], time.Hour)
	}
	t.Fatalf("no credential stands for the column %s", column)
	return ""
}

// kafkaRequests are one of each kind, about a hub.
var kafkaRequests = map[kmsg.Key]func(hub string) kmsg.Request{
	kmsg.ApiVersions: func(string) kmsg.Request { return kmsg.NewPtrApiVersionsRequest() },
	kmsg.Metadata:    func(hub string) kmsg.Request { return server.KafkaMetadata(hub) },
	kmsg.Produce:     func(hub string) kmsg.Request { return server.KafkaProduce(hub, "x") },
	kmsg.Fetch: func(hub string) kmsg.Request {
		part, topic, r := kmsg.NewFetchRequestTopicPartition(), kmsg.NewFetchRequestTopic(), kmsg.NewPtrFetchRequest()
		part.PartitionMaxBytes = 1 << 20
		topic.Topic, topic.Partitions = hub, []kmsg.FetchRequestTopicPartition{part}
		r.Version, r.MaxBytes, r.SessionEpoch, r.Topics = 12, 1<<20, -1, []kmsg.FetchRequestTopic{topic}
		return r
	},
	kmsg.ListOffsets: func(hub string) kmsg.Request {
		part, topic, r := kmsg.NewListOffsetsRequestTopicPartition(), kmsg.NewListOffsetsRequestTopic(), kmsg.NewPtrListOffsetsRequest()
		part.Timestamp = -1
		topic.Topic, topic.Partitions = hub, []kmsg.ListOffsetsRequestTopicPartition{part}
		r.Version, r.Topics = 7, []kmsg.ListOffsetsRequestTopic{topic}
		return r
	},
	kmsg.OffsetForLeaderEpoch: func(hub string) kmsg.Request {
		topic, r := kmsg.NewOffsetForLeaderEpochRequestTopic(), kmsg.NewPtrOffsetForLeaderEpochRequest()
		topic.Topic, topic.Partitions = hub, []kmsg.OffsetForLeaderEpochRequestTopicPartition{kmsg.NewOffsetForLeaderEpochRequestTopicPartition()}
		r.Version, r.Topics = 4, []kmsg.OffsetForLeaderEpochRequestTopic{topic}
		return r
	},
	kmsg.InitProducerID: func(string) kmsg.Request {
		r := kmsg.NewPtrInitProducerIDRequest()
		r.Version = 4
		return r
	},
	kmsg.AddPartitionsToTxn: func(hub string) kmsg.Request {
		topic, r := kmsg.NewAddPartitionsToTxnRequestTopic(), kmsg.NewPtrAddPartitionsToTxnRequest()
		topic.Topic, topic.Partitions = hub, []int32{0}
		r.Version, r.TransactionalID, r.Topics = 3, "app", []kmsg.AddPartitionsToTxnRequestTopic{topic}
		return r
	},
	kmsg.AddOffsetsToTxn: func(string) kmsg.Request {
		r := kmsg.NewPtrAddOffsetsToTxnRequest()
		r.Version, r.TransactionalID, r.Group = 3, "app", "readers"
		return r
	},
	kmsg.EndTxn: func(string) kmsg.Request {
		r := kmsg.NewPtrEndTxnRequest()
		r.Version, r.TransactionalID = 3, "app"
		return r
	},
	kmsg.TxnOffsetCommit: func(hub string) kmsg.Request {
		topic, r := kmsg.NewTxnOffsetCommitRequestTopic(), kmsg.NewPtrTxnOffsetCommitRequest()
		topic.Topic, topic.Partitions = hub, []kmsg.TxnOffsetCommitRequestTopicPartition{kmsg.NewTxnOffsetCommitRequestTopicPartition()}
		r.Version, r.TransactionalID, r.Group, r.Topics = 3, "app", "readers", []kmsg.TxnOffsetCommitRequestTopic{topic}
		return r
	},
	kmsg.DescribeTransactions: func(string) kmsg.Request {
		r := kmsg.NewPtrDescribeTransactionsRequest()
		r.TransactionalIDs = []string{"app"}
		return r
	},
	kmsg.ListTransactions: func(string) kmsg.Request { return kmsg.NewPtrListTransactionsRequest() },
	kmsg.DescribeConfigs: func(hub string) kmsg.Request {
		resource, r := kmsg.NewDescribeConfigsRequestResource(), kmsg.NewPtrDescribeConfigsRequest()
		resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, hub
		r.Version, r.Resources = 4, []kmsg.DescribeConfigsRequestResource{resource}
		return r
	},
	kmsg.CreateTopics: func(string) kmsg.Request {
		topic, r := kmsg.NewCreateTopicsRequestTopic(), kmsg.NewPtrCreateTopicsRequest()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "made", 1, 1
		r.Version, r.TimeoutMillis, r.ValidateOnly, r.Topics = 5, 10_000, true, []kmsg.CreateTopicsRequestTopic{topic}
		return r
	},
	kmsg.DeleteTopics: func(hub string) kmsg.Request {
		r := kmsg.NewPtrDeleteTopicsRequest()
		r.Version, r.TimeoutMillis, r.TopicNames = 4, 10_000, []string{hub}
		return r
	},
	kmsg.AlterConfigs: func(hub string) kmsg.Request {
		resource, r := kmsg.NewAlterConfigsRequestResource(), kmsg.NewPtrAlterConfigsRequest()
		resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, hub
		r.Version, r.ValidateOnly, r.Resources = 2, true, []kmsg.AlterConfigsRequestResource{resource}
		return r
	},
	kmsg.IncrementalAlterConfigs: func(hub string) kmsg.Request {
		resource, r := kmsg.NewIncrementalAlterConfigsRequestResource(), kmsg.NewPtrIncrementalAlterConfigsRequest()
		resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, hub
		r.Version, r.ValidateOnly, r.Resources = 1, true, []kmsg.IncrementalAlterConfigsRequestResource{resource}
		return r
	},
	kmsg.CreatePartitions: func(hub string) kmsg.Request {
		topic, r := kmsg.NewCreatePartitionsRequestTopic(), kmsg.NewPtrCreatePartitionsRequest()
		topic.Topic, topic.Count = hub, 2
		r.Version, r.TimeoutMillis, r.ValidateOnly, r.Topics = 3, 10_000, true, []kmsg.CreatePartitionsRequestTopic{topic}
		return r
	},
	kmsg.DescribeTopicPartitions: func(hub string) kmsg.Request {
		topic, r := kmsg.NewDescribeTopicPartitionsRequestTopic(), kmsg.NewPtrDescribeTopicPartitionsRequest()
		topic.Topic = hub
		r.ResponsePartitionLimit, r.Topics = 100, []kmsg.DescribeTopicPartitionsRequestTopic{topic}
		return r
	},
	kmsg.FindCoordinator: func(string) kmsg.Request {
		r := kmsg.NewPtrFindCoordinatorRequest()
		r.Version, r.CoordinatorKey = 3, "readers"
		return r
	},
	kmsg.OffsetCommit: func(hub string) kmsg.Request {
		topic, r := kmsg.NewOffsetCommitRequestTopic(), kmsg.NewPtrOffsetCommitRequest()
		topic.Topic, topic.Partitions = hub, []kmsg.OffsetCommitRequestTopicPartition{kmsg.NewOffsetCommitRequestTopicPartition()}
		r.Version, r.Group, r.Generation, r.Topics = 8, "readers", -1, []kmsg.OffsetCommitRequestTopic{topic}
		return r
	},
	kmsg.OffsetFetch: func(hub string) kmsg.Request {
		topic, group, r := kmsg.NewOffsetFetchRequestGroupTopic(), kmsg.NewOffsetFetchRequestGroup(), kmsg.NewPtrOffsetFetchRequest()
		topic.Topic, topic.Partitions = hub, []int32{0}
		group.Group, group.Topics = "readers", []kmsg.OffsetFetchRequestGroupTopic{topic}
		r.Version, r.Groups = 8, []kmsg.OffsetFetchRequestGroup{group}
		return r
	},
	kmsg.OffsetDelete: func(hub string) kmsg.Request {
		topic, r := kmsg.NewOffsetDeleteRequestTopic(), kmsg.NewPtrOffsetDeleteRequest()
		topic.Topic, topic.Partitions = hub, []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 1}} // which is not there, so that the group stays about the hub
		r.Group, r.Topics = "readers", []kmsg.OffsetDeleteRequestTopic{topic}
		return r
	},
	kmsg.JoinGroup: func(hub string) kmsg.Request {
		wants, r := kmsg.NewConsumerMemberMetadata(), kmsg.NewPtrJoinGroupRequest()
		wants.Topics = []string{hub}
		r.Version, r.Group, r.SessionTimeoutMillis, r.RebalanceTimeoutMillis, r.ProtocolType = 9, "joined", 10_000, 10_000, "consumer"
		r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: wants.AppendTo(nil)}}
		return r
	},
	kmsg.SyncGroup: func(string) kmsg.Request {
		r := kmsg.NewPtrSyncGroupRequest()
		r.Version, r.Group, r.MemberID = 5, "readers", "nobody"
		return r
	},
	kmsg.Heartbeat: func(string) kmsg.Request {
		r := kmsg.NewPtrHeartbeatRequest()
		r.Version, r.Group, r.MemberID = 4, "readers", "nobody"
		return r
	},
	kmsg.LeaveGroup: func(string) kmsg.Request {
		r := kmsg.NewPtrLeaveGroupRequest()
		r.Version, r.Group, r.Members = 5, "readers", []kmsg.LeaveGroupRequestMember{{MemberID: "nobody"}}
		return r
	},
	kmsg.DescribeGroups: func(string) kmsg.Request {
		r := kmsg.NewPtrDescribeGroupsRequest()
		r.Version, r.Groups = 6, []string{"readers"}
		return r
	},
	kmsg.ListGroups: func(string) kmsg.Request {
		r := kmsg.NewPtrListGroupsRequest()
		r.Version = 5
		return r
	},
	kmsg.DeleteGroups: func(string) kmsg.Request {
		r := kmsg.NewPtrDeleteGroupsRequest()
		r.Version = 2
		return r
	},
	kmsg.ConsumerGroupHeartbeat: func(hub string) kmsg.Request {
		r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		r.Version, r.Group, r.MemberID, r.RebalanceTimeoutMillis = 1, "balanced", "somebody", 10_000
		r.SubscribedTopicNames, r.Topics = []string{hub}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		return r
	},
	kmsg.ConsumerGroupDescribe: func(string) kmsg.Request {
		r := kmsg.NewPtrConsumerGroupDescribeRequest()
		r.Version, r.Groups = 1, []string{"readers"}
		return r
	},
	kmsg.DeleteRecords: func(hub string) kmsg.Request {
		topic, r := kmsg.NewDeleteRecordsRequestTopic(), kmsg.NewPtrDeleteRecordsRequest()
		topic.Topic, topic.Partitions = hub, []kmsg.DeleteRecordsRequestTopicPartition{{}}
		r.Version, r.Topics = 2, []kmsg.DeleteRecordsRequestTopic{topic}
		return r
	},
	kmsg.DescribeProducers: func(hub string) kmsg.Request {
		r := kmsg.NewPtrDescribeProducersRequest()
		r.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: hub, Partitions: []int32{0}}}
		return r
	},
	kmsg.DescribeCluster: func(string) kmsg.Request { return kmsg.NewPtrDescribeClusterRequest() },
	kmsg.DescribeLogDirs: func(hub string) kmsg.Request {
		r := kmsg.NewPtrDescribeLogDirsRequest()
		r.Version, r.Topics = 4, []kmsg.DescribeLogDirsRequestTopic{{Topic: hub, Partitions: []int32{0}}}
		return r
	},
	kmsg.DescribeACLs: func(string) kmsg.Request {
		r := kmsg.NewPtrDescribeACLsRequest()
		r.Version = 3
		return r
	},
	kmsg.CreateACLs: func(string) kmsg.Request {
		r := kmsg.NewPtrCreateACLsRequest()
		r.Version, r.Creations = 3, make([]kmsg.CreateACLsRequestCreation, 1)
		return r
	},
	kmsg.DeleteACLs: func(string) kmsg.Request {
		r := kmsg.NewPtrDeleteACLsRequest()
		r.Version, r.Filters = 3, make([]kmsg.DeleteACLsRequestFilter, 1)
		return r
	},
	kmsg.ListPartitionReassignments: func(string) kmsg.Request { return kmsg.NewPtrListPartitionReassignmentsRequest() },
}

// forEachCode walks all error codes of an answer.
func forEachCode(v reflect.Value, f func(int16)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			forEachCode(v.Elem(), f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			forEachCode(v.Index(i), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); v.Type().Field(i).Name == "ErrorCode" {
				f(int16(field.Int()))
			} else if v.Type().Field(i).IsExported() {
				forEachCode(field, f)
			}
		}
	}
}
