package kafka

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// within gives a server so many bytes for all that clients send and have not taken.
func within(m *admission.Memory) func(*Config) { return func(c *Config) { c.Memory = m } }

// keeping is a handler that keeps what it is given until release is closed, or it has to settle; settled
// counts that.
func keeping(got chan<- int, settled *int, release <-chan struct{}) *handler {
	return &handler{begin: func(_ context.Context, r *Request) Finish {
		r.Produce.Settle = func() { *settled++ }
		for {
			part, ok := r.Produce.Next()
			if !ok {
				return func(_ context.Context, w *Writer) error { <-release; return w.Respond(kmsg.NewPtrProduceResponse()) }
			}
			got <- len(part.Records)
		}
	}}
}

// K6: batches that wait to be stored count until their request is finished, and whoever comes then waits.
func TestBatchesUnderWayAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := admission.NewMemory(1<<20, 1<<20, admission.DefaultPatience)
		got, release, settled := make(chan int, 10), make(chan struct{}), 0
		f := serve(t, keeping(got, &settled, release), within(memory))
		first, second := f.client(), f.client()
		r := produceOf(9, make([]byte, 100<<10), make([]byte, 100<<10), make([]byte, 100<<10), make([]byte, 100<<10))
		first.send(r)
		synctest.Wait()
		testkit.Equal(t, len(got), 4, "partitions of the first")
		testkit.That(t, !memory.Share("other", nil).TryTake(700<<10), "what is kept is not counted")
		testkit.That(t, memory.Share("other", nil).TryTake(500<<10), "more is counted than is kept")

		go second.send(r)
		synctest.Wait()
		testkit.That(t, len(got) < 8, "the second is read, although there is no room")
		close(release)
		first.answer(r)
		second.answer(r)
		testkit.Equal(t, len(got), 8, "partitions of both")
	})
}

// K6: producers whose batches fill the memory of their policy do not keep its readers waiting.
func TestProducersLeaveRoomForReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := admission.NewMemory(300<<10, 1<<20, admission.DefaultPatience)
		got, release, settled := make(chan int, 10), make(chan struct{}), 0
		producers := keeping(got, &settled, release)
		f := serve(t, &handler{begin: func(ctx context.Context, r *Request) Finish {
			if r.Produce != nil {
				return producers.begin(ctx, r)
			}
			return func(ctx context.Context, w *Writer) error {
				testkit.Check(t, w.Take(ctx, 200<<10))
				return w.Respond(kmsg.NewPtrMetadataResponse())
			}
		}}, within(memory))
		sends, reads := f.client(), f.client()
		r := produceOf(9, make([]byte, 100<<10), make([]byte, 100<<10))
		sends.send(r)
		synctest.Wait()
		begun := time.Now()
		reads.works()
		testkit.Equal(t, time.Since(begun), 0, "a reader waited")
		close(release)
		sends.answer(r)
	})
}

// K6: a request whose own batches take all the memory has them settled, and goes on.
func TestARequestDoesNotWaitForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := admission.NewMemory(1<<20, 1<<20, admission.DefaultPatience)
		got, release, settled := make(chan int, 100), make(chan struct{}), 0
		f := serve(t, keeping(got, &settled, release), within(memory))
		c := f.client()
		records := make([][]byte, 30)
		for i := range records {
			records[i] = make([]byte, 100<<10)
		}
		r := produceOf(9, records...)
		c.send(r)
		synctest.Wait()
		testkit.Equal(t, len(got), len(records), "partitions")
		testkit.That(t, settled >= 3 && settled <= 6, "it was settled %d times", settled)
		close(release)
		c.answer(r)
		synctest.Wait()
		testkit.That(t, memory.Share("other", nil).TryTake(1<<20), "it was not given back")
	})
}

