package kafka

import (
	"cmp"
	"math"
	"reflect"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Offer is what there is of one request.
type Offer struct {
	Key int16
	// Lowest and Highest version are told to clients; those from From on are served.
	Lowest, Highest, From int16
	// Flexible is the first version with compact lengths and tagged fields (KIP-482), also in its head.
	Flexible int16
}

// The keys that the server itself knows.
const (
	keyProduce          int16 = 0
	keySASLHandshake    int16 = 17
	keyApiVersions      int16 = 18
	keySASLAuthenticate int16 = 36
)

const (
	never              = math.MaxInt16
	highestApiVersions = 4
	produceFlexible    = 9
	produceByID        = 13 // topics are named by their ids
)

// Offered is all that is offered, by key. A row is added together with what answers it and with its
// shape, and a range is raised only together with a client's test.
//
// Produce is told from 0 on, and served from 3: older librdkafka compresses only if 0 is there (Kafka
// does the same, KAFKA-18659).
var Offered = []Offer{
	{keyProduce, 0, 13, 3, produceFlexible},
	{1, 4, 18, 4, 12}, // Fetch
	{2, 1, 11, 1, 6},  // ListOffsets
	{3, 0, 13, 0, 9},  // Metadata
	{8, 2, 10, 2, 8},  // OffsetCommit
	{9, 1, 10, 1, 6},  // OffsetFetch
	{10, 0, 6, 0, 3},  // FindCoordinator
	{11, 0, 9, 0, 6},  // JoinGroup
	{12, 0, 4, 0, 4},  // Heartbeat
	{13, 0, 5, 0, 4},  // LeaveGroup
	{14, 0, 5, 0, 4},  // SyncGroup
	{15, 0, 6, 0, 5},  // DescribeGroups
	{16, 0, 5, 0, 3},  // ListGroups
	{keySASLHandshake, 0, 1, 0, never},
	{keyApiVersions, 0, highestApiVersions, 0, 3},
	{19, 2, 7, 2, 5}, // CreateTopics
	{20, 1, 6, 1, 4}, // DeleteTopics
	{21, 0, 2, 0, 2}, // DeleteRecords
	{22, 0, 5, 0, 2}, // InitProducerId
	{23, 2, 4, 2, 4}, // OffsetForLeaderEpoch
	{24, 0, 3, 0, 3}, // AddPartitionsToTxn
	{25, 0, 4, 0, 3}, // AddOffsetsToTxn
	{26, 0, 4, 0, 3}, // EndTxn
	{28, 0, 4, 0, 3}, // TxnOffsetCommit
	{29, 1, 3, 1, 2}, // DescribeAcls
	{30, 1, 3, 1, 2}, // CreateAcls
	{31, 1, 3, 1, 2}, // DeleteAcls
	{32, 1, 4, 1, 4}, // DescribeConfigs
	{33, 0, 2, 0, 2}, // AlterConfigs
	{35, 1, 5, 1, 2}, // DescribeLogDirs
	{keySASLAuthenticate, 0, 2, 0, 2},
	{37, 0, 3, 0, 2},     // CreatePartitions
	{42, 0, 2, 0, 2},     // DeleteGroups
	{44, 0, 1, 0, 1},     // IncrementalAlterConfigs
	{46, 0, 0, 0, 0},     // ListPartitionReassignments
	{47, 0, 0, 0, never}, // OffsetDelete
	{60, 0, 2, 0, 0},     // DescribeCluster
	{61, 0, 0, 0, 0},     // DescribeProducers
	{65, 0, 0, 0, 0},     // DescribeTransactions
	{66, 0, 1, 0, 0},     // ListTransactions
	{68, 0, 1, 0, 0},     // ConsumerGroupHeartbeat
	{69, 0, 1, 0, 0},     // ConsumerGroupDescribe
	{75, 0, 0, 0, 0},     // DescribeTopicPartitions
}

// offerOf finds a request's row.
func offerOf(key int16) (Offer, bool) {
	at, ok := slices.BinarySearchFunc(Offered, key, func(o Offer, key int16) int { return cmp.Compare(o.Key, key) })
	if !ok {
		return Offer{}, false
	}
	return Offered[at], true
}

// serves: the version is one that is answered.
func (o Offer) serves(version int16) bool { return version >= o.From && version <= o.Highest }

// apiVersions answers what is offered. To a version that is beyond ours the answer is that of version 0,
// with an error and all the same with the list: the client chooses from it.
func apiVersions(version int16) *kmsg.ApiVersionsResponse {
	r := kmsg.NewPtrApiVersionsResponse()
	if version < 0 || version > highestApiVersions {
		r.ErrorCode = codeUnsupportedVersion
	}
	for _, o := range Offered {
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey, k.MinVersion, k.MaxVersion = o.Key, o.Lowest, o.Highest
		r.ApiKeys = append(r.ApiKeys, k)
	}
	return r
}

// errorCode is the field of a response that holds the error of the whole; invalid where there is none.
func errorCode(r kmsg.Response) reflect.Value {
	f := reflect.ValueOf(r).Elem().FieldByName("ErrorCode")
	if !f.IsValid() || f.Kind() != reflect.Int16 {
		return reflect.Value{}
	}
	return f
}
