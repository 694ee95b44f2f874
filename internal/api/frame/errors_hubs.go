package frame

import (
	"time"

	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/processor"
)

const quotaUsedNext = "nothing was stored: wait as long as Retry-After says, then send it again"

// brokerRows are for what the broker says.
var brokerRows = []row{
	{match: as[*broker.NotFoundError], status: 404, kind: "not-found", title: "It does not exist",
		next: "GET /api/v1/hubs lists the hubs, each with its partitions and groups",
		grid: wording{code: "ResourceNotFound", next: "GET /api/v1/hubs lists the hubs"}},
	{match: is(broker.ErrInvalidName), status: 400, kind: "invalid-name", title: "That is no name",
		next: "use up to 256 letters, digits, '-', '_', '.' and '/', beginning with a letter, a digit or '_' and ending with a letter or digit"},
	{match: is(broker.ErrReservedName), status: 400, kind: "reserved-name", title: "That name is kept for something else",
		next: "choose a name whose first part is none of the yard's own paths, and that has no /consumergroups, /messages, /partitions or /publishers in it"},
	{match: is(broker.ErrInvalidPartitionCount), status: 400, kind: "invalid-partition-count", title: "That is no number of partitions",
		next: "ask for 1 to 1024 partitions"},
	{match: is(broker.ErrInvalidRetention), status: 400, kind: "invalid-retention", title: "That is no retention",
		next: `give an age such as "168h" and a number of bytes; 0 keeps for ever`},
	{match: is(broker.ErrInvalidQuota), status: 400, kind: "invalid-quota", title: "That is no quota",
		next: "give a number of events and of bytes a second; 0: no limit"},
	{match: as[*quota.Error], status: 429, kind: "throttled", title: "The quota is used up", retryAfter: time.Second,
		next: quotaUsedNext,
		grid: wording{code: "TooManyRequests", next: quotaUsedNext},
		blob: wording{status: 503, code: "ServerBusy"}},
	{match: is(broker.ErrKeyTooLong), status: 400, kind: "key-too-long", title: "The partition key is too long",
		next: "use a key of at most 128 characters"},
	{match: is(broker.ErrInvalidKey), status: 400, kind: "invalid-key", title: "The partition key is not text",
		next: "use a key of valid UTF-8; write bytes as hex or base64"},
	{match: is(broker.ErrHubExists), status: 409, kind: "hub-exists", title: "A hub of that name exists",
		next: "use it, change it with PATCH, or choose another name; case makes no difference"},
	{match: is(broker.ErrGroupExists), status: 409, kind: "group-exists", title: "A group of that name exists",
		next: "use it, or choose another name"},
	{match: is(broker.ErrDefaultGroup), status: 409, kind: "default-group", title: "The default group stays",
		next: "every hub has $Default; leave it unused if it is not wanted"},
	{match: is(broker.ErrPartitionsFixed), status: 409, kind: "partitions-fixed", title: "A hub's number of partitions is fixed",
		next: "create another hub with the number you need and read on there"},
	{match: is(broker.ErrProducerFenced), status: 409, kind: "producer-fenced", title: "A newer epoch of this producer exists",
		next: "begin the producer anew, with a higher epoch"},
	{match: is(broker.ErrOutOfOrder), status: 409, kind: "out-of-order", title: "The producer's numbers are out of order",
		next: "ask for the newest number that is stored and go on behind it"},
	{match: is(broker.ErrRepeatTooOld), status: 409, kind: "repeat-too-old", title: "The producer sent again what was stored long ago",
		next: "go on with what follows: it is stored, but nobody remembers where"},
	{match: as[*broker.EpochError], status: 409, kind: "epoch-too-low", title: "A receiver with a higher epoch is there",
		next: "use a higher epoch, or close the other receiver first"},
	{match: as[*broker.EvictedError], status: 409, kind: "receiver-evicted", title: "Another receiver took the slot",
		next: "read on with a higher epoch, or leave the partition to the other"},
	{match: as[*broker.ReceiverQuotaError], status: 429, kind: "too-many-receivers", title: "The group has too many receivers at this partition",
		next: "close one of them, or use another consumer group"},
	{match: is(broker.ErrTooManyKeysCounted), status: 429, kind: "too-many-keys-counted", title: "The keys of too many partitions are counted", retryAfter: time.Minute,
		next: "ask for one partition with partition=, or again in a minute: what nobody asks for is not counted any more then"},
}

// policyRows are for what the registry of policies says.
var policyRows = []row{
	{match: is(access.ErrNotFound), status: 404, kind: "policy-not-found", title: "There is no such policy",
		next: "GET /api/v1/policies lists those of the namespace, GET /api/v1/hubs/{hub}/policies those of a hub"},
	{match: is(access.ErrExists), status: 409, kind: "policy-exists", title: "A policy of that name exists",
		next: "use it, make its keys anew, delete it first, or choose another name"},
	{match: is(access.ErrInvalid), status: 400, kind: "invalid-policy", title: "Such a policy is not allowed",
		next: "leave the keys out to have them made; all fields are described at /api/v1/openapi.json"},
	{match: is(access.ErrRootPolicy), status: 409, kind: "root-policy", title: "The root policy stays",
		next: "make its keys anew to lock out whoever has them: POST /api/v1/policies/" + auth.RootPolicy + "/regenerate"},
}

// groupRows are for what the registry of leases and checkpoints says.
var groupRows = []row{
	{match: as[*groups.OwnedError], status: 409, kind: "owned", title: "The partition is owned",
		next: `stop the processor that owns it, or send {"force":true}: the owner is told with its next checkpoint`},
	{match: as[*groups.AliveError], status: 409, kind: "instance-alive", title: "The instance is alive",
		next: "stop it first, and wait for a minute"},
	{match: is(groups.ErrNoInstance), status: 404, kind: "instance-not-found", title: "There is no such instance",
		next: "GET /api/v1/hubs/{hub}/groups/{group}/ownership lists those there are; what is owned by one without a presence can be released"},
	{match: is(groups.ErrOutOfRange), status: 416, kind: "position-out-of-range", title: "The partition has no such position",
		next: "GET /api/v1/hubs/{hub}/partitions shows the first and last numbers; earliest and latest always fit"},
	{match: is(groups.ErrInvalid), status: 400, kind: "invalid-record", title: "That cannot be recorded",
		next: "all bodies are described at /api/v1/openapi.json"},
	{match: is(groups.ErrTooManyEntries), status: 429, kind: "too-many-facts", title: "The group has too many entries",
		next: "remove those of instances that are gone"},
	{match: is(groups.ErrForbidden), status: 403, kind: "another-instance", title: "The record is another instance's",
		next: "use a policy with the right Manage"},
	{match: is(groups.ErrBehind), status: 503, kind: "behind", title: "This node has yet to read what was written",
		next: "repeat the request"},
	{match: is(processor.ErrConflict), status: 409, kind: "changed-meanwhile", title: "Someone else changed it at the same time",
		next: "nothing was changed by this request; read the present state and repeat it"},
	{match: is(processor.ErrFenced), status: 409, kind: "fenced", title: "Another instance has taken the partition",
		next: "leave the partition to it"},
}
