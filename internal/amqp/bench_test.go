package amqp

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"sync/atomic"
	"testing"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// The peer of these benchmarks does as little as possible, in the same process and on the
// same processors: it sends what was encoded before, or counts frames.

// benchPeer connects to a server by way of the network, as far as one link.
func benchPeer(b *testing.B, h Handler, a *wire.Attach) net.Conn {
	f := serve(b, h)
	nc, err := net.Dial("tcp", f.listen(nil))
	testkit.Must(b, err)
	b.Cleanup(func() { nc.Close() })
	begin := newBegin()
	begin.IncomingWindow = math.MaxInt32
	buf := append([]byte(nil), wire.ProtocolAMQP[:]...)
	buf = appendFrame(buf, 0, &wire.Open{ContainerID: "bench"}, nil)
	buf = appendFrame(buf, 0, begin, nil)
	buf = appendFrame(buf, 0, a, nil)
	_, err = nc.Write(buf)
	testkit.Must(b, err)
	return nc
}

func BenchmarkSend(b *testing.B) {
	for _, size := range []int{100, 1000} {
		for _, batch := range []int{1, 100, 1000} {
			b.Run(fmt.Sprintf("%dB/batch=%d", size, batch), func(b *testing.B) { benchmarkSend(b, size, batch) })
		}
	}
}

func benchmarkSend(b *testing.B, size, batch int) {
	body := make([]byte, size)
	start := make(chan struct{})
	out := &source{run: func(ctx context.Context, l *Link) error {
		<-start
		for sent := 0; sent < b.N; {
			n, err := l.Send(ctx, min(batch, b.N-sent), func(dst []byte, _ int) []byte { return append(dst, body...) })
			if err != nil {
				return err
			}
			sent += n
		}
		<-ctx.Done()
		return nil
	}}
	nc := benchPeer(b, accept(nil, out), receiver("r", 0))
	fl := credit(0, 0, math.MaxInt32)
	_, err := nc.Write(appendFrame(nil, 0, fl, nil))
	testkit.Must(b, err)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	close(start)
	countLargeFrames(b, nc, size, b.N)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// countLargeFrames reads until so many frames of at least that size have come.
func countLargeFrames(b *testing.B, nc net.Conn, size, want int) {
	buf := make([]byte, 256<<10)
	_, err := io.ReadFull(nc, buf[:8]) // the protocol header
	testkit.Must(b, err)
	for have, got := 0, 0; got < want; {
		n, err := nc.Read(buf[have:])
		testkit.Must(b, err)
		have += n
		at := 0
		for have-at >= 4 {
			frame := int(binary.BigEndian.Uint32(buf[at:]))
			if have-at < frame {
				break
			}
			if frame > size && buf[at+10] == 0x14 {
				got++
			}
			at += frame
		}
		have = copy(buf, buf[at:have])
	}
}

func BenchmarkDeliver(b *testing.B) {
	for _, size := range []int{100, 1000} {
		b.Run(fmt.Sprintf("%dB/settled at once", size), func(b *testing.B) {
			benchmarkDeliver(b, size, func(d *Delivery) { d.Accept() })
		})
		b.Run(fmt.Sprintf("%dB/settled elsewhere", size), func(b *testing.B) {
			settle := make(chan *Delivery, 1000)
			defer close(settle)
			go func() {
				for d := range settle {
					d.Accept()
				}
			}()
			benchmarkDeliver(b, size, func(d *Delivery) { settle <- d })
		})
	}
	b.Run("1MiB/settled at once", func(b *testing.B) {
		benchmarkDeliver(b, 1<<20-1000, func(d *Delivery) { d.Accept() })
	})
}

func benchmarkDeliver(b *testing.B, size int, settle func(d *Delivery)) {
	var got atomic.Int64
	done := make(chan struct{})
	in := &sink{deliver: func(d *Delivery) {
		settle(d)
		if got.Add(1) == int64(b.N) {
			close(done)
		}
	}}
	nc := benchPeer(b, accept(in, nil), sender("s", 0))
	go io.Copy(io.Discard, nc)
	per := max(1, 100_000/size)
	deliveries := encodeDeliveries(per, size)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	for sent := 0; sent < b.N; sent += per {
		if b.N-sent < per {
			deliveries = encodeDeliveries(b.N-sent, size)
		}
		_, err := nc.Write(deliveries)
		testkit.Must(b, err)
	}
	<-done
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// encodeDeliveries gives deliveries of that size, in frames of at most 64 KiB.
func encodeDeliveries(count, size int) []byte {
	const most = 65_000
	var b []byte
	for id := range uint32(count) {
		t := message(0, id)
		for left := size; ; {
			n := min(left, most)
			left -= n
			t.More = left > 0
			b = appendFrame(b, 0, t, make([]byte, n))
			if left == 0 {
				break
			}
			t = &wire.Transfer{Handle: 0}
		}
	}
	return b
}