// K6: what a request says of very many partitions counts, too, for as long as it is not answered.
func TestAnswersOfProduceAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := admission.NewMemory(1<<20, 1<<20, admission.DefaultPatience)
		got, release, settled := make(chan int, 1000), make(chan struct{}), 0
		f := serve(t, keeping(got, &settled, release), within(memory))
		c := f.client()
		r := produceOf(9, make([][]byte, 1000)...)
		c.send(r)
		synctest.Wait()
		testkit.That(t, !memory.Share("other", nil).TryTake(1<<20-1000*producedBytes+1), "it is not counted")
		close(release)
		c.answer(r)
	})
}

// K6: who waits for a quota makes room when memory is scarce, and is not cut off for it.
func TestWhoPausesMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := admission.NewMemory(1<<18, 1<<18, admission.DefaultPatience)
		type end struct {
			whole bool
			after time.Duration
		}
		ends := make(chan end, 2)
		f := serve(t, &handler{begin: func(ctx context.Context, r *Request) Finish {
			r.Produce.Next()
			begun := time.Now()
			whole, err := r.Produce.Pause(ctx, time.Minute)
			testkit.Check(t, err)
			ends <- end{whole, time.Since(begun)}
			return respond(kmsg.NewPtrProduceResponse())
		}}, within(memory))
		c := f.client()
		r := produceOf(9, make([]byte, 100<<10))
		c.send(r)
		testkit.Equal(t, <-ends, end{true, time.Minute}, "where nobody needs anything")
		c.answer(r)

		c.send(r)
		synctest.Wait()
		other := memory.Share("other", nil)
		go c.answer(r)
		testkit.Must(t, other.Take(t.Context(), 1<<18))
		testkit.Equal(t, <-ends, end{false, admission.DefaultPatience}, "where somebody needs memory")
		other.Give()
		synctest.Wait()
		c.lives()
	})
}

// K6: a request that waits for better times is answered when its memory is needed, and so are those that
// stand before it; the client is not cut off.
func TestWhoWaitsIsHurried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := admission.NewMemory(1<<18, 1<<18, admission.DefaultPatience)
		answered := 0
		f := serve(t, finishing(func(ctx context.Context, w *Writer) error {
			select {
			case <-w.Hurried():
			case <-time.After(time.Hour):
				t.Error("it was not hurried")
			case <-ctx.Done():
				t.Error("it was cut off")
			}
			answered++
			return w.Respond(kmsg.NewPtrMetadataResponse())
		}), within(memory))
		c := f.client()
		small, large := request(3, 12).(*kmsg.MetadataRequest), request(3, 12).(*kmsg.MetadataRequest)
		for range 100 {
			name := kmsg.NewMetadataRequestTopic()
			name.Topic = kmsg.StringPtr(string(make([]byte, 100)))
			large.Topics = append(large.Topics, name)
		}
		all := []kmsg.Request{small, large, large, small}
		c.send(all[:3]...)
		synctest.Wait()
		other := memory.Share("other", nil)
		go func() {
			for _, r := range all[:3] {
				c.answer(r)
			}
		}()
		testkit.Must(t, other.Take(t.Context(), 1<<18))
		synctest.Wait()
		testkit.Equal(t, answered, 3, "answered")
		other.Give()
		c.lives()
	})
}

// K6: who takes nothing of its answer is cut off when its memory is needed, also if it was at work when
// that was first tried.
func TestWhoTakesNothingIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := admission.NewMemory(1<<18, 1<<18, admission.DefaultPatience)
		f := serve(t, finishing(func(ctx context.Context, w *Writer) error {
			if err := w.Take(ctx, 200<<10); err != nil {
				return err
			}
			time.Sleep(admission.DefaultPatience + time.Second) // the storage is slow
			return w.Respond(kmsg.NewPtrMetadataResponse())
		}), within(memory))
		c := f.client()
		c.send(request(3, 12))
		synctest.Wait()
		begun := time.Now()
		testkit.Must(t, memory.Share("other", nil).Take(t.Context(), 1<<18))
		testkit.That(t, time.Since(begun) > admission.DefaultPatience+time.Second, "it was cut off while it was at work")
		testkit.That(t, time.Since(begun) < 4*admission.DefaultPatience, "it was cut off after %s", time.Since(begun))
		c.gone()
	})
}
