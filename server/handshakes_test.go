package server

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
	"github.com/eventyard/eventyard/internal/transport/certs"
)

// R2: of strangers' handshakes few are computed at once, and nobody is kept waiting by those who say nothing, or nothing
// more, and who leave. It is so as well where the yard asks for a second hello.
func TestHandshakesOfStrangersTakeTurns(t *testing.T) {
	t.Run("with one hello", func(t *testing.T) { testTurns(t, nil) })
	t.Run("with a second hello", func(t *testing.T) { testTurns(t, []tls.CurveID{tls.CurveP384}) })
}

// testTurns has strangers come to a listener that takes the curves.
func testTurns(t *testing.T, curves []tls.CurveID) {
	store := testkit.Value(certs.Open(certs.Config{Dir: t.TempDir(), Log: testkit.Quiet()}))(t)
	cfg := store.TLS()
	cfg.CurvePreferences = curves
	var at, most atomic.Int32
	certificate := cfg.GetCertificate
	cfg.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if n := at.Add(1); n > most.Load() {
			most.Store(n)
		}
		<-time.After(time.Millisecond) // as if it had to be computed
		at.Add(-1)
		return certificate(hello)
	}
	takeTurns(cfg)
	plain := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	listener := tls.NewListener(headListener{turnListener{plain, admission.New(admission.Limits{Handshakes: 2})}}, cfg)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				if conn.(*tls.Conn).HandshakeContext(t.Context()) == nil {
					_, _ = conn.Write([]byte("!"))
				}
			})
		}
	})
	defer all.Wait()
	defer listener.Close()
	dial := func() net.Conn { return testkit.Value(net.Dial("tcp", plain.Addr().String()))(t) }
	for range 20 {
		silent := dial()
		defer silent.Close()
		half := dial() // who leaves when the hello is on its way, or has been answered
		defer half.Close()
		go func() {
			_ = tls.Client(deaf{half}, &tls.Config{InsecureSkipVerify: true}).Handshake()
		}()
	}
	var good sync.WaitGroup
	for range 40 {
		good.Go(func() {
			conn := tls.Client(dial(), &tls.Config{InsecureSkipVerify: true})
			defer conn.Close()
			testkit.Check(t, testkit.Err(conn.Read(make([]byte, 1))))
		})
	}
	good.Wait()
	testkit.That(t, most.Load() <= 2, "%d handshakes were computed at once", most.Load())
}

// deaf is a connection that nothing is read from.
type deaf struct{ net.Conn }

func (d deaf) Read([]byte) (int, error) { return 0, net.ErrClosed }
