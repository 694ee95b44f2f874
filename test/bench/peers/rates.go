package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// leaderTime is how long a topic of Kafka needs to have leaders. A client that comes earlier waits for seconds and
// then asks again, which would be measured as Kafka's.
const leaderTime = 2 * time.Second

// withTopics makes a topic at each peer, all of one name, has something done with them, and deletes them.
func (b *bench) withTopics(ctx context.Context, d driver, at []peer, partitions int, do func(topic string) error) (err error) {
	b.topics++
	topic := fmt.Sprintf("race-%d", b.topics)
	for _, p := range b.still(at) {
		if err := b.failed(ctx, p, d.create(ctx, p, topic, partitions)); err != nil {
			return err
		}
		defer func() {
			if b.out[p] { // its folder goes with it
				return
			}
			removing, cancel := context.WithTimeout(context.WithoutCancel(ctx), turnTime)
			defer cancel()
			if failing := b.failed(ctx, p, d.remove(removing, p, topic)); failing != nil && ctx.Err() == nil {
				err = errors.Join(err, failing)
			}
		}()
	}
	if slices.ContainsFunc(at, func(p peer) bool { return p.about().kind == "kafka" }) {
		if err := pause(ctx, leaderTime); err != nil {
			return err
		}
	}
	return do(topic)
}

// warmTime bounds the warming up of one server.
const warmTime = 30 * time.Second

// warm sends so many events to each server and reads them, before anything is measured: a JVM compiles what it has run
// often. Those that are none get a tenth, so that their files and caches are there.
func (b *bench) warm(ctx context.Context, d driver, in []peer, l load, partitions int, events int64) error {
	return b.warmBy(ctx, d, in, partitions, events, func(ctx context.Context, p peer, topic string, events int64) error {
		sent, err := produce(ctx, d, p, topic, l, limit{period: warmTime, events: events})
		if err != nil {
			return err
		}
		return d.consume(ctx, p, topic, l, sent.events)
	})
}

// warmBy is warm for who has another way to send events and to read them.
func (b *bench) warmBy(ctx context.Context, d driver, in []peer, partitions int, most int64, pass func(ctx context.Context, p peer, topic string, events int64) error) error {
	return b.withTopics(ctx, d, in, partitions, func(topic string) error {
		for _, p := range b.still(in) {
			events := most
			if !p.about().jvm {
				events = max(events/10, 1)
			}
			b.progress("  warming %s", p.about().name)
			err := func() error {
				timed, cancel := context.WithTimeout(ctx, turnTime+2*warmTime)
				defer cancel()
				return pass(timed, p, topic, events)
			}()
			if err != nil {
				err = fmt.Errorf("warming up: %w", err)
			}
			if err := b.failed(ctx, p, err); err != nil {
				return err
			}
		}
		return nil
	})
}

// produce sends as one client does, as fast as it can.
func produce(ctx context.Context, d driver, p peer, topic string, l load, lim limit) (work, error) {
	sender, err := d.producer(ctx, p, topic, l)
	if err != nil {
		return work{}, err
	}
	defer sender.close()
	return metered(p, func() (int64, error) { return sender.send(ctx, lim) })
}

// consume reads a topic from the beginning, again and again until the time is over; once, where that drains it.
func consume(ctx context.Context, d driver, p peer, topic string, l load, events int64, period time.Duration) (work, error) {
	return metered(p, func() (n int64, err error) {
		for c := (limit{period: period}).begin(); n == 0 || !d.drains() && time.Since(c.began) < period; n += events {
			if err := d.consume(ctx, p, topic, l, events); err != nil {
				return n, err
			}
		}
		return n, nil
	})
}

// rates are what a race of producing and consuming showed.
type rates struct{ produced, consumed, secure scores }

// raceRates has each contender produce into a topic of its own, and then consume from it; the latter only where that is
// another thing than with another contender: what was synced is read as what was not. With secure it is consumed by TLS
// as well.
func (b *bench) raceRates(ctx context.Context, d, secure driver, in []peer, l load, partitions, rounds int) (rates, error) {
	r := rates{scores{}, scores{}, scores{}}
	for round := range rounds {
		err := b.withTopics(ctx, d, in, partitions, func(topic string) error {
			return b.lap(ctx, in, func(ctx context.Context, p peer) error {
				name := p.about().name
				sent, err := produce(ctx, d, p, topic, l, limit{period: b.period})
				if err != nil {
					return err
				}
				r.produced.addWork(name, sent)
				b.showTurn(round, "produce", l, p, sent)
				if p.about().stores == fsync && !d.drains() {
					return nil
				}
				read, err := consume(ctx, d, p, topic, l, sent.events, b.period)
				if err != nil {
					return err
				}
				r.consumed.addWork(name, read)
				b.showTurn(round, "consume", l, p, read)
				if secure == nil || p.address("kafkas") == "" {
					return nil
				}
				if read, err = consume(ctx, secure, p, topic, l, sent.events, b.period); err != nil {
					return fmt.Errorf("with TLS: %w", err)
				}
				r.secure.addWork(name, read)
				b.showTurn(round, "with TLS", l, p, read)
				return nil
			})
		})
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

func (b *bench) showTurn(round int, what string, l load, p peer, w work) {
	b.progress("  %d/%d  %-8s %-24s %-28s %8.0f k/s  CPU of client %5.2f, of server %5.2f µs/event", round+1, b.rounds, what, l.name, p.about().name,
		float64(w.events)/w.took.Seconds()/1000, float64(w.client.Microseconds())/float64(w.events), float64(w.server.Microseconds())/float64(w.events))
}

// rateFigures are the columns of a table of rates.
var rateFigures = []figure{rate, clientCPU, serverCPU}
