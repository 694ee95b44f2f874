package invoke

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
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

// broke tells whether a connection was there and ended before the answer did.
func broke(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || ok && (op.Op == "read" || op.Op == "write")
}

// reach knows how far a request has come: an error alone does not always tell. A program that hangs
// up in the midst of a TLS handshake was not reached. One that dies of a request on a kept
// connection was, although the transport tries another connection then, which is refused.
type reach struct{ connecting, connected atomic.Bool }

// trace has the transport tell of its connections.
func (r *reach) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { r.connecting.Store(true) },
		GotConn: func(httptrace.GotConnInfo) {
			r.connecting.Store(false)
			r.connected.Store(true)
		},
	})
}

// failed is the verdict on a request without an answer.
func (r *reach) failed(err error) Verdict {
	switch {
	case r.connected.Load() && refused(err), broke(err) && !r.connecting.Load():
		return Unavailable
	case r.connecting.Load(), NotReached(err):
		return Unreachable
	}
	return Failed
}
