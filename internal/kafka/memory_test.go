package kafka

import (
	"net"
	"runtime"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// allocatedBy is how many bytes a function allocates, with whatever runs beside it.
func allocatedBy(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// inUse is the memory in use when all garbage is gone.
func inUse() int64 {
	runtime.GC()
	runtime.GC() // what pools hold goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// K6: an idle connection costs little, whatever it has done before.
func TestIdleConnectionsAreCheap(t *testing.T) {
	const connections, most = 100, 40 << 10
	for name, busy := range map[string]bool{"never busy": false, "was busy": true} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, &handler{})
			address := f.listen(nil)
			before := inUse()
			clients := make([]*client, connections)
			for i := range clients {
				clients[i] = newClient(t, testkit.Value(net.Dial("tcp", address))(t))
				clients[i].lives()
				if busy {
					r := produceOf(9, make([]byte, 300_000))
					clients[i].send(r)
					clients[i].answer(r)
				}
			}
			got := (inUse() - before) / connections
			runtime.KeepAlive(clients)
			t.Logf("%d bytes for each connection", got)
			testkit.That(t, got <= most, "an idle connection costs %d bytes, more than %d", got, most)
		})
	}
}
