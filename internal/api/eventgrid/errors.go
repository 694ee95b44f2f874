package eventgrid

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// codeNotFound is the finer code of what is not there.
const codeNotFound = "ResourceNotFound"

// verdict is how one error of the layers beneath is told to a client.
type verdict struct {
	// name is the error as a Go programmer writes it; the test of totality reads it.
	name   string
	match  func(error) bool
	status int
	code   string
	next   string
	// retryAfter, where not zero, means that the same request may succeed later without anyone
	// mending anything in it.
	retryAfter time.Duration
}

// unknownNext is for publications, and changes, that may or may not have been stored. Clients of
// Event Grid repeat the first by themselves: delivery at least once begins with the publisher.
const unknownNext = "it may or may not have been stored: publish events again, with the same ids, so that receivers can tell; of a change read the present state"

const (
	topicsNext        = "GET /topics lists the topics"
	subscriptionsNext = "GET /topics/NAME/eventSubscriptions lists them"
)

// verdicts is read from the top, and the first match counts. Who was not let in has changed
// nothing, whatever time-out it was for; then doubt before certainty, because an error in doubt
// often wraps the certain one that caused it.
var verdicts = slices.Concat(accessVerdicts, storageVerdicts, gridVerdicts)

var storageVerdicts = []verdict{
	{"eventlog.ErrUncertain", is(eventlog.ErrUncertain), http.StatusServiceUnavailable, "OutcomeUnknown", unknownNext, 0},
	{"meta.ErrUncertain", is(meta.ErrUncertain), http.StatusServiceUnavailable, "OutcomeUnknown",
		"the change may or may not have been made: read the present state before repeating it", 0},
	{"context.DeadlineExceeded", is(context.DeadlineExceeded), http.StatusServiceUnavailable, "OutcomeUnknown", unknownNext, 0},
	{"context.Canceled", is(context.Canceled), http.StatusServiceUnavailable, "OutcomeUnknown", unknownNext, 0},

	{"eventlog.ErrNoSpace", is(eventlog.ErrNoSpace), http.StatusServiceUnavailable, codeBusy,
		"nothing was stored; free space and publish again: writing resumes by itself", 10 * time.Second},
	{"meta.ErrNoSpace", is(meta.ErrNoSpace), http.StatusServiceUnavailable, codeBusy, "nothing was changed; free space and ask again", 10 * time.Second},
	{"eventlog.ErrFenced", is(eventlog.ErrFenced), http.StatusServiceUnavailable, codeBusy, "nothing was stored; publish the same events again", time.Second},
	{"eventlog.ErrClosed", is(eventlog.ErrClosed), http.StatusServiceUnavailable, "Stopping", "nothing was stored; ask again when the yard is back", 5 * time.Second},
	{"meta.ErrClosed", is(meta.ErrClosed), http.StatusServiceUnavailable, "Stopping", "nothing was changed; ask again when the yard is back", 5 * time.Second},
	{"meta.ErrWatchLost", is(meta.ErrWatchLost), http.StatusServiceUnavailable, codeBusy, "the yard is catching up with changes made elsewhere; ask again", time.Second},

	{"eventlog.ErrRemoved", is(eventlog.ErrRemoved), http.StatusNotFound, codeNotFound, "the topic was deleted meanwhile; " + topicsNext, 0},
	{"eventlog.ErrTooLarge", is(eventlog.ErrTooLarge), http.StatusRequestEntityTooLarge, codeTooLarge, "publish the events in several smaller requests", 0},
	{"http.MaxBytesError", as[*http.MaxBytesError], http.StatusRequestEntityTooLarge, codeTooLarge,
		"publish the events in several smaller requests; an event that is too large alone has to become smaller", 0},
	{"eventlog.ErrEmptyBatch", is(eventlog.ErrEmptyBatch), http.StatusBadRequest, "InputJsonInvalid", "publish at least one event", 0},
	{"eventlog.PositionError", as[*eventlog.PositionError], http.StatusInternalServerError, codeInternal, internalNext, 0},
	{"eventlog.CorruptError", as[*eventlog.CorruptError], http.StatusInternalServerError, codeInternal, internalNext, 0},

	{"meta.ErrConflict", is(meta.ErrConflict), http.StatusConflict, "ChangedMeanwhile", "nothing was changed by this request; read the present state and repeat it", 0},
	{"meta.ErrNotFound", is(meta.ErrNotFound), http.StatusNotFound, codeNotFound, topicsNext, 0},
	{"meta.ErrInvalid", is(meta.ErrInvalid), http.StatusBadRequest, codeInvalid, "use names of letters, digits and '-'", 0},

	{"broker.NotFoundError", as[*broker.NotFoundError], http.StatusNotFound, codeNotFound, "GET /api/v1/hubs lists the hubs", 0},
}

