package kafka

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
)

// K1: a client may be silent for ten minutes, and longer while it waits for an answer.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, finishing(func(_ context.Context, w *Writer) error {
			time.Sleep(25 * time.Minute)
			return w.Respond(kmsg.NewPtrMetadataResponse())
		}))
		c := f.client()
		for range 3 {
			time.Sleep(10*time.Minute - time.Second)
			c.lives()
		}
		r := request(3, 12)
		c.send(r)
		time.Sleep(25 * time.Minute)
		c.answer(r)
		testkit.Equal(t, f.refused(reasonIdle), 0)
		began := time.Now()
		c.gone()
		testkit.Equal(t, time.Since(began), 10*time.Minute)
		testkit.Equal(t, f.refused(reasonIdle), 1)
	})
}

// K6: a request that has begun has to go on.
func TestRequestsThatDoNotGoOn(t *testing.T) {
	r := produceOf(9, make([]byte, 5000), make([]byte, 5000))
	for name, test := range map[string]struct {
		r     kmsg.Request
		bytes int
	}{
		"half a size":         {r, 2},
		"half a head":         {r, 9},
		"a part of a Produce": {r, 6000},
		"half a body":         {request(3, 12), 23},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, &handler{})
				c := f.client()
				c.write(c.encode(test.r)[:test.bytes])
				began := time.Now()
				c.gone()
				testkit.Equal(t, time.Since(began), time.Minute)
				testkit.Equal(t, f.refused(reasonRead), 1)
			})
		})
	}
}

// Each partition of a Produce request has its time: a slow link is no reason to give up.
func TestSlowProduce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serve(t, &handler{}).client()
		r := produceOf(9, make([]byte, 10_000), make([]byte, 10_000), make([]byte, 10_000), make([]byte, 10_000))
		for p := c.encode(r); len(p) > 0; p = p[min(len(p), 10_000):] {
			time.Sleep(40 * time.Second)
			c.write(p[:min(len(p), 10_000)])
		}
		c.answer(r)
	})
}

// A client that takes nothing is cut off, late; what it was sent is not kept for longer.
func TestClientsThatTakeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := make(chan struct{})
		f := serve(t, &handler{disconnected: func() { close(left) }})
		c := f.client()
		began := time.Now()
		c.send(request(3, 12))
		<-left
		testkit.Equal(t, time.Since(began), 10*time.Minute)
		testkit.Equal(t, f.refused(reasonWrite), 1)
		c.gone()
	})
}
