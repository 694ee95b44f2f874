package cells

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/testkit"
)

// What webhooks bring and a node sends; docs/internals/scale.md names the sources.
const (
	step        = 10 * time.Second
	hour        = int(time.Hour / step)
	webhooks    = 100e6 // a day
	burst       = 10    // times the usual, for ten minutes at noon
	coreRate    = 6500  // requests a second, of a node with one core
	shards      = 64
	concurrency = 16                     // requests of a subscription at once: delivery's default
	answerTime  = 100 * time.Millisecond // of a receiver
	failing     = 0.01                   // of attempts
)

func timeOf(s int) time.Time { return time.Unix(0, 0).Add(time.Duration(s) * step) }

func since(s, from int) time.Duration { return time.Duration(s-from) * step }

// cohort is events of one subscription that were published in one step and have had as many attempts.
type cohort struct{ published, attempts, n int }

// lane is a subscription.
type lane struct {
	share         float64
	node          int
	atRisk        bool // its receiver is one of those that go down
	health        retry.Health
	queue         []cohort
	queued        int
	parts, fails  float64 // of events still to be published, and of those that will fail
	asked         int     // requests while its receiver was down
	back, current int     // the steps when that succeeded again (not yet: -1), and when all was sent
}

// grid is subscriptions on some nodes. In steps from halt[0] to halt[1] nothing is sent, from down[0]
// to down[1] the receivers at risk do not answer.
type grid struct {
	lanes        []lane
	nodes, batch int
	halt, down   [2]int
	end          int                      // when all is well again
	due          map[int]map[int][]cohort // by step and lane: what waits in retry logs
	rates        [24 * 360]float64        // by step of a day, in parts of their sum
	rated        float64                  // which is this

	published, delivered, dead, waiting int
	others, late                        int // first attempts of the others, and those after more than a minute
}

func newGrid(lanes, nodes, batch int) *grid {
	g := &grid{nodes: nodes, batch: batch, due: map[int]map[int][]cohort{}}
	for i, share := range zipf(chance("lanes"), lanes) {
		node := int(hash(fmt.Sprint("subscription-", i))%shards) % nodes
		g.lanes = append(g.lanes, lane{share: share, node: node, atRisk: i%10 == 3})
	}
	for s := range g.rates {
		g.rates[s] = 1 + 0.6*math.Sin(2*math.Pi*float64(s)/float64(len(g.rates)))
		if s >= 12*hour && s < 12*hour+hour/6 {
			g.rates[s] = burst
		}
		g.rated += g.rates[s]
	}
	return g
}

// step publishes, brings back what is due, and lets every node send.
func (g *grid) step(t *testing.T, s int) {
	now, due := timeOf(s), g.due[s]
	for i := range g.lanes {
		l := &g.lanes[i]
		whole, part := math.Modf(l.parts + l.share*webhooks*g.rates[s%len(g.rates)]/g.rated)
		l.parts = part
		l.add(cohort{published: s, n: int(whole)})
		g.published += int(whole)
		for _, c := range due[i] {
			l.add(c)
			g.waiting -= c.n
		}
		for len(l.queue) > 0 && retry.Expired(retry.Policy{}, timeOf(l.queue[0].published), now) {
			g.dead += l.take(l.queue[0].n)[0].n
		}
	}
	delete(g.due, s)
	if s >= g.halt[0] && s < g.halt[1] {
		return
	}
	for node := range g.nodes {
		g.divide(t, s, node)
	}
}

// divide shares what a node can send: nobody gets more than it wants, and what one does not want is
// the others'.
func (g *grid) divide(t *testing.T, s, node int) {
	type ask struct{ lane, requests int }
	var asks []ask
	now := timeOf(s)
	for i := range g.lanes {
		l := &g.lanes[i]
		state := l.health.State(now)
		if l.node != node || l.queued == 0 || state == retry.Waiting {
			continue
		}
		requests := min((l.queued+g.batch-1)/g.batch, int(step/answerTime)*concurrency)
		if state == retry.Probing {
			requests = 1
		}
		asks = append(asks, ask{i, requests})
	}
	slices.SortStableFunc(asks, func(a, b ask) int { return a.requests - b.requests })
	left := coreRate * int(step/time.Second)
	fair := left / max(len(asks), 1)
	for i, a := range asks {
		gets := min(a.requests, left/(len(asks)-i))
		left -= gets
		if gets < min(a.requests, fair) {
			t.Errorf("step %d: a lane wants %d requests and gets %d, its share is %d", s, a.requests, gets, fair)
		}
		g.send(s, a.lane, gets)
	}
}

// send asks a receiver that is down one by one, and stops when it is on probation; others all at once.
func (g *grid) send(s, i, requests int) {
	l := &g.lanes[i]
	rounds, size, outcome := 1, requests*g.batch, retry.Delivered
	if g.isDown(l, s) {
		rounds, size, outcome = min(requests, concurrency), g.batch, retry.SocketError
		l.back = -1
	} else if l.back < 0 {
		l.back = s
	}
	for ; rounds > 0 && l.queued > 0 && l.health.State(timeOf(s)) != retry.Waiting; rounds-- {
		for _, c := range l.take(size) {
			g.attempt(s, i, c)
		}
		if l.health = l.health.After(retry.Probation{}, outcome, timeOf(s)); outcome != retry.Delivered {
			l.asked++
		}
	}
}

