package amqp

import (
	"io"
	"net"
	"runtime"
	"testing"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// idleBytes opens so many connections, each with a session and a receiving link that has nothing to
// get, and gives what one of them costs: heap and stacks, those of the other end included.
func idleBytes(t testing.TB, connections int, busyFirst bool) int64 {
	f := serve(t, accept(&sink{}, &source{}))
	address := f.listen(nil)
	before := inUse()
	peers := make([]net.Conn, connections)
	answer := make([]byte, 64<<10)
	for i := range peers {
		nc := testkit.Value(net.Dial("tcp", address))(t)
		t.Cleanup(func() { nc.Close() })
		peers[i] = nc
		b := append([]byte(nil), wire.ProtocolAMQP[:]...)
		b = appendFrame(b, 0, &wire.Open{ContainerID: "test"}, nil)
		b = appendFrame(b, 0, newBegin(), nil)
		b = appendFrame(b, 0, receiver("r", 1), nil)
		b = appendFrame(b, 0, credit(1, 0, 300), nil)
		if busyFirst {
			b = appendFrame(b, 0, sender("s", 0), nil)
			b = append(b, encodeDeliveries(1, 60_000)...)
		}
		b = appendFrame(b, 1, newBegin(), nil)
		b = appendFrame(b, 1, &wire.End{}, nil)
		testkit.Must(t, testkit.Err(nc.Write(b)))
		readUntilEnd(t, nc, answer)
	}
	after := inUse()
	runtime.KeepAlive(peers)
	return (after - before) / int64(connections)
}

// readUntilEnd reads until the server's answer to an end has come.
func readUntilEnd(t testing.TB, nc net.Conn, buf []byte) {
	testkit.Must(t, testkit.Err(io.ReadFull(nc, buf[:8])))
	for {
		testkit.Must(t, testkit.Err(io.ReadFull(nc, buf[:8])))
		h := testkit.Value(wire.ReadFrameHeader(buf))(t)
		testkit.Must(t, testkit.Err(io.ReadFull(nc, buf[:h.Size-8])))
		if buf[2] == byte(wire.DescriptorEnd) {
			return
		}
	}
}

// inUse is the memory in use when all garbage is gone.
func inUse() int64 {
	runtime.GC()
	runtime.GC() // what pools hold goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

func TestIdleConnectionsAreCheap(t *testing.T) {
	const most = 64 << 10
	for name, busy := range map[string]bool{"never busy": false, "was busy": true} {
		t.Run(name, func(t *testing.T) {
			got := idleBytes(t, 300, busy)
			t.Logf("%d bytes for each connection", got)
			if got > most {
				t.Errorf("an idle connection costs %d bytes, more than %d", got, most)
			}
		})
	}
}

func BenchmarkIdleConnection(b *testing.B) {
	var got int64
	for b.Loop() {
		got = idleBytes(b, 500, false)
	}
	b.ReportMetric(float64(got), "B/conn")
}
