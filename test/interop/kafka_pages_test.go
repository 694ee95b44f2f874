//go:build linux

package interop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
)

// TestKafkaPages replays what user interfaces for Kafka ask, page by page: AKHQ, kafbat's UI and Redpanda's Console. They
// cannot be run here; the calls are derived from those of the client libraries that they use (Java's admin client, and
// franz-go's). Each gets what its page shows, or the error that the page knows; and no connection is cut on the way, which a
// page would show as a cluster that is down. // K1
func TestKafkaPages(t *testing.T) {
	if !*full {
		t.Skip("it is part of make interop-full")
	}
	t.Parallel()
	y := startYard(t, layout{kafka: true, hubs: map[string]int{"orders": kafkaPartitions, "empty": 1}})
	ctx, cancel := context.WithTimeout(t.Context(), 2*kafkaTime)
	defer cancel()
	u := openPages(t, ctx, kafkaTask{address: y.hostPort(t, "kafka"), hub: "orders"})
	for _, call := range kafkaPages {
		t.Run(call.page+": "+call.what, func(t *testing.T) {
			err := call.ask(ctx, u)
			switch {
			case call.refused == nil:
				testkit.Must(t, err)
			case call.refused == errNotOffered:
				testkit.MustThat(t, err != nil && strings.Contains(err.Error(), "too old"), "it is %v, but the client should know at once that it is not offered", err)
			default:
				testkit.MustErrorIs(t, err, call.refused)
			}
		})
	}
	testkit.Equal(t, u.cut.Load(), int64(0), "connections that the yard has ended")
	t.Logf("proved: %d calls of user interfaces, each with its answer", len(kafkaPages))
}

// errNotOffered: the library says that the server does not know the request, as it has seen when it connected. A page then
// leaves out what it would have shown.
var errNotOffered = errors.New("not offered")

// uiPages is a user interface, with something to show.
type uiPages struct {
	*kgo.Client
	adm      *kadm.Client
	cut      atomic.Int64
	producer int64 // its id; a transaction of it is open
}

// OnBrokerDisconnect counts connections that end while the pages are open.
func (u *uiPages) OnBrokerDisconnect(kgo.BrokerMetadata, net.Conn) { u.cut.Add(1) }

// What there is to show: records in each partition of the hub "orders" and a transaction in one, a group that reads them, and
// one that has done so.
const (
	liveGroup, idleGroup = "live", "idle"
	openTransaction      = "open"
	recordsEach          = 10
)

