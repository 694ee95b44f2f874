package demo

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/grid"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/sleep"
)

const (
	// gatewaySenders is how many homes report at once at most.
	gatewaySenders = 192
	// gatewayTick is how often the gateway looks whose moment has come.
	gatewayTick = 10 * time.Millisecond
	// gatewayGrace is how long the last reports may take to be acknowledged.
	gatewayGrace = 45 * time.Second
)

// gateway sends what homes report: the readings of a home as one batch, with the home as key.
type gateway struct {
	settings
	out      *mouth
	sensors  *hub.Hub
	oddities *hub.Hub
	topic    *grid.Client

	plan  *schedule // of the dispatching goroutine
	kinds int       // of sensors in each home; likewise

	mu      sync.Mutex
	periods counts
	changed map[int64]bool // periods that the parent has not heard of
	due     int64
	alarms  int64
	odd     int64
}

// Gateway is the process `demo gateway`.
func Gateway(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, s, orders, err := listen(ctx, in)
	if err != nil {
		return err
	}
	client, err := hub.Dial(ctx, s.Connection, hub.Config{Name: s.Name})
	if err != nil {
		return err
	}
	defer client.Close()
	topic, err := grid.NewClient(grid.Config{Endpoint: s.Topic, Key: s.TopicKey})
	if err != nil {
		return err
	}
	g := &gateway{
		settings: s, out: &mouth{w: out}, sensors: client.Hub(sensorsHub), oddities: client.Hub(odditiesHub), topic: topic,
		plan: newSchedule(s.Homes, s.Every, time.Now()), kinds: sensorsAtFirst, periods: counts{}, changed: map[int64]bool{},
	}
	return g.run(ctx, orders)
}

// run sends until it is ordered to finish, or nobody listens any more. What has begun is waited for.
func (g *gateway) run(ctx context.Context, orders <-chan order) error {
	turns := make(chan task)
	var senders sync.WaitGroup
	for range gatewaySenders {
		senders.Go(func() {
			for t := range turns {
				g.report(ctx, t)
			}
		})
	}
	g.out.say(account{Ready: true})
	g.dispatch(ctx, turns, orders)
	close(turns)
	ended := make(chan struct{})
	go func() { senders.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(gatewayGrace): // what is not acknowledged now counts as not acknowledged
	}
	last := g.sending()
	last.Ended = true
	g.out.say(account{Sending: last})
	return nil
}

// task is one home's report.
type task struct {
	turn
	kinds int // of sensors
}

// dispatch hands out turns as they fall due, and says once a second how far the gateway is.
func (g *gateway) dispatch(ctx context.Context, turns chan<- task, orders <-chan order) {
	tick, second := time.NewTicker(gatewayTick), time.NewTicker(time.Second)
	defer tick.Stop()
	defer second.Stop()
	var next task
	var to chan<- task // nil: nobody's moment has come
	for {
		if to == nil {
			if t, ok := g.plan.due(time.Now()); ok {
				next, to = task{t, g.kinds}, turns
				g.count(t, func(c *count) { c.Begun += int64(g.kinds) })
			}
		}
		select {
		case to <- next:
			to = nil
		case o := <-orders:
			if o.Finish {
				return
			}
			g.obey(o)
		case <-second.C:
			g.out.say(account{Sending: g.sending()})
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (g *gateway) obey(o order) {
	if o.Carbon {
		g.kinds = sensorsWithCarbon
	}
	if o.Halve {
		g.plan.halve()
	}
}

func (g *gateway) sending() *sending {
	late := g.plan.late(time.Now()) * int64(g.kinds)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.due = max(g.due, g.periods.total().Begun+late) // homes that fall silent take back nothing
	s := &sending{Homes: g.plan.reporting(), Sensors: g.kinds, Due: g.due, Periods: counts{}, Alarms: g.alarms, Odd: g.odd}
	for period := range g.changed {
		s.Periods[period] = g.periods[period]
	}
	clear(g.changed)
	return s
}

func (g *gateway) count(t turn, change func(*count)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	period := t.period.Unix()
	c := g.periods[period]
	change(&c)
	g.periods[period] = c
	g.changed[period] = true
}

// report sends what a home has to say until the yard has acknowledged it. The yard may store a
// report twice, if it was killed before its answer came; consumers know it by home, sensor and period.
func (g *gateway) report(ctx context.Context, t task) {
	readings := make([]reading, t.kinds)
	batch := make([]event.Event, t.kinds)
	for i := range readings {
		readings[i] = reading{Home: homeName(t.home), Sensor: sensor(i).String(), At: t.at, Value: sense(t.home, sensor(i), t.at, g.Every)}
		ev, err := event.JSON(readings[i].Sensor, readings[i])
		if err != nil {
			panic(err) // of plain fields
		}
		ev.Key = readings[i].Home
		batch[i] = ev
	}
	if !g.until(ctx, func() error { return g.sensors.Send(ctx, batch...) }) {
		return
	}
	g.count(t.turn, func(c *count) { c.Acked += int64(t.kinds) })
	for i, r := range readings {
		g.raise(ctx, r, batch[i])
	}
}

// raise publishes a reading that is an alarm, and has the scorer look at one that is odd.
func (g *gateway) raise(ctx context.Context, r reading, ev event.Event) {
	if kind := r.alarm(); kind != "" {
		alarm, err := grid.JSON(kind, "homes/"+r.Home, r)
		if err != nil {
			panic(err) // of plain fields
		}
		alarm.ID = fmt.Sprintf("%s-%s-%d", r.Home, r.Sensor, r.At.Unix()) // the same if it is published twice
		if g.until(ctx, func() error { return g.topic.Publish(ctx, alarm) }) {
			g.mu.Lock()
			g.alarms++
			g.mu.Unlock()
		}
	}
	if r.isOdd() && g.until(ctx, func() error { return g.oddities.Send(ctx, ev) }) {
		g.mu.Lock()
		g.odd++
		g.mu.Unlock()
	}
}

// until does something until it succeeds; false: the context has ended before.
func (g *gateway) until(ctx context.Context, do func() error) bool {
	for {
		err := do()
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		g.out.trouble(err)
		if sleep.About(ctx, time.Second) != nil {
			return false
		}
	}
}
