package amqp

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// Answers that reach their limit while acceptances are being told close the connection in
// the midst of it, and what is still to be told is told before the close.
func TestCloseInTheMidstOfAcknowledging(t *testing.T) { // H2
	f := serve(t, accept(&sink{}, nil))
	p := f.raw()
	p.open()
	const sessions = 3
	for channel := range uint16(sessions) {
		ask[wire.Begin](p, channel, newBegin())
	}
	func() {
		c := f.only()
		c.mu.Lock()
		defer c.mu.Unlock()
		for channel := range uint16(sessions) {
			c.sessions.byChannel[channel].acceptLocked(7)
		}
		c.out.answers.waiting = maxAnswerBytes // as if nothing had been taken
		c.out.acknowledge()
	}()
	for range sessions {
		if d := expect[wire.Disposition](p); d.First != 7 || d.State.Outcome != wire.OutcomeAccepted {
			t.Fatalf("got %+v", d)
		}
	}
	p.expectClose(ConditionResourceLimitExceeded)
}

// What the peer bears of silence counts at once, also if we have begun to be silent.
func TestHeartbeatsBecomeMoreFrequent(t *testing.T) { // H8
	inBubble(t, func(t *testing.T) {
		f := serve(t, accept(nil, nil))
		p := f.raw()
		p.open()
		synctest.Wait() // the writing goroutine sleeps
		start := time.Now()
		f.only().beatFor(wire.Some(uint32(1000)))
		if beat := <-p.frames; beat.body != nil || time.Since(start) != 500*time.Millisecond {
			t.Errorf("got %v after %v", beat, time.Since(start))
		}
	})
}

// writeConn does something else than write.
type writeConn struct {
	net.Conn
	write func(under net.Conn, b []byte) (int, error)
}

func (c writeConn) Write(b []byte) (int, error) { return c.write(c.Conn, b) }

// over serves one end of a pipe through a writeConn, and gives the other.
func (f *fixture) over(write func(net.Conn, []byte) (int, error)) net.Conn {
	client, server := net.Pipe()
	f.serveConn(writeConn{server, write})
	return client
}

// A panic in the midst of a write costs its connection, and nothing else.
func TestPanicOfTheWriter(t *testing.T) {
	h := accept(&sink{}, nil)
	left := make(chan struct{}, 1)
	h.disconnected = func() { left <- struct{}{} }
	f := serve(t, h)
	other := f.raw()
	other.attachSender()
	var opened atomic.Bool
	p := newRawPeer(t, f.over(func(nc net.Conn, b []byte) (int, error) {
		if opened.Load() {
			panic("oops")
		}
		return nc.Write(b)
	}))
	p.open()
	opened.Store(true)
	p.send(0, newBegin())
	p.expectGone()
	receive(t, left, "Disconnected")
	testkit.Equal(t, f.refused(reasonPanic), 1, "not counted")
	other.barrier()
}

// Layers above TCP have their own words for a write that takes too long.
func TestWriteTimeoutInOtherWords(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := serve(t, accept(nil, nil), func(c *Config) { c.OpenTimeout = time.Hour })
		client := f.over(func(nc net.Conn, b []byte) (int, error) {
			n, err := nc.Write(b)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				err = context.Canceled // as a WebSocket says
			}
			return n, err
		})
		p := quietPeer(t, client)
		p.write(wire.ProtocolAMQP[:])
		testkit.Must(t, testkit.Err(io.ReadFull(client, make([]byte, 8))))
		p.send(0, &wire.Open{ContainerID: "test", IdleTimeout: wire.Some(uint32(1000))})
		synctest.Wait()
		for range 700 { // alive, but it takes nothing
			if _, err := client.Write(wire.AppendEmptyFrame(nil)); err != nil {
				break
			}
			time.Sleep(time.Second)
		}
		testkit.Equal(t, f.refused(reasonWrite), 1, "not counted")
	})
}

// A source whose connection was cut hears so although the link cannot be told yet.
func TestSourceOfACutConnection(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, l *Link) error{
		"Send": func(ctx context.Context, l *Link) error {
			_, err := l.Send(ctx, 1, numbered)
			return err
		},
		"WaitCredit": func(ctx context.Context, l *Link) error { return l.WaitCredit(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			hold, busy := make(chan struct{}), make(chan struct{})
			in := &sink{deliver: func(d *Delivery) { close(busy); <-hold; d.Accept() }}
			heard := make(chan error, 2)
			out := &source{run: func(_ context.Context, l *Link) error {
				heard <- wait(context.Background(), l) // waits for credit
				heard <- wait(context.Background(), l)
				return nil
			}}
			f := serve(t, accept(in, out))
			p := f.raw()
			p.begin()
			p.send(0, sender("s", 0), receiver("r", 1))
			p.barrier()
			p.transfer(0, message(0, 0), nil)
			<-busy // the reading goroutine cannot end the links
			f.only().cut(errEnded)
			for range 2 {
				testkit.ErrorIs(t, receive(t, heard, "the end"), ErrLinkEnded)
			}
			close(hold)
		})
	}
}
