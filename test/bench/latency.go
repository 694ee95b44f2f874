package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/eventyard/eventyard/test/bench/measure"
)

// latencyRates are the loads at which latency is measured, in events of 1 KiB a second.
func latencyRates() []int { return []int{1_000, 10_000} }

// syncedRate is what JetStream with a sync on every write can follow.
const syncedRate = 1_000

// measureLatency sends events at a steady rate, one by one, through the yard with its
// durable default and through JetStream with its default, which syncs every two
// minutes; through both at like durability; and through bare sockets with one sync, as the
// floor of what is durable. All run inside this process and are reached over TCP. The time
// counts from when an event was due, so that a sender who is held up does not hide it.
func measureLatency(ctx context.Context, b *bench) error {
	// The sender that sleeps here and a server that syncs would otherwise hold the only
	// two shares of the processors, which no yard of its own process suffers from.
	before := runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 2)
	defer runtime.GOMAXPROCS(before)
	s := measure.Table{Title: "End-to-end latency, events of 1 KiB sent one by one (ms)",
		Head: []string{"what", "p50", "spread", "p90", "spread", "p99", "spread"}}
	for _, rate := range latencyRates() {
		b.progress("latency: %d events/s", rate)
		yard, unsynced, js, bare, synced := &latencies{}, &latencies{}, &latencies{}, &latencies{}, &latencies{}
		ways := []struct {
			name string
			into *latencies
			open opener
		}{
			{"yard, sync `always`", yard, yardPipe("always")},
			{"yard, sync `os`", unsynced, yardPipe("os")},
			{"embedded JetStream, its default", js, jetStreamPipe(false)},
			{"bare sockets and one fdatasync", bare, barePipe},
			{"embedded JetStream, sync on every write", synced, jetStreamPipe(true)},
		}
		if rate > syncedRate {
			ways = ways[:len(ways)-1]
		}
		for round := range b.rounds {
			for turn := range ways {
				way := ways[(turn+round)%len(ways)]
				if err := b.takeLatency(ctx, rate, way.into, way.open); err != nil {
					return fmt.Errorf("%s: %w", way.name, err)
				}
			}
		}
		for _, way := range ways {
			s.Rows = append(s.Rows, way.into.row(fmt.Sprintf("%s, %d events/s", way.name, rate)))
		}
		for i, p := range latencyPoints {
			b.report.goal(fmt.Sprintf("latency at %d events/s, p%d: yard with `always` / JetStream's default", rate, p),
				yard.points[i].Over(js.points[i]), "×", atMost(1))
			b.report.goal("the floor: bare sockets and one fdatasync / JetStream's default", bare.points[i].Over(js.points[i]), "×", target{})
			b.report.goal("the same at like durability: yard with `os` / JetStream's default", unsynced.points[i].Over(js.points[i]), "×", target{})
			if rate <= syncedRate {
				b.report.goal("the same at like durability: yard with `always` / JetStream with sync on every write", yard.points[i].Over(synced.points[i]), "×", target{})
			}
		}
	}
	b.report.table(s)
	return nil
}

// latencyPoints are the percentiles shown.
var latencyPoints = [...]int{50, 90, 99}

// latencies are percentiles in milliseconds, round by round.
type latencies struct {
	points [len(latencyPoints)]measure.Series
}

func (l *latencies) add(all []time.Duration) {
	slices.Sort(all)
	for i, p := range latencyPoints {
		l.points[i] = append(l.points[i], float64(all[(len(all)-1)*p/100])/1e6)
	}
}

func (l *latencies) row(name string) []string {
	row := []string{name}
	for _, s := range l.points {
		row = append(row, measure.Number(s.Median()), s.Spread())
	}
	return row
}

// pipe is a way through a server: what is sent comes out at the other end.
type pipe struct {
	send func(ctx context.Context, body []byte) error
	// receive blocks until the next event is there.
	receive func(ctx context.Context) ([]byte, error)
	close   func() error
}

func (b *bench) takeLatency(ctx context.Context, rate int, into *latencies, open opener) error {
	dir, err := b.newFolder()
	if err != nil {
		return err
	}
	p, err := open(ctx, dir)
	if err != nil {
		return err
	}
	all, err := throughPipe(ctx, p, rate, max(int(b.period.Seconds()*float64(rate)), 20))
	if err := errors.Join(err, p.close(), quiesce(ctx)); err != nil {
		return err
	}
	into.add(all)
	return nil
}

// throughPipe sends count events at a rate and gives how long each took. A tenth more is
// sent before, to warm up.
func throughPipe(ctx context.Context, p pipe, rate, count int) ([]time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	warm := count/10 + 1
	began := time.Now()
	sent := make(chan error, 1)
	go func() { sent <- pace(ctx, p, began, rate, warm+count) }()
	all := make([]time.Duration, 0, warm+count)
	for range warm + count {
		body, err := p.receive(ctx)
		if err != nil {
			cancel()
			return nil, errors.Join(err, <-sent)
		}
		due := time.Duration(binary.LittleEndian.Uint64(body))
		all = append(all, time.Since(began)-due)
	}
	return all[warm:], <-sent
}

// pace sends events when they are due; each carries that time. A sender that was held up
// catches up.
func pace(ctx context.Context, p pipe, began time.Time, rate, count int) error {
	body := randomBytes(eventBytes)
	for i := range count {
		due := time.Duration(i) * time.Second / time.Duration(rate)
		measure.SleepUntil(began.Add(due))
		binary.LittleEndian.PutUint64(body, uint64(due))
		if err := p.send(ctx, body); err != nil {
			return err
		}
	}
	return nil
}
