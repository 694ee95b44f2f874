package local

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
)

// A reader that rests is woken once, by whatever Next would tell.
func TestAReaderThatRestsIsWokenOnce(t *testing.T) {
	for name, stir := range map[string]func(t *testing.T, y *yard, r hub.Reader, cancel func()){
		"by an event":            func(_ *testing.T, y *yard, _ hub.Reader, _ func()) { y.texts("0", "a") },
		"by the end of its wait": func(_ *testing.T, _ *yard, _ hub.Reader, cancel func()) { cancel() },
		"by its end":             func(t *testing.T, _ *yard, r hub.Reader, _ func()) { testkit.Must(t, r.Close(t.Context())) },
		"by the end of its hub": func(t *testing.T, y *yard, _ hub.Reader, _ func()) {
			testkit.Must(t, y.broker.DeleteHub(t.Context(), "orders"))
		},
		"by who takes its place": func(_ *testing.T, y *yard, _ hub.Reader, _ func()) {
			y.open(y.local, hub.ReadConfig{Partition: "0", Epoch: hub.Exclusive(9)})
		},
		"by two events and an end": func(_ *testing.T, y *yard, _ hub.Reader, cancel func()) { y.texts("0", "a", "b"); cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, y *yard) {
				r := y.open(y.local, hub.ReadConfig{Partition: "0", Epoch: hub.Exclusive(1)})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var woken atomic.Int64
				r.(*reader).Await(ctx, func() { woken.Add(1) })
				y.texts("1", "elsewhere")
				synctest.Wait()
				testkit.Equal(t, woken.Load(), 0, "before that it was woken")
				stir(t, y, r, cancel)
				time.Sleep(time.Second)
				testkit.Equal(t, woken.Load(), 1, "it was woken")
			})
		})
	}
}

// What is there already is not waited for; whoever rests again after it is woken again. However
// many rest, there is one tail, and none when they have left.
func TestReadersThatRestTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		tails := y.local.(*Namespace).tails
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		readers, woken := make([]hub.Reader, 5), make(chan int, 5)
		await := func(i int) { readers[i].(*reader).Await(ctx, func() { woken <- i }) }
		y.texts("0", "a")
		for i := range readers {
			readers[i] = y.open(y.local, hub.ReadConfig{Partition: "0"})
			await(i)
		}
		for range 3 {
			synctest.Wait()
			testkit.Equal(t, len(woken), len(readers), "so many were woken")
			testkit.Equal(t, len(tails.open), 0, "so many tails are left")
			for range readers {
				i := <-woken
				testkit.Equal(t, len(read(t, readers[i], 1)), 1, "it read")
				await(i)
			}
			synctest.Wait()
			testkit.Equal(t, len(woken), 0, "with nothing to read so many were woken")
			testkit.Equal(t, len(tails.open), 1, "so many tails are open")
			y.texts("0", "b")
		}
		cancel()
		synctest.Wait()
		testkit.Equal(t, len(tails.open), 0, "in the end so many tails are left")
	})
}

// No event is missed, whenever it comes.
func TestNoEventIsMissedAtRest(t *testing.T) {
	y := openYard(t)
	const events = 2000
	r := y.open(functions.Namespace(y.local), hub.ReadConfig{Partition: "0"})
	go func() {
		for range events {
			y.texts("0", "x")
		}
	}()
	for got := 0; got < events; {
		woken := make(chan struct{})
		r.(*reader).Await(t.Context(), func() { close(woken) })
		<-woken
		batch, err := r.Next(t.Context(), nil, 100)
		testkit.Must(t, err)
		got += len(batch)
	}
}