func (g *grid) isDown(l *lane, s int) bool { return l.atRisk && s >= g.down[0] && s < g.down[1] }

// attempt sends events, and asks for the verdict on those that fail.
func (g *grid) attempt(s, i int, c cohort) {
	l := &g.lanes[i]
	if c.attempts == 0 && !l.atRisk {
		g.others += c.n
		if since(s, c.published) > time.Minute {
			g.late += c.n
		}
	}
	c.attempts++
	failed, how := c.n, retry.Attempt{Number: c.attempts, Outcome: retry.SocketError}
	if !g.isDown(l, s) {
		whole, part := math.Modf(l.fails + failing*float64(c.n))
		failed, l.fails = int(whole), part
		how.Outcome, how.Status = retry.GenericError, 500
	}
	g.delivered += c.n - failed
	if failed == 0 {
		return
	}
	verdict := retry.Judge(retry.Policy{}, how)
	if c.n = failed; verdict.Do == retry.GiveUp {
		g.dead += failed
		return
	}
	at := s + int((verdict.Wait+step-1)/step)
	if g.due[at] == nil {
		g.due[at] = map[int][]cohort{}
	}
	g.due[at][i] = append(g.due[at][i], c)
	g.waiting += failed
}

func (l *lane) add(c cohort) {
	if c.n > 0 {
		l.queue = append(l.queue, c)
		l.queued += c.n
	}
}

func (l *lane) take(n int) (taken []cohort) {
	for n > 0 && len(l.queue) > 0 {
		c := l.queue[0]
		c.n = min(c.n, n)
		n, l.queued = n-c.n, l.queued-c.n
		taken = append(taken, c)
		if l.queue[0].n -= c.n; l.queue[0].n == 0 {
			l.queue = l.queue[1:]
		}
	}
	return taken
}

// play runs until a step, and notes when each lane has sent all that was older than a minute.
func (g *grid) play(t *testing.T, until int) {
	for s := range until {
		g.step(t, s)
		queued := 0
		for i := range g.lanes {
			l := &g.lanes[i]
			queued += l.queued
			if s >= g.end && l.current == 0 && (len(l.queue) == 0 || since(s, l.queue[0].published) <= time.Minute) {
				l.current = s
			}
		}
		testkit.MustEqual(t, g.delivered+g.dead+queued+g.waiting, g.published, "step %d: delivered, dead-lettered, queued and waiting", s)
	}
}

// String says when the lanes that were cut off had caught up, and how late the others were.
func (g *grid) String() string {
	var took []float64
	never := 0
	for i := range g.lanes {
		if l := &g.lanes[i]; l.current == 0 {
			never++
		} else if g.down[1] == g.down[0] || l.atRisk {
			took = append(took, float64(l.current-g.end))
		}
	}
	after := func(q float64) time.Duration { return time.Duration(quantile(took, q)) * step }
	return fmt.Sprintf("half caught up after %v, nine of ten after %v, all after %v, %d not at all; %.1f M too old; %.2f %% of the others late", after(0.5), after(0.9), after(1), never, float64(g.dead)/1e6, 100*float64(g.late)/float64(g.others))
}

// C4: for hours nothing is sent, or the receivers of a tenth of the subscriptions are down; then all
// of it drains. A receiver that is down gets what was under way and then one probe for each probation,
// twice as long each time up to three hours; so it is found well within three hours.
func TestWebhooksDrain(t *testing.T) {
	for _, hours := range sized([][2]int{{12, 0}, {0, 4}}, [][2]int{{6, 0}, {12, 0}, {23, 0}, {0, 0}, {0, 4}, {0, 12}, {0, 22}}) {
		for _, nodes := range sized([]int{1}, []int{1, 4}) {
			for _, batch := range sized([]int{1}, []int{1, 10, 100}) {
				t.Run(fmt.Sprintf("halted %d h, down %d h, %d nodes, batches of %d", hours[0], hours[1], nodes, batch), func(t *testing.T) {
					g := newGrid(sized(50, 1000), nodes, batch)
					g.halt, g.down = [2]int{hour, (1 + hours[0]) * hour}, [2]int{hour, (1 + hours[1]) * hour}
					g.end = (max(hours[0], hours[1]) + 1) * hour
					g.play(t, sized(24, 48)*hour)
					asked, found := 0, 0
					for i := range g.lanes {
						if l := &g.lanes[i]; l.asked > 0 {
							asked, found = max(asked, l.asked), max(found, l.back-g.down[1])
							testkit.That(t, l.atRisk && l.asked <= concurrency+10+hours[1]/3, "lane %d was asked %d times", i, l.asked)
							testkit.That(t, l.back > 0 && since(l.back, g.down[1]) <= 3*time.Hour+step, "lane %d was found well after %v", i, since(l.back, g.down[1]))
						}
					}
					t.Logf("%s; receivers that were down: asked up to %d times, found well after up to %v", g, asked, since(found, 0))
				})
			}
		}
	}
}
