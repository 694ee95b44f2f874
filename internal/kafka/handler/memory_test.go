package handler

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// K6: a fetch that waits for events is answered when memory is scarce, and its client is not cut off.
func TestALongPollMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, within(1<<20))
		hub := y.hub("orders", 100)
		c := y.client()
		var all []at
		for i := range int32(100) {
			all = append(all, at{hub, i, 0})
		}
		r := fetchRequest(all...)
		r.MaxWaitMillis = 60_000
		start := time.Now()
		c.send(12, r)
		synctest.Wait()
		other := y.memory.Share("other", nil)
		testkit.Must(t, other.Take(t.Context(), 1<<20))
		answer := c.receive(r).(*kmsg.FetchResponse)
		testkit.Equal(t, time.Since(start), admission.DefaultPatience, "it waited")
		testkit.Equal(t, len(answer.Topics[0].Partitions), 100, "partitions")
		other.Give()
		wantRecords(t, c.fetch(hub, 0, 0))

		small := fetchRequest(all[0]) // it holds nothing that is counted
		small.MaxWaitMillis = 60_000
		start = time.Now()
		c.send(12, small)
		synctest.Wait()
		testkit.That(t, other.TryTake(1<<20), "it has memory")
		taken := make(chan error, 1)
		go func() { taken <- y.memory.Share("another", nil).Take(t.Context(), 1) }()
		c.receive(small)
		testkit.Equal(t, time.Since(start), time.Minute, "it waited")
		other.Give()
		testkit.Must(t, <-taken)
	})
}

// K6: batches of idempotent producers that the storage has not taken yet are counted, whatever producers
// they are of: who sends more waits.
func TestBatchesOfProducersUnderWayAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, within(1<<20))
		hub := y.hub("orders", 1)
		release := make(chan struct{})
		y.storage.Engine.Inject(func(op logtest.Op) error {
			if op.Kind == logtest.OpWait {
				<-release
			}
			return nil
		})
		c := y.client()
		sent := 0
		var requests []*kmsg.ProduceRequest
		for i := range int64(20) {
			requests = append(requests, produceRequest(t, hub, 0, batch{values: []string{strings.Repeat("x", 100<<10)}, producer: 1 + i}))
		}
		go func() {
			for _, r := range requests {
				c.send(13, r)
				sent++
			}
		}()
		synctest.Wait()
		testkit.That(t, sent >= 5 && sent < 12, "%d requests of 100 KiB fit into 1 MiB", sent)
		close(release)
		for _, r := range requests {
			testkit.Equal(t, c.receive(r).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode, codeNone)
		}
	})
}

// K6, R4: a batch that waits for its quota is refused for now where memory is scarce: it would keep others
// from being read who have room in theirs.
func TestWhoWaitsForAQuotaMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newClosedYard(t, within(1<<20))
		hub := y.hub("orders", 1)
		y.policy("", "sender", auth.Send)
		c := y.login("sender")
		_, err := y.policies.Limit(t.Context(), "", "sender", func(l *quota.Limit) { l.Events = 1 })
		testkit.Must(t, err)
		testkit.Equal(t, c.produce(hub, 0, values(make([]string, 9)...)).ErrorCode, codeNone)
		start := time.Now()
		r := produceRequest(t, hub, 0, values("x"))
		c.send(13, r)
		synctest.Wait()
		go func() {
			other := y.memory.Share("other", nil)
			testkit.Check(t, other.Take(t.Context(), 1<<20))
			other.Give()
		}()
		answer := c.receive(r).(*kmsg.ProduceResponse)
		testkit.Equal(t, time.Since(start), admission.DefaultPatience, "it waited")
		testkit.Equal(t, answer.Topics[0].Partitions[0].ErrorCode, codeTimedOut, "code")
		testkit.That(t, answer.ThrottleMillis > 0, "it does not say for how long")
		time.Sleep(time.Duration(answer.ThrottleMillis) * time.Millisecond)
		testkit.Equal(t, c.produce(hub, 0, values("x")).ErrorCode, codeNone, "code when it comes again")
	})
}
