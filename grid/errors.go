package grid

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Errors. A *CallError is one of these by errors.Is.
var (
	// ErrUnauthorized: the key, signature or token does not allow it (401, 403).
	ErrUnauthorized = errors.New("not authorized")
	// ErrNotFound: there is no such topic or subscription (404).
	ErrNotFound = errors.New("not found")
	// ErrInvalid: the topic cannot read the events, often since its schema is another (400, 415).
	ErrInvalid = errors.New("not valid")
	// ErrTooLarge: the events do not fit into one publication (413).
	ErrTooLarge = errors.New("too large")
	// ErrBusy: the grid wants fewer calls, or has no room (429, 503).
	ErrBusy = errors.New("busy")
)

// CallError is an answer that is no success.
type CallError struct {
	Status int
	// Code and Message are in the grid's words; empty where it said nothing.
	Code, Message string
	// RetryAfter is how long the grid asks to wait; zero where it does not.
	RetryAfter time.Duration

	advised bool // Message ends with what to do next
}

func (e *CallError) Error() string {
	text := fmt.Sprintf("status %d", e.Status)
	if e.Code != "" {
		text += " " + e.Code
	}
	if e.Message != "" {
		text += ": " + strings.TrimRight(e.Message, ". ")
	}
	if e.advised {
		return text
	}
	return text + e.advice()
}

// meanings are what statuses mean, and what to do next.
var meanings = []struct {
	err      error
	statuses []int
	advice   string
}{
	{ErrUnauthorized, []int{http.StatusUnauthorized, http.StatusForbidden}, ": check that the key, signature or token is this topic's and not expired"},
	{ErrNotFound, []int{http.StatusNotFound}, ": check the endpoint's URL, with its path, and the names in it"},
	{ErrInvalid, []int{http.StatusBadRequest, http.StatusUnsupportedMediaType}, ": check that Schema is the topic's"},
	{ErrTooLarge, []int{http.StatusRequestEntityTooLarge}, ": publish fewer events at once"},
	{ErrBusy, []int{http.StatusTooManyRequests, http.StatusServiceUnavailable}, ": try again later"},
}

// advice is what to do next.
func (e *CallError) advice() string {
	for _, m := range meanings {
		if slices.Contains(m.statuses, e.Status) {
			return m.advice
		}
	}
	switch {
	case e.Status < 300:
		return ": a grid answers 200 and nothing else: check that the endpoint is one"
	case e.Status < 400:
		return ": redirects are not followed, since they would take the key along: use the final URL as endpoint"
	case e.passing():
		return ": try again later"
	}
	return ""
}

// Is says whether the answer means one of this package's errors.
func (e *CallError) Is(target error) bool {
	for _, m := range meanings {
		if m.err == target {
			return slices.Contains(m.statuses, e.Status)
		}
	}
	return false
}

// passing says whether the same call may succeed later.
func (e *CallError) passing() bool {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return e.Status >= 500
}

// newCallError reads an answer (reference of Event Grid: an object error with code and message, and
// details). Where a detail says the same and goes on, as a yard's do, it is what to do about it.
func newCallError(status int, h http.Header, body []byte) *CallError {
	e := &CallError{Status: status, Code: h.Get("x-ms-error-code"), RetryAfter: parseRetryAfter(h.Get("Retry-After"), time.Now())}
	var answer struct {
		Error struct {
			Code, Message string
			Details       []struct{ Message string }
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Error.Code+answer.Error.Message == "" {
		e.Message = firstLine(body)
		return e
	}
	if answer.Error.Code != "" {
		e.Code = answer.Error.Code
	}
	e.Message = answer.Error.Message
	if short := strings.TrimSuffix(e.Message, "."); len(answer.Error.Details) > 0 && short != "" {
		if whole := answer.Error.Details[0].Message; strings.HasPrefix(whole, short+": ") {
			e.Message, e.advised = whole, true
		}
	}
	return e
}

// firstLine is the beginning of an answer that is no error of a grid's, such as a proxy's page.
func firstLine(body []byte) string {
	const most = 200
	line, _, _ := strings.Cut(strings.TrimSpace(string(body[:min(len(body), 4*most)])), "\n")
	line = strings.TrimSpace(line)
	if len(line) > most {
		line = line[:most] + "…"
	}
	return strings.ToValidUTF8(line, "?")
}
