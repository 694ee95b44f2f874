package main

import (
	"context"
	"errors"
)

// singleLoads are those of protocols without batches.
var singleLoads = []load{{name: "1 KiB", eventBytes: 1024}, {name: "100 B", eventBytes: 100}}

// raceAMQP is the race by AMQP 1.0 with go-amqp: the yard, Artemis and RabbitMQ.
func raceAMQP(ctx context.Context, b *bench) (err error) {
	in, stop, err := b.stand(ctx, b.yard(page), b.yard(fsync), b.artemis(page), b.artemis(fsync), b.rabbit())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	idle := residents(in)
	// Messages that come one by one take longer, and run more of a server's code each.
	if err = b.warm(ctx, bareAMQP{}, in, singleLoads[1], 1, b.options.warm/4); err != nil {
		return err
	}
	yardOS, yardAlways := b.yard(page).is.name, b.yard(fsync).is.name
	pairs := []pair{
		{"page cache: yard `os` / Artemis, not synced", yardOS, b.artemis(page).is.name, true},
		{"fsync: yard `always` / Artemis, synced", yardAlways, b.artemis(fsync).is.name, true},
		{"fsync: yard `always` / RabbitMQ 3.10", yardAlways, b.rabbit().is.name, true},
	}
	for _, l := range singleLoads {
		r, err := b.raceRates(ctx, bareAMQP{}, nil, in, l, 1, b.rounds)
		if err != nil {
			return err
		}
		for _, one := range []struct {
			verb   string
			scores scores
		}{{"send", r.produced}, {"receive", r.consumed}} {
			what := "AMQP 1.0, " + one.verb + " " + l.name
			for _, p := range pairs {
				b.report.ratio(ratio{what: what + ", " + p.what, values: one.scores.over(p.ours, p.theirs, rate)})
			}
			b.report.table(one.scores.table(what+" one by one, go-amqp", names(in), rateFigures,
				"One link, up to 1,000 durable messages under way; a queue, or one partition of a hub. RabbitMQ 4, with AMQP 1.0 at its core, is not packaged by Debian 12: this is 3.10 with its plugin."))
		}
	}
	b.reportMemory("in the race by AMQP 1.0", in, idle, pairs, noBar)
	return nil
}
