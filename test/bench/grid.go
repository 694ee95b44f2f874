package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/eventyard/eventyard/test/bench/measure"
)

const (
	gridConcurrency = 32
	gridEventBytes  = 1 << 10
)

// measureGrid delivers a backlog to a receiver that answers at once, beside a bare HTTP client that
// posts the same bodies to it with the same concurrency from a process of its own; then how long an
// event takes from publishing to the receiver.
func measureGrid(ctx context.Context, b *bench) error {
	program, err := b.program(ctx)
	if err != nil {
		return err
	}
	b.progress("grid: events of 1 KiB, %d requests at once, a receiver that answers at once", gridConcurrency)
	single, many := b.gridEvents(40_000), b.gridEvents(300_000)
	r, err := b.compare(ctx, limit{period: b.period},
		contender{"bare client, one event a request", posting(single, 1, false)},
		contender{"grid, one event a request", delivering(program, single, 1)},
		contender{"bare client, 100 events a request", posting(many, 100, false)},
		contender{"grid, 100 events a request", delivering(program, many, 100)},
		contender{"bare client without Event Grid's headers, one event a request", posting(single, 1, true)})
	if err != nil {
		return err
	}
	b.report.goal("grid deliveries, one event a request / a bare HTTP client's", r[1].rate().Over(r[0].rate()), "×", atLeast(0.70))
	b.report.goal("the same / a bare HTTP client's that sends the same bodies without Event Grid's headers", r[1].rate().Over(r[4].rate()), "×", atLeast(0.70))
	b.report.goal("grid deliveries, 100 events a request / a bare HTTP client's", r[3].rate().Over(r[2].rate()), "×", target{})
	b.report.rates(fmt.Sprintf("Webhooks: events of 1 KiB, %d requests at once", gridConcurrency), r,
		"The receiver shares the two cores with whoever posts. Allocations are the receiver's.")
	return b.gridLatency(ctx, program)
}

// gridEvents is how many are worth their time at a rate, and some hundreds in a smoke test.
func (b *bench) gridEvents(rate int) int {
	return max(int(b.period.Seconds()*float64(rate))/100*100, 500)
}

// posting has another process post bodies of as many events.
func posting(events, batch int, bare bool) func(context.Context, string, limit) (tally, error) {
	return func(ctx context.Context, _ string, _ limit) (tally, error) {
		sink := newSink(int64(events))
		defer sink.close()
		body := "[" + strings.TrimSuffix(strings.Repeat(gridEvent("0")+",", batch), ",") + "]"
		err := runPoster(ctx, posterConfig{URL: sink.url(), Requests: events / batch, Concurrency: gridConcurrency, Body: body, Bare: bare})
		if err != nil {
			return tally{}, err
		}
		return sink.tally(gridEventBytes), sink.await(ctx)
	}
}

// delivering has a yard deliver what was published before.
func delivering(program string, events, batch int) func(context.Context, string, limit) (tally, error) {
	return deliveringWith(program, events, batch, nil)
}

// deliveringWith is delivering of what was published with a header, by a yard with more flags.
func deliveringWith(program string, events, batch int, header requestHeader, flags ...string) func(context.Context, string, limit) (tally, error) {
	return func(ctx context.Context, dir string, _ limit) (tally, error) {
		y, err := startGrid(ctx, program, dir, flags...)
		if err != nil {
			return tally{}, err
		}
		defer y.close()
		y.header = header
		sink := newSink(int64(events))
		defer sink.close()
		if err := y.subscribe(ctx, "fast", sink.url(), fmt.Sprintf(`,"paused":true,"concurrency":%d,"maxEvents":%d,"preferredKib":1024`, gridConcurrency, batch)); err != nil {
			return tally{}, err
		}
		if err := y.publish(ctx, events, 500); err != nil {
			return tally{}, err
		}
		if err := y.call(ctx, "PATCH", "/api/v1/subscriptions/fast", `{"paused":false}`, nil); err != nil {
			return tally{}, err
		}
		err = sink.await(ctx)
		return sink.tally(gridEventBytes), err
	}
}

// gridEvent is one of Event Grid's schema, of about gridEventBytes.
func gridEvent(id string) string {
	head := fmt.Sprintf(`{"id":%q,"subject":"/shops/1","eventType":"order.placed","eventTime":"2026-01-02T15:04:05Z","dataVersion":"1","data":{"pad":"`, id)
	return head + strings.Repeat("x", gridEventBytes-len(head)-3) + `"}}`
}

// gridLatency publishes single events at a steady pace.
func (b *bench) gridLatency(ctx context.Context, program string) error {
	const rate = 1000
	b.progress("grid: from publishing to the receiver, at %d events/s", rate)
	dir, err := b.newFolder()
	if err != nil {
		return err
	}
	y, err := startGrid(ctx, program, dir)
	if err != nil {
		return err
	}
	defer y.close()
	events := b.gridEvents(5 * rate)
	sink := newSink(int64(events))
	defer sink.close()
	if err := y.subscribe(ctx, "fast", sink.url(), ""); err != nil {
		return err
	}
	published, err := y.pace(ctx, events, rate)
	if err != nil {
		return err
	}
	if err := sink.await(ctx); err != nil {
		return err
	}
	took := sink.since(published)
	p50, p99 := percentile(took, 0.50), percentile(took, 0.99)
	b.report.table(measure.Table{Title: fmt.Sprintf("Webhooks: from the beginning of publishing to the receiver, at %d events/s", rate),
		Head: []string{"what", "p50", "p99"},
		Rows: [][]string{{"grid, durable (sync always)", p50.Round(10 * time.Microsecond).String(), p99.Round(10 * time.Microsecond).String()}}})
	return nil
}
