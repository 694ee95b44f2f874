package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/eventyard/eventyard/test/bench/measure"
)

const (
	manySubscriptions = 10_000
	manyRate          = 5000
	backlogEvents     = 1_000_000
)

// measureGridScale publishes to a topic with ten thousand subscriptions, and to one with an
// endpoint that is dead.
func measureGridScale(ctx context.Context, b *bench) error {
	program, err := b.program(ctx)
	if err != nil {
		return err
	}
	if err := b.gridMany(ctx, program); err != nil {
		return err
	}
	return b.gridBacklog(ctx, program)
}

// smoke tells whether only to see that everything works.
func (b *bench) smoke() bool { return b.period < 500*time.Millisecond }

// home is an event of one of many homes.
func home(id string) string {
	return fmt.Sprintf(`{"id":%q,"subject":"/homes/%s","eventType":"reading","eventTime":"2026-01-02T15:04:05Z","data":{"home":"h%s","pad":%q}}`,
		id, id, id, strings.Repeat("x", 200))
}

// gridMany compares how fast events are published with one subscription and with ten thousand that
// each want one home, then publishes at a steady rate and looks how late the last match is.
func (b *bench) gridMany(ctx context.Context, program string) error {
	subscriptions := manySubscriptions
	if b.smoke() {
		subscriptions /= 50
	}
	b.progress("grid: %d subscriptions with selective filters", subscriptions)
	events := b.gridEvents(20_000)
	var rates [2]measure.Series
	var lag time.Duration
	for i, n := range []int{1, subscriptions} {
		dir, err := b.newFolder()
		if err != nil {
			return err
		}
		y, err := startGrid(ctx, program, dir)
		if err != nil {
			return err
		}
		sink := newSink(1 << 40)
		err = y.subscribeHomes(ctx, sink.url(), n)
		if err == nil {
			rates[i], err = y.publishRates(ctx, b.rounds, events)
		}
		if err == nil && n > 1 {
			lag, err = y.matchLag(ctx, sink)
		}
		sink.close()
		y.close()
		if err != nil {
			return err
		}
	}
	b.report.goal(fmt.Sprintf("publishing with %d subscriptions / with one", subscriptions), rates[1].Over(rates[0]), "×", atLeast(0.5))
	b.report.goal(fmt.Sprintf("lag of the last match after a second of %d events/s and %d subscriptions", manyRate, subscriptions), measure.Series{lag.Seconds()}, "s", atMost(1))
	return nil
}

// subscribeHomes makes n subscriptions: half by subject, half by an advanced filter.
func (y *gridYard) subscribeHomes(ctx context.Context, url string, n int) error {
	return each(4, func(worker int) error {
		for i := worker; i < n; i += 4 {
			filter := fmt.Sprintf(`,"subjectEndsWith":"/homes/%d"`, i)
			if i%2 == 1 {
				filter = fmt.Sprintf(`,"filters":["data.home StringIn h%d"]`, i)
			}
			if err := y.subscribe(ctx, fmt.Sprintf("home-%d", i), url, filter); err != nil {
				return err
			}
		}
		return nil
	})
}

