package amqp

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// drain is credit that is to be used up, or given back.
func drain(count, n uint32) *wire.Flow {
	fl := credit(0, count, n)
	fl.Drain = true
	return fl
}

func (p *rawPeer) expectDrained(count uint32) {
	p.t.Helper()
	fl := expect[wire.Flow](p)
	if !fl.Drain || fl.DeliveryCount != wire.Some(count) || fl.LinkCredit != wire.Some(uint32(0)) {
		p.t.Fatalf("got %+v, want all drained at %d", fl, count)
	}
}

// The peer hears that its credit is used up also when messages have done it.
func TestDrainByMessages(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := serve(t, accept(nil, counting(t, 10, 10))).raw()
		p.attachReceiver()
		p.send(0, drain(0, 5))
		for range 5 {
			p.expectMessage()
		}
		p.expectDrained(5)
		time.Sleep(5 * time.Second)
		p.empty("the drain was answered once")
	})
}

// A message that waits for the window in the middle is finished before credit is given back.
func TestDrainInTheMiddleOfAMessage(t *testing.T) {
	for name, n := range map[string]uint32{"the last": 1, "one of several": 5} {
		inBubble(t, func(t *testing.T) {
			p := serve(t, accept(nil, counting(t, 1, 3000))).raw()
			p.open(func(o *wire.Open) { o.MaxFrameSize = wire.Some(uint32(512)) })
			ask[wire.Begin](p, 0, newBegin(), receiver("r", 0))
			expect[wire.Attach](p)
			fl := drain(0, n)
			fl.IncomingWindow = 2
			ask[wire.Transfer](p, 0, fl)
			expect[wire.Transfer](p)
			time.Sleep(5 * time.Second)
			p.empty("the message is not whole: " + name)
			p.send(0, &wire.Flow{NextIncomingID: wire.Some(uint32(firstOutgoing + 2)), IncomingWindow: 1000})
			for expect[wire.Transfer](p).More {
			}
			p.expectDrained(n)
		})
	}
}

// While the window is closed a message may wait for it, which then comes first.
func TestDrainWhileTheWindowIsClosed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := serve(t, accept(nil, counting(t, 1, 10))).raw()
		p.attachReceiver()
		fl := drain(0, 5)
		fl.IncomingWindow = 0
		p.send(0, fl)
		time.Sleep(5 * time.Second)
		p.empty("a message waits")
		p.send(0, &wire.Flow{NextIncomingID: wire.Some(uint32(firstOutgoing)), IncomingWindow: 1})
		p.expectMessage()
		p.expectDrained(5)
	})
}

// A source that has nothing gives the credit back although the window is closed.
func TestDrainOfADrySourceWhileTheWindowIsClosed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := serve(t, accept(nil, &source{run: func(ctx context.Context, l *Link) error {
			l.Drained()
			<-ctx.Done()
			return nil
		}}))
		p := f.raw()
		p.attachReceiver()
		synctest.Wait()
		fl := drain(0, 5)
		fl.IncomingWindow = 0
		p.send(0, fl)
		p.expectDrained(5)
	})
}

// A message that waits for room in the output is sent before credit is given back.
func TestDrainWhileAMessageWaitsForRoom(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const count, size = 6, highWaterBytes
		f := serve(t, accept(nil, counting(t, count, size)), func(c *Config) { c.IdleTimeout = time.Hour })
		p := quietPeer(t, f.pipe())
		b := append([]byte(nil), wire.ProtocolAMQP[:]...)
		for _, body := range []any{&wire.Open{ContainerID: "test"}, newBegin(), receiver("r", 0), drain(0, 50)} {
			b = appendFrame(b, 0, body, nil)
		}
		p.write(b)
		time.Sleep(5 * time.Second) // nothing is taken
		p.reader.Go(p.read)
		expect[wire.Open](p)
		expect[wire.Begin](p)
		expect[wire.Attach](p)
		for range count {
			if _, payload, _ := p.expectMessage(); !bytes.Contains(payload, []byte("xxx")) {
				t.Fatalf("got %d bytes", len(payload))
			}
		}
		p.expectDrained(50)
	})
}

// A source that gives up in the middle of a message leaves no drain unanswered.
func TestDrainOfASendGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := serve(t, accept(nil, &source{run: func(ctx context.Context, l *Link) error {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			l.Send(short, 1, func(dst []byte, _ int) []byte { return append(dst, make([]byte, 3000)...) })
			<-ctx.Done()
			return nil
		}}))
		p := f.raw()
		p.open(func(o *wire.Open) { o.MaxFrameSize = wire.Some(uint32(512)) })
		fl := drain(0, 5)
		fl.IncomingWindow = 2
		ask[wire.Begin](p, 0, newBegin(), receiver("r", 0), fl)
		expect[wire.Attach](p)
		expect[wire.Transfer](p)
		expect[wire.Transfer](p)
		if tr := expect[wire.Transfer](p); !tr.Aborted {
			t.Fatalf("got %+v", tr)
		}
		p.send(0, &wire.Flow{NextIncomingID: wire.Some(uint32(firstOutgoing + 3)), IncomingWindow: 1000})
		p.expectDrained(5)
	})
}

// A source that waits no longer for the window leaves no drain unanswered.
func TestDrainOfAWaitGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := serve(t, accept(nil, &source{run: func(ctx context.Context, l *Link) error {
			short, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			l.WaitCredit(short)
			<-ctx.Done()
			return nil
		}}))
		p := f.raw()
		p.attachReceiver()
		fl := drain(0, 5)
		fl.IncomingWindow = 0
		p.send(0, fl)
		time.Sleep(time.Second)
		p.empty("the source may have something")
		p.expectDrained(5)
	})
}
