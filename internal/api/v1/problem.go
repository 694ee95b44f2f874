package v1

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// problem is the body of every refusal but those of the Event Hubs REST calls: the
// problem details of RFC 9457, and in Next the thing to try.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Next   string `json:"next,omitempty"`

	// LostFirst and Resume are for damaged events: the first that cannot be read, and
	// where reading can go on; no Resume where nothing readable follows.
	LostFirst *eventlog.Sequence `json:"lostFirst,omitempty"`
	Resume    *eventlog.Sequence `json:"resume,omitempty"`

	retryAfter time.Duration
}

// addDamage says which events are damaged, if that is what the error is.
func (p *problem) addDamage(err error) {
	damage, ok := errors.AsType[*eventlog.CorruptError](err)
	if !ok {
		return
	}
	p.LostFirst = &damage.First
	if damage.Next != eventlog.NoSequence {
		p.Resume = &damage.Next
	}
}

// kind is the last part of the problem's type.
func (p problem) kind() string { return strings.TrimPrefix(p.Type, problemPrefix) }

// problemPrefix begins the type of every problem. It names and does not resolve.
const problemPrefix = "urn:eventyard:problem:"

// refusal is an error that the listener itself finds, with all that its answer needs.
type refusal struct {
	status int
	kind   string
	title  string
	detail string
	next   string
}

func (e *refusal) Error() string { return e.detail }

// badRequest refuses what the client has to change before it asks again.
func badRequest(next, format string, args ...any) error {
	return &refusal{
		status: http.StatusBadRequest,
		kind:   "bad-request",
		title:  "The request cannot be understood",
		detail: fmt.Sprintf(format, args...),
		next:   next,
	}
}

// refuse answers a request with the error's problem, in the form its path speaks.
func (d *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	d.report(w, r, err, judge(err))
}

// report answers with what was made of an error, unless nobody is left to hear it.
func (d *Handler) report(w http.ResponseWriter, r *http.Request, err error, p problem) {
	if r.Context().Err() != nil && d.cfg.Stopping.Err() == nil {
		// The client is gone; the status is for the metrics alone. While the yard is
		// stopping it may be the yard that gave up, and the client waits for a word.
		w.WriteHeader(statusClientGone)
		return
	}
	d.logOurs("request could not be served", err, "method", r.Method, "path", r.URL.Path)
	answerProblem(w, r, p)
}

// answerProblem writes a problem in the form the request's path speaks.
func answerProblem(w http.ResponseWriter, r *http.Request, p problem) {
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(p.retryAfter.Seconds())))
	}
	if _, ok := parseAddress(r.URL.EscapedPath()); ok {
		writeXMLError(w, p)
		return
	}
	writeProblem(w, p)
}

// logOurs writes down an error that only an operator can mend. Others are told to the
// client, who can do something about them.
func (d *Handler) logOurs(msg string, err error, entries ...any) {
	if judge(err).Status == http.StatusInternalServerError {
		d.cfg.Log.Error(msg, append(entries, "error", err)...)
	}
}

// statusClientGone is what proxies write down for a client that left before its
// answer; it is never received by anyone.
const statusClientGone = 499

func writeProblem(w http.ResponseWriter, p problem) {
	body, err := json.Marshal(p)
	if err != nil { // a problem holds text and a number only
		panic(err)
	}
	writeBody(w, p.Status, "application/problem+json", append(body, '\n'))
}

// writeXMLError gives an error as the Event Hubs REST API does (wire reference §7).
func writeXMLError(w http.ResponseWriter, p problem) {
	detail := p.Detail
	if p.Next != "" {
		detail += ". " + p.Next
	}
	body, err := xml.Marshal(struct {
		XMLName xml.Name `xml:"Error"`
		Code    int
		Detail  string
	}{Code: p.Status, Detail: detail})
	if err != nil { // as above
		panic(err)
	}
	writeBody(w, p.Status, "application/xml; charset=utf-8", body)
}

// writeJSON answers with a value of ours.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	writeBody(w, status, "application/json", append(body, '\n'))
	return nil
}

// writeBody writes a whole answer. A failed write means that the client is gone, and
// there is nobody left to tell.
func writeBody(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
