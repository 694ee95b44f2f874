package kafka

// shapes are those of requests as they are decoded by kmsg: of all but Produce, which is read in parts,
// and those that strangers may send.
var shapes = map[int16]shape{
	1: { // Fetch
		until(14, i32), i32, i32, since(3, i32), since(4, i8), since(7, i32), since(7, i32),
		list(until(12, str), since(13, uuid),
			list(i32, since(9, i32), i64, since(12, i32), since(5, i64), i32)),
		since(7, list(until(12, str), since(13, uuid), plain(i32))),
		since(11, str), noTag(1), // a follower's state
	},
	2: { // ListOffsets
		i32, since(2, i8),
		list(str, list(i32, since(4, i32), i64, until(0, i32))),
		since(10, i32),
	},
	3:  {list(since(10, uuid), str), since(4, i8), since(8, until(10, i8)), since(8, i8)}, // Metadata
	10: {until(3, str), since(1, i8), since(4, plain(str))},                               // FindCoordinator
	19: { // CreateTopics
		list(str, i32, i16, list(i32, plain(i32)), list(str, str)),
		i32, since(1, i8),
	},
	20: {until(5, plain(str)), since(6, list(str, uuid)), i32},    // DeleteTopics
	21: {list(str, list(i32, i64)), i32},                          // DeleteRecords
	22: {str, i32, since(3, i64), since(3, i16)},                  // InitProducerId
	23: {since(3, i32), list(str, list(i32, since(2, i32), i32))}, // OffsetForLeaderEpoch
	24: { // AddPartitionsToTxn
		until(3, str), until(3, i64), until(3, i16), until(3, list(str, plain(i32))),
		since(4, list(str, i64, i16, i8, list(str, plain(i32)))),
	},
	25: {str, i64, i16, str}, // AddOffsetsToTxn
	26: {str, i64, i16, i8},  // EndTxn
	28: { // TxnOffsetCommit
		str, str, i64, i16, since(3, i32), since(3, str), since(3, str),
		list(until(5, str), since(6, uuid), list(i32, i64, since(2, i32), str)),
	},
	29: {i8, str, since(1, i8), str, str, i8, i8},               // DescribeAcls
	30: {list(i8, str, since(1, i8), str, str, i8, i8)},         // CreateAcls
	31: {list(i8, str, since(1, i8), str, str, i8, i8)},         // DeleteAcls
	32: {list(i8, str, plain(str)), since(1, i8), since(3, i8)}, // DescribeConfigs
	33: {list(i8, str, list(str, str)), i8},                     // AlterConfigs
	35: {list(str, plain(i32))},                                 // DescribeLogDirs
	37: {list(str, i32, list(plain(i32))), i32, i8},             // CreatePartitions
	44: {list(i8, str, list(str, i8, str)), i8},                 // IncrementalAlterConfigs
	46: {i32, list(str, plain(i32))},                            // ListPartitionReassignments
	60: {i8, since(1, i8), since(2, i8)},                        // DescribeCluster
	61: {list(str, plain(i32))},                                 // DescribeProducers
	65: {plain(str)},                                            // DescribeTransactions
	66: {plain(str), plain(i64), since(1, i64), since(2, str)},  // ListTransactions
	75: {list(str), i32, maybe(str, i32)},                       // DescribeTopicPartitions

	8: { // OffsetCommit
		str, since(1, i32), since(1, str), since(7, str), since(2, until(4, i64)),
		list(until(9, str), since(10, uuid),
			list(i32, i64, since(1, until(1, i64)), since(6, i32), str)),
	},
	9: { // OffsetFetch
		until(7, str), until(7, list(str, plain(i32))),
		since(8, list(str, since(9, str), since(9, i32),
			list(until(9, str), since(10, uuid), plain(i32)))),
		since(7, i8),
	},
	11: {str, i32, since(1, i32), str, since(5, str), str, list(str, raw), since(8, str)},      // JoinGroup
	12: {str, i32, str, since(3, str)},                                                         // Heartbeat
	13: {str, until(2, str), since(3, list(str, str, since(5, str)))},                          // LeaveGroup
	14: {str, i32, str, since(3, str), since(5, str), since(5, str), list(str, raw)},           // SyncGroup
	15: {plain(str), since(3, i8)},                                                             // DescribeGroups
	16: {since(4, plain(str)), since(5, plain(str))},                                           // ListGroups
	42: {plain(str)},                                                                           // DeleteGroups
	47: {str, list(str, list(i32))},                                                            // OffsetDelete
	68: {str, str, i32, str, str, i32, plain(str), since(1, str), str, list(uuid, plain(i32))}, // ConsumerGroupHeartbeat
	69: {plain(str), i8},                                                                       // ConsumerGroupDescribe
}
