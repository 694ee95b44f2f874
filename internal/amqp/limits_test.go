package amqp

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// A peer that wants answers and takes none is cut off before they fill the memory.
func TestAnswersThatNobodyTakes(t *testing.T) {
	in := &sink{}
	f := serve(t, accept(in, nil))
	nc := f.tcp()
	p := quietPeer(t, nc)
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
	for {
		if _, err := nc.Write(asks); err != nil {
			break // cut off
		}
	}
	if f.refused(reasonOutput) != 1 {
		t.Error("not counted")
	}
	must(t, f.server.Stop(t.Context()))
	if in.closed.Load() != 1 {
		t.Error("the sink was not closed")
	}
}

func TestMetricsCount(t *testing.T) {
	f := serve(t, accept(&sink{}, sendAll(3, nil)))
	p := f.raw()
	p.attachSender()
	p.send(0, receiver("r", 1), credit(1, 0, 3))
	expect[wire.Attach](p)
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
		if got[0] != got[1] {
			t.Errorf("%s: %v, want %v", name, got[0], got[1])
		}
	}
	if testutil.ToFloat64(m.bytesIn) < 100 || testutil.ToFloat64(m.bytesOut) < 100 {
		t.Error("bytes are not counted")
	}
}
