package pipe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/nettest"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What every net.Conn has to do.
func TestConn(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		c1, c2 = New()
		return c1, c2, func() {
			c1.Close()
			c2.Close()
		}, nil
	})
}

// Both ways at once, in pieces of any size: what comes out is what went in.
func TestBytesComeInOrder(t *testing.T) {
	const size = 5 << 20
	near, far := New()
	source := rand.New(rand.NewPCG(1, 2))
	sent := make([]byte, size)
	for i := range sent {
		sent[i] = byte(source.Uint32())
	}
	var all sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		sizes := rand.New(rand.NewPCG(3, 4))
		all.Go(func() {
			for rest := sent; len(rest) > 0; {
				n := min(len(rest), 1+sizes.IntN(300<<10))
				if wrote, err := way[0].Write(rest[:n]); wrote != n || err != nil {
					t.Errorf("wrote %d of %d: %v", wrote, n, err)
					return
				}
				rest = rest[n:]
			}
			testkit.Check(t, way[0].(*Conn).CloseWrite())
		})
		all.Go(func() {
			got, err := io.ReadAll(way[1])
			if err != nil || !bytes.Equal(got, sent) {
				t.Errorf("read %d bytes, %v", len(got), err)
			}
		})
	}
	all.Wait()
}

// A write waits for nobody while there is room, and for its reader when there is none.
func TestTheBufferIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := New()
		defer near.Close()
		defer far.Close()
		testkit.MustEqual(t, testkit.Value(near.Write(make([]byte, maxBytes)))(t), maxBytes, "wrote")
		wrote := make(chan struct{})
		go func() {
			defer close(wrote)
			testkit.Equal(t, testkit.Value(near.Write([]byte("ab")))(t), 2, "wrote")
		}()
		read := func(n int) {
			t.Helper()
			synctest.Wait()
			select {
			case <-wrote:
				t.Fatal("the write waits for nobody")
			default:
			}
			testkit.Must(t, testkit.Err(io.ReadFull(far, make([]byte, n))))
		}
		read(1)
		read(1)
		<-wrote
	})
}

// What was written can be read when the writer is gone; then there is nothing more.
func TestCloseLeavesWhatWasWritten(t *testing.T) {
	near, far := New()
	testkit.Must(t, testkit.Err(near.Write([]byte("last words"))))
	near.Close()
	testkit.Equal(t, string(testkit.Value(io.ReadAll(far))(t)), "last words", "read")
	testkit.ErrorIs(t, testkit.Err(far.Write([]byte("x"))), io.ErrClosedPipe, "a write to nobody")
	for what, do := range map[string]func() error{
		"read":     func() error { _, err := near.Read(make([]byte, 1)); return err },
		"write":    func() error { _, err := near.Write([]byte("x")); return err },
		"deadline": func() error { return near.SetDeadline(time.Time{}) },
	} {
		t.Run(what, func(t *testing.T) {
			testkit.ErrorIs(t, do(), net.ErrClosed, "%s after Close", what)
		})
	}
	testkit.Check(t, near.Close(), "the second Close")
}

// One direction ends, the other goes on.
func TestCloseWrite(t *testing.T) {
	near, far := New()
	defer near.Close()
	defer far.Close()
	near.(*Conn).CloseWrite()
	testkit.Equal(t, testkit.Err(far.Read(make([]byte, 1))), io.EOF, "read")
	testkit.Check(t, testkit.Err(far.Write([]byte("x"))))
	testkit.Equal(t, testkit.Value(near.Read(make([]byte, 2)))(t), 1, "read")
	testkit.ErrorIs(t, testkit.Err(near.Write([]byte("x"))), net.ErrClosed, "write")
}

// Who waits is freed by either end's Close.
func TestCloseFreesWhoWaits(t *testing.T) {
	for _, which := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			near, far := New()
			ends := []net.Conn{near, far}
			var all sync.WaitGroup
			all.Go(func() {
				if _, err := near.Read(make([]byte, 1)); err == nil {
					t.Error("read nothing")
				}
			})
			all.Go(func() {
				if n, err := near.Write(make([]byte, maxBytes+1)); n != maxBytes || err == nil {
					t.Errorf("wrote %d, %v", n, err)
				}
			})
			synctest.Wait()
			ends[which].Close()
			all.Wait()
			ends[1-which].Close()
		})
	}
}

// A deadline may be moved while somebody waits for it, in both directions.
func TestDeadlinesMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := New()
		defer near.Close()
		defer far.Close()
		start := time.Now()
		wait := func(want time.Duration, move func()) {
			t.Helper()
			done := make(chan error, 1)
			go func() {
				_, err := near.Read(make([]byte, 1))
				done <- err
			}()
			synctest.Wait()
			move()
			if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != want {
				t.Errorf("%v after %s, want %s", err, time.Since(start), want)
			}
		}
		at := func(d time.Duration) func() { return func() { near.SetReadDeadline(start.Add(d)) } }
		at(time.Minute)()
		wait(time.Second, at(time.Second))
		at(2 * time.Second)()
		wait(time.Hour, at(time.Hour))
		wait(time.Hour, func() {}) // it has passed
		near.SetReadDeadline(time.Time{})
		far.Write([]byte("x"))
		testkit.Equal(t, testkit.Value(near.Read(make([]byte, 1)))(t), 1, "read")
	})
}

// A write that its deadline ends tells how much was written.
func TestWriteDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := New()
		defer near.Close()
		defer far.Close()
		near.SetWriteDeadline(time.Now().Add(time.Second))
		n, err := near.Write(make([]byte, maxBytes+10))
		var timeout net.Error
		if n != maxBytes || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("wrote %d, %v", n, err)
		}
	})
}

func TestListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewListener("yard")
		testkit.Equal(t, l.Addr().String(), "yard", "the address is %v", l.Addr())
		testkit.Equal(t, l.Addr().Network(), "pipe", "the address is %v", l.Addr())
		var names []string
		var all sync.WaitGroup
		all.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					testkit.ErrorIs(t, err, net.ErrClosed)
					return
				}
				name, _ := io.ReadAll(conn)
				names = append(names, string(name))
				conn.Close()
			}
		})
		for _, name := range []string{"a", "b"} {
			conn := testkit.Value(l.Dial(t.Context()))(t)
			io.WriteString(conn, name)
			conn.Close()
		}
		synctest.Wait()
		l.Close()
		l.Close()
		all.Wait()
		testkit.Slices(t, names, []string{"a", "b"}, "accepted")
		testkit.ErrorIs(t, testkit.Err(l.Dial(t.Context())), net.ErrClosed, "dial after Close")
	})
}

// Who asks where nobody listens is freed by its context, and by Close.
func TestDialWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewListener("yard")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		testkit.ErrorIs(t, testkit.Err(l.Dial(ctx)), context.DeadlineExceeded)
		time.AfterFunc(time.Second, func() { l.Close() })
		testkit.ErrorIs(t, testkit.Err(l.Dial(t.Context())), net.ErrClosed)
	})
}
