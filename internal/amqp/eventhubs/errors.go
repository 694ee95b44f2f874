package eventhubs

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/eventyard/eventyard/internal/amqp"
	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/hubs/groupwire"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/transport/admission"
	"github.com/eventyard/eventyard/processor"
)

// The conditions that clients branch on: whether they try again, on the same link or on
// a new connection, or give up.
const (
	condNotFound       = amqp.ConditionNotFound
	condUnauthorized   = amqp.ConditionUnauthorizedAccess
	condNotAllowed     = amqp.ConditionNotAllowed
	condNotImplemented = amqp.ConditionNotImplemented
	condInvalidField   = amqp.ConditionInvalidField
	condDecode         = amqp.ConditionDecodeError
	condLimit          = amqp.ConditionResourceLimitExceeded
	condInternal       = amqp.ConditionInternalError
	condStolen         = amqp.ConditionStolen
	// condConnectionForced is for connections, and makes clients open another when they need one.
	condConnectionForced = amqp.ConditionConnectionForced
	condDetachForced     = amqp.ConditionDetachForced
	condMessageSize      = amqp.ConditionMessageSizeExceeded

	condArgument      wire.Symbol = "com.microsoft:argument-error"
	condRange         wire.Symbol = "com.microsoft:argument-out-of-range"
	condBusy          wire.Symbol = "com.microsoft:server-busy"
	condTimeout       wire.Symbol = "com.microsoft:timeout"
	condCancelled     wire.Symbol = "com.microsoft:operation-cancelled"
	condOutOfOrder    wire.Symbol = "com.microsoft:out-of-order-sequence"
	condProducerEpoch wire.Symbol = "com.microsoft:producer-epoch-stolen"

	// These are sent by $yard alone, to processors of ours.
	condConflict wire.Symbol = "eventyard:conflict"
	condFenced   wire.Symbol = "eventyard:fenced"
	condTooMany  wire.Symbol = "eventyard:too-many-requests"
)

var (
	// errFormat: the message is in a format that nobody here reads, or the batch is none.
	errFormat = errors.New("the message cannot be read as events")
	// errNumbers: an idempotent producer's events are not numbered as they have to be.
	errNumbers = errors.New("the events are not numbered as an idempotent producer's")
	// errPublisher: events on a publisher's link have another key than its name.
	errPublisher = errors.New("a publisher's events have its name for their partition key")
)

// answer is how one error of the layers beneath is reported to a client.
type answer struct {
	// name is the error as a Go programmer writes it; the test of totality reads it.
	name      string
	match     func(error) bool
	condition wire.Symbol
	// text is what Event Hubs says; nil: the error's own words will do.
	text func(p entity, err error) string
}

