package delivery

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// sink is a sender that delivers at once, and counts.
type sink struct {
	*postman
	events atomic.Int64
	ill    string // this subscription's endpoint is dead
}

func (s *sink) Deliver(_ context.Context, o *webhook.Order, batch []*pending.Delivery) webhook.Result {
	if o.Subscription.Name == s.ill {
		return outcome(retry.SocketError)
	}
	s.events.Add(int64(len(batch)))
	return ok()
}

// use is a configuration with the sink as its sender.
func (s *sink) use(c *Config) {
	s.postman = c.Sender.(plugSender).postman
	c.Sender = s
}

// until waits for so many.
func (s *sink) until(n int64) {
	for s.events.Load() < n {
		time.Sleep(200 * time.Microsecond)
	}
}

func benchYard(b *testing.B, config func(*Config)) *yard {
	y := newYard(b)
	y.config = config
	y.topic("orders")
	return y
}

// publishMany stores n events of about so many bytes.
func (y *yard) publishMany(topic string, n, bytes int, kind func(i int) string) {
	const batch = 200
	for i := 0; i < n; i += batch {
		var ids []string
		for j := i; j < min(i+batch, n); j++ {
			ids = append(ids, kind(j)+"/"+large(strconv.Itoa(j), bytes))
		}
		y.publish(topic, ids...)
	}
}

func one(int) string { return "a" }

// How fast a lane is fed by the shared reader, and by its own when it has fallen behind.
func BenchmarkLane(b *testing.B) {
	for _, behind := range []bool{false, true} {
		b.Run(fmt.Sprintf("behind=%v", behind), func(b *testing.B) {
			s := &sink{}
			y := benchYard(b, s.use)
			y.subscribe("orders", "receiver")
			if behind {
				y.publishMany("orders", b.N, 300, one)
			} else {
				y.start()
			}
			b.ResetTimer()
			b.ReportAllocs()
			if behind {
				y.start()
			} else {
				y.publishMany("orders", b.N, 300, one)
			}
			s.until(int64(b.N))
			b.StopTimer()
			y.stop()
		})
	}
}

// fastReceiver is a fast local web server.
func fastReceiver(b *testing.B, count *atomic.Int64) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		count.Add(1)
	}))
	b.Cleanup(server.Close)
	return server.URL
}

// G1: deliveries one by one over HTTP, beside a bare client that does nothing else.
func BenchmarkHTTP(b *testing.B) {
	for _, concurrency := range []int{16, 64} {
		b.Run(fmt.Sprintf("bare/%d", concurrency), func(b *testing.B) { benchmarkBare(b, concurrency) })
		b.Run(fmt.Sprintf("grid/%d", concurrency), func(b *testing.B) { benchmarkGrid(b, concurrency) })
	}
}

func benchmarkBare(b *testing.B, concurrency int) {
	var count atomic.Int64
	url := fastReceiver(b, &count)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: concurrency}}
	defer client.CloseIdleConnections()
	body := eventOf("a/" + large("0", 300))
	var group sync.WaitGroup
	b.ResetTimer()
	for w := range concurrency {
		group.Go(func() {
			for i := w; i < b.N; i += concurrency {
				r, err := client.Post(url, "application/json", bytes.NewReader(body))
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				_ = r.Body.Close()
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

func benchmarkGrid(b *testing.B, concurrency int) {
	var count atomic.Int64
	url := fastReceiver(b, &count)
	client, err := egress.New(egress.Config{Loopback: true})
	testkit.Must(b, err)
	b.Cleanup(client.Close)
	y := benchYard(b, func(c *Config) { c.Sender = webhook.New(webhook.Config{Client: client}) })
	y.subscribe("orders", "receiver", func(s *topics.Settings) {
		s.Webhook.URL, s.Concurrency = url, concurrency
	})
	y.publishMany("orders", b.N, 300, one)
	b.ResetTimer()
	y.start()
	for count.Load() < int64(b.N) {
		time.Sleep(200 * time.Microsecond)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	b.StopTimer()
	y.stop()
}

// Ten thousand subscriptions, of which each event concerns one.
func BenchmarkTenThousandSubscriptions(b *testing.B) {
	const subscriptions = 10_000
	s := &sink{}
	y := benchYard(b, s.use)
	for i := range subscriptions {
		y.subscribe("orders", fmt.Sprintf("s-%d", i), func(st *topics.Settings) {
			st.Filter = filter.Config{EventTypes: []string{fmt.Sprintf("kind%d", i)}}
		})
	}
	before, began := heapBytes(), time.Now()
	y.start()
	b.Logf("started after %v, with %d bytes for each", time.Since(began), (heapBytes()-before)/subscriptions)
	y.publish("orders", "kind0/x")
	s.until(1)
	b.Logf("first event after %v; %d goroutines", time.Since(began), runtime.NumGoroutine())
	b.ResetTimer()
	b.ReportAllocs()
	y.publishMany("orders", b.N, 300, func(i int) string { return fmt.Sprintf("kind%d", i%subscriptions) })
	s.until(int64(b.N) + 1)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.StopTimer()
	y.stop()
}

// G7: what waits behind a dead endpoint costs no memory, and others hardly anything.
func BenchmarkBehindADeadEndpoint(b *testing.B) {
	for _, dead := range []bool{false, true} {
		b.Run(fmt.Sprintf("dead=%v", dead), func(b *testing.B) {
			s := &sink{ill: "dead"}
			y := newYardOn(b, storagetest.Config{FS: vfs.OS(b.TempDir()), Sync: disk.OS})
			y.config = s.use
			y.topic("orders")
			y.subscribe("orders", "well")
			if dead {
				y.subscribe("orders", "dead")
			}
			y.start()
			before := heapBytes()
			b.ResetTimer()
			y.publishMany("orders", b.N, 300, one)
			s.until(int64(b.N))
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(heapBytes()-before)/(1<<20), "MiB")
			y.stop()
		})
	}
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
