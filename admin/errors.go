package admin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
)

// Problem is an error that the yard answered with (RFC 9457).
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// Next is what to try.
	Next string `json:"next"`
}

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

// namesNothing is for a name that is empty, which a path cannot say.
func namesNothing() *Problem {
	return &Problem{
		Type: "urn:eventyard:problem:not-found", Title: "It does not exist", Status: http.StatusNotFound,
		Detail: "nothing has an empty name", Next: "name the hub, the group or the partition",
	}
}

const hubDeleted = "hub-deleted"

// HubDeleted says that a hub which was there is gone.
func HubDeleted(hub string) *Problem {
	return &Problem{
		Type: "urn:eventyard:problem:" + hubDeleted, Title: "The hub was deleted", Status: http.StatusGone,
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

func (e *UnreachableError) Error() string { return fmt.Sprintf("ask %s: %v", e.Server, e.Err) }

func (e *UnreachableError) Unwrap() error { return e.Err }

// IsCut tells whether the other side ended the connection before it had answered, as it
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