// publishRates publishes events that nobody subscribes to, in requests of 100.
func (y *gridYard) publishRates(ctx context.Context, rounds, events int) (measure.Series, error) {
	var rates measure.Series
	for round := range rounds {
		began := time.Now()
		err := each(4, func(worker int) error {
			for i := worker * 100; i < events; i += 400 {
				if err := y.post(ctx, 10_000_000+round*events+i, 100, home); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		rates = append(rates, float64(events)/time.Since(began).Seconds())
	}
	return rates, nil
}

// matchLag publishes for a while at a steady rate, then one event that matches: how long it takes
// is how far behind matching is.
func (y *gridYard) matchLag(ctx context.Context, sink *sink) (time.Duration, error) {
	const batch = 50
	tick := time.NewTicker(time.Second * batch / manyRate)
	defer tick.Stop()
	for i := range 2 * manyRate / batch {
		<-tick.C
		if err := y.post(ctx, 20_000_000+i*batch, batch, home); err != nil {
			return 0, err
		}
	}
	before := sink.consumed.count.Load()
	began := time.Now()
	if err := y.post(ctx, 7, 1, home); err != nil {
		return 0, err
	}
	for sink.consumed.count.Load() == before {
		if time.Since(began) > time.Minute {
			return 0, fmt.Errorf("an event that matches did not arrive")
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(began), nil
}

// gridBacklog lets a million events wait behind an endpoint that is dead, beside one that is not.
func (b *bench) gridBacklog(ctx context.Context, program string) error {
	events := backlogEvents
	healthy := 50_000
	if b.smoke() {
		events, healthy = events/500, healthy/50
	}
	b.progress("grid: %d events behind a dead endpoint", events)
	dir, err := b.newFolder()
	if err != nil {
		return err
	}
	y, err := startGrid(ctx, program, dir)
	if err != nil {
		return err
	}
	defer y.close()
	alone, err := y.healthyRate(ctx, "alone", healthy)
	if err != nil {
		return err
	}
	before, _ := measure.ResidentKiB(y.cmd.Process.Pid)
	dead := deadAddress()
	if err := y.subscribe(ctx, "dead", "http://"+dead+"/", ""); err != nil {
		return err
	}
	if err := y.publish(ctx, events, 500); err != nil {
		return err
	}
	after, _ := measure.ResidentKiB(y.cmd.Process.Pid)
	beside, err := y.healthyRate(ctx, "beside", healthy)
	if err != nil {
		return err
	}
	drained, err := y.revive(ctx, dead, int64(events))
	if err != nil {
		return err
	}
	b.report.goal(fmt.Sprintf("memory that %d undelivered events cost", events), measure.Series{(after - before) / 1024}, "MiB", atMost(50))
	b.report.goal("a healthy subscription's rate beside a dead endpoint / alone", measure.Series{beside / alone}, "×", atLeast(0.95))
	b.report.table(measure.Table{Title: "Webhooks: a backlog behind a dead endpoint", Head: []string{"what", "value"}, Rows: [][]string{
		{"events behind it", fmt.Sprint(events)}, {"resident memory before", measure.Number(before/1024) + " MiB"}, {"resident memory then", measure.Number(after/1024) + " MiB"},
		{"healthy subscription alone", measure.Number(alone) + " events/s"}, {"beside it", measure.Number(beside) + " events/s"},
		{"drained after the endpoint came back, 100 events a request", measure.Number(drained) + " events/s"},
	}})
	return nil
}

// healthyRate publishes and delivers to a subscription of its own, end to end.
func (y *gridYard) healthyRate(ctx context.Context, name string, events int) (float64, error) {
	sink := newSink(int64(events))
	defer sink.close()
	if err := y.subscribe(ctx, name, sink.url(), `,"maxEvents":100,"preferredKib":1024`); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := y.publish(ctx, events, 500); err != nil {
		return 0, err
	}
	if err := sink.await(ctx); err != nil {
		return 0, err
	}
	rate := float64(events) / time.Since(began).Seconds()
	return rate, y.call(ctx, "DELETE", "/api/v1/subscriptions/"+name, "", nil)
}

// deadAddress is one where nobody listens.
func deadAddress() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err) // this machine has no loopback
	}
	defer l.Close()
	return l.Addr().String()
}

// revive brings the dead endpoint back and waits for its backlog.
func (y *gridYard) revive(ctx context.Context, address string, events int64) (float64, error) {
	sink := newSinkAt(address, events)
	defer sink.close()
	if err := y.call(ctx, "PATCH", "/api/v1/subscriptions/dead", `{"maxEvents":100,"preferredKib":1024,"concurrency":32}`, nil); err != nil {
		return 0, err
	}
	if err := y.call(ctx, "POST", "/api/v1/subscriptions/dead/probe", "", nil); err != nil {
		return 0, err
	}
	if err := sink.await(ctx); err != nil {
		return 0, err
	}
	t := sink.tally(gridEventBytes)
	return float64(t.events) / t.took.Seconds(), nil
}
