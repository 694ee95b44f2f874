package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/processor"
)

// measureFunctions reads a filled hub with a processor that checkpoints each batch, and with
// functions, in Go, over HTTP, and the yard's own: what retries, breaker and records cost while
// nothing goes wrong. Then it lets every event fail.
func measureFunctions(ctx context.Context, b *bench) error {
	program, err := b.program(ctx)
	if err != nil {
		return err
	}
	b.progress("functions: %d partitions, events of 1 KiB, batches of %d, handlers that do nothing", processorPartitions, processorBatch)
	events := b.during(100_000) / processorPartitions
	filled := func(perPartition int, work func(context.Context, *amqpServer, *consumed) error) amqpWork {
		return func(ctx context.Context, s *amqpServer, _ limit) (tally, error) {
			if err := fillOverAMQP(ctx, s, processorPartitions, eventBytes, perPartition); err != nil {
				return tally{}, err
			}
			c := newConsumed(int64(perPartition) * processorPartitions)
			err := work(ctx, s, c)
			return c.tally(), err
		}
	}
	r, err := b.compare(ctx, limit{period: b.period},
		onYard("processor, a checkpoint for each batch", program, "os", processorPartitions, filled(events, processAndCheckpoint)),
		onYard("function in Go", program, "os", processorPartitions, filled(events, functionInGo)),
		onYard("processor that posts bodies as large with a bare HTTP client", program, "os", processorPartitions, filled(events, processAndPost)),
		onYard("function over HTTP", program, "os", processorPartitions, filled(events, functionOverHTTP)),
		contender{"the yard's own function over HTTP", func(ctx context.Context, dir string, _ limit) (tally, error) {
			return functionOfYard(ctx, program, dir, events)
		}},
		onYard("function whose events all fail, put away one by one", program, "os", processorPartitions, filled(max(events/100, 10), functionOfPoison)))
	if err != nil {
		return err
	}
	b.report.goal("function in Go / processor with a checkpoint for each batch", r[1].rate().Over(r[0].rate()), "×", atLeast(0.90))
	b.report.goal("function over HTTP / processor that posts with a bare HTTP client", r[3].rate().Over(r[2].rate()), "×", target{})
	b.report.goal("the yard's own function over HTTP / processor that posts with a bare HTTP client", r[4].rate().Over(r[2].rate()), "×", target{})
	b.report.rates(fmt.Sprintf("Functions: %d partitions, events of 1 KiB, batches of %d", processorPartitions, processorBatch), r,
		"Allocations are the clients'. The time counts from the first event. What is put away one by one is, for each event, a call, a look at the circuit, two entries, a letter and a checkpoint, each durable before the next.")
	return nil
}

func withHub(ctx context.Context, s *amqpServer, work func(*hub.Client) error) error {
	client, err := hub.Dial(ctx, s.connectionString(), hub.Config{})
	if err != nil {
		return err
	}
	return errors.Join(work(client), client.Close())
}

func processAndCheckpoint(ctx context.Context, s *amqpServer, c *consumed) error {
	return withHub(ctx, s, func(client *hub.Client) error {
		ctx, cancel := c.until(ctx)
		defer cancel()
		p := processor.New(client.Hub(hubName), processor.Config{MaxBatch: processorBatch, Log: quiet()})
		return p.Run(ctx, func(ctx context.Context, b *processor.Batch) error {
			c.add(len(b.Events))
			return b.Checkpoint(ctx)
		})
	})
}

// runFunction runs one until enough was consumed.
func runFunction(ctx context.Context, s *amqpServer, c *consumed, handle functions.Handler, b functions.Binding) error {
	return withHub(ctx, s, func(client *hub.Client) error {
		ctx, cancel := c.until(ctx)
		defer cancel()
		host := functions.NewHost(client, functions.Config{Log: quiet(), OnError: func(error) {}})
		b.Hub, b.MaxBatch = hubName, processorBatch
		host.Handle("bench", handle, b)
		return host.Run(ctx)
	})
}

func functionInGo(ctx context.Context, s *amqpServer, c *consumed) error {
	return runFunction(ctx, s, c, func(_ context.Context, b *functions.Batch) error {
		c.add(len(b.Events))
		return nil
	}, functions.Binding{Poison: "none"})
}

func functionOverHTTP(ctx context.Context, s *amqpServer, c *consumed) error {
	receiver := startReceiver()
	defer receiver.Close()
	call := functions.HTTP(receiver.URL, functions.HTTPConfig{})
	return runFunction(ctx, s, c, func(ctx context.Context, b *functions.Batch) error {
		err := call(ctx, b)
		if err == nil {
			c.add(len(b.Events))
		}
		return err
	}, functions.Binding{Poison: "none"})
}

// functionOfYard is a function that the yard runs itself. It is configured when the hub has been
// filled.
func functionOfYard(ctx context.Context, program, dir string, perPartition int) (t tally, err error) {
	s, err := startYard(ctx, program, dir, "os", processorPartitions, "")
	if err != nil {
		return tally{}, err
	}
	err = fillOverAMQP(ctx, s, processorPartitions, eventBytes, perPartition)
	if err = errors.Join(err, s.stop()); err != nil {
		return tally{}, err
	}
	c := newConsumed(int64(perPartition) * processorPartitions)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		first, _ := strconv.Atoi(r.Header.Get("Eventyard-First-Sequence"))
		last, _ := strconv.Atoi(r.Header.Get("Eventyard-Last-Sequence"))
		c.add(last - first + 1)
	}))
	defer receiver.Close()
	s, err = startYard(ctx, program, dir, "os", processorPartitions, fmt.Sprintf(
		"functions:\n  - name: bench\n    hub: %s\n    endpoint: %s\n    batch: %d\n    poison: none\n",
		hubName, receiver.URL, processorBatch))
	if err != nil {
		return tally{}, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	select {
	case <-c.done:
		return c.tally(), nil
	case <-ctx.Done():
		return tally{}, context.Cause(ctx)
	}
}

// startReceiver starts a program that reads what comes and says that it is done.
func startReceiver() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
}

// processAndPost is what a function over HTTP has to do at least: read, post a body as large as a
// call's, checkpoint.
func processAndPost(ctx context.Context, s *amqpServer, c *consumed) error {
	receiver := startReceiver()
	defer receiver.Close()
	one := bytes.Repeat([]byte("x"), processorBatch*(eventBytes*4/3+400)) // base64, and what stands around it
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: processorPartitions}}
	defer client.CloseIdleConnections()
	return withHub(ctx, s, func(h *hub.Client) error {
		ctx, cancel := c.until(ctx)
		defer cancel()
		p := processor.New(h.Hub(hubName), processor.Config{MaxBatch: processorBatch, Log: quiet()})
		return p.Run(ctx, func(ctx context.Context, b *processor.Batch) error {
			body := one[:len(one)*len(b.Events)/processorBatch]
			answer, err := client.Post(receiver.URL, "application/json", bytes.NewReader(body))
			if err != nil {
				return err
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			c.add(len(b.Events))
			return b.Checkpoint(ctx)
		})
	})
}

// functionOfPoison puts every event away. A call is counted when it fails, so the last of each
// partition is put away behind the clock.
func functionOfPoison(ctx context.Context, s *amqpServer, c *consumed) error {
	fail := func(context.Context, event.Event) error {
		c.add(1)
		return errPoison
	}
	return runFunction(ctx, s, c, functions.Each(fail), functions.Binding{
		Poison: poisonHub, Retry: functions.None(), Breaker: functions.Breaker{Off: true},
	})
}

var errPoison = errors.New("every event fails")
