package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"github.com/eventyard/eventyard/test/bench/measure"
)

// figure is what is measured of a turn.
type figure string

const (
	rate      figure = "events/s"
	clientCPU figure = "client µs/event"
	serverCPU figure = "server µs/event"
	p50       figure = "p50 (ms)"
	p99       figure = "p99 (ms)"
)

// scores are figures of one comparison: of each contender, by name, one value for each round.
type scores map[string]map[figure]measure.Series

func (s scores) add(who string, what figure, value float64) {
	if s[who] == nil {
		s[who] = map[figure]measure.Series{}
	}
	s[who][what] = append(s[who][what], value)
}

// work is what was done in a turn, and what it took.
type work struct {
	events         int64
	took           time.Duration
	client, server time.Duration // on processors
}

func (s scores) addWork(who string, w work) {
	events := float64(max(w.events, 1))
	s.add(who, rate, float64(w.events)/w.took.Seconds())
	s.add(who, clientCPU, float64(w.client.Microseconds())/events)
	s.add(who, serverCPU, float64(w.server.Microseconds())/events)
}

// addLatencies takes the percentiles of a turn.
func (s scores) addLatencies(who string, all []time.Duration) {
	slices.Sort(all)
	at := func(percent int) float64 { return float64(all[(len(all)-1)*percent/100]) / float64(time.Millisecond) }
	s.add(who, p50, at(50))
	s.add(who, p99, at(99))
}

// over is a figure of one contender divided by another's, round by round; empty if either was not there.
func (s scores) over(one, other string, what figure) measure.Series {
	return s[one][what].Over(s[other][what])
}

// table shows some figures of all contenders, in the order in which they are named.
func (s scores) table(title string, names []string, figures []figure, notes ...string) measure.Table {
	t := measure.Table{Title: title, Head: []string{"what"}, Notes: notes}
	for _, f := range figures {
		t.Head = append(t.Head, string(f), "spread")
	}
	for _, name := range names {
		if s[name] == nil {
			continue
		}
		row := []string{name}
		for _, f := range figures {
			row = append(row, measure.Number(s[name][f].Median()), s[name][f].Spread())
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// metered does some work with a server and reads, around it, how long both sides ran on processors. The client is
// this process.
func metered(p peer, do func() (events int64, err error)) (w work, err error) {
	client, server := cpuTimes(p)
	began := time.Now()
	w.events, err = do()
	w.took = time.Since(began)
	clientAfter, serverAfter := cpuTimes(p)
	w.client, w.server = clientAfter-client, serverAfter-server
	if err == nil && w.events == 0 {
		err = fmt.Errorf("nothing was done in %s", w.took)
	}
	return w, err
}

// cpuTimes are zero where nobody knows them.
func cpuTimes(p peer) (client, server time.Duration) {
	client, _ = measure.CPUTime(os.Getpid())
	server, _ = measure.CPUTime(p.pid())
	return client, server
}

// turnTime bounds one turn beyond what it is to take, so that a server which stops answering does not stop the race.
const turnTime = 2 * time.Minute

// lap is one round: a contender's turn is called for each that is still in the race, in random order.
func (b *bench) lap(ctx context.Context, in []peer, turn func(ctx context.Context, p peer) error) error {
	in = b.still(in)
	for _, i := range rand.Perm(len(in)) {
		p := in[i]
		if err := b.settleDisk(ctx); err != nil {
			return err
		}
		err := func() error {
			timed, cancel := context.WithTimeout(ctx, turnTime+10*b.period)
			defer cancel()
			return turn(timed, p)
		}()
		if err := b.failed(ctx, p, err); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// failed deals with what a contender has failed at, if it has: a guest is out from then on, which is noted in the report;
// a failure of ours is given back, and ends the run.
func (b *bench) failed(ctx context.Context, p peer, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil || p.about().ours:
		return fmt.Errorf("%s: %w", p.about().name, err)
	}
	b.leaveOut(p.about().name+", from then on", err)
	if b.out == nil {
		b.out = map[peer]bool{}
	}
	b.out[p] = true
	return nil
}

// still are those that have not failed.
func (b *bench) still(in []peer) []peer {
	return slices.DeleteFunc(slices.Clone(in), func(p peer) bool { return b.out[p] })
}

// settleDisk lets the operating system write what one turn left behind before the next begins. Where there is no such
// command, the next one pays for it. A quick run, whose figures mean nothing, does not wait for what others write.
func (b *bench) settleDisk(ctx context.Context) error {
	runtime.GC()
	if b.quick {
		return nil
	}
	path, err := exec.LookPath("sync")
	if err != nil {
		return nil
	}
	return exec.CommandContext(ctx, path).Run()
}

// names are those of peers, in order.
func names(all []peer) (list []string) {
	for _, p := range all {
		list = append(list, p.about().name)
	}
	return list
}

// storing keeps the peers of some durabilities.
func storing(all []peer, like ...durability) []peer {
	return slices.DeleteFunc(slices.Clone(all), func(p peer) bool { return !slices.Contains(like, p.about().stores) })
}

// pause waits, unless the context ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
