package amqp

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// inBubble runs a test on a clock of its own.
func inBubble(t *testing.T, test func(t *testing.T)) { synctest.Test(t, test) }

func TestNoOpenInTime(t *testing.T) {
	begin := map[string][]byte{
		"nothing":         nil,
		"half a header":   []byte("AMQP"),
		"a header":        wire.ProtocolAMQP[:],
		"half an open":    append(append([]byte(nil), wire.ProtocolAMQP[:]...), 0, 0, 0, 50, 2, 0, 0, 0),
		"SASL unfinished": wire.ProtocolSASL[:],
		"heartbeats":      append(append([]byte(nil), wire.ProtocolAMQP[:]...), wire.AppendEmptyFrame(nil)...),
	}
	for name, b := range begin {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				f := serve(t, accept(nil, nil))
				p := f.raw()
				start := time.Now()
				p.write(b)
				p.expectGone()
				testkit.Equal(t, time.Since(start), 10*time.Second, "cut off after")
				testkit.Equal(t, f.refused(reasonOpenTimeout), 1, "not counted")
			})
		})
	}
}

func TestSilentPeerIsClosed(t *testing.T) { // H7
	inBubble(t, func(t *testing.T) {
		in := &sink{}
		f := serve(t, accept(in, nil))
		p := f.raw()
		p.attachSender()
		start := time.Now()
		p.expectDetach(0, ConditionConnectionForced)
		e := p.expectClose(ConditionConnectionForced)
		testkit.Equal(t, time.Since(start), time.Minute, "closed after")
		want := "The connection was inactive for more than the allowed 60000 milliseconds and is closed by container '" + f.server.container + "'."
		testkit.Equal(t, e.Description, want)
		// It does not answer: it is cut off.
		p.expectGone()
		testkit.Equal(t, time.Since(start), time.Minute+closeWait, "cut off after")
		synctest.Wait()
		testkit.Equal(t, in.closed.Load(), 1, "not closed, or not counted")
		testkit.Equal(t, f.refused(reasonIdle), 1, "not closed, or not counted")
	})
}

// Heartbeats keep a connection, bytes of a frame that never ends do not.
func TestSlowFrame(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := serve(t, accept(&sink{}, nil)).raw()
		p.open()
		for range 10 {
			time.Sleep(50 * time.Second)
			p.write(wire.AppendEmptyFrame(nil))
		}
		start := time.Now()
		p.write([]byte{0, 0, 0x10, 0, 2, 0, 0, 0})
		for range 59 {
			time.Sleep(time.Second)
			p.write([]byte{0})
		}
		p.expectClose(ConditionConnectionForced)
		testkit.Equal(t, time.Since(start), time.Minute, "closed after")
	})
}

// While a sink is busy the peer is not to blame for its silence.
func TestBusySinkIsNoSilence(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := serve(t, accept(&sink{deliver: func(d *Delivery) {
			time.Sleep(10 * time.Minute)
			d.Accept()
		}}, nil))
		p := f.raw()
		p.attachSender()
		start := time.Now()
		p.transfer(0, message(0, 0), nil)
		expect[wire.Disposition](p)
		testkit.Equal(t, time.Since(start), 10*time.Minute, "answered after")
		// The silence begins now.
		p.expectDetach(0, ConditionConnectionForced)
		testkit.Equal(t, time.Since(start), 11*time.Minute, "closed after")
	})
}

// While a sink holds up the reading, it is a heartbeat that finds out that the peer is
// gone; the connection's context tells the sink.
func TestPeerLeavesWhileASinkIsBusy(t *testing.T) { // H7
	inBubble(t, func(t *testing.T) {
		in := &sink{deliver: func(d *Delivery) {
			<-d.link.Conn().Context().Done()
			d.Reject(nil)
		}}
		f := serve(t, accept(in, nil))
		p := f.raw()
		p.attachSender()
		p.transfer(0, message(0, 0), nil)
		start := time.Now()
		p.leave()
		f.serves.Wait()
		if took := time.Since(start); took > maxHeartbeat {
			t.Errorf("noticed after %v", took)
		}
		testkit.Equal(t, in.closed.Load(), 1, "the sink was not closed")
		f.stop()
	})
}

func TestHeartbeats(t *testing.T) { // H8
	for says, want := range map[uint32]time.Duration{
		0: 10 * time.Second, 240_000: 10 * time.Second, 20_000: 10 * time.Second, 5000: 2500 * time.Millisecond, 1: minHeartbeat,
	} {
		inBubble(t, func(t *testing.T) {
			p := serve(t, accept(nil, nil), func(c *Config) { c.IdleTimeout = time.Hour }).raw()
			p.open(func(o *wire.Open) {
				if says > 0 {
					o.IdleTimeout = wire.Some(says)
				}
			})
			synctest.Wait()
			for range 5 {
				last := time.Now()
				if beat := <-p.frames; beat.body != nil || beat.size != 8 {
					t.Fatalf("got %v", beat)
				}
				testkit.MustEqual(t, time.Since(last), want, "a peer that bears %d ms heard of us after", says)
			}
			// What is sent for another reason counts.
			time.Sleep(want / 2)
			ask[wire.Begin](p, 0, newBegin())
			last := time.Now()
			if beat := <-p.frames; beat.body != nil || time.Since(last) != want {
				t.Fatalf("got %v after %v", beat, time.Since(last))
			}
		})
	}
}

