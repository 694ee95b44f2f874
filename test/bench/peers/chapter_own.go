package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/test/bench/measure"
)

// raceOwn measures servers that have a protocol of their own, by their own clients. What clients cost differs more than
// servers do, so there are no ratios.
func raceOwn(ctx context.Context, b *bench) (err error) {
	for _, one := range []struct {
		driver driver
		peers  []peer
		how    string
	}{
		{jetStream{}, []peer{b.nats(page), b.nats(fsync)}, "nats.go, one stream, 4,096 publications under way, ordered consumer"},
		{redisStream{}, []peer{b.redis(page), b.redis(fsync)}, "go-redis, XADD in pipelines of 100 over 4 connections, XREAD of 1,000"},
	} {
		if err := b.raceOwnClient(ctx, one.driver, one.peers, one.how); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) raceOwnClient(ctx context.Context, d driver, peers []peer, how string) (err error) {
	in, stop, err := b.stand(ctx, peers...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if len(in) == 0 {
		return nil
	}
	if err = b.warm(ctx, d, in, singleLoads[1], 1, b.options.warm); err != nil {
		return err
	}
	t := measure.Table{Title: "By its own client: " + how, Head: []string{"what", "events/s", "spread", "client µs/event", "server µs/event"}}
	for _, l := range singleLoads {
		r, err := b.raceRates(ctx, d, nil, in, l, 1, b.rounds)
		if err != nil {
			return err
		}
		for _, part := range []struct {
			verb   string
			scores scores
		}{{"in", r.produced}, {"out", r.consumed}} {
			for _, name := range names(in) {
				if s := part.scores[name]; s != nil {
					t.Rows = append(t.Rows, []string{fmt.Sprintf("%s, %s, %s", name, l.name, part.verb), measure.Number(s[rate].Median()), s[rate].Spread(),
						measure.Number(s[clientCPU].Median()), measure.Number(s[serverCPU].Median())})
				}
			}
		}
	}
	b.report.table(t)
	return nil
}
