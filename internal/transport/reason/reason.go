// Package reason says in plain words why a request over HTTP got no answer. The words of net, net/http and
// crypto/tls are those of who wrote the program, and they stand in messages to people who did not: on the
// command line, in the attempts of a subscription, in the log.
package reason

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
)

// Of is what an error says, in plain words where they are known. Words around those, which say what was being
// done, stay.
func Of(err error) string {
	text := err.Error()
	var (
		operation *net.OpError
		host      *net.DNSError
		record    tls.RecordHeaderError
		untrusted *tls.CertificateVerificationError
	)
	switch _, answer, other := strings.Cut(text, "malformed HTTP "); {
	case other:
		return NotHTTP + beginning(answer)
	case strings.Contains(text, unasked):
		return strings.Replace(text, unasked, NotHTTP, 1)
	case errors.Is(err, http.ErrSchemeMismatch):
		return strings.Replace(text, http.ErrSchemeMismatch.Error(), "it answers without TLS", 1)
	case WithoutTLS(err) && errors.As(err, &record):
		return strings.Replace(text, record.Error(), "it answers without TLS", 1)
	case errors.As(err, &record):
		return strings.Replace(text, record.Error(), "it does not speak TLS", 1)
	case errors.As(err, &untrusted):
		return strings.Replace(text, untrusted.Error(), "its certificate is not trusted: "+strings.ReplaceAll(untrusted.Err.Error(), "x509: ", ""), 1)
	case errors.As(err, &host) && host.IsNotFound:
		return instead(text, err, "there is no host "+host.Name)
	case errors.As(err, &operation) && operation.Op == "dial" && operation.Addr != nil:
		return instead(text, err, "connect to "+operation.Addr.String()+": "+cause(operation).Error())
	case errors.As(err, &operation) && errors.Is(operation, syscall.ECONNRESET):
		return instead(text, err, ended)
	case err == io.EOF: //nolint:errorlint // one with words around it says more than this
		return ended
	}
	return text
}

// NotHTTP is said of an answer that is none in HTTP, for which there is no kind of error.
const NotHTTP = "it does not answer in HTTP"

// unasked is what net/http says, in place of malformed, where an answer is there before the request has been sent, as
// with servers that greet: it names an error then that there is none.
const unasked = "readLoopPeekFailLocked: %!w(<nil>)"

// WithoutTLS tells whether TLS was answered in plain HTTP.
func WithoutTLS(err error) bool {
	var record tls.RecordHeaderError // where the transport does not make the connection itself
	return errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/"
}

// ended is said of an end and of a reset alike: which of them is seen is a matter of chance.
const ended = "the other side ended the connection"

// beginning is what was answered, as far as the error has it: it ends in a quoted text.
func beginning(answer string) string {
	if at := strings.IndexByte(answer, '"'); at >= 0 {
		return ", but " + answer[at:]
	}
	return ""
}

// instead puts words in the place of those of the outermost operation, or of the name that was looked up.
func instead(text string, err error, words string) string {
	var operation *net.OpError
	if errors.As(err, &operation) {
		return strings.Replace(text, operation.Error(), words, 1)
	}
	var host *net.DNSError
	if errors.As(err, &host) {
		return strings.Replace(text, host.Error(), words, 1)
	}
	return text
}

// cause is why an operation failed, without the name of the system call.
func cause(operation *net.OpError) error {
	var call *os.SyscallError
	if errors.As(operation.Err, &call) {
		return call.Err
	}
	return operation.Err
}
