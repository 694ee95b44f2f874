package frame

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/paths"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// Refusal is an error as clients are wording it. An API makes those of its own, and the table those
// of the services.
type Refusal struct {
	Status int
	// Code is the API's word for it: the last part of a problem's type, the finer code of Event
	// Grid, the code of the blob service.
	Code string
	// Title is the code in words, for problem details alone.
	Title  string
	Detail string
	// Next is what to do about it; empty where the detail says it.
	Next string
	// RetryAfter, where not zero, means that the same request may succeed later without anyone
	// mending anything in it.
	RetryAfter time.Duration
	// Cause is the error of the services that it tells of; nil where there is none.
	Cause error
}

func (r *Refusal) Error() string { return r.Code + ": " + r.Detail }

// Wire is a form in which errors are told.
type Wire int

// The forms.
const (
	Problem   Wire = iota // problem details (RFC 9457): the management API
	EventGrid             // Event Grid's error JSON
	Blob                  // the blob service's error XML
)

// row is how one error is told, in every form.
type row struct {
	match func(error) bool

	// What problem details say; kind empty: they never tell it.
	status            int
	kind, title, next string
	retryAfter        time.Duration
	// What the other two say; code empty: they never tell it.
	grid, blob wording
}

// wording is an error in the words of Event Grid or of the blob service.
type wording struct {
	status     int // zero: as problem details have it
	code       string
	detail     string // empty: the error's own words
	next       string
	retryAfter time.Duration // zero: as problem details have it
}

// table is read from the top, and the first match counts. Who was not let in has changed nothing,
// whatever time-out it was for; then doubt before certainty, because an error in doubt often wraps
// the certain one that caused it. The last row is for what no other knows: that is our own fault.
var table = slices.Concat(guardRows, authRows, blobRows, storageRows, brokerRows, policyRows, groupRows, gridRows, functionRows, ownRows)

// guardRows are for what is kept out before anything else of the request is looked at.
var guardRows = []row{
	{match: is(errFields), status: 431, kind: "too-many-fields", title: "The request has too many header fields", next: fieldsNext,
		grid: wording{code: "RequestHeaderFieldsTooLarge", next: fieldsNext},
		blob: wording{code: "RequestHeaderFieldsTooLarge"}},
	{match: is(errHost), status: 400, kind: "invalid-host", title: "The Host of the request is no host", next: hostNext,
		grid: wording{code: "InvalidHost", next: hostNext},
		blob: wording{code: "InvalidHeaderValue"}},
	{match: is(errForeignHost), status: 403, kind: "foreign-host", title: "This listener answers to local names only",
		next: "use http://127.0.0.1 or http://localhost with the listener's port",
		grid: wording{code: "ForeignHost", detail: "this yard answers to local names only",
			next: "use 127.0.0.1, localhost, or a name beneath it such as orders.localhost"},
		blob: wording{code: "AuthorizationFailure", detail: "this yard answers to local names only: use 127.0.0.1 or localhost"}},
	{match: is(errCrossOrigin), status: 403, kind: "cross-origin", title: "A page of another origin may not change anything here",
		next: "send the request from a program, or from a page that this yard serves",
		grid: wording{code: "CrossOrigin", next: "send the request from a program, or from a page that this yard serves"},
		blob: wording{code: "AuthorizationFailure"}},
	{match: as[*admission.FullError], status: 503, kind: "too-many-connections", title: "There are too many connections", retryAfter: fullRetry,
		next: fullNext,
		grid: wording{code: "Busy", next: fullNext},
		blob: wording{code: "ServerBusy"}},
	{match: as[*admission.QuotaError], status: 429, kind: "too-many-readers", title: "Too much is being read at once", retryAfter: fullRetry,
		next: quotaNext,
		grid: wording{code: "TooManyRequests", next: quotaNext},
		blob: wording{code: "ServerBusy"}},
	{match: is(errBodiesFull), status: 503, kind: "too-many-bodies", title: "Too much is being sent at once", retryAfter: fullRetry,
		next: bodiesNext,
		grid: wording{code: "Busy", next: bodiesNext},
		blob: wording{code: "ServerBusy"}},
}

// fullRetry is when one whose connection there is no room for may come again.
const fullRetry = 5 * time.Second

const (
	fullNext           = "try again in a moment; close connections that are not used, or raise httpMaxConnections and the limit of open files"
	quotaNext          = "end requests that are not needed, or try again in a moment; docs/guides/operating.md has the limits"
	bodiesNext         = "try again in a moment, with fewer requests at once; docs/guides/operating.md has the limits"
	hostNext           = "send the name or the address that the yard is reached at, and its port"
	fieldsNext         = "send fewer header fields"
	internalNext       = "the yard's log has more; if it was a send, the events may or may not have been stored"
	gridInternalDetail = "the yard could not do it"
	gridInternalNext   = "look into the yard's log for the request's id; if it was a publication, its events may or may not have been stored"
)

// ownRows are for the yard's own mistakes: a panic, and whatever no row above knows.
var ownRows = []row{
	{match: is(errPanicked), status: 500, kind: "internal", title: "The yard could not do it", next: internalNext,
		grid: wording{code: "InternalError", detail: gridInternalDetail, next: gridInternalNext},
		blob: wording{code: "InternalError"}},
	{match: func(error) bool { return true }, status: 500, kind: "internal", title: "The yard could not do it", next: internalNext,
		grid: wording{code: "InternalError", detail: gridInternalDetail, next: gridInternalNext},
		blob: wording{code: "InternalError", detail: "the yard could not do it; its log says more"}},
}

// Judge says what a client is wording of an error, in the words of a form.
func Judge(wire Wire, err error) Refusal {
	if own, ok := errors.AsType[*Refusal](err); ok {
		return *own
	}
	i := slices.IndexFunc(table, func(r row) bool { return r.matches(wire) && r.match(err) })
	return table[i].refusal(wire, err)
}

func (r row) matches(wire Wire) bool {
	switch wire {
	case Problem:
		return r.kind != ""
	case EventGrid:
		return r.grid.code != ""
	}
	return r.blob.code != ""
}

func (r row) refusal(wire Wire, err error) Refusal {
	said, after := r.grid, r.retryAfter
	if full, ok := errors.AsType[*quota.Error](err); ok {
		after = full.Seconds()
	}
	switch wire {
	case Problem:
		return Refusal{Status: r.status, Code: r.kind, Title: r.title, Detail: Words(err), Next: r.next, RetryAfter: after, Cause: err}
	case Blob:
		said = r.blob
	}
	return Refusal{
		Status: cmp.Or(said.status, r.status), Code: said.code, Detail: cmp.Or(said.detail, paths.Without(err)), Next: said.next,
		RetryAfter: cmp.Or(said.retryAfter, after), Cause: err,
	}
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func as[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// Words tells of an error in the terms of the management API, which has hubs where storage has
// logs, and a title that says what a page may not do.
func Words(err error) string {
	text := strings.ReplaceAll(paths.Without(err), eventlog.ErrRemoved.Error(), "the hub was deleted")
	return strings.TrimPrefix(text, errCrossOrigin.Error()+": ")
}