func openPages(t *testing.T, ctx context.Context, k kafkaTask) *uiPages {
	t.Helper()
	u := &uiPages{}
	// It does not end connections itself.
	u.Client = k.franz(t, kgo.WithHooks(u), kgo.ConnIdleTimeout(15*time.Minute), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	u.adm = kadm.NewClient(u.Client)
	for n := range kafkaPartitions * recordsEach {
		r := &kgo.Record{Partition: int32(n % kafkaPartitions), Key: []byte("key"), Value: fmt.Append(nil, n)}
		testkit.Must(t, u.ProduceSync(ctx, r).FirstErr())
	}
	for _, group := range []string{liveGroup, idleGroup} {
		member := k.franz(t, kgo.ConsumerGroup(group), kgo.ConsumeTopics(k.hub), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		for came := 0; came < kafkaPartitions*recordsEach; {
			fetches := member.PollFetches(ctx)
			testkit.Must(t, fetches.Err())
			came += fetches.NumRecords()
		}
		testkit.Must(t, member.CommitUncommittedOffsets(ctx))
		if group == idleGroup {
			testkit.Must(t, member.LeaveGroupContext(ctx))
		}
	}
	writer := k.franz(t, kgo.TransactionalID(openTransaction), kgo.TransactionTimeout(10*time.Minute), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	testkit.Must(t, writer.BeginTransaction())
	testkit.Must(t, writer.ProduceSync(ctx, &kgo.Record{Partition: 0, Value: []byte("open")}).FirstErr())
	producer, _, err := writer.ProducerID(ctx)
	testkit.Must(t, err)
	u.producer = producer
	return u
}

// lacks is the error of an answer that does not have what a page shows.
func lacks(format string, args ...any) error { return fmt.Errorf("lacks "+format, args...) }

// kafkaPages are the calls: on what page, and the error that a page knows to show, if it gets one. They run in this order.
var kafkaPages = []struct {
	page, what string
	ask        func(ctx context.Context, u *uiPages) error
	refused    error
}{
	{"start", "ApiVersions, with features (AKHQ and kafbat guess the version by them)", func(ctx context.Context, u *uiPages) error {
		versions, err := u.adm.ApiVersions(ctx)
		if err != nil {
			return err
		}
		for _, one := range versions {
			if one.Err != nil || one.VersionGuess() == "" {
				return lacks("versions: %v", one.Err)
			}
		}
		return nil
	}, nil},
	{"start", "DescribeCluster with rights: its id, a controller among its nodes", func(ctx context.Context, u *uiPages) error {
		r := kmsg.NewPtrDescribeClusterRequest()
		r.IncludeClusterAuthorizedOperations = true
		answer, err := r.RequestWith(ctx, u)
		if err != nil {
			return err
		}
		controller := slices.ContainsFunc(answer.Brokers, func(b kmsg.DescribeClusterResponseBroker) bool {
			return b.NodeID == answer.ControllerID && b.Host != "" && b.Port > 0
		})
		if answer.ClusterID == "" || !controller || answer.ClusterAuthorizedOperations <= 0 {
			return lacks("what a page shows of a cluster: %+v", answer)
		}
		return kerr.ErrorForCode(answer.ErrorCode)
	}, nil},
	{"start", "Metadata without topics: the nodes", func(ctx context.Context, u *uiPages) error {
		metadata, err := u.adm.BrokerMetadata(ctx)
		if err == nil && (len(metadata.Brokers) == 0 || len(metadata.Topics) > 0 || metadata.Controller < 0) {
			return lacks("nodes, and only those: %+v", metadata)
		}
		return err
	}, nil},
	{"nodes", "DescribeConfigs of a node, with synonyms and documentation", func(ctx context.Context, u *uiPages) error {
		node, err := u.node(ctx)
		if err != nil {
			return err
		}
		config, err := u.configs(ctx, kmsg.ConfigResourceTypeBroker, fmt.Sprint(node))
		if err == nil && config["delete.topic.enable"] != "true" {
			return lacks("delete.topic.enable, by which kafbat's shows its button: %v", config)
		}
		return err
	}, nil},
	{"nodes", "DescribeConfigs of all nodes, by no name", func(ctx context.Context, u *uiPages) error {
		return testkit.Err(u.configs(ctx, kmsg.ConfigResourceTypeBroker, ""))
	}, nil},
	{"nodes", "DescribeConfigs of a node's loggers", func(ctx context.Context, u *uiPages) error {
		return testkit.Err(u.configs(ctx, kmsg.ConfigResourceTypeBrokerLogger, "1"))
	}, kerr.InvalidRequest},
	{"nodes", "DescribeLogDirs of everything: sizes", func(ctx context.Context, u *uiPages) error {
		nodes, err := u.adm.DescribeAllLogDirs(ctx, nil)
		for _, dirs := range nodes {
			err = errors.Join(err, dirs.Error())
			if largest, found := dirs.LargestPartitionBySize(); err == nil && (!found || largest.Topic != "orders" || largest.Size <= 0) {
				return lacks("sizes: %+v", dirs)
			}
		}
		return err
	}, nil},
	{"nodes", "AlterReplicaLogDirs", func(ctx context.Context, u *uiPages) error {
		return testkit.Err(u.Request(ctx, kmsg.NewPtrAlterReplicaLogDirsRequest()))
	}, errNotOffered},
	{"nodes", "DescribeQuorum: kafbat's shows none where it is not offered", func(ctx context.Context, u *uiPages) error {
		return testkit.Err(u.Request(ctx, kmsg.NewPtrDescribeQuorumRequest()))
	}, errNotOffered},
	{"nodes", "UnregisterBroker", func(ctx context.Context, u *uiPages) error {
		return testkit.Err(u.Request(ctx, kmsg.NewPtrUnregisterBrokerRequest()))
	}, errNotOffered},
	{"nodes", "UpdateFeatures", func(ctx context.Context, u *uiPages) error {
		return testkit.Err(u.Request(ctx, kmsg.NewPtrUpdateFeaturesRequest()))
	}, errNotOffered},

	{"topics", "Metadata of all topics, with rights: each partition has a leader and replicas", func(ctx context.Context, u *uiPages) error {
		metadata, err := u.adm.Metadata(kadm.WithAuthorizedOps(ctx))
		if err != nil {
			return err
		}
		if err := metadata.Topics.Error(); err != nil {
			return err
		}
		for _, name := range []string{"orders", "empty"} {
			topic := metadata.Topics[name]
			if topic.ID == (kadm.TopicID{}) || topic.IsInternal || len(topic.Partitions) == 0 || len(topic.AuthorizedOperations) == 0 {
				return lacks("what a page shows of a topic: %+v", topic)
			}
			for _, p := range topic.Partitions {
				if p.Err != nil || p.Leader < 0 || len(p.Replicas) == 0 || len(p.ISR) != len(p.Replicas) || len(p.OfflineReplicas) > 0 {
					return lacks("what a page shows of a healthy partition: %+v", p)
				}
			}
		}
		return nil
	}, nil},
	{"topics", "DescribeTopicPartitions", func(ctx context.Context, u *uiPages) error {
		r := kmsg.NewPtrDescribeTopicPartitionsRequest()
		one := kmsg.NewDescribeTopicPartitionsRequestTopic()
		one.Topic = "orders"
		r.Topics, r.ResponsePartitionLimit = append(r.Topics, one), 2000
		answer, err := r.RequestWith(ctx, u)
		if err == nil && (len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != kafkaPartitions) {
			return lacks("partitions: %+v", answer)
		}
		return err
	}, nil},
	{"topics", "DescribeConfigs of topics, with synonyms and documentation", func(ctx context.Context, u *uiPages) error {
		config, err := u.configs(ctx, kmsg.ConfigResourceTypeTopic, "orders")
		for _, want := range []string{"cleanup.policy", "retention.ms", "retention.bytes", "max.message.bytes", "segment.bytes", "min.insync.replicas"} {
			if err == nil && config[want] == "" {
				return lacks("%s: %v", want, config)
			}
		}
		return err
	}, nil},
	{"topics", "DescribeConfigs of a topic that is gone", func(ctx context.Context, u *uiPages) error {
		return testkit.Err(u.configs(ctx, kmsg.ConfigResourceTypeTopic, "gone"))
	}, kerr.UnknownTopicOrPartition},
	{"topics", "IncrementalAlterConfigs", func(ctx context.Context, u *uiPages) error {
		if err := u.alter(ctx, kadm.AlterConfig{Op: kadm.SetConfig, Name: "retention.ms", Value: kadm.StringPtr("3600000")}); err != nil {
			return err
		}
		config, err := u.configs(ctx, kmsg.ConfigResourceTypeTopic, "orders")
		if err == nil && config["retention.ms"] != "3600000" {
			return lacks("what was set: %v", config)
		}
		return err
	}, nil},
	{"topics", "IncrementalAlterConfigs back to the default", func(ctx context.Context, u *uiPages) error {
		return u.alter(ctx, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: "retention.ms"})
	}, nil},
	{"topics", "IncrementalAlterConfigs of what cannot be set", func(ctx context.Context, u *uiPages) error {
		return u.alter(ctx, kadm.AlterConfig{Op: kadm.SetConfig, Name: "min.insync.replicas", Value: kadm.StringPtr("2")})
	}, kerr.InvalidConfig},
	{"topics", "AlterConfigs, by which pages change topics of servers whose version they do not know", func(ctx context.Context, u *uiPages) error {
		altered, err := u.adm.AlterTopicConfigsState(ctx, []kadm.AlterConfig{{Name: "cleanup.policy", Value: kadm.StringPtr("compact")}}, "empty")
		if err == nil {
			err = altered[0].Err
		}
		return err
	}, nil},
	{"topics", "CreateTopics, first to see whether it can be", func(ctx context.Context, u *uiPages) error {
		if _, err := u.adm.ValidateCreateTopics(ctx, 3, 1, nil, "made"); err != nil {
			return err
		}
		made, err := u.adm.CreateTopic(ctx, -1, -1, map[string]*string{"cleanup.policy": kadm.StringPtr("delete")}, "made")
		if err == nil && (made.NumPartitions < 1 || made.ReplicationFactor < 1 || made.ID == (kadm.TopicID{})) {
			return lacks("what was made: %+v", made)
		}
		return err
	}, nil},
	{"topics", "CreateTopics of what is there", func(ctx context.Context, u *uiPages) error {
		return testkit.Err(u.adm.CreateTopic(ctx, 1, 1, nil, "made"))
	}, kerr.TopicAlreadyExists},
	{"topics", "CreatePartitions, first to see whether it can be", func(ctx context.Context, u *uiPages) error {
		return u.morePartitions(ctx, true)
	}, kerr.InvalidPartitions},
	{"topics", "CreatePartitions: refused with the reason", func(ctx context.Context, u *uiPages) error {
		return u.morePartitions(ctx, false)
	}, kerr.InvalidPartitions},
	{"topics", "AlterPartitionAssignments, for more replicas", func(ctx context.Context, u *uiPages) error {
		return testkit.Err(u.Request(ctx, kmsg.NewPtrAlterPartitionAssignmentsRequest()))
	}, errNotOffered},
	{"topics", "ListPartitionReassignments: none", func(ctx context.Context, u *uiPages) error {
		r := kmsg.NewPtrListPartitionReassignmentsRequest()
		answer, err := r.RequestWith(ctx, u)
		if err == nil && len(answer.Topics) > 0 {
			return lacks("nothing: %+v", answer)
		}
		return err
	}, nil},
	{"topics", "ElectLeaders", func(ctx context.Context, u *uiPages) error {
		return testkit.Err(u.Request(ctx, kmsg.NewPtrElectLeadersRequest()))
	}, errNotOffered},
	{"topics", "DescribeProducers", func(ctx context.Context, u *uiPages) error {
		described, err := u.adm.DescribeProducers(ctx, kadm.TopicsSet{"orders": {0: {}}})
		if err == nil && described["orders"].Partitions[0].ActiveProducers[u.producer].CurrentTxnStartOffset != recordsEach {
			return lacks("the producer whose transaction is open: %+v", described)
		}
		return err
	}, nil},
	{"topics", "DeleteTopics", func(ctx context.Context, u *uiPages) error {
		return testkit.Err(u.adm.DeleteTopic(ctx, "made"))
	}, nil},
	{"topics", "DeleteTopics of what is gone", func(ctx context.Context, u *uiPages) error {
		return testkit.Err(u.adm.DeleteTopic(ctx, "made"))
	}, kerr.UnknownTopicOrPartition},

	{"records", "ListOffsets: the beginning", func(ctx context.Context, u *uiPages) error {
		return wantOffset(0)(u.adm.ListStartOffsets(ctx, "orders"))
	}, nil},
	{"records", "ListOffsets: the end", func(ctx context.Context, u *uiPages) error {
		return wantOffset(recordsEach)(u.adm.ListEndOffsets(ctx, "orders"))
	}, nil},
	{"records", "ListOffsets: the end of what is committed", func(ctx context.Context, u *uiPages) error {
		return wantOffset(recordsEach)(u.adm.ListCommittedOffsets(ctx, "orders"))
	}, nil},
	{"records", "ListOffsets: the newest timestamp", func(ctx context.Context, u *uiPages) error {
		return wantOffset(recordsEach - 1)(u.adm.ListMaxTimestampOffsets(ctx, "orders"))
	}, nil},
	{"records", "ListOffsets: since a time", func(ctx context.Context, u *uiPages) error {
		return wantOffset(0)(u.adm.ListOffsetsAfterMilli(ctx, time.Now().Add(-time.Hour).UnixMilli(), "orders"))
	}, nil},
	{"records", "Fetch: the newest ones", func(ctx context.Context, u *uiPages) error {
		u.AddConsumePartitions(map[string]map[int32]kgo.Offset{"orders": {1: kgo.NewOffset().AtEnd().Relative(-1)}})
		defer u.RemoveConsumePartitions(map[string][]int32{"orders": {1}})
		fetches := u.PollFetches(ctx)
		for r := range fetches.RecordsAll() {
			if r.Offset >= recordsEach-1 {
				return nil
			}
		}
		return errors.Join(fetches.Err(), lacks("the newest record"))
	}, nil},
	{"records", "DeleteRecords", func(ctx context.Context, u *uiPages) error {
		before := kadm.Offsets{}
		before.AddOffset("orders", 2, recordsEach/2, -1)
		deleted, err := u.adm.DeleteRecords(ctx, before)
		if err == nil {
			err = deleted.Error()
		}
		if err == nil && deleted["orders"][2].LowWatermark != recordsEach/2 {
			return lacks("where it begins now: %+v", deleted)
		}
		return err
	}, nil},

	{"groups", "ListGroups, with states and types", func(ctx context.Context, u *uiPages) error {
		groups, err := u.adm.ListGroups(ctx)
		if err == nil && (groups[liveGroup].State != "Stable" || groups[idleGroup].State != "Empty" || groups[liveGroup].ProtocolType != "consumer" || groups[idleGroup].ProtocolType != "consumer") {
			return lacks("groups: %+v", groups)
		}
		return err
	}, nil},
	{"groups", "DescribeGroups of all", func(ctx context.Context, u *uiPages) error {
		groups, err := u.adm.DescribeGroups(ctx)
		if err == nil {
			err = groups.Error()
		}
		if err != nil {
			return err
		}
		live := groups[liveGroup]
		if len(live.Members) != 1 || live.Members[0].ClientHost == "" || len(live.AssignedPartitions()["orders"]) != kafkaPartitions || groups[idleGroup].State != "Empty" {
			return lacks("members and what they read: %+v", groups)
		}
		return nil
	}, nil},
	{"groups", "ConsumerGroupDescribe of a classic group, which Java's client asks first", func(ctx context.Context, u *uiPages) error {
		r := kmsg.NewPtrConsumerGroupDescribeRequest()
		r.Groups = []string{liveGroup}
		answer, err := r.RequestWith(ctx, u)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(answer.Groups[0].ErrorCode)
	}, kerr.GroupIDNotFound},
	{"groups", "OffsetFetch of all groups at once", func(ctx context.Context, u *uiPages) error {
		fetched := u.adm.FetchManyOffsets(ctx, liveGroup, idleGroup)
		if err := fetched.Error(); err != nil {
			return err
		}
		for _, group := range []string{liveGroup, idleGroup} {
			if at, _ := fetched[group].Fetched.Lookup("orders", 1); at.At != recordsEach {
				return lacks("offsets of %s: %+v", group, fetched)
			}
		}
		return nil
	}, nil},
	{"groups", "Lag", func(ctx context.Context, u *uiPages) error {
		lags, err := u.adm.Lag(ctx, liveGroup, idleGroup)
		if err == nil {
			err = lags.Error()
		}
		if err == nil && lags[idleGroup].Lag.Total() < 0 {
			return lacks("the lag: %+v", lags)
		}
		return err
	}, nil},
	{"groups", "OffsetCommit, to move a group that is in use", func(ctx context.Context, u *uiPages) error {
		return u.adm.CommitAllOffsets(ctx, liveGroup, firstOffset())
	}, kerr.UnknownMemberID},
	{"groups", "OffsetCommit, to move a group that nobody uses", func(ctx context.Context, u *uiPages) error {
		return u.adm.CommitAllOffsets(ctx, idleGroup, firstOffset())
	}, nil},
	{"groups", "OffsetDelete of what is being read", func(ctx context.Context, u *uiPages) error {
		deleted, err := u.adm.DeleteOffsets(ctx, liveGroup, kadm.TopicsSet{"orders": {0: {}}})
		if err == nil {
			err = deleted["orders"][0]
		}
		return err
	}, kerr.GroupSubscribedToTopic},
	{"groups", "OffsetDelete", func(ctx context.Context, u *uiPages) error {
		deleted, err := u.adm.DeleteOffsets(ctx, idleGroup, kadm.TopicsSet{"orders": {0: {}}})
		if err == nil {
			err = deleted["orders"][0]
		}
		return err
	}, nil},
	{"groups", "DeleteGroups of one that is in use", func(ctx context.Context, u *uiPages) error {
		return testkit.Err(u.adm.DeleteGroup(ctx, liveGroup))
	}, kerr.NonEmptyGroup},
	{"groups", "DeleteGroups", func(ctx context.Context, u *uiPages) error {
		return testkit.Err(u.adm.DeleteGroup(ctx, idleGroup))
	}, nil},
	{"groups", "DeleteGroups of one that is gone", func(ctx context.Context, u *uiPages) error {
		return testkit.Err(u.adm.DeleteGroup(ctx, idleGroup))
	}, kerr.GroupIDNotFound},
	{"groups", "ShareGroupDescribe", func(ctx context.Context, u *uiPages) error {
		r := kmsg.NewPtrShareGroupDescribeRequest()
		r.GroupIDs = []string{liveGroup}
		return testkit.Err(u.Request(ctx, r))
	}, errNotOffered},

	{"transactions", "ListTransactions", func(ctx context.Context, u *uiPages) error {
		all, err := u.adm.ListTransactions(ctx, nil, nil)
		if err == nil && (all[openTransaction].State != "Ongoing" || all[openTransaction].ProducerID != u.producer) {
			return lacks("the transaction that is open: %+v", all)
		}
		return err
	}, nil},
	{"transactions", "DescribeTransactions", func(ctx context.Context, u *uiPages) error {
		described, err := u.adm.DescribeTransactions(ctx, openTransaction)
		if one := described[openTransaction]; err == nil && (one.Err != nil || len(one.Topics["orders"]) != 1) {
			return lacks("its partitions: %+v", described)
		}
		return err
	}, nil},

	{"rights", "DescribeAcls: there are none", func(ctx context.Context, u *uiPages) error {
		r := kmsg.NewPtrDescribeACLsRequest()
		r.ResourceType, r.ResourcePatternType = kmsg.ACLResourceTypeAny, kmsg.ACLResourcePatternTypeAny
		r.Operation, r.PermissionType = kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
		answer, err := r.RequestWith(ctx, u)
		if err != nil {
			return err
		}
		if answer.ErrorMessage == nil {
			return lacks("a reason")
		}
		return kerr.ErrorForCode(answer.ErrorCode)
	}, kerr.SecurityDisabled},
	{"rights", "CreateAcls", func(ctx context.Context, u *uiPages) error {
		r := kmsg.NewPtrCreateACLsRequest()
		r.Creations = append(r.Creations, kmsg.NewCreateACLsRequestCreation())
		answer, err := r.RequestWith(ctx, u)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(answer.Results[0].ErrorCode)
	}, kerr.SecurityDisabled},
	{"rights", "DeleteAcls", func(ctx context.Context, u *uiPages) error {
		r := kmsg.NewPtrDeleteACLsRequest()
		r.Filters = append(r.Filters, kmsg.NewDeleteACLsRequestFilter())
		answer, err := r.RequestWith(ctx, u)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(answer.Results[0].ErrorCode)
	}, kerr.SecurityDisabled},
	{"rights", "DescribeUserScramCredentials", func(ctx context.Context, u *uiPages) error {
		return testkit.Err(u.Request(ctx, kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()))
	}, errNotOffered},
	{"rights", "DescribeClientQuotas", func(ctx context.Context, u *uiPages) error {
		return testkit.Err(u.Request(ctx, kmsg.NewPtrDescribeClientQuotasRequest()))
	}, errNotOffered},
	{"rights", "AlterClientQuotas", func(ctx context.Context, u *uiPages) error {
		return testkit.Err(u.Request(ctx, kmsg.NewPtrAlterClientQuotasRequest()))
	}, errNotOffered},
	{"rights", "DescribeDelegationToken", func(ctx context.Context, u *uiPages) error {
		return testkit.Err(u.Request(ctx, kmsg.NewPtrDescribeDelegationTokenRequest()))
	}, errNotOffered},
}

// node is the number of one.
func (u *uiPages) node(ctx context.Context) (int32, error) {
	brokers, err := u.adm.ListBrokers(ctx)
	if err != nil || len(brokers) == 0 {
		return 0, errors.Join(err, lacks("nodes"))
	}
	return brokers[0].NodeID, nil
}

// configs are the settings of something. Each has to say where it comes from, and what it is for.
func (u *uiPages) configs(ctx context.Context, kind kmsg.ConfigResourceType, name string) (map[string]string, error) {
	r, resource := kmsg.NewPtrDescribeConfigsRequest(), kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kind, name
	r.Resources, r.IncludeSynonyms, r.IncludeDocumentation = append(r.Resources, resource), true, true
	answer, err := r.RequestWith(ctx, u)
	if err != nil {
		return nil, err
	}
	if len(answer.Resources) != 1 {
		return nil, lacks("one resource: %+v", answer)
	}
	one, all := answer.Resources[0], map[string]string{}
	for _, c := range one.Configs {
		if c.Value == nil || c.Source == kmsg.ConfigSourceUnknown {
			return nil, lacks("the value of %s and whose it is: %+v", c.Name, c)
		}
		all[c.Name] = *c.Value
	}
	return all, kerr.ErrorForCode(one.ErrorCode)
}

// alter changes a setting of a topic.
func (u *uiPages) alter(ctx context.Context, change kadm.AlterConfig) error {
	altered, err := u.adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{change}, "orders")
	if err != nil {
		return err
	}
	if altered[0].Err != nil && altered[0].ErrMessage == "" {
		return lacks("a reason why not")
	}
	return altered[0].Err
}

// morePartitions asks for one more.
func (u *uiPages) morePartitions(ctx context.Context, validate bool) error {
	r, topic := kmsg.NewPtrCreatePartitionsRequest(), kmsg.NewCreatePartitionsRequestTopic()
	topic.Topic, topic.Count = "orders", kafkaPartitions+1
	r.Topics, r.ValidateOnly = append(r.Topics, topic), validate
	answer, err := r.RequestWith(ctx, u)
	if err != nil {
		return err
	}
	if answer.Topics[0].ErrorMessage == nil {
		return lacks("a reason why not")
	}
	return kerr.ErrorForCode(answer.Topics[0].ErrorCode)
}

// firstOffset is what a group is moved to.
func firstOffset() kadm.Offsets {
	to := kadm.Offsets{}
	to.AddOffset("orders", 0, 0, -1)
	return to
}

// wantOffset takes a list of offsets, and looks at that of a partition that no transaction has written to.
func wantOffset(want int64) func(kadm.ListedOffsets, error) error {
	return func(listed kadm.ListedOffsets, err error) error {
		if err == nil {
			err = listed.Error()
		}
		if at, _ := listed.Lookup("orders", 1); err == nil && at.Offset != want {
			return lacks("offset %d: %+v", want, at)
		}
		return err
	}
}
