package handler

import (
	"context"
	"errors"

	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/groups"
	"github.com/eventyard/eventyard/internal/kafka/groups/consumer"
	"github.com/eventyard/eventyard/internal/kafka/groups/member"
	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/kafka/transactions"
	"github.com/eventyard/eventyard/internal/kafka/transactions/txn"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// Kafka's error codes, by which clients decide whether they try again, ask anew who leads, or give up.
const (
	codeUnknown            int16 = -1
	codeNone               int16 = 0
	codeOffsetOutOfRange   int16 = 1
	codeCorrupt            int16 = 2
	codeUnknownTopic       int16 = 3
	codeNotLeader          int16 = 6
	codeTimedOut           int16 = 7
	codeTooLarge           int16 = 10
	codeMetadata           int16 = 12
	codeNoCoordinator      int16 = 15
	codeNotCoordinator     int16 = 16
	codeInvalidTopic       int16 = 17
	codeAcks               int16 = 21
	codeGeneration         int16 = 22
	codeProtocol           int16 = 23
	codeGroupID            int16 = 24
	codeUnknownMember      int16 = 25
	codeSessionTimeout     int16 = 26
	codeRebalancing        int16 = 27
	codeOffsetSize         int16 = 28
	codeTopicRights        int16 = 29
	codeGroupRights        int16 = 30
	codeClusterRights      int16 = 31
	codeUnsupportedVersion int16 = 35
	codeTopicExists        int16 = 36
	codePartitions         int16 = 37
	codeInvalidConfig      int16 = 40
	codeInvalidRequest     int16 = 42
	codePolicy             int16 = 44
	codeOutOfOrder         int16 = 45
	codeDuplicate          int16 = 46
	codeProducerEpoch      int16 = 47
	codeTransactionState   int16 = 48
	codeProducerMapping    int16 = 49
	codeTransactionTimeout int16 = 50
	codeConcurrent         int16 = 51
	codeTransactionRights  int16 = 53
	codeNotAttempted       int16 = 55
	codeStorage            int16 = 56
	codeGroupNotEmpty      int16 = 68
	codeGroupNotFound      int16 = 69
	codeSessionNotFound    int16 = 70
	codeSessionEpoch       int16 = 71
	codeUnknownEpoch       int16 = 75
	codeCompression        int16 = 76
	codeMemberIDRequired   int16 = 79
	codeGroupFull          int16 = 81
	codeInstanceFenced     int16 = 82
	codeGroupSubscribed    int16 = 86
	codeInvalidRecord      int16 = 87
	codeUnstable           int16 = 88
	codeProducerFenced     int16 = 90
	codeUnknownID          int16 = 100
	codeTransactionID      int16 = 105
	codeSessionTopicID     int16 = 106
	codeMemberEpoch        int16 = 110
	codeInstanceUnreleased int16 = 111
	codeAssignor           int16 = 112
	codeStaleMemberEpoch   int16 = 113
	codeEndpointType       int16 = 115
	codeExpression         int16 = 128
)

var (
	// errTopicRights: the connection may not do that to the hub, whether there is one or not.
	errTopicRights = errors.New("there is no right to do this to that topic: use a policy that has it")
	// errClusterRights: it may not do that to the namespace.
	errClusterRights = errors.New("there is no right to do this: use a policy that has it")
	// errAcks: a producer wants to hear of something else than nothing, one or all copies.
	errAcks = errors.New("acks has to be 0, 1 or -1 (all)")
	// errRange: an offset that the partition does not hold.
	errRange = errors.New("the offset is not in the partition: it was removed, or is not there yet")
	// errLeaderEpoch: a client knows of an epoch of the partition that there never was.
	errLeaderEpoch = errors.New("the partition never had this leader epoch")
	// errOldReader: what is asked for is packed in a way that so old a request cannot be given.
	errOldReader = errors.New("records are packed with zstd, which needs Fetch in version 10: use a newer client")
	// errInvalid: the request makes no sense, or asks for what is not here.
	errInvalid = errors.New("the request cannot be answered")
	// errConfig: a setting that cannot be so.
	errConfig = errors.New("configuration is not allowed")
)

// unknownIDError: there is no hub of that id, or no more.
type unknownIDError struct{ error }

func (e *unknownIDError) Unwrap() error { return e.error }

// answer is how one error of the layers beneath is reported to a client.
type answer struct {
	// name is the error as a Go programmer writes it; the test of totality reads it.
	name  string
	match func(error) bool
	code  int16
}

// answers is read from the top, and the first match counts: doubt before certainty, because an error
// in doubt often wraps the certain one that caused it.
//
// What may succeed when it is done again has a code that makes clients do so by themselves. That holds
// for doubt too: an idempotent producer's numbers decide then, and others may store twice, as ever.
var answers = []answer{
	{"eventlog.ErrUncertain", is(eventlog.ErrUncertain), codeTimedOut},
	{"meta.ErrUncertain", is(meta.ErrUncertain), codeTimedOut},

	{"handler.errTopicRights", is(errTopicRights), codeTopicRights},
	{"handler.errClusterRights", is(errClusterRights), codeClusterRights},
	{"handler.errAcks", is(errAcks), codeAcks},
	{"handler.errRange", is(errRange), codeOffsetOutOfRange},
	{"handler.errLeaderEpoch", is(errLeaderEpoch), codeUnknownEpoch},
	{"handler.errOldReader", is(errOldReader), codeCompression},
	{"handler.errInvalid", is(errInvalid), codeInvalidRequest},
	{"handler.errConfig", is(errConfig), codeInvalidConfig},

	{"member.ErrUnknown", is(member.ErrUnknown), codeUnknownMember},
	{"member.ErrFenced", is(member.ErrFenced), codeInstanceFenced},
	{"member.ErrGeneration", is(member.ErrGeneration), codeGeneration},
	{"member.ErrRebalancing", is(member.ErrRebalancing), codeRebalancing},
	{"member.ErrIDRequired", is(member.ErrIDRequired), codeMemberIDRequired},
	{"member.ErrProtocol", is(member.ErrProtocol), codeProtocol},
	{"member.ErrSession", is(member.ErrSession), codeSessionTimeout},
	{"member.ErrTooMany", is(member.ErrTooMany), codeGroupFull},
	{"member.ErrKind", is(member.ErrKind), codeProtocol},
	{"consumer.ErrInvalid", is(consumer.ErrInvalid), codeInvalidRequest},
	{"consumer.ErrFencedEpoch", is(consumer.ErrFencedEpoch), codeMemberEpoch},
	{"consumer.ErrStaleEpoch", is(consumer.ErrStaleEpoch), codeStaleMemberEpoch},
	{"consumer.ErrUnreleasedInstance", is(consumer.ErrUnreleasedInstance), codeInstanceUnreleased},
	{"consumer.ErrAssignor", is(consumer.ErrAssignor), codeAssignor},
	{"consumer.ErrExpression", is(consumer.ErrExpression), codeExpression},
	{"consumer.ErrEntry", is(consumer.ErrEntry), codeStorage},
	{"groups.ErrNotCoordinator", is(groups.ErrNotCoordinator), codeNotCoordinator},
	{"groups.ErrStopping", is(groups.ErrStopping), codeNoCoordinator},
	{"groups.ErrBusy", is(groups.ErrBusy), codeNoCoordinator},
	{"groups.ErrInvalidID", is(groups.ErrInvalidID), codeGroupID},
	{"groups.ErrNotFound", is(groups.ErrNotFound), codeGroupNotFound},
	{"groups.ErrNotEmpty", is(groups.ErrNotEmpty), codeGroupNotEmpty},
	{"groups.ErrSubscribed", is(groups.ErrSubscribed), codeGroupSubscribed},
	{"groups.ErrMetadata", is(groups.ErrMetadata), codeMetadata},
	{"groups.ErrTooManyGroups", is(groups.ErrTooManyGroups), codeGroupFull},
	{"groups.ErrTooManyOffsets", is(groups.ErrTooManyOffsets), codeOffsetSize},
	{"groups.ErrRights", is(groups.ErrRights), codeGroupRights},
	{"groups.ErrNotStaged", is(groups.ErrNotStaged), codeTransactionState},

	{"txn.ErrProducer", is(txn.ErrProducer), codeProducerMapping},
	{"txn.ErrState", is(txn.ErrState), codeTransactionState},
	{"txn.ErrConcurrent", is(txn.ErrConcurrent), codeConcurrent},
	{"txn.ErrTimeout", is(txn.ErrTimeout), codeTransactionTimeout},
	{"txn.ErrTooLarge", is(txn.ErrTooLarge), codeInvalidRequest},
	{"transactions.ErrInvalidID", is(transactions.ErrInvalidID), codeInvalidRequest},
	{"transactions.ErrNotFound", is(transactions.ErrNotFound), codeTransactionID},
	{"transactions.ErrTooMany", is(transactions.ErrTooMany), codePolicy},
	{"transactions.ErrTooManyPartitions", is(transactions.ErrTooManyPartitions), codePolicy},
	{"transactions.ErrRights", is(transactions.ErrRights), codeTransactionRights},
	{"transactions.ErrStopping", is(transactions.ErrStopping), codeNoCoordinator},

	{"auth.ErrUnavailable", is(auth.ErrUnavailable), codeTimedOut},
	{"eventlog.ErrUnavailable", is(eventlog.ErrUnavailable), codeStorage},
	{"meta.ErrUnavailable", is(meta.ErrUnavailable), codeStorage},
	{"context.DeadlineExceeded", is(context.DeadlineExceeded), codeTimedOut},
	{"context.Canceled", is(context.Canceled), codeTimedOut},

	{"handler.unknownIDError", as[*unknownIDError], codeUnknownID},
	{"broker.NotFoundError", as[*broker.NotFoundError], codeUnknownTopic},
	{"txn.ErrFenced", func(err error) bool {
		return errors.Is(err, txn.ErrFenced) && !errors.Is(err, broker.ErrProducerFenced)
	}, codeProducerFenced},
	{"broker.ErrProducerFenced", is(broker.ErrProducerFenced), codeProducerEpoch},
	{"broker.ErrRepeatTooOld", is(broker.ErrRepeatTooOld), codeDuplicate},
	{"broker.ErrOutOfOrder", is(broker.ErrOutOfOrder), codeOutOfOrder},
	{"broker.ErrInvalidName", is(broker.ErrInvalidName), codeInvalidTopic},
	{"broker.ErrReservedName", is(broker.ErrReservedName), codeInvalidTopic},
	{"broker.ErrInvalidPartitionCount", is(broker.ErrInvalidPartitionCount), codePartitions},
	{"broker.ErrPartitionsFixed", is(broker.ErrPartitionsFixed), codePartitions},
	{"broker.ErrInvalidRetention", is(broker.ErrInvalidRetention), codeInvalidConfig},
	{"broker.ErrHubExists", is(broker.ErrHubExists), codeTopicExists},
	{"quota.Error", as[*quota.Error], codeTimedOut},

	{"record.ErrCorrupt", is(record.ErrCorrupt), codeCorrupt},
	{"record.ErrTooLarge", is(record.ErrTooLarge), codeTooLarge},
	{"record.ErrCompression", is(record.ErrCompression), codeCompression},
	{"record.ErrInvalid", is(record.ErrInvalid), codeInvalidRecord},

	{"eventlog.PositionError", as[*eventlog.PositionError], codeOffsetOutOfRange},
	{"eventlog.CorruptError", as[*eventlog.CorruptError], codeStorage},
	{"eventlog.ErrForm", is(eventlog.ErrForm), codeInvalidRecord},
	{"eventlog.ErrEmptyBatch", is(eventlog.ErrEmptyBatch), codeInvalidRecord},
	{"eventlog.ErrTooLarge", is(eventlog.ErrTooLarge), codeTooLarge},
	{"eventlog.ErrNoSpace", is(eventlog.ErrNoSpace), codeStorage},
	{"eventlog.ErrFenced", is(eventlog.ErrFenced), codeNotLeader},
	{"eventlog.ErrRemoved", is(eventlog.ErrRemoved), codeUnknownTopic},
	{"eventlog.ErrClosed", is(eventlog.ErrClosed), codeNotLeader},

	{"meta.ErrNoSpace", is(meta.ErrNoSpace), codeStorage},
	{"meta.ErrClosed", is(meta.ErrClosed), codeNotLeader},
	{"meta.ErrConflict", is(meta.ErrConflict), codeTimedOut},
	{"meta.ErrWatchLost", is(meta.ErrWatchLost), codeTimedOut},
	{"meta.ErrNotFound", is(meta.ErrNotFound), codeUnknownTopic},
	{"meta.ErrInvalid", is(meta.ErrInvalid), codeInvalidRequest},

	{"auth.ExpiredError", as[*auth.ExpiredError], codeTopicRights},
	{"auth.ErrExpired", is(auth.ErrExpired), codeTopicRights},
	{"auth.ErrRevoked", is(auth.ErrRevoked), codeTopicRights},
	{"auth.ErrSignature", is(auth.ErrSignature), codeTopicRights},
	{"auth.ErrAudience", is(auth.ErrAudience), codeTopicRights},
	{"auth.ErrTooFewRights", is(auth.ErrTooFewRights), codeTopicRights},
	{"auth.ErrUnsupported", is(auth.ErrUnsupported), codeTopicRights},
	{"auth.ErrMalformed", is(auth.ErrMalformed), codeTopicRights},
	{"auth.ErrConnectionString", is(auth.ErrConnectionString), codeTopicRights},
	{"access.ErrNotFound", is(access.ErrNotFound), codeTopicRights},
	{"admission.QuotaError", as[*admission.QuotaError], codeTimedOut},
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func as[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// codeOf gives the code by which an error is reported. What no row knows is our own fault: known is
// false then.
func codeOf(err error) (code int16, known bool) {
	for _, a := range answers {
		if a.match(err) {
			return a.code, true
		}
	}
	return codeUnknown, false
}