// answers is read from the top, and the first match counts: doubt before certainty,
// because an error in doubt often wraps the certain one that caused it.
//
// What may succeed when it is done again has a condition that makes clients do so by themselves,
// after a pause and on the same link. That holds for doubt too: a repeat is possible then, as it
// always is with Event Hubs, and who cannot have it numbers his events.
var answers = []answer{
	{name: "eventlog.ErrUncertain", match: is(eventlog.ErrUncertain), condition: condTimeout, text: saying(textUncertain)},
	{name: "meta.ErrUncertain", match: is(meta.ErrUncertain), condition: condTimeout, text: saying(textUncertainChange)},
	{name: "auth.ErrUnavailable", match: is(auth.ErrUnavailable), condition: condBusy, text: saying(textUnavailable)},
	{name: "amqp.ErrUnchecked", match: is(amqp.ErrUnchecked), condition: condBusy, text: saying(textUnavailable)},
	{name: "eventlog.ErrUnavailable", match: is(eventlog.ErrUnavailable), condition: condBusy, text: saying(textOutOfReach)},
	{name: "context.DeadlineExceeded", match: is(context.DeadlineExceeded), condition: condTimeout, text: saying(textDeadline)},
	{name: "amqp.ErrLinkEnded", match: is(amqp.ErrLinkEnded), condition: condCancelled, text: saying(textCanceled)},
	{name: "context.Canceled", match: is(context.Canceled), condition: condCancelled, text: saying(textCanceled)},

	{name: "broker.NotFoundError", match: as[*broker.NotFoundError], condition: condNotFound, text: notFound},
	{name: "broker.EpochError", match: as[*broker.EpochError], condition: condStolen, text: from(textEpoch)},
	{name: "broker.EvictedError", match: as[*broker.EvictedError], condition: condStolen, text: from(textEvicted)},
	{name: "broker.ReceiverQuotaError", match: as[*broker.ReceiverQuotaError], condition: condLimit, text: from(textQuota)},
	{name: "admission.QuotaError", match: as[*admission.QuotaError], condition: condLimit},
	{name: "broker.ErrProducerFenced", match: is(broker.ErrProducerFenced), condition: condProducerEpoch},
	{name: "broker.ErrOutOfOrder", match: is(broker.ErrOutOfOrder), condition: condOutOfOrder},
	{name: "broker.ErrRepeatTooOld", match: is(broker.ErrRepeatTooOld), condition: condOutOfOrder},
	{name: "broker.ErrKeyTooLong", match: is(broker.ErrKeyTooLong), condition: condArgument},
	{name: "broker.ErrInvalidKey", match: is(broker.ErrInvalidKey), condition: condArgument},
	{name: "broker.ErrInvalidName", match: is(broker.ErrInvalidName), condition: condArgument},
	{name: "broker.ErrReservedName", match: is(broker.ErrReservedName), condition: condArgument},
	{name: "broker.ErrInvalidPartitionCount", match: is(broker.ErrInvalidPartitionCount), condition: condRange},
	{name: "broker.ErrInvalidRetention", match: is(broker.ErrInvalidRetention), condition: condRange},
	{name: "broker.ErrInvalidQuota", match: is(broker.ErrInvalidQuota), condition: condRange},
	{name: "broker.ErrTooManyKeysCounted", match: is(broker.ErrTooManyKeysCounted), condition: condLimit},
	{name: "quota.Error", match: as[*quota.Error], condition: condBusy, text: from(textThrottled)},
	{name: "broker.ErrHubExists", match: is(broker.ErrHubExists), condition: condNotAllowed},
	{name: "broker.ErrGroupExists", match: is(broker.ErrGroupExists), condition: condNotAllowed},
	{name: "broker.ErrDefaultGroup", match: is(broker.ErrDefaultGroup), condition: condNotAllowed},
	{name: "broker.ErrPartitionsFixed", match: is(broker.ErrPartitionsFixed), condition: condNotAllowed},

	{name: "eventlog.PositionError", match: as[*eventlog.PositionError], condition: condArgument},
	{name: "eventlog.CorruptError", match: as[*eventlog.CorruptError], condition: condInternal,
		text: from(func(e *eventlog.CorruptError) string { return "Stored events are damaged: " + e.Lost() + "." })},
	{name: "eventlog.ErrForm", match: is(eventlog.ErrForm), condition: condNotImplemented},
	{name: "eventlog.ErrEmptyBatch", match: is(eventlog.ErrEmptyBatch), condition: condArgument},
	{name: "eventlog.ErrTooLarge", match: is(eventlog.ErrTooLarge), condition: condMessageSize},
	{name: "eventlog.ErrNoSpace", match: is(eventlog.ErrNoSpace), condition: condBusy, text: saying(textNoSpace)},
	{name: "eventlog.ErrFenced", match: is(eventlog.ErrFenced), condition: condBusy, text: saying(textFenced)},
	{name: "eventlog.ErrRemoved", match: is(eventlog.ErrRemoved), condition: condNotFound, text: removed},
	{name: "eventlog.ErrClosed", match: is(eventlog.ErrClosed), condition: condBusy, text: saying(textStopping)},

	{name: "meta.ErrNoSpace", match: is(meta.ErrNoSpace), condition: condBusy, text: saying(textNoSpaceChange)},
	{name: "meta.ErrUnavailable", match: is(meta.ErrUnavailable), condition: condBusy, text: saying(textOutOfReachChange)},
	{name: "meta.ErrClosed", match: is(meta.ErrClosed), condition: condBusy, text: saying(textStopping)},
	{name: "meta.ErrConflict", match: is(meta.ErrConflict), condition: condBusy},
	{name: "meta.ErrWatchLost", match: is(meta.ErrWatchLost), condition: condBusy},
	{name: "meta.ErrNotFound", match: is(meta.ErrNotFound), condition: condNotFound, text: removed},
	{name: "meta.ErrInvalid", match: is(meta.ErrInvalid), condition: condArgument},

	{name: "auth.ErrSignature", match: is(auth.ErrSignature), condition: condUnauthorized, text: saying(textSignature)},
	{name: "auth.ExpiredError", match: as[*auth.ExpiredError], condition: condUnauthorized, text: from((*auth.ExpiredError).Error)},
	{name: "auth.ErrExpired", match: is(auth.ErrExpired), condition: condUnauthorized, text: saying(textExpiredOnce)},
	{name: "auth.ErrRevoked", match: is(auth.ErrRevoked), condition: condUnauthorized, text: saying(textRevoked)},
	{name: "auth.ErrAudience", match: is(auth.ErrAudience), condition: condUnauthorized, text: saying(textAudience)},
	{name: "auth.ErrTooFewRights", match: is(auth.ErrTooFewRights), condition: condUnauthorized},
	{name: "auth.ErrUnsupported", match: is(auth.ErrUnsupported), condition: condUnauthorized},
	{name: "auth.ErrMalformed", match: is(auth.ErrMalformed), condition: condUnauthorized},
	{name: "auth.ErrRights", match: is(auth.ErrRights), condition: condArgument},
	{name: "auth.ErrConnectionString", match: is(auth.ErrConnectionString), condition: condArgument},
	{name: "access.ErrNotFound", match: is(access.ErrNotFound), condition: condUnauthorized, text: saying(textSignature)},
	{name: "access.ErrExists", match: is(access.ErrExists), condition: condNotAllowed},
	{name: "access.ErrInvalid", match: is(access.ErrInvalid), condition: condArgument},
	{name: "access.ErrRootPolicy", match: is(access.ErrRootPolicy), condition: condNotAllowed},

	{name: "processor.ErrFenced", match: is(processor.ErrFenced), condition: condFenced},
	{name: "processor.ErrConflict", match: is(processor.ErrConflict), condition: condConflict},
	{name: "groups.ErrForbidden", match: is(groups.ErrForbidden), condition: condUnauthorized},
	{name: "groups.ErrBehind", match: is(groups.ErrBehind), condition: condBusy},
	{name: "groups.ErrInvalid", match: is(groups.ErrInvalid), condition: condArgument},
	{name: "groups.ErrTooManyEntries", match: is(groups.ErrTooManyEntries), condition: condTooMany},
	{name: "groups.ErrOutOfRange", match: is(groups.ErrOutOfRange), condition: condRange},
	{name: "groups.OwnedError", match: as[*groups.OwnedError], condition: condNotAllowed},
	{name: "groups.ErrNoInstance", match: is(groups.ErrNoInstance), condition: condNotFound},
	{name: "groups.AliveError", match: as[*groups.AliveError], condition: condNotAllowed},
	{name: "groupwire.ErrMalformed", match: is(groupwire.ErrMalformed), condition: condArgument},
	{name: "groupwire.ErrTooLarge", match: is(groupwire.ErrTooLarge), condition: condArgument},

	{name: "eventhubs.errSelector", match: is(errSelector), condition: condArgument},
	{name: "eventhubs.errTooManyGrants", match: is(errTooManyGrants), condition: condArgument},
	{name: "eventhubs.errPublisher", match: is(errPublisher), condition: condArgument},
	{name: "eventhubs.errNumbers", match: is(errNumbers), condition: condArgument},
	{name: "eventhubs.errFormat", match: is(errFormat), condition: condDecode},
	{name: "wire.DecodeError", match: as[*wire.DecodeError], condition: condDecode},
	{name: "wire.ErrTruncated", match: is(wire.ErrTruncated), condition: condDecode},
	{name: "wire.ErrType", match: is(wire.ErrType), condition: condDecode},
	{name: "wire.ErrMalformed", match: is(wire.ErrMalformed), condition: condDecode},
	{name: "wire.ErrTooDeep", match: is(wire.ErrTooDeep), condition: condDecode},
	{name: "wire.ErrMissing", match: is(wire.ErrMissing), condition: condDecode},
	{name: "wire.ErrSection", match: is(wire.ErrSection), condition: condDecode},
	{name: "wire.ErrText", match: is(wire.ErrText), condition: condDecode},
	{name: "wire.ErrUnsupported", match: is(wire.ErrUnsupported), condition: condDecode},
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func as[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// saying is for errors that have one text, wherever they are met.
func saying(text string) func(entity, error) string {
	return func(entity, error) string { return text }
}

// from is for errors whose text is made of what they hold.
func from[T error](text func(T) string) func(entity, error) string {
	return func(_ entity, err error) string {
		e, _ := errors.AsType[T](err)
		return text(e)
	}
}

func notFound(p entity, err error) string {
	e, _ := errors.AsType[*broker.NotFoundError](err)
	return p.textNotFound(e)
}

// removed is for what was there a moment ago.
func removed(p entity, _ error) string { return p.textMissing(p.hub) }

// judge gives an error as it is reported, without the end that all texts have. What no row
// knows is our own fault, and says no more than that: known is false then.
func judge(p entity, err error) (reported wire.Error, known bool) {
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return *e, true
	}
	for _, a := range answers {
		if !a.match(err) {
			continue
		}
		text := a.text
		if text == nil {
			text = sentence
		}
		reported := wire.Error{Condition: a.condition, Description: text(p, err)}
		if e, ok := errors.AsType[*broker.NotFoundError](err); ok && e.Kind == broker.KindPartition {
			reported.Condition = condRange
		}
		return reported, true
	}
	return wire.Error{Condition: condInternal, Description: "The yard could not do it; its log has more."}, false
}

// sentence makes an error's own words stand alone.
func sentence(_ entity, err error) string {
	text := shown(err.Error())
	if text != "" && 'a' <= text[0] && text[0] <= 'z' {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return text + "."
}

// statuses are the codes by which $cbs, $management and $yard report what the condition reports as
// well. 403 is never among them: one client takes it for a quota.
var statuses = map[wire.Symbol]int32{
	condNotFound:       404,
	condUnauthorized:   401,
	condArgument:       400,
	condRange:          400,
	condInvalidField:   400,
	condDecode:         400,
	condNotImplemented: 501,
	condBusy:           503,
	condTimeout:        408,
	condCancelled:      503,
	condConflict:       groupwire.StatusConflict,
	condFenced:         groupwire.StatusFenced,
	condTooMany:        groupwire.StatusTooMany,
}

// statusOf gives the code that goes with a condition.
func statusOf(condition wire.Symbol) int32 { return cmp.Or(statuses[condition], 500) }
