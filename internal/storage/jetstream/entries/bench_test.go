package entries

import (
	"fmt"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// many gives messages of different keys, in the order in which a stream would have them.
func many(n int) []message {
	messages := make([]message, n)
	for i := range messages {
		key := fmt.Sprintf("records/log-%d/$default/lease/%d", (i*7919)%n/32, i%32)
		messages[i] = message{seq: uint64(i) + 1, kind: value, key: key, value: make([]byte, 200)}
	}
	return messages
}

// BenchmarkLoad is what a node needs for a hundred thousand entries, without the network.
func BenchmarkLoad(b *testing.B) {
	messages := many(100_000)
	b.ReportAllocs()
	for b.Loop() {
		newReplica().apply("s0", 1, time.Time{}, messages...)
	}
}

// BenchmarkList reads a group's 32 leases out of a hundred thousand entries.
func BenchmarkList(b *testing.B) {
	r := newReplica()
	r.apply("s0", 1, time.Time{}, many(100_000)...)
	b.ReportAllocs()
	for b.Loop() {
		r.list("records/log-77/$default/lease/")
	}
}

// BenchmarkChange is one writer at one server that syncs.
func BenchmarkChange(b *testing.B) {
	servers := natstest.Shared(b, 1)
	s := open(b, servers.Dial(b, 0), yard(b, servers))
	revision := testkit.Value(s.CompareAndSet(b.Context(), "hubs/a", 0, nil))(b)
	for b.Loop() {
		revision = testkit.Value(s.CompareAndSet(b.Context(), "hubs/a", revision, nil))(b)
	}
}
