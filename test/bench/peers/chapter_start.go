package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/eventyard/eventyard/test/bench/measure"
)

const (
	untilListening figure = "until it takes connections (s)"
	residentMiB    figure = "resident memory then (MiB)"
	// restTime is how long a server that was started is left alone before its memory is read.
	restTime = time.Second
)

// raceStart starts each server on an empty folder, alone, again and again.
func raceStart(ctx context.Context, b *bench) error {
	all := []peer{b.yard(fsync), b.kafka(page), b.artemis(page), b.rabbit(), b.nats(page), b.redis(page)}
	s, absent := scores{}, map[peer]bool{}
	for range b.rounds {
		for _, i := range rand.Perm(len(all)) {
			p := all[i]
			if absent[p] || !b.wants(p.about().kind) {
				continue
			}
			started, err := b.startOnce(ctx, p, s)
			if err != nil {
				return err
			}
			absent[p] = !started
		}
	}
	yard := b.yard(fsync).is.name
	for _, p := range all[1:] {
		to := noBar
		if p.about().kind == "kafka" {
			to = tenthBar
		}
		for _, f := range []figure{untilListening, residentMiB} {
			b.report.ratio(ratio{what: fmt.Sprintf("start, %s: yard / %s", f, p.about().name), values: s.over(yard, p.about().name, f), lowWins: true, goal: goal{bar: to}})
		}
	}
	b.report.table(s.table("Start on an empty folder, each server alone", names(all), []figure{untilListening, residentMiB},
		"The time is looked at every 5 ms. Memory a second later, with nothing done."))
	return nil
}

func (b *bench) startOnce(ctx context.Context, p peer, into scores) (started bool, err error) {
	dir, err := os.MkdirTemp(b.folder, p.about().kind+"-")
	if err != nil {
		return false, err
	}
	if err := b.settleDisk(ctx); err != nil {
		return false, err
	}
	if started, err = b.begin(ctx, p, dir); !started {
		return false, err
	}
	defer func() { err = errors.Join(err, b.end(p), os.RemoveAll(dir)) }()
	if err := pause(ctx, restTime); err != nil {
		return true, err
	}
	into.add(p.about().name, untilListening, p.startTook().Seconds())
	if kib, ok := measure.ResidentKiB(p.pid()); ok {
		into.add(p.about().name, residentMiB, kib/1024)
	}
	b.progress("  %s takes connections after %s", p.about().name, p.startTook().Round(time.Millisecond))
	return true, nil
}
