package eventgrid

import (
	"net/http"
	"strings"
	"time"
)

// The finer codes that are used more than once.
const (
	codeBusy     = "Busy"
	codeInvalid  = "InvalidRequest"
	codeTooLarge = "PayloadTooLarge"
	codeInternal = "InternalError"
)

const (
	internalMessage = "the yard could not do it"
	internalNext    = "look into the yard's log for the request's id; if it was a publication, its events may or may not have been stored"
)

// fault is an error as clients are told it: in the form of Event Grid (reference §5).
type fault struct {
	status  int
	code    string // the finer one
	message string
	next    string // what to do about it; empty where the message says it
	// retryAfter zero: the answer does not say.
	retryAfter time.Duration
}

func (f *fault) Error() string { return f.code + ": " + f.text() }

// text is the whole message, which ends with what to do.
func (f *fault) text() string {
	text := strings.TrimSuffix(f.message, ".")
	if f.next != "" {
		text += ": " + f.next
	}
	return text + "."
}

// word is the outer code: what Event Grid says for the status.
func (f *fault) word() string {
	switch f.status {
	case http.StatusRequestEntityTooLarge:
		return codeTooLarge
	case http.StatusServiceUnavailable:
		return codeBusy
	}
	return strings.ReplaceAll(http.StatusText(f.status), " ", "")
}

// errorDocument is the body of every refusal.
type errorDocument struct {
	Error errorBody `json:"error"`
}

type errorBody struct {
	Code    string        `json:"code"`
	Message string        `json:"message"`
	Details []errorDetail `json:"details"`
}

type errorDetail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// document says in the outer message what is wrong, and in the finer one also what to do.
func (f *fault) document() errorDocument {
	short := strings.TrimSuffix(f.message, ".") + "."
	return errorDocument{errorBody{Code: f.word(), Message: short, Details: []errorDetail{{f.code, f.text()}}}}
}
