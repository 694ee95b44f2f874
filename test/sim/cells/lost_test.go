package cells

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// What a cell takes of its clients when it comes back; docs/internals/scale.md names the sources.
const (
	tick        = 10 * time.Millisecond
	connectRate = 2500.0          // connections a second: 5 cores, 500 each
	usualBytes  = 0.6 * cellBytes // a second, before it was lost
	batchBytes  = 256 << 10
	outage      = 10 * time.Minute
	admitted    = 2 * time.Second // with limits: who has waited longer for a connection is refused
	refusalCost = 0.05            // of a connection
	retries     = 3               // of the SDK; then the application tries again
	appPause    = time.Second
	tooLong     = outage + time.Hour
)

// sdk is how a client tries again, as the Go SDK does (azeventhubs/v2, internal/utils/retrier.go):
// (2^n - 1) times the base with a jitter of 0.8 to 1.3, no longer than a cap.
type sdk struct {
	name              string
	base, cap, perTry time.Duration
}

func (s sdk) wait(r *rand.Rand, retry int) time.Duration {
	if retry > retries {
		return time.Duration(float64(appPause) * (0.5 + r.Float64()))
	}
	return min(s.cap, time.Duration(float64(s.base)*float64(int(1)<<retry-1)*(r.Float64()/2+0.8)))
}

// queue is what a cell does for clients, one after another. Without limits it finds out only
// afterwards who has left meanwhile.
type queue struct {
	patience time.Duration // who has waited longer is refused; zero: nobody
	credit   bool          // a request waits at the client until it is its turn: who has left costs nothing
	perTick  float64
	budget   float64
	items    []item

	wasted, refused int
	longest         time.Duration
}

type item struct {
	client, attempt, batch int32
	since                  time.Duration
}

func (q *queue) serve(now time.Duration, waits func(item) bool, do, refuse func(item)) {
	q.budget = min(q.budget+q.perTick, q.perTick+1)
	n := 0
	for ; n < len(q.items) && q.budget >= 1; n++ {
		i := q.items[n]
		switch left := !waits(i); {
		case left && q.credit:
			continue
		case q.patience > 0 && now-i.since >= q.patience:
			q.refused++
			q.budget -= refusalCost
			refuse(i)
			continue
		case left:
			q.wasted++
		}
		q.budget--
		q.longest = max(q.longest, now-i.since)
		do(i)
	}
	q.items = q.items[n:]
}

// client publishes a batch whenever it has one, and waits for the answer.
type client struct {
	connected, waiting bool
	stored             bool  // the batch that it sends is, whether it knows or not
	attempt            int32 // of all its calls
	batch              int32 // batches acknowledged
	retry              int   // of this call
}

// comeBack is a cell that was lost, and its clients.
type comeBack struct {
	r                 *rand.Rand
	sdk               sdk
	size              float64 // times that of a cell
	clients           []client
	every             time.Duration // a client has a batch
	connect, requests queue
	now               time.Duration
	next              map[time.Duration][]int32 // what clients do
	deadlines         map[time.Duration][]item
	tries             [int(tooLong / time.Second)]int // to connect, by second
	connected         int
	lastIn, caughtUp  time.Duration // since the cell is back
	repeats           int
}

func newComeBack(s sdk, clients int, size float64, limits bool) *comeBack {
	c := &comeBack{
		r: chance("lost"), sdk: s, size: size, clients: make([]client, clients), next: map[time.Duration][]int32{}, deadlines: map[time.Duration][]item{},
		every:    time.Duration(batchBytes * float64(clients) / (usualBytes * size) * float64(time.Second)),
		connect:  queue{perTick: connectRate * size * tick.Seconds()},
		requests: queue{perTick: cellBytes * size / batchBytes * tick.Seconds(), credit: limits},
	}
	if limits {
		c.connect.patience = admitted
	}
	for i := range c.clients { // all connections break within a second, and the first try is at once
		c.at(time.Duration(c.r.Int64N(int64(time.Second))), int32(i))
	}
	return c
}

func (c *comeBack) at(when time.Duration, client int32) {
	when = max(when, c.now+tick).Truncate(tick)
	c.next[when] = append(c.next[when], client)
}

// run goes on until all are connected and have caught up, or for too long.
func (c *comeBack) run() {
	for ; c.now < tooLong && c.caughtUp == 0; c.now += tick {
		for _, i := range c.deadlines[c.now] {
			c.refuse(i)
		}
		for _, i := range c.next[c.now] {
			c.try(i)
		}
		delete(c.deadlines, c.now)
		delete(c.next, c.now)
		if c.now < outage {
			continue
		}
		c.connect.serve(c.now, c.waits, c.join, c.refuse)
		c.requests.serve(c.now, c.waits, c.store, c.refuse)
		if c.now%time.Second == 0 && c.connected == len(c.clients) && c.behind() == 0 {
			c.caughtUp = c.now - outage
		}
	}
}

