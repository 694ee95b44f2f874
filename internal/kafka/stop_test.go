package kafka

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
)

// K1: a server that stops finishes what is under way, and takes nothing new.
func TestStop(t *testing.T) {
	begun, release := make(chan *Conn, 10), make(chan struct{})
	var conn *Conn
	f := serve(t, &handler{
		connected: func(c *Conn) error { conn = c; return nil },
		begin: func(ctx context.Context, r *Request) Finish {
			begun <- conn
			return func(ctx context.Context, w *Writer) error {
				<-release
				testkit.Check(t, ctx.Err())
				return w.Respond(r.Body.ResponseKind())
			}
		},
	})
	address := f.listen(nil)
	c := newClient(t, testkit.Value(net.Dial("tcp", address))(t))
	idle := newClient(t, testkit.Value(net.Dial("tcp", address))(t))
	idle.lives()
	r := request(3, 12)
	c.send(r, r)
	receive(t, begun, "the first")
	receive(t, begun, "the second")

	stopped := make(chan error)
	go func() { stopped <- f.server.Stop(t.Context()) }()
	receive(t, conn.Draining(), "Draining")
	idle.gone()
	close(release)
	c.answer(r)
	c.answer(r)
	c.gone()
	testkit.Must(t, receive(t, stopped, "the end"))
	testkit.That(t, testkit.Err(net.Dial("tcp", address)) != nil, "it still listens")
	testkit.Equal(t, len(begun), 0, "more were begun")
	testkit.Equal(t, len(f.server.Connections()), 0)
	f.serves.Wait()
	testkit.Must(t, f.server.Stop(t.Context()), "again: ")
	f.client().gone()
	l := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	testkit.Must(t, f.server.Serve(t.Context(), l))
}

// What does not end by itself is cut off, when the time is over.
func TestStopCutsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, finishing(func(ctx context.Context, _ *Writer) error {
			<-ctx.Done()
			return ctx.Err()
		}))
		c := f.client()
		c.send(request(3, 12))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		testkit.ErrorIs(t, f.server.Stop(ctx), context.DeadlineExceeded)
		c.gone()

		f = serve(t, finishing(func(ctx context.Context, _ *Writer) error {
			<-ctx.Done()
			return ctx.Err()
		}))
		c = f.client()
		c.send(request(3, 12))
		synctest.Wait()
		began := time.Now()
		testkit.Must(t, f.server.Stop(t.Context()))
		testkit.Equal(t, time.Since(began), drainWait, "nobody waits for ever")
		c.gone()
	})
}

// A Produce request that is being read is read to its end.
func TestStopWhileARequestIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, &handler{})
		c := f.client()
		r := produceOf(9, make([]byte, 50_000))
		p := c.encode(r)
		c.write(p[:20_000])
		go f.server.Stop(t.Context())
		synctest.Wait()
		c.write(p[20_000:])
		c.answer(r)
		c.gone()
	})
}

// Strangers are cut off at once, and what is ended by a context is ended as by Stop.
func TestServeEndsWithItsContext(t *testing.T) {
	f := serve(t, &handler{}, asked)
	ctx, cancel := context.WithCancel(t.Context())
	l := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	served := make(chan error)
	go func() { served <- f.server.Serve(ctx, l) }()
	client, stranger := newClient(t, testkit.Value(net.Dial("tcp", l.Addr().String()))(t)), newClient(t, testkit.Value(net.Dial("tcp", l.Addr().String()))(t))
	client.plainly("alice", "alice's password")
	client.works()
	stranger.lives()
	cancel()
	client.gone()
	stranger.gone()
	testkit.Must(t, receive(t, served, "the end"))
}

// failing is a listener.
type failing struct {
	net.Listener
	err error
}

func (f failing) Accept() (net.Conn, error) { return nil, f.err }

func TestListenersThatFail(t *testing.T) {
	f := serve(t, &handler{})
	l := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	testkit.ErrorIs(t, f.server.Serve(t.Context(), failing{l, errWrong}), errWrong)
}

// Each Finish is called, and then Disconnected, also when the client has gone.
func TestEverythingIsFinished(t *testing.T) {
	const requests = 5
	var finished atomic.Int32
	all, left := make(chan struct{}), make(chan int32, 1)
	begun := 0
	f := serve(t, &handler{begin: func(ctx context.Context, r *Request) Finish {
		if begun++; begun == requests {
			close(all)
		}
		return func(ctx context.Context, w *Writer) error {
			<-ctx.Done()
			finished.Add(1)
			return w.Respond(kmsg.NewPtrMetadataResponse())
		}
	}, disconnected: func() { left <- finished.Load() }})
	c := f.client()
	for range requests {
		c.send(request(3, 12))
	}
	receive(t, all, "all requests")
	c.nc.Close()
	testkit.Equal(t, receive(t, left, "Disconnected"), requests, "finished")
}
