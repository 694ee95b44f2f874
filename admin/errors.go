package admin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/eventyard/eventyard/internal/transport/reason"
)

// Problem is an error that the yard answered with (RFC 9457).
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// Next is what to try.
	Next string `json:"next,omitempty"`
	// RetryAfter is how long to wait before the same is asked again; zero: the yard does not say.
	RetryAfter time.Duration `json:"-"`

	// LostFirst and Resume are for damaged events: the first that cannot be read, and where reading
	// can go on; no Resume where nothing readable follows.
	LostFirst *int64 `json:"lostFirst,omitempty"`
	Resume    *int64 `json:"resume,omitempty"`
}

// ProblemLine stands in the place of events that cannot be given. It names their partition, or,
// without one, it is the last of an answer that is not whole.
type ProblemLine struct {
	Problem   *Problem `json:"problem"`
	Partition string   `json:"partition,omitempty"`
}

// problemPrefix begins the type of every problem. It names and does not resolve.
const problemPrefix = "urn:eventyard:problem:"

func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Detail
}

// Kind is the last part of the problem's type: hub-exists, not-found.
func (p *Problem) Kind() string { return p.Type[strings.LastIndexByte(p.Type, ':')+1:] }

// isExpired tells whether the yard found the token to be expired.
func isExpired(err error) bool {
	var p *Problem
	return errors.As(err, &p) && p.Kind() == "expired-token"
}

const hubDeleted = "hub-deleted"

// HubDeleted says that a hub which was there is gone.
func HubDeleted(hub string) *Problem {
	return &Problem{
		Type: problemPrefix + hubDeleted, Title: "The hub was deleted", Status: http.StatusGone,
		Detail: fmt.Sprintf("hub %q was deleted", hub),
	}
}

// named tells a deletion with the name of the hub, which the yard's storage does not
// know, and every other error as it is.
func named(hub string, err error) error {
	var p *Problem
	if errors.As(err, &p) && p.Kind() == hubDeleted {
		return HubDeleted(hub)
	}
	return err
}

// ErrBrokeOff: the yard had begun to answer and did not come to the end. It comes in
// an *UnreachableError.
var ErrBrokeOff = errors.New("the answer broke off")

// UnreachableError: no answer came, or it broke off. Whether the request was carried
// out is not known.
type UnreachableError struct {
	Server string
	Err    error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("ask %s: %s", e.Server, reason.Of(e.Err))
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// IsCut reports whether the other side ended the connection before it had answered, as it
// does where the process ends.
func IsCut(err error) bool {
	for _, cut := range []error{io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, cut) {
			return true
		}
	}
	return false
}

// StrangerError: something answers there, and it is not a yard.
type StrangerError struct {
	Server string
	// Status is what it answered, empty where that was a success.
	Status string
}

func (e *StrangerError) Error() string {
	if e.Status == "" {
		return fmt.Sprintf("what answers at %s is not a yard", e.Server)
	}
	return fmt.Sprintf("what answers at %s is not a yard: it says %s", e.Server, e.Status)
}
