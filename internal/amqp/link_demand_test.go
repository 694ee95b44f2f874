package amqp

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R2: a connection's end waits for whatever a link may begin: while a link that runs on demand is there
// somebody may wake it, and no goroutine of it is left to itself.
func TestTheEndWaitsForSourcesOnDemand(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		attached := make(chan *Link, 1)
		var out source
		out.run = func(context.Context, *Link) error { return nil }
		h := &handler{attach: func(l *Link) (Terminus, error) {
			attached <- l
			return Terminus{Source: &out, OnDemand: true}, nil
		}}
		p := serve(t, h).raw()
		p.begin()
		ask[wire.Attach](p, 0, receiver("idle", 0))
		l := <-attached
		time.Sleep(2 * demandLinger) // its goroutine has gone
		synctest.Wait()              // and the reader, which has counted it, waits
		waited := make(chan struct{})
		go func() {
			l.Conn().runs.Wait()
			close(waited)
		}()
		synctest.Wait()
		select {
		case <-waited:
			t.Error("nobody would wait for what wakes the link")
		default:
		}
		l.Wake()
		p.send(0, &wire.Detach{Handle: 0, Closed: true})
		p.expectDetach(0, "")
		<-waited
		l.Wake() // begins nothing
		testkit.Equal(t, out.closed.Load(), 1, "closed")
	})
}

// Whoever wakes links while their connection ends begins nothing that outlives it.
func TestWakingWhileTheConnectionEnds(t *testing.T) {
	for range 20 {
		attached := make(chan *Link, 8)
		var running atomic.Int32
		var out source
		out.run = func(context.Context, *Link) error {
			running.Add(1)
			defer running.Add(-1)
			return nil
		}
		h := &handler{attach: func(l *Link) (Terminus, error) {
			attached <- l
			return Terminus{Source: &out, OnDemand: true}, nil
		}}
		f := serve(t, h)
		p := f.raw()
		p.begin()
		var wakers sync.WaitGroup
		stop := make(chan struct{})
		for n := range uint32(8) {
			ask[wire.Attach](p, 0, receiver(fmt.Sprint("r", n), n))
			l := receive(t, attached, "link")
			wakers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						l.Wake()
						runtime.Gosched()
					}
				}
			})
			if n%2 == 0 {
				p.send(0, &wire.Detach{Handle: n, Closed: true})
				p.expectDetach(n, "")
			}
		}
		p.nc.Close()
		f.stop()
		testkit.Equal(t, running.Load(), 0, "sources that run when the connection has ended")
		testkit.Equal(t, out.closed.Load(), 8, "closed")
		close(stop)
		wakers.Wait()
	}
}
