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
	s, absent := scores{}, map[string]bool{}
	for range b.rounds {
		for _, i := range rand.Perm(len(all)) {
			p := all[i]
			name := p.about().name
			if absent[name] || !b.wants(p.about().kind) {
				continue
			}
			err := b.startOnce(ctx, p, s)
			var lack missingError
			if errors.As(err, &lack) {
				b.leaveOut(name, lack)
				absent[name] = true
			} else if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	yard := b.yard(fsync).is.name
	for _, p := range all[1:] {
		for _, f := range []figure{untilListening, residentMiB} {
			b.report.ratio(ratio{what: fmt.Sprintf("start, %s: yard / %s", f, p.about().name), values: s.over(yard, p.about().name, f), lowWins: true})
		}
	}
	b.report.table(s.table("Start on an empty folder, each server alone", names(all), []figure{untilListening, residentMiB},
		"The time is looked at every 5 ms. Memory a second later, with nothing done."))
	return nil
}

func (b *bench) startOnce(ctx context.Context, p peer, into scores) (err error) {
	dir, err := os.MkdirTemp(b.folder, p.about().kind+"-")
	if err != nil {
		return err
	}
	if err := b.settleDisk(ctx); err != nil {
		return err
	}
	if err := p.start(ctx, dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop(), os.RemoveAll(dir)) }()
	if err := pause(ctx, restTime); err != nil {
		return err
	}
	into.add(p.about().name, untilListening, p.startTook().Seconds())
	if kib, ok := measure.ResidentKiB(p.pid()); ok {
		into.add(p.about().name, residentMiB, kib/1024)
	}
	b.progress("  %s takes connections after %s", p.about().name, p.startTook().Round(time.Millisecond))
	return nil
}
