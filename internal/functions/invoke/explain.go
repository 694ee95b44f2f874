package invoke

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"github.com/eventyard/eventyard/internal/transport/reason"
)

// explain says why there is no answer, and what to do. The URL's path and query are left out:
// secrets are kept there.
func (c *Caller) explain(v Verdict, err error) string {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	return fmt.Sprintf("POST %s://%s: %v: %s", c.url.Scheme, c.url.Host, reason.Of(err), advice(v, err))
}

func advice(v Verdict, err error) string {
	_, dns := errors.AsType[*net.DNSError](err)
	timeout, timed := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "start the program, or correct the function's endpoint"
	case dns:
		return "correct the host's name in the function's endpoint"
	case badCertificate(err):
		return "give the program a certificate that is trusted here, for the name in the function's endpoint"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "write http:// in the function's endpoint"
	case timed && timeout.Timeout():
		return "see why the program takes so long"
	case v == Unavailable:
		return "the program closed the connection without an answer: its log tells why"
	}
	return "see that the program answers there"
}

// explainAnswer says why an answer that had begun counts for nothing.
func (c *Caller) explainAnswer(response *http.Response, err error) string {
	status := statusText(response.StatusCode)
	if errors.Is(err, errTooLong) {
		return fmt.Sprintf("answered %s with more than %d bytes: answer with the results only", status, c.cfg.MaxAnswerBytes)
	}
	return fmt.Sprintf("answered %s, but the answer was cut short (%v), so nothing of the batch counts as done: see the program's log", status, err)
}
