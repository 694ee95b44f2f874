package v1

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// errStopping: the yard is stopping, and the stream or wait ends with it.
var errStopping = errors.New("the yard is stopping")

// answer is how one error of the layers beneath is told to a client.
type answer struct {
	// name is the error as a Go programmer writes it; the test of totality reads it.
	name   string
	match  func(error) bool
	status int
	kind   string
	title  string
	next   string
	// retryAfter, where not zero, means that the same request may succeed later
	// without anyone mending anything in the request.
	retryAfter time.Duration
}

// unknownNext is for sends that may or may not have been stored. No such answer has a
// Retry-After: clients that obey it by themselves would make repeats.
const unknownNext = "what was sent may or may not have been stored, so a repeat is possible: " +
	"send it again if repeats are acceptable, else read first whether it is there"

// answers is read from the top, and the first match counts: doubt before certainty,
// because an error in doubt often wraps the certain one that caused it.
//
// A position past the end is 416 and not 400: the request is well formed, it is the
// kept position that does not fit this hub (which was perhaps deleted and made
// again). A reader has to tell that apart from its own mistakes by status alone.
var answers = []answer{
	{
		name: "eventlog.ErrUncertain", match: is(eventlog.ErrUncertain),
		status: http.StatusServiceUnavailable, kind: "outcome-unknown",
		title: "The outcome is unknown",
		next:  unknownNext,
	},
	{
		name: "meta.ErrUncertain", match: is(meta.ErrUncertain),
		status: http.StatusServiceUnavailable, kind: "outcome-unknown",
		title: "The outcome is unknown",
		next:  "the change may or may not have been made: read the present state before repeating it",
	},
	{
		name: "context.DeadlineExceeded", match: is(context.DeadlineExceeded),
		status: http.StatusServiceUnavailable, kind: "outcome-unknown",
		title: "The outcome is unknown",
		next:  "time ran out before storage answered; " + unknownNext,
	},
	{
		name: "context.Canceled", match: is(context.Canceled),
		status: http.StatusServiceUnavailable, kind: "outcome-unknown",
		title: "The outcome is unknown",
		next:  "the yard gave up waiting for storage; " + unknownNext,
	},
	{
		name: "broker.NotFoundError", match: as[*broker.NotFoundError],
		status: http.StatusNotFound, kind: "not-found",
		title: "It does not exist",
		next:  "GET /api/v1/hubs lists the hubs, each with its partitions and groups",
	},
	{
		name: "broker.ErrInvalidName", match: is(broker.ErrInvalidName),
		status: http.StatusBadRequest, kind: "invalid-name",
		title: "That is no name",
		next:  "use up to 256 letters, digits, '-', '_', '.' and '/', with a letter or digit at both ends",
	},
	{
		name: "broker.ErrReservedName", match: is(broker.ErrReservedName),
		status: http.StatusBadRequest, kind: "reserved-name",
		title: "That name is kept for something else",
		next:  "choose a name whose first part is none of the yard's own paths, and that has no /consumergroups, /messages, /partitions or /publishers in it",
	},
	{
		name: "broker.ErrInvalidPartitionCount", match: is(broker.ErrInvalidPartitionCount),
		status: http.StatusBadRequest, kind: "invalid-partition-count",
		title: "That is no number of partitions",
		next:  "ask for 1 to 1024 partitions",
	},
	{
		name: "broker.ErrInvalidRetention", match: is(broker.ErrInvalidRetention),
		status: http.StatusBadRequest, kind: "invalid-retention",
		title: "That is no retention",
		next:  `give an age such as "168h" and a number of bytes; 0 keeps for ever`,
	},
	{
		name: "broker.ErrKeyTooLong", match: is(broker.ErrKeyTooLong),
		status: http.StatusBadRequest, kind: "key-too-long",
		title: "The partition key is too long",
		next:  "use a key of at most 128 characters",
	},
	{
		name: "broker.ErrInvalidKey", match: is(broker.ErrInvalidKey),
		status: http.StatusBadRequest, kind: "invalid-key",
		title: "The partition key is not text",
		next:  "use a key of valid UTF-8; write bytes as hex or base64",
	},
	{
		name: "broker.ErrHubExists", match: is(broker.ErrHubExists),
		status: http.StatusConflict, kind: "hub-exists",
		title: "A hub of that name exists",
		next:  "use it, change it with PATCH, or choose another name; case makes no difference",
	},
	{
		name: "broker.ErrGroupExists", match: is(broker.ErrGroupExists),
		status: http.StatusConflict, kind: "group-exists",
		title: "A group of that name exists",
		next:  "use it, or choose another name",
	},
	{
		name: "broker.ErrDefaultGroup", match: is(broker.ErrDefaultGroup),
		status: http.StatusConflict, kind: "default-group",
		title: "The default group stays",
		next:  "every hub has $Default; leave it unused if it is not wanted",
	},
	{
		name: "broker.ErrPartitionsFixed", match: is(broker.ErrPartitionsFixed),
		status: http.StatusConflict, kind: "partitions-fixed",
		title: "A hub's number of partitions is fixed",
		next:  "create another hub with the number you need and read on there",
	},
	{
		name: "eventlog.PositionError", match: as[*eventlog.PositionError],
		status: http.StatusRequestedRangeNotSatisfiable, kind: "position-past-end",
		title: "The position is past the end",
		next:  "this position is not of this hub as it is now: begin again with from=earliest, or from=latest to skip what is there",
	},
	{
		name: "eventlog.CorruptError", match: as[*eventlog.CorruptError],
		status: http.StatusInternalServerError, kind: "damaged-events",
		title: "Stored events are damaged",
		next:  "lostFirst is the first event that cannot be read; read on with from=resume, if there is one",
	},
	{
		name: "eventlog.ErrEmptyBatch", match: is(eventlog.ErrEmptyBatch),
		status: http.StatusBadRequest, kind: "no-events",
		title: "There are no events to store",
		next:  `send at least one, for example {"events":[{"body":"hello"}]}`,
	},
	{
		name: "eventlog.ErrTooLarge", match: is(eventlog.ErrTooLarge),
		status: http.StatusRequestEntityTooLarge, kind: "too-large",
		title: "That is too much for one send",
		next:  "send the events in several smaller requests",
	},
	{
		name: "http.MaxBytesError", match: as[*http.MaxBytesError],
		status: http.StatusRequestEntityTooLarge, kind: "too-large",
		title: "The request's body is too large",
		next:  "send the events in several smaller requests; an event that is too large alone has to become smaller",
	},
	{
		name: "eventlog.ErrNoSpace", match: is(eventlog.ErrNoSpace),
		status: http.StatusInsufficientStorage, kind: "no-space",
		title:      "Storage is full",
		next:       "nothing was stored; free space, or shorten a hub's retention, and send again: writing resumes by itself",
		retryAfter: 10 * time.Second,
	},
	{
		name: "meta.ErrNoSpace", match: is(meta.ErrNoSpace),
		status: http.StatusInsufficientStorage, kind: "no-space",
		title:      "Storage is full",
		next:       "nothing was changed; free space and ask again",
		retryAfter: 10 * time.Second,
	},
	{
		name: "eventlog.ErrFenced", match: is(eventlog.ErrFenced),
		status: http.StatusServiceUnavailable, kind: "writer-replaced",
		title:      "The partition's writer was replaced",
		next:       "nothing was stored; send the same events again",
		retryAfter: time.Second,
	},
	{
		name: "eventlog.ErrRemoved", match: is(eventlog.ErrRemoved),
		status: http.StatusGone, kind: "hub-deleted",
		title: "The hub was deleted meanwhile",
		next:  "GET /api/v1/hubs lists the hubs there are",
	},
	{
		name: "eventlog.ErrClosed", match: is(eventlog.ErrClosed),
		status: http.StatusServiceUnavailable, kind: "stopping",
		title:      "The yard is stopping",
		next:       "ask again when it is back; nothing was stored",
		retryAfter: 5 * time.Second,
	},
	{
		name: "meta.ErrClosed", match: is(meta.ErrClosed),
		status: http.StatusServiceUnavailable, kind: "stopping",
		title:      "The yard is stopping",
		next:       "ask again when it is back; nothing was changed",
		retryAfter: 5 * time.Second,
	},
	{
		name: "httpapi.errStopping", match: is(errStopping),
		status: http.StatusServiceUnavailable, kind: "stopping",
		title:      "The yard is stopping",
		next:       "ask again when it is back",
		retryAfter: 5 * time.Second,
	},
	{
		name: "meta.ErrNotFound", match: is(meta.ErrNotFound),
		status: http.StatusNotFound, kind: "not-found",
		title: "It does not exist",
		next:  "GET /api/v1/hubs lists the hubs, each with its partitions and groups",
	},
	{
		name: "meta.ErrConflict", match: is(meta.ErrConflict),
		status: http.StatusConflict, kind: "changed-meanwhile",
		title: "Someone else changed it at the same time",
		next:  "nothing was changed by this request; read the present state and repeat it",
	},
	{
		name: "meta.ErrWatchLost", match: is(meta.ErrWatchLost),
		status: http.StatusServiceUnavailable, kind: "catching-up",
		title:      "The yard is catching up with changes made elsewhere",
		next:       "ask again in a moment",
		retryAfter: time.Second,
	},
	{
		name: "meta.ErrInvalid", match: is(meta.ErrInvalid),
		status: http.StatusBadRequest, kind: "invalid-name",
		title: "That is no name",
		next:  "names hold no control characters and are short",
	},
	{
		name: "broker.ErrProducerFenced", match: is(broker.ErrProducerFenced),
		status: http.StatusConflict, kind: "producer-fenced",
		title: "A newer epoch of this producer exists",
		next:  "begin the producer anew, with a higher epoch",
	},
	{
		name: "broker.ErrOutOfOrder", match: is(broker.ErrOutOfOrder),
		status: http.StatusConflict, kind: "out-of-order",
		title: "The producer's numbers are out of order",
		next:  "ask for the newest number that is stored and go on behind it",
	},
	{
		name: "broker.EpochError", match: as[*broker.EpochError],
		status: http.StatusConflict, kind: "epoch-too-low",
		title: "A receiver with a higher epoch is there",
		next:  "use a higher epoch, or close the other receiver first",
	},
	{
		name: "broker.EvictedError", match: as[*broker.EvictedError],
		status: http.StatusConflict, kind: "receiver-evicted",
		title: "Another receiver took the place",
		next:  "read on with a higher epoch, or leave the partition to the other",
	},
	{
		name: "broker.ReceiverQuotaError", match: as[*broker.ReceiverQuotaError],
		status: http.StatusTooManyRequests, kind: "too-many-receivers",
		title: "The group has too many receivers at this partition",
		next:  "close one of them, or use another consumer group",
	},
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func as[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// words tells of an error in the terms of the API, which has hubs where storage has logs.
func words(err error) string {
	return strings.ReplaceAll(err.Error(), eventlog.ErrRemoved.Error(), "the hub was deleted")
}

// judge says how an error is told. What no row knows is our own fault: 500.
func judge(err error) problem {
	if e, ok := errors.AsType[*refusal](err); ok {
		return problem{Type: problemPrefix + e.kind, Title: e.title, Status: e.status, Detail: e.detail, Next: e.next}
	}
	for _, a := range allAnswers {
		if a.match(err) {
			p := problem{
				Type: problemPrefix + a.kind, Title: a.title, Status: a.status,
				Detail: words(err), Next: a.next, retryAfter: a.retryAfter,
			}
			p.addDamage(err)
			return p
		}
	}
	return problem{
		Type: problemPrefix + "internal", Title: "The yard could not do it", Status: http.StatusInternalServerError,
		Detail: err.Error(), Next: "the yard's log has more; if it was a send, the events may or may not have been stored",
	}
}
