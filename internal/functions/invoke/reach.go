package invoke

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync/atomic"
	"syscall"
)

// ErrNotConnected: the time was up, or the call cancelled, before there was a connection to the
// program.
var ErrNotConnected = errors.New("there was no connection to the program")

// NotReached tells by an error whether there was no connection: it was refused or took too long,
// the host has no address, or TLS failed. Then no event can be what is wrong.
func NotReached(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	alert := ok && (op.Op == "local error" || op.Op == "remote error") // of TLS
	_, record := errors.AsType[tls.RecordHeaderError](err)
	return refused(err) || alert || record || badCertificate(err) || errors.Is(err, http.ErrSchemeMismatch)
}

// refused tells whether a connection could not be made.
func refused(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	_, dns := errors.AsType[*net.DNSError](err)
	return dns || ok && (op.Op == "dial" || op.Op == "proxyconnect" || op.Op == "socks connect")
}

// badCertificate: the other side's was not good enough.
func badCertificate(err error) bool {
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	return verification || unknown || host || invalid
}

// broke tells whether a connection was there and ended before the answer did, as far as an error
// alone tells: HTTP/2 has many more ways to say so.
func broke(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || ok && (op.Op == "read" || op.Op == "write")
}

// streamError is of one stream of HTTP/2: net/http gives its own, which it does not export, to any
// type with these fields.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return fmt.Sprintf("stream error %d: %v", e.Code, e.Cause) }

// reset: the other side ended the stream. Else it is we who did, since what came on it is wrong.
func (e streamError) reset() bool {
	return e.Cause != nil && e.Cause.Error() == "received from peer" // no value of net/http's tells it
}

// reach knows how far a request has come: an error alone does not always tell. A program that hangs
// up in the midst of a TLS handshake was not reached. One that dies of a request on a kept
// connection was, although the transport tries another connection then, which is refused.
type reach struct {
	connecting, connected atomic.Bool
	answering             atomic.Bool // something of the answer has come, and more than 1xx
}

// trace has the transport tell of its connections.
func (r *reach) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) {
			r.connecting.Store(true)
			r.answering.Store(false)
		},
		GotConn: func(httptrace.GotConnInfo) {
			r.connecting.Store(false)
			r.connected.Store(true)
		},
		GotFirstResponseByte: func() { r.answering.Store(true) },
		Got1xxResponse: func(int, textproto.MIMEHeader) error {
			r.answering.Store(false)
			return nil
		},
	})
}

// failed is the verdict on a request without an answer. Whatever goes wrong on a connection is its
// end, but for an answer that makes no sense, and for a time-out of the client's own, which is as
// any other of a call. Only a transport that does not tell of its connections is judged by the
// error alone.
func (r *reach) failed(err error) Verdict {
	connected := r.connected.Load()
	timeout, timed := errors.AsType[net.Error](err)
	switch {
	case !connected && (r.connecting.Load() || NotReached(err)):
		return Unreachable
	case broke(err):
		return Unavailable
	case !connected, r.nonsense(err), timed && timeout.Timeout() && !refused(err):
		return Failed
	}
	return Unavailable
}

// nonsense tells whether an answer was there, or the begin of one, and is wrong: malformed, too
// long, a redirect to nowhere.
func (r *reach) nonsense(err error) bool {
	if e, ok := errors.AsType[streamError](err); ok {
		return !e.reset()
	}
	return r.answering.Load()
}
