package frame

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// ErrStopping: the yard is stopping, and the stream or wait ends with it.
var ErrStopping = errors.New("the yard is stopping")

// What to do after an unknown outcome. No such answer has a Retry-After: clients that obey it by
// themselves would make repeats. Clients of Event Grid repeat a publication anyway: delivery at
// least once begins with the publisher.
const (
	unknownNext = "what was sent may or may not have been stored, so a repeat is possible: " +
		"send it again if repeats are acceptable, else read first whether it is there"
	unknownChange   = "the change may or may not have been made: read the present state before repeating it"
	gridUnknownNext = "it may or may not have been stored: publish events again, with the same ids, so that receivers can tell; of a change read the present state"
)

// storageRows are for what the two contracts of storage say, and for requests that end while they
// wait for it.
//
// A position past the end is 416 and not 400: the request is well formed, it is the kept position
// that does not fit this hub (which was perhaps deleted and made again). A reader has to tell that
// apart from its own mistakes by status alone.
var storageRows = []row{
	{match: is(eventlog.ErrUncertain), status: 503, kind: "outcome-unknown", title: "The outcome is unknown",
		next: unknownNext,
		grid: wording{code: "OutcomeUnknown", next: gridUnknownNext}},
	{match: is(meta.ErrUncertain), status: 503, kind: "outcome-unknown", title: "The outcome is unknown",
		next: unknownChange,
		grid: wording{code: "OutcomeUnknown", next: unknownChange}},
	{match: is(eventlog.ErrUnavailable), status: 503, kind: "storage-unavailable", title: "Storage is out of reach at present", retryAfter: 5 * time.Second,
		next: "nothing was stored; send again in a moment: the yard goes on by itself once storage is back",
		grid: wording{code: "Busy", next: "nothing was stored; publish again in a moment"}},
	{match: is(context.DeadlineExceeded), status: 503, kind: "outcome-unknown", title: "The outcome is unknown",
		next: "time ran out before storage answered; " + unknownNext,
		grid: wording{code: "OutcomeUnknown", next: gridUnknownNext},
		blob: wording{code: "OperationTimedOut"}},
	{match: is(context.Canceled), status: 503, kind: "outcome-unknown", title: "The outcome is unknown",
		next: "the yard gave up waiting for storage; " + unknownNext,
		grid: wording{code: "OutcomeUnknown", next: gridUnknownNext},
		blob: wording{code: "OperationTimedOut"}},
	{match: as[*eventlog.PositionError], status: 416, kind: "position-past-end", title: "The position is past the end",
		next: "this position is not of this hub as it is now: begin again with from=earliest, or from=latest to skip what is there",
		grid: wording{status: 500, code: "InternalError", detail: gridInternalDetail, next: gridInternalNext}},
	{match: as[*eventlog.CorruptError], status: 500, kind: "damaged-events", title: "Stored events are damaged",
		next: "lostFirst is the first event that cannot be read; read on with from=resume, if there is one",
		grid: wording{code: "InternalError", detail: gridInternalDetail, next: gridInternalNext}},
	{match: is(eventlog.ErrForm), status: 501, kind: "another-form", title: "The events are in a form that cannot be shown here",
		next: "read them with a client of the protocol that they were sent with, or begin behind them",
		grid: wording{status: 500, code: "InternalError", detail: gridInternalDetail, next: gridInternalNext}},
	{match: is(eventlog.ErrEmptyBatch), status: 400, kind: "no-events", title: "There are no events to store",
		next: `send at least one, for example {"events":[{"body":"hello"}]}`,
		grid: wording{code: "InputJsonInvalid", next: "publish at least one event"}},
	{match: is(eventlog.ErrTooLarge), status: 413, kind: "too-large", title: "That is too much for one send",
		next: "send the events in several smaller requests",
		grid: wording{code: "PayloadTooLarge", next: "publish the events in several smaller requests"}},
	{match: as[*http.MaxBytesError], status: 413, kind: "too-large", title: "The request's body is too large",
		next: "send the events in several smaller requests; an event that is too large alone has to become smaller",
		grid: wording{code: "PayloadTooLarge", next: "publish the events in several smaller requests; an event that is too large alone has to become smaller"}},
	{match: is(eventlog.ErrNoSpace), status: 507, kind: "no-space", title: "Storage is full", retryAfter: 10 * time.Second,
		next: "nothing was stored; free space, or shorten a hub's retention, and send again: writing resumes by itself",
		grid: wording{status: 503, code: "Busy", next: "nothing was stored; free space and publish again: writing resumes by itself"}},
	{match: is(meta.ErrNoSpace), status: 507, kind: "no-space", title: "Storage is full", retryAfter: 10 * time.Second,
		next: "nothing was changed; free space and ask again",
		grid: wording{status: 503, code: "Busy", next: "nothing was changed; free space and ask again"}},
	{match: is(meta.ErrUnavailable), status: 503, kind: "storage-unavailable", title: "Storage is out of reach", retryAfter: 5 * time.Second,
		next: "nothing was changed; ask again: it goes on by itself when the servers of the store are back",
		grid: wording{code: "Busy", next: "nothing was changed; ask again in a moment"},
		blob: wording{code: "ServerBusy"}},
	{match: is(eventlog.ErrFenced), status: 503, kind: "writer-replaced", title: "The partition's writer was replaced", retryAfter: time.Second,
		next: "nothing was stored; send the same events again",
		grid: wording{code: "Busy", next: "nothing was stored; publish the same events again"}},
	{match: is(eventlog.ErrRemoved), status: 410, kind: "hub-deleted", title: "The hub was deleted meanwhile",
		next: "GET /api/v1/hubs lists the hubs there are",
		grid: wording{status: 404, code: "ResourceNotFound", next: "the topic was deleted meanwhile; " + topicsNext}},
	{match: is(eventlog.ErrClosed), status: 503, kind: "stopping", title: "The yard is stopping", retryAfter: 5 * time.Second,
		next: "ask again when it is back; nothing was stored",
		grid: wording{code: "Stopping", next: "nothing was stored; ask again when the yard is back"}},
	{match: is(meta.ErrClosed), status: 503, kind: "stopping", title: "The yard is stopping", retryAfter: 5 * time.Second,
		next: "ask again when it is back; nothing was changed",
		grid: wording{code: "Stopping", next: "nothing was changed; ask again when the yard is back"}},
	{match: is(meta.ErrNotFound), status: 404, kind: "not-found", title: "It does not exist",
		next: "GET /api/v1/hubs lists the hubs, each with its partitions and groups",
		grid: wording{code: "ResourceNotFound", next: topicsNext}},
	{match: is(meta.ErrConflict), status: 409, kind: "changed-meanwhile", title: "Someone else changed it at the same time",
		next: "nothing was changed by this request; read the present state and repeat it",
		grid: wording{code: "ChangedMeanwhile", next: "nothing was changed by this request; read the present state and repeat it"}},
	{match: is(meta.ErrWatchLost), status: 503, kind: "catching-up", title: "The yard is catching up with changes made elsewhere", retryAfter: time.Second,
		next: "ask again in a moment",
		grid: wording{code: "Busy", next: "the yard is catching up with changes made elsewhere; ask again"}},
	{match: is(meta.ErrInvalid), status: 400, kind: "invalid-name", title: "That is no name",
		next: "names hold no control characters and are short",
		grid: wording{code: "InvalidRequest", next: "use names of letters, digits and '-'"}},
	{match: is(ErrStopping), status: 503, kind: "stopping", title: "The yard is stopping", retryAfter: 5 * time.Second,
		next: "ask again when it is back"},
}