// try is a client's next act: it connects, or sends a batch once it has one.
func (c *comeBack) try(i int32) {
	cl, q := &c.clients[i], &c.requests
	if !cl.connected {
		q = &c.connect
		c.tries[c.now/time.Second]++
	} else if ready := time.Duration(cl.batch+1) * c.every; ready > c.now {
		c.at(ready, i)
		return
	}
	cl.attempt++
	cl.waiting = true
	it := item{client: i, attempt: cl.attempt, batch: cl.batch, since: c.now}
	if c.now < outage {
		c.refuse(it)
		return
	}
	q.items = append(q.items, it)
	deadline := (c.now + c.sdk.perTry).Truncate(tick)
	c.deadlines[deadline] = append(c.deadlines[deadline], it)
}

func (c *comeBack) waits(it item) bool {
	cl := &c.clients[it.client]
	return cl.waiting && cl.attempt == it.attempt
}

// refuse is also what a time-out of its own is to a client.
func (c *comeBack) refuse(it item) {
	if !c.waits(it) {
		return
	}
	cl := &c.clients[it.client]
	cl.waiting = false
	cl.retry++
	c.at(c.now+c.sdk.wait(c.r, cl.retry), it.client)
	cl.retry %= retries + 1
}

func (c *comeBack) join(it item) {
	if c.waits(it) {
		c.clients[it.client].connected = true
		c.connected++
		c.lastIn = c.now - outage
		c.answer(it.client)
	}
}

// store keeps the batch, whoever waits for it.
func (c *comeBack) store(it item) {
	cl := &c.clients[it.client]
	if it.batch < cl.batch || cl.stored {
		c.repeats++
	}
	cl.stored = cl.stored || it.batch == cl.batch
	if c.waits(it) {
		cl.batch++
		cl.stored = false
		c.answer(it.client)
	}
}

func (c *comeBack) answer(i int32) {
	c.clients[i].waiting, c.clients[i].retry = false, 0
	c.at(c.now, i)
}

// behind counts clients that have more than the newest batch to send.
func (c *comeBack) behind() (n int) {
	for i := range c.clients {
		if time.Duration(c.clients[i].batch+2)*c.every <= c.now {
			n++
		}
	}
	return n
}

// C5: a cell is lost for ten minutes, and all its clients try again.
func TestALostCellComesBack(t *testing.T) {
	size := sized(0.05, 1.0)
	for _, clients := range sized([]int{20_000}, []int{20_000, 100_000}) {
		for _, s := range []sdk{
			{"Go", 4 * time.Second, 120 * time.Second, 60 * time.Second},
			{"base 0.8 s", 800 * time.Millisecond, 60 * time.Second, 60 * time.Second},
			{"base 0.8 s and deadline 5 s", 800 * time.Millisecond, 60 * time.Second, 5 * time.Second},
		} {
			for _, limits := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d clients, %s, limits %v", clients, s.name, limits), func(t *testing.T) {
					c := newComeBack(s, int(float64(clients)*size), size, limits)
					c.run()
					if limits { // whoever is served still waits, so all that the cell does is of use, and it can do more than what comes
						testkit.That(t, c.connect.wasted+c.requests.wasted+c.repeats == 0, "served in vain: %d connections, %d batches, %d again", c.connect.wasted, c.requests.wasted, c.repeats)
						testkit.That(t, c.connect.longest < admitted, "a connection waited %v", c.connect.longest)
						testkit.That(t, c.caughtUp > 0, "%d are connected, %d behind, after %v", c.connected, c.behind(), c.now)
					}
					c.report(t)
				})
			}
		}
	}
}

func (c *comeBack) report(t *testing.T) {
	most := func(from, to time.Duration) float64 {
		return float64(slices.Max(c.tries[from/time.Second:to/time.Second])) / connectRate / c.size
	}
	t.Logf("tries a second, in times of what the cell takes: %.1f when lost, %.1f after a minute, %.1f when back; %d of %d in after %v; %d behind after %v; in vain %d connections, %d batches, %d stored again; %d refused; waited up to %v and %v",
		most(0, time.Minute), most(time.Minute, outage), most(outage, tooLong), c.connected, len(c.clients), c.lastIn.Round(time.Second), c.behind(), (c.now - outage).Round(time.Second),
		c.connect.wasted, c.requests.wasted, c.repeats, c.connect.refused, c.connect.longest.Round(time.Second), c.requests.longest.Round(time.Second))
}
