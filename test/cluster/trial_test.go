package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// trial is everything that is done with the yard while faults happen to it.
type trial struct {
	yard     *yard
	load     *load
	workers  *workers
	function *function
	webhooks *webhooks
	epochs   *epochs
	appends  *appends
	moves    *moves
	raised   int // how many cursors have passed from an epoch to a higher one, once it has ended
	repeated repeats
	severed  []span // when there was no majority
}

// repeats is how many events came again to those who get each at least once.
type repeats struct{ webhooks, function, processor int }

// repeats counts those since the last call, and tells of them.
func (r *trial) repeats() string {
	all, _ := r.webhooks.repeats()
	now := repeats{all, r.function.repeats(), r.workers.repeats()}
	was := r.repeated
	r.repeated = now
	return fmt.Sprintf("repeats: %d of webhooks, %d of the function, %d of the processor",
		now.webhooks-was.webhooks, now.function-was.function, now.processor-was.processor)
}

// repeatedNothing judges a trial of planned restarts, once it has ended: nothing was stored twice that was acknowledged at
// the first attempt, and nothing was given to anybody again, but to webhooks what was published again. C1, C4
func (r *trial) repeatedNothing(t testing.TB) {
	t.Helper()
	_, webhooks := r.webhooks.repeats()
	testkit.Equal(t, r.load.repeated, 0, "events that were acknowledged at the first attempt and are there twice")
	testkit.Equal(t, webhooks, 0, "deliveries to webhooks beyond one for each attempt to publish the event")
	testkit.Equal(t, r.function.repeats(), 0, "events that the function was given again")
	testkit.Equal(t, r.workers.repeats(), 0, "events that the processor was given again")
}

// begin starts it all, on hubs and a topic whose names begin with that one.
func (y *yard) begin(t testing.TB, name string) *trial {
	t.Helper()
	r := &trial{yard: y, moves: y.overhear(t), load: y.run(t, name)}
	r.workers = y.process(t, name)
	r.function = y.handle(t, name)
	r.webhooks = y.deliver(t, name+"-topic")
	r.epochs = y.compete(t, name+"-epochs")
	r.appends = y.append(t, name+"-appends")
	r.goesOn(t, "before any fault")
	return r
}

// goesOn waits until everything gets on.
func (r *trial) goesOn(t testing.TB, when string) {
	t.Helper()
	r.load.goesOn(t, when)
	r.webhooks.goesOn(t, when)
	r.workers.goesOn(t, when)
}

// endure has a fault happen, and in the midst of it a receiver take over from another.
func (r *trial) endure(t testing.TB, f fault) {
	t.Helper()
	begun := time.Now()
	taken := make(chan error, 1)
	f.begin(t, r.yard)
	r.epochs.all.Go(func() { taken <- r.epochs.takeOver() })
	if f.severs != nil {
		r.sever(t, f)
	} else {
		time.Sleep(f.lasts) // a fault has a length; nothing is waited for
	}
	if f.until != nil {
		f.until(t, r)
	}
	f.end(t, r.yard)
	testkit.Must(t, <-taken, "no receiver takes over where %s", f.name)
	r.goesOn(t, "after "+f.name)
	r.epochs.judge(t)
	t.Logf("%s: %v in all; the longest pause of all senders was %v, a receiver took over within %v; %s", f.name,
		time.Since(begun).Round(time.Millisecond), r.load.pausedFor().Round(time.Millisecond), r.epochs.current.took.Round(time.Millisecond), r.repeats())
}

// end stops it all and judges what is there.
func (r *trial) end(t testing.TB) {
	t.Helper()
	begun := time.Now()
	r.load.stop()
	r.webhooks.stop()
	r.epochs.stop()
	r.appends.stop()
	t.Logf("all senders have ended within %v", time.Since(begun).Round(time.Millisecond))
	r.load.end(t)
	r.workers.judge(t, r.load.records)
	r.function.judge(t, r.load.records)
	r.webhooks.judge(t)
	for _, s := range r.severed {
		r.load.heard.judgeMinority(t, "sender", s)
		r.webhooks.heard.judgeMinority(t, "publisher", s)
	}
	r.epochs.judgeAll(t)
	r.appends.judge(t)
	r.raised = r.moves.judge(t)
	t.Logf("%d events acknowledged; judged within %v", r.load.acknowledged(), time.Since(begun).Round(time.Millisecond))
}

// remove deletes what the trial has made, so that a yard can have many.
func (r *trial) remove(t testing.TB) {
	t.Helper()
	client := r.yard.nodes[1].admin(t)
	manage(t, "delete the function", func(ctx context.Context) error { return client.DeleteFunction(ctx, r.function.name) })
	for i := range subscriptions {
		manage(t, "delete a subscription", func(ctx context.Context) error { return client.DeleteSubscription(ctx, r.webhooks.ref(i)) })
	}
	manage(t, "delete the topic", func(ctx context.Context) error { return client.DeleteTopic(ctx, r.webhooks.topic) })
	for _, name := range []string{r.load.hub, r.epochs.hub, r.appends.hub} {
		manage(t, "delete hub "+name, func(ctx context.Context) error { return client.DeleteHub(ctx, name) })
	}
}
