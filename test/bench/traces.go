package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"

	"github.com/eventyard/eventyard/tracing"
)

// measureTraces has Event Hubs' own producers send events without a trace, and with one, to a yard that makes no
// spans, and both to one that sends spans to a collector. What traces cost the yard when it makes no spans shows beside
// a property that is as long and means nothing: clients and the log have the same work with both.
func measureTraces(ctx context.Context, b *bench) error {
	program, err := b.program(ctx)
	if err != nil {
		return err
	}
	collector := startReceiver()
	defer collector.Close()
	spans := fmt.Sprintf("otlp:\n  endpoint: %s\n", collector.URL)
	b.progress("traces: %d azeventhubs producers, batches of %d x 1 KiB", sdkProducers, sdkBatch)
	r, err := b.compare(ctx, limit{period: b.period, bytes: cachedBytes},
		onYardWith("no trace, no spans", program, "", publishing(nil)),
		onYardWith("no trace, no spans, once more", program, "", publishing(nil)),
		onYardWith("a property as long, no spans", program, "", publishing(remarked)),
		onYardWith("a trace carried, no spans", program, "", publishing(traced)),
		onYardWith("no trace, spans on", program, spans, publishing(nil)),
		onYardWith("a trace carried, spans on", program, spans, publishing(traced)))
	if err != nil {
		return err
	}
	plain := r[0].rate()
	b.report.goal("the noise: no trace, no spans / the same once more", plain.Over(r[1].rate()), "×", target{})
	b.report.goal("a trace carried, no spans / a property as long, no spans", r[3].rate().Over(r[2].rate()), "×", atLeast(0.95))
	b.report.goal("a trace carried, no spans / no trace, no spans", r[3].rate().Over(plain), "×", target{})
	b.report.goal("no trace, spans on / no trace, no spans", r[4].rate().Over(plain), "×", target{})
	b.report.goal("a trace carried, spans on / no trace, no spans", r[5].rate().Over(plain), "×", target{})
	b.report.rates(fmt.Sprintf("Traces: %d producers of Event Hubs' own Go client, batches of %d × 1 KiB, sync `os`", sdkProducers, sdkBatch), r,
		"Allocations are the clients'. A trace is a property of 55 bytes in each event, which the clients encode as well; a batch is of one trace, and has one span. The collector takes spans and throws them away.")
	return nil
}

// onYardWith is onYard with more settings, in the page cache.
func onYardWith(name, program, more string, work amqpWork) contender {
	return contender{name, func(ctx context.Context, dir string, lim limit) (t tally, err error) {
		s, err := startYard(ctx, program, dir, "os", sdkProducers, more)
		if err != nil {
			return tally{}, err
		}
		defer func() { err = errors.Join(err, s.stop()) }()
		return work(ctx, s, lim)
	}}
}

// traced are the properties of an event that belongs to a trace, another one for each batch.
func traced(batch uint64) map[string]any {
	c := tracing.Context{Flags: 1}
	for i := range 8 {
		c.TraceID[i], c.SpanID[i] = byte(batch>>(8*i))|1, 1
	}
	return c.SetProperties(nil)
}

// remarked are the properties of an event with a text as long as a trace, under a name as long, that means nothing.
func remarked(batch uint64) map[string]any {
	return map[string]any{"description": fmt.Sprintf("%-55d", batch)[:55]}
}

// publishing has each producer fill and send batches to a partition of its own, with properties of each batch's
// events; nil: none.
func publishing(properties func(batch uint64) map[string]any) amqpWork {
	return func(ctx context.Context, s *amqpServer, lim limit) (_ tally, err error) {
		producers := make([]*azeventhubs.ProducerClient, sdkProducers)
		for i := range producers {
			if producers[i], err = azeventhubs.NewProducerClientFromConnectionString(s.connectionString(), hubName, nil); err != nil {
				return tally{}, err
			}
			defer func() { err = errors.Join(err, producers[i].Close(context.WithoutCancel(ctx))) }()
		}
		plain := slices.Repeat([]azeventhubs.EventData{{Body: randomBytes(eventBytes)}}, sdkBatch)
		sent := make([]uint64, sdkProducers) // batches, by producer
		return drive(ctx, lim, job{writers: sdkProducers, events: sdkBatch, bytes: sdkBatch * eventBytes, do: func(ctx context.Context, w int) error {
			if properties == nil {
				return sendData(ctx, producers[w], strconv.Itoa(w), plain)
			}
			sent[w]++
			data := azeventhubs.EventData{Body: plain[0].Body, Properties: properties(sent[w]<<8 | uint64(w))}
			return sendData(ctx, producers[w], strconv.Itoa(w), slices.Repeat([]azeventhubs.EventData{data}, sdkBatch))
		}})
	}
}
