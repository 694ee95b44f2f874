package amqp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// A peer that wants answers and takes none is cut off before they fill the memory.
func TestAnswersThatNobodyTakes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		in := &sink{}
		f := serve(t, accept(in, nil))
		p := quietPeer(t, f.pipe())
		b := append([]byte(nil), wire.ProtocolAMQP[:]...)
		b = appendFrame(b, 0, &wire.Open{ContainerID: "test"}, nil)
		b = appendFrame(b, 0, newBegin(), nil)
		b = appendFrame(b, 0, sender("s", 0), nil)
		p.write(b)
		ask := &wire.Flow{NextIncomingID: wire.Some(uint32(1)), IncomingWindow: 1, Echo: true}
		var asks []byte
		for range 1000 {
			asks = appendFrame(asks, 0, ask, nil)
		}
		for sent := 0; ; sent += len(asks) {
			if _, err := p.nc.Write(asks); err != nil {
				break // cut off
			}
			if sent > 10*maxAnswerBytes && f.refused(reasonOutput) == 0 {
				t.Fatal("it could go on for ever")
			}
			if f.refused(reasonOutput) > 0 {
				time.Sleep(closeWait)
			}
		}
		synctest.Wait()
		testkit.Equal(t, f.refused(reasonOutput), 1, "not counted, or the sink was not closed")
		testkit.Equal(t, in.closed.Load(), 1, "not counted, or the sink was not closed")
	})
}

// What was unfinished when a session ended does not count any more.
func TestUnfinishedMessagesEndWithTheirSession(t *testing.T) {
	h, _ := holding(1<<20, 0)
	p := serve(t, h).raw()
	p.open()
	part := message(0, 0)
	part.More = true
	for range 10 + maxPartBytes/60_000 {
		p.send(0, newBegin(), sender("s", 0))
		p.transfer(0, part, make([]byte, 60_000))
		p.send(0, &wire.End{})
		for {
			body := p.next().body
			if c, ok := body.(*wire.Close); ok {
				t.Fatalf("closed: %v", c.Error)
			}
			if _, ok := body.(*wire.End); ok {
				break
			}
		}
	}
}

func TestMetricsCount(t *testing.T) {
	f := serve(t, accept(&sink{}, sendAll(3, nil)))
	p := f.raw()
	p.attachSender()
	ask[wire.Attach](p, 0, receiver("r", 1), credit(1, 0, 3))
	for range 3 {
		p.expectMessage()
	}
	p.transfer(0, message(0, 0), []byte("x"))
	p.part(0, 1, 0, 2, "a")
	p.part(0, 1, 1, 2, "b")
	p.barrier()
	m := f.server.metrics
	for name, got := range map[string][2]float64{
		"connections":  {testutil.ToFloat64(m.connections), 1},
		"sessions":     {testutil.ToFloat64(m.sessions), 1},
		"senders":      {testutil.ToFloat64(m.senders), 1},
		"receivers":    {testutil.ToFloat64(m.receivers), 1},
		"messages in":  {testutil.ToFloat64(m.messagesIn), 2},
		"messages out": {testutil.ToFloat64(m.messagesOut), 3},
	} {
		testkit.Equal(t, got[0], got[1], "%s", name)
	}
	if testutil.ToFloat64(m.bytesIn) < 100 || testutil.ToFloat64(m.bytesOut) < 100 {
		t.Error("bytes are not counted")
	}
}
