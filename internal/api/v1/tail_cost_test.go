package v1

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
	quota "github.com/eventyard/eventyard/internal/transport/admission"
)

// taker takes an answer and tells of each flush.
type taker struct {
	header  http.Header
	flushed chan struct{}
}

func (s *taker) Header() http.Header         { return s.header }
func (s *taker) WriteHeader(int)             {}
func (s *taker) Write(p []byte) (int, error) { return len(p), nil }
func (s *taker) FlushError() error           { s.flushed <- struct{}{}; return nil }

// R2: tails cost what they deliver: no goroutine but the request's own, whatever their partitions, and
// little memory. Sixty of them on a thousand partitions took 61,000 goroutines and 1.1 GB.
func TestTailsCostWhatTheyDeliver(t *testing.T) {
	const tails, partitions = 60, 1024
	y := newYard(t)
	y.hub("orders", partitions)
	ctx, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	follow := func() *taker {
		w := &taker{header: http.Header{}, flushed: make(chan struct{}, 100)}
		all.Go(func() { y.frame.ServeHTTP(w, y.tailRequest(ctx)) })
		<-w.flushed // it has begun
		return w
	}
	follow() // opens the partitions
	goroutines, memory := runtime.NumGoroutine(), memoryInUse()
	var followers []*taker
	for range tails {
		followers = append(followers, follow())
	}
	testkit.That(t, runtime.NumGoroutine() <= goroutines+tails+10, "%d goroutines, %d before", runtime.NumGoroutine(), goroutines)
	if took := memoryInUse() - memory; took > 32<<20 {
		t.Errorf("%d tails take %d KiB each", tails, took>>10/tails)
	}
	// Each of them is woken by any partition.
	for _, partition := range []string{"0", "512", "1023"} {
		y.send("orders", partition, "x")
		for _, w := range followers {
			<-w.flushed
		}
	}
	leave()
	all.Wait()
}

func (y *yard) tailRequest(ctx context.Context) *http.Request {
	r := httptest.NewRequestWithContext(ctx, "GET", "http://localhost/api/v1/hubs/orders/events?from=latest", nil)
	r.Header.Set("Authorization", y.authorization)
	r.Header.Set("Accept", "text/event-stream")
	return r
}

func memoryInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// R2: who waits or streams is bounded by policy and in all, and told so; operators are not.
func TestReadersAreBounded(t *testing.T) {
	y := openYard(t)
	y.openHandler()
	long := quota.NewQuota("waiting or streaming requests", 2, 3)
	y.frame = frame.New(frame.Config{Log: y.log, Long: long}, y.handler.APIs()...)
	y.serve()
	y.hub("orders", 2)
	reader := y.as(basic("reader", y.policy("", "reader", auth.Listen).Primary))
	first := reader.follow(t, "/api/v1/hubs/orders/events")
	reader.follow(t, "/api/v1/hubs/orders/events")
	refused := func(who *yard, path string) {
		t.Helper()
		who.refused(429, "too-many-readers", "GET", path, nil, "Accept", "text/event-stream")
	}
	refused(reader, "/api/v1/hubs/orders/events")
	refused(reader, "/api/v1/hubs/orders/partitions/0/events?wait=1m")
	y.follow(t, "/api/v1/hubs/orders/events")
	refused(y, "/api/v1/hubs/orders/events") // as many as there are in all
	first.leave()
	awaitRoom(t, long, 1)
	y.follow(t, "/api/v1/hubs/orders/events")
}

// awaitRoom waits until so many more may be had, whoever asks: a stream that has ended is counted for a moment.
func awaitRoom(t *testing.T, q *quota.Quota, n int) {
	t.Helper()
	testkit.Eventually(t, "room for another", func() bool {
		giveBack, err := q.Take("", n)
		if err == nil {
			giveBack()
		}
		return err == nil
	})
}

// R2: so are the partitions that tails follow.
func TestFollowedPartitionsAreBounded(t *testing.T) {
	y := newYard(t)
	y.handler.followed = quota.NewQuota("partitions in tails", 3, 3)
	y.hub("orders", 2)
	f := y.follow(t, "/api/v1/hubs/orders/events")
	y.follow(t, "/api/v1/hubs/orders/events?partition=1")
	y.refused(429, "too-many-readers", "GET", "/api/v1/hubs/orders/events?partition=1&follow=true", nil)
	f.leave()
	awaitRoom(t, y.handler.followed, 2)
	y.follow(t, "/api/v1/hubs/orders/events")
}

// R3: the limits that the guide names are those that hold.
func TestLimitsAreDocumented(t *testing.T) {
	guide := string(testkit.Value(os.ReadFile("../../../docs/guides/operating.md"))(t))
	thousands := func(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }
	for _, row := range []string{
		fmt.Sprintf("tails, long polls and other reads that wait or stream, of one policy or token, of all | %s, %s; then 429",
			thousands(frame.MaxLongOfOne), thousands(frame.MaxLong)),
		fmt.Sprintf("partitions that tails follow, of one policy or token, of all | %s, %s; then 429",
			thousands(maxFollowedByOne), thousands(maxFollowed)),
		fmt.Sprintf("bytes that were read for clients and not taken yet, of one policy or token, of all | %d MiB, %d MiB; then readers wait, and who has taken nothing for %d s is cut off",
			quota.MaxReadBytesOfOne>>20, quota.MaxReadBytes>>20, quota.DefaultPatience/time.Second),
	} {
		testkit.Equal(t, strings.Contains(guide, "\n| "+row+" |\n"), true, "the guide has the row: %s", row)
	}
}
