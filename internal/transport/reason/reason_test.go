package reason

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// Who is told why a request got no answer reads no words of Go's packages. The errors are real ones.
func TestReasonsInPlainWords(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	secret := httptest.NewUnstartedServer(http.NotFoundHandler())
	secret.Config.ErrorLog = log.New(io.Discard, "", 0) // of who does not trust it
	secret.StartTLS()
	t.Cleanup(secret.Close)
	for name, test := range map[string]struct{ url, want string }{
		"nobody listens":             {"http://127.0.0.1:1/", "connect to 127.0.0.1:1: connection refused"},
		"another protocol":           {"http://" + greeting(t, "AMQP\x03\x01\x00\x00\r\n\r\n"), `it does not answer in HTTP, but "AMQP\x03\x01\x00\x00"`},
		"another protocol for TLS":   {"https://" + greeting(t, "AMQP\x03\x01\x00\x00"), "it does not speak TLS"},
		"HTTP for TLS":               {strings.Replace(plain.URL, "http:", "https:", 1), "it answers without TLS"},
		"nobody's certificate":       {secret.URL, "its certificate is not trusted: certificate signed by unknown authority"},
		"an end without an answer":   {"http://" + greeting(t, ""), "the other side ended the connection"},
		"a status that is no number": {"http://" + greeting(t, "HTTP/1.1 yes\r\n\r\n"), `it does not answer in HTTP, but "yes"`},
	} {
		t.Run(name, func(t *testing.T) {
			resp, err := http.Get(test.url)
			if err == nil {
				resp.Body.Close()
			}
			var around *url.Error
			testkit.MustThat(t, errors.As(err, &around), "it is %v", err)
			testkit.Equal(t, Of(around.Err), test.want, "in the words of Go %v", err)
		})
	}
}

func TestWordsAroundAReasonStay(t *testing.T) {
	unknown := &net.DNSError{Err: "no such host", Name: "db.example.com", Server: "10.0.0.53:53", IsNotFound: true}
	for _, test := range []struct {
		err  error
		want string
	}{
		{&net.OpError{Op: "dial", Net: "tcp", Err: unknown}, "there is no host db.example.com"},
		{fmt.Errorf("ask for a token: %w", unknown), "ask for a token: there is no host db.example.com"},
		{fmt.Errorf("proxy: %w", tls.RecordHeaderError{Msg: "first record"}), "proxy: it does not speak TLS"},
		{fmt.Errorf("proxy: %w", tls.RecordHeaderError{Msg: "first record", RecordHeader: [5]byte([]byte("HTTP/"))}), "proxy: it answers without TLS"},
		{fmt.Errorf("it broke off: %w", &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}), "it broke off: the other side ended the connection"},
		{fmt.Errorf("read the answer: %w", io.EOF), "read the answer: EOF"},
		{fmt.Errorf("proxy: %w", &tls.CertificateVerificationError{Err: errors.New(`x509: signed by unknown authority (possibly because of "x509: invalid signature")`)}),
			`proxy: its certificate is not trusted: signed by unknown authority (possibly because of "invalid signature")`},
		{errors.New("the address is not allowed"), "the address is not allowed"},
		{errors.New("GET http://a: readLoopPeekFailLocked: %!w(<nil>)"), "GET http://a: it does not answer in HTTP"},
	} {
		testkit.Equal(t, Of(test.err), test.want)
	}
}

// greeting is the address of somebody who says the same to everybody, and hangs up.
func greeting(t *testing.T, text string) string {
	t.Helper()
	l := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1<<10))
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}
