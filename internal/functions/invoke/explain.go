package invoke

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
)

// explain says why there is no answer, and what to do. The URL's path and query are left out: secrets are kept there.
func (c *Caller) explain(err error) string {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	return fmt.Sprintf("POST %s: %v: %s", c.where(), err, advice(err))
}

func (c *Caller) where() string { return c.url.Scheme + "://" + c.url.Host }

func advice(err error) string {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "start the program, or correct the function's endpoint"
	case errors.As(err, &dns):
		return "correct the host's name in the function's endpoint"
	case isTrust(err):
		return "give the program a certificate that is trusted here, for the name in the function's endpoint"
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "write http:// in the function's endpoint"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "see why the program takes so long"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "the program closed the connection without an answer: its log tells why"
	}
	return "see that the program answers there"
}

// isTrust tells whether the other side's certificate was not good enough.
func isTrust(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		unknown      x509.UnknownAuthorityError
		host         x509.HostnameError
		invalid      x509.CertificateInvalidError
	)
	return errors.As(err, &verification) || errors.As(err, &unknown) || errors.As(err, &host) || errors.As(err, &invalid)
}

// explainAnswer says why an answer that had begun counts for nothing.
func (c *Caller) explainAnswer(response *http.Response, err error) string {
	status := statusText(response.StatusCode)
	if errors.Is(err, errTooLong) {
		return fmt.Sprintf("answered %s with more than %d bytes: answer with the results only", status, c.cfg.MaxAnswerBytes)
	}
	return fmt.Sprintf("answered %s, but the answer was cut short (%v), so nothing of the batch counts as done: see the program's log", status, err)
}