var gridVerdicts = []verdict{
	{"topics.ErrInvalid", is(topics.ErrInvalid), http.StatusBadRequest, codeInvalid, "", 0}, // which says what to write instead
	{"topics.ErrTopicNotFound", is(topics.ErrTopicNotFound), http.StatusNotFound, codeNotFound, topicsNext, 0},
	{"topics.ErrNotFound", is(topics.ErrNotFound), http.StatusNotFound, codeNotFound, subscriptionsNext, 0},
	{"topics.ErrTopicExists", is(topics.ErrTopicExists), http.StatusConflict, "ResourceExists", "use it, change it with PUT, or choose another name; case makes no difference", 0},
	{"topics.ErrExists", is(topics.ErrExists), http.StatusConflict, "ResourceExists", "change it with PUT, or choose another name; case makes no difference", 0},
	{"topics.ErrAmbiguous", is(topics.ErrAmbiguous), http.StatusConflict, "Ambiguous", "name the topic or the hub in the path", 0},
	{"topics.ErrReserved", is(topics.ErrReserved), http.StatusConflict, "ResourceReserved", "leave it as it is; nobody has to subscribe to it", 0},
	{"topics.ErrHandshake", is(topics.ErrHandshake), http.StatusBadRequest, "EndpointValidationFailed",
		"nothing was created or changed; let the endpoint answer the validation request, and send this again", 0},
	{"topics.ErrToken", is(topics.ErrToken), http.StatusForbidden, "InvalidValidationLink",
		"create or update the subscription again, and open the link that its endpoint is sent then", 0},

	{"delivery.ErrNotPull", is(delivery.ErrNotPull), http.StatusBadRequest, "InvalidDeliveryMode",
		"its events are pushed to its endpoint: create another with deliveryMode Queue to receive them here", 0},
	{"delivery.ErrNotFound", is(delivery.ErrNotFound), http.StatusServiceUnavailable, codeBusy, "it was made or deleted a moment ago; ask again", time.Second},
	{"delivery.ErrLockLost", is(delivery.ErrLockLost), http.StatusConflict, codeLost, "receive the event again", 0},
	{"delivery.ErrToken", is(delivery.ErrToken), http.StatusBadRequest, codeBadToken, "use the lockToken that receive gave for this subscription", 0},

	{"schema.InputError", as[*schema.InputError], http.StatusBadRequest, "InputJsonInvalid", "", 0}, // has all of it itself: see judge
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func as[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// judge says how an error is told. What no row knows is our own fault, and the log says more.
func judge(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if e, ok := errors.AsType[*schema.InputError](err); ok {
		return &fault{status: e.Status, code: e.Code, message: e.Message}
	}
	for _, v := range verdicts {
		if v.match(err) {
			f := &fault{status: v.status, code: v.code, message: err.Error(), next: v.next, retryAfter: v.retryAfter}
			if v.status == http.StatusInternalServerError {
				f.message = internalMessage
			}
			return f
		}
	}
	return &fault{status: http.StatusInternalServerError, code: codeInternal, message: internalMessage, next: internalNext}
}
