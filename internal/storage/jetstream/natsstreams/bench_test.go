package natsstreams

import (
	"fmt"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/testkit"
)

// BenchmarkPublish has 64 messages under way at once.
func BenchmarkPublish(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10} {
		b.Run(fmt.Sprint(size>>10, " KiB"), func(b *testing.B) {
			servers := natstest.Shared(b, 1)
			s := open(b, servers, 0, yard(b, servers))
			testkit.Must(b, s.Make(b.Context(), "s", streams.Config{}))
			data := make([]byte, size)
			window := make(chan error, 64)
			for range cap(window) {
				window <- nil
			}
			done := func(_ streams.Seq, err error) { window <- err }
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				testkit.Must(b, <-window)
				s.Publish("s", "0", data, done)
			}
			for range cap(window) {
				testkit.Must(b, <-window)
			}
		})
	}
}

// BenchmarkRead reads 1,000 messages at once.
func BenchmarkRead(b *testing.B) {
	servers := natstest.Shared(b, 1)
	s := open(b, servers, 0, yard(b, servers))
	testkit.Must(b, s.Make(b.Context(), "s", streams.Config{}))
	acknowledged := make(chan error, readMessages)
	for range readMessages {
		s.Publish("s", "0", make([]byte, 1<<10), func(_ streams.Seq, err error) { acknowledged <- err })
	}
	for range readMessages {
		testkit.Must(b, <-acknowledged)
	}
	b.SetBytes(readMessages << 10)
	b.ReportAllocs()
	for b.Loop() {
		part, err := s.Read(b.Context(), "s", streams.Query{From: 1})
		testkit.Must(b, err)
		testkit.MustEqual(b, len(part.Messages), readMessages)
	}
}