// A peer that takes nothing of what we write is cut off, one that takes it slowly is not.
func TestPeerThatTakesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		out := endless(nil, 1000)
		f := serve(t, accept(nil, out), func(c *Config) { c.IdleTimeout = 24 * time.Hour })
		client := f.pipe()
		p := quietPeer(t, client)
		p.write(greedy())
		for range 100 { // slowly, a little every 9 min
			time.Sleep(9 * time.Minute)
			testkit.Must(t, testkit.Err(io.ReadFull(client, make([]byte, 100))), "a slow peer was cut off")
		}
		start := time.Now()
		synctest.Wait()
		for f.refused(reasonWrite) == 0 && time.Since(start) < time.Hour {
			time.Sleep(time.Second)
		}
		// The peer had taken some of the present piece, so there was as long again for the rest.
		if took := time.Since(start); took < 9*time.Minute || took > 21*time.Minute {
			t.Errorf("cut off after %v", took)
		}
		synctest.Wait()
		testkit.Equal(t, out.closed.Load(), 1, "the source was not closed")
	})
}

// The credit that a source leaves unused goes back after a moment, and not while it sends.
func TestDrainGivesTheSourceAMoment(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		out := &source{run: func(ctx context.Context, l *Link) error {
			for range 5 {
				if err := l.WaitCredit(ctx); err != nil {
					return err
				}
				time.Sleep(drainWait - time.Millisecond) // a slow disk
				if _, err := l.Send(ctx, 1, numbered); err != nil {
					return err
				}
			}
			<-ctx.Done()
			return nil
		}}
		p := serve(t, accept(nil, out)).raw()
		p.attachReceiver()
		fl := credit(0, 0, 10)
		fl.Drain = true
		p.send(0, fl)
		for range 5 {
			p.expectMessage()
		}
		if fl := expect[wire.Flow](p); !fl.Drain || fl.DeliveryCount != wire.Some(uint32(10)) || fl.LinkCredit != wire.Some(uint32(0)) {
			t.Fatalf("got %+v", fl)
		}
	})
}

// A source that has said that it has nothing is waited for only as long as it may take it
// to see something that has come just now.
func TestDrainOfADrySource(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		more := make(chan struct{})
		out := &source{run: func(ctx context.Context, l *Link) error {
			for {
				l.Drained()
				select {
				case <-more:
				case <-ctx.Done():
					return nil
				}
				if _, err := l.Send(ctx, 1, numbered); err != nil {
					return err
				}
			}
		}}
		p := serve(t, accept(nil, out)).raw()
		p.attachReceiver()
		drain := func(count, n uint32) {
			fl := credit(0, count, n)
			fl.Drain = true
			p.send(0, fl)
		}
		for sent := range uint32(3) {
			synctest.Wait() // it has said so: else the drain could come first, and be answered at once
			start := time.Now()
			drain(10*sent, 10)
			synctest.Wait()
			more <- struct{}{} // just in time
			p.expectMessage()
			if fl := expect[wire.Flow](p); fl.LinkCredit != wire.Some(uint32(0)) || time.Since(start) != dryWait && time.Since(start) != 0 {
				t.Errorf("got %+v after %v", fl, time.Since(start))
			}
		}
	})
}

func TestStopIsPolite(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		in := &sink{}
		f := serve(t, accept(in, nil))
		p, early := f.raw(), f.raw() // early has not opened yet
		p.attachSender()
		stopped := make(chan error, 1)
		start := time.Now()
		go func() { stopped <- f.server.Stop(t.Context()) }()
		p.expectDetach(0, ConditionConnectionForced)
		if e := p.expectClose(ConditionConnectionForced); e.Description != "The server is shutting down." {
			t.Errorf("got %v", e)
		}
		early.expectGone()
		// It does not answer; it gets two seconds.
		testkit.Must(t, <-stopped)
		testkit.Equal(t, time.Since(start), closeWait, "stopped after")
		testkit.Equal(t, in.closed.Load(), 1, "the sink was not closed")
		// Nobody is let in any more.
		late := f.raw()
		late.expectGone()
		testkit.Must(t, f.server.Stop(t.Context())) // safe twice
	})
}

func TestStopCutsOffWhenItsTimeIsUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := serve(t, accept(&sink{}, nil))
		p := f.raw()
		p.open()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := f.server.Stop(ctx); err == nil {
			t.Error("no error")
		}
		testkit.Equal(t, time.Since(start), time.Second, "stopped after")
		f.serves.Wait()
		p.leave()
	})
}

// The end of ServeConn's context is a stop for that connection.
func TestEndOfTheContext(t *testing.T) {
	f := serve(t, accept(&sink{}, nil))
	client, server := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	f.serves.Go(func() { f.server.ServeConn(ctx, server) })
	p := newRawPeer(t, client)
	p.attachSender()
	cancel()
	p.expectDetach(0, ConditionConnectionForced)
	p.expectClose(ConditionConnectionForced)
	p.send(0, &wire.Close{})
	p.expectGone()
}
