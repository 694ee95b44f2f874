package main

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"

	"github.com/eventyard/eventyard/tracing"
)

// measureTraces measures what traces cost who sends to a hub by AMQP, who publishes to a topic over HTTP, and a
// webhook: without a trace and with one, of a yard that makes no spans and of one that sends them to a collector.
func measureTraces(ctx context.Context, b *bench) error {
	program, err := b.program(ctx)
	if err != nil {
		return err
	}
	collector := startReceiver()
	defer collector.Close()
	if err := b.tracesOfProducers(ctx, program, collector); err != nil {
		return err
	}
	if err := b.tracesOfTopics(ctx, program, collector); err != nil {
		return err
	}
	return b.tracesOfWebhooks(ctx, program, collector)
}

// tracesOfProducers has Event Hubs' own producers send. What traces cost the yard when it makes no spans shows beside
// a property that is as long and means nothing: clients and the log have the same work with both.
func (b *bench) tracesOfProducers(ctx context.Context, program string, collector *httptest.Server) error {
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

const (
	tracePublishers = 4
	traceBatch      = 100
)

// tracesOfTopics publishes to a topic over HTTP. A trace is a header of the request there, so that another header as
// long is the same work for HTTP; what is left is that the trace is read, and stored beside each event.
func (b *bench) tracesOfTopics(ctx context.Context, program string, collector *httptest.Server) error {
	b.progress("traces: publishing to a topic over HTTP, %d at once, %d x 1 KiB a request", tracePublishers, traceBatch)
	publishing := func(header requestHeader, flags ...string) func(context.Context, string, limit) (tally, error) {
		return func(ctx context.Context, dir string, lim limit) (tally, error) {
			y, err := startGrid(ctx, program, dir, append([]string{"--sync", "os"}, flags...)...)
			if err != nil {
				return tally{}, err
			}
			defer y.close()
			y.header = header
			var published atomic.Int64
			return drive(ctx, lim, job{writers: tracePublishers, events: traceBatch, bytes: traceBatch * gridEventBytes, do: func(ctx context.Context, _ int) error {
				return y.post(ctx, int(published.Add(traceBatch)-traceBatch), traceBatch, gridEvent)
			}})
		}
	}
	r, err := b.compare(ctx, limit{period: b.period, bytes: cachedBytes},
		contender{"no trace, no spans", publishing(nil)},
		contender{"no trace, no spans, once more", publishing(nil)},
		contender{"a header as long, no spans", publishing(remarkedHeader)},
		contender{"a trace carried, no spans", publishing(tracedHeader)},
		contender{"a trace carried, spans on", publishing(tracedHeader, "--otlp-endpoint", collector.URL)})
	if err != nil {
		return err
	}
	b.tracesBeside("a topic", r)
	b.report.rates(fmt.Sprintf("Traces: publishing to a topic over HTTP, %d at once, %d × 1 KiB a request, sync `os`", tracePublishers, traceBatch), r,
		"Allocations are the publishers'. A trace is of the request, and stored beside each of its events.")
	return nil
}

// tracesOfWebhooks delivers a backlog, one event a request, as each then has its trace in a header.
func (b *bench) tracesOfWebhooks(ctx context.Context, program string, collector *httptest.Server) error {
	b.progress("traces: a webhook, %d requests at once", gridConcurrency)
	events := b.gridEvents(40_000)
	r, err := b.compare(ctx, limit{period: b.period},
		contender{"no trace, no spans", deliveringWith(program, events, 1, nil)},
		contender{"no trace, no spans, once more", deliveringWith(program, events, 1, nil)},
		contender{"published with a header as long, no spans", deliveringWith(program, events, 1, remarkedHeader)},
		contender{"a trace carried, no spans", deliveringWith(program, events, 1, tracedHeader)},
		contender{"a trace carried, spans on", deliveringWith(program, events, 1, tracedHeader, "--otlp-endpoint", collector.URL)})
	if err != nil {
		return err
	}
	b.tracesBeside("a webhook", r)
	b.report.rates(fmt.Sprintf("Traces: a webhook, events of 1 KiB, %d requests at once", gridConcurrency), r,
		"The receiver shares the cores with the yard; allocations are the receiver's. A trace is one header more of each request; a header as long comes to the yard, and no further.")
	return nil
}

// tracesBeside reports what the five rows of a way say of each other.
func (b *bench) tracesBeside(way string, r []result) {
	plain := r[0].rate()
	b.report.goal(way+": the noise: no trace, no spans / the same once more", plain.Over(r[1].rate()), "×", target{})
	b.report.goal(way+": a trace carried, no spans / a header as long, no spans", r[3].rate().Over(r[2].rate()), "×", atLeast(0.95))
	b.report.goal(way+": a trace carried, no spans / no trace, no spans", r[3].rate().Over(plain), "×", target{})
	b.report.goal(way+": a trace carried, spans on / no trace, no spans", r[4].rate().Over(plain), "×", target{})
}

// tracedHeader is a trace for each publication.
func tracedHeader(first int) (name, value string) {
	return tracing.Parent, traceOf(uint64(first)).TraceParent()
}

// remarkedHeader is as long, under a name as long, and means nothing.
func remarkedHeader(first int) (name, value string) {
	return "description", fmt.Sprintf("%055d", first)
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
func traced(batch uint64) map[string]any { return traceOf(batch).SetProperties(nil) }

func traceOf(batch uint64) tracing.Context {
	c := tracing.Context{Flags: 1}
	for i := range 8 {
		c.TraceID[i], c.SpanID[i] = byte(batch>>(8*i))|1, 1
	}
	return c
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
