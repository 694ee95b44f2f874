package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
	"github.com/Azure/go-amqp"
)

// How many clients work at once, and on how many partitions. Two cores are shared by the
// clients and the server.
const (
	sdkProducers = 4
	sdkReceivers = 2
	sdkBatch     = 100
)

// measureIngest has Event Hubs' own producers send to the yard and to a peer that throws
// everything away: where both take equally much the producers are the limit.
func measureIngest(ctx context.Context, b *bench) error {
	program, err := b.program(ctx)
	if err != nil {
		return err
	}
	b.progress("ingest: %d azeventhubs producers, batches of %d x 1 KiB", sdkProducers, sdkBatch)
	r, err := b.compare(ctx, limit{period: b.period, bytes: cachedBytes},
		onYard("yard, sync `os`", program, "os", sdkProducers, produce),
		onYard("yard, sync `always`", program, "always", sdkProducers, produce),
		onPeer("a peer that throws away", eventBytes, produce),
		onRegistry("a peer that only writes to the page cache", eventBytes, produce),
		onYard("yard, sync `os`, producers on one core", program, "os", sdkProducers, onOneCore(produce)),
		onPeer("a peer that throws away, producers on one core", eventBytes, onOneCore(produce)))
	if err != nil {
		return err
	}
	b.report.goal("azeventhubs producers with a core of their own: yard with `os` / a peer that throws away", r[4].rate().Over(r[5].rate()), "×", atLeast(0.90))
	b.report.goal("azeventhubs producers that share both cores with the server: yard with `os` / a peer that throws away", r[0].rate().Over(r[2].rate()), "×", atLeast(0.90))
	b.report.goal("the floor: a peer that only writes to the page cache / a peer that throws away", r[3].rate().Over(r[2].rate()), "×", target{})
	b.report.goal("the same producers: yard with `always` / a peer that throws away", r[1].rate().Over(r[2].rate()), "×", target{})
	b.report.rates(fmt.Sprintf("Ingest by Event Hubs' own Go client: %d producers, batches of %d × 1 KiB", sdkProducers, sdkBatch), r,
		"Allocations are the clients'.")
	return nil
}

// onOneCore leaves the other to the server, as if the clients were on another machine.
func onOneCore(work amqpWork) amqpWork {
	return func(ctx context.Context, s *amqpServer, lim limit) (tally, error) {
		before := runtime.GOMAXPROCS(1)
		defer runtime.GOMAXPROCS(before)
		return work(ctx, s, lim)
	}
}

// produce has each producer fill and send batches to a partition of its own, as programs
// do: encoding the events is the client's work, on the same two cores.
func produce(ctx context.Context, s *amqpServer, lim limit) (tally, error) {
	return publishing(nil)(ctx, s, lim)
}

func sendBatch(ctx context.Context, p *azeventhubs.ProducerClient, partition string, bodies [][]byte) error {
	events := make([]azeventhubs.EventData, len(bodies))
	for i, body := range bodies {
		events[i].Body = body
	}
	return sendData(ctx, p, partition, events)
}

func sendData(ctx context.Context, p *azeventhubs.ProducerClient, partition string, events []azeventhubs.EventData) error {
	batch, err := p.NewEventDataBatch(ctx, &azeventhubs.EventDataBatchOptions{PartitionID: &partition})
	if err != nil {
		return err
	}
	for i := range events {
		if err := batch.AddEventData(&events[i], nil); err != nil {
			return err
		}
	}
	return p.SendEventDataBatch(ctx, batch, nil)
}

// measureEgress has go-amqp receivers read from the yard and from a peer that sends the
// same bytes, encoded beforehand.
func measureEgress(ctx context.Context, b *bench) error {
	program, err := b.program(ctx)
	if err != nil {
		return err
	}
	b.progress("egress: %d go-amqp receivers, events of 1 KiB", sdkReceivers)
	stretch := b.during(100_000)
	reading := func(ctx context.Context, s *amqpServer, lim limit) (tally, error) {
		return receive(ctx, s, stretch, lim)
	}
	fromYard := func(ctx context.Context, s *amqpServer, lim limit) (tally, error) {
		if err := fillOverAMQP(ctx, s, sdkReceivers, eventBytes, stretch); err != nil {
			return tally{}, err
		}
		return reading(ctx, s, lim)
	}
	r, err := b.compare(ctx, limit{period: b.period},
		onYard("yard", program, "os", sdkReceivers, fromYard),
		onPeer("a peer that replays the same bytes", eventBytes, reading))
	if err != nil {
		return err
	}
	b.report.goal("go-amqp receivers: yard / a peer that replays the same bytes", r[0].rate().Over(r[1].rate()), "×", atLeast(0.90))
	b.report.rates(fmt.Sprintf("Egress to go-amqp: %d receivers, events of 1 KiB", sdkReceivers), r, "Allocations are the clients'.")
	return nil
}

// receive has each receiver read a partition on a connection of its own.
func receive(ctx context.Context, s *amqpServer, stretch int, lim limit) (tally, error) {
	began := time.Now()
	counts := make([]int64, sdkReceivers)
	before := memory()
	err := each(sdkReceivers, func(i int) (err error) {
		counts[i], err = receiveFrom(ctx, s, i, stretch, began.Add(lim.period))
		return err
	})
	after := memory()
	t := tally{took: time.Since(began), allocations: after.Mallocs - before.Mallocs, allocated: after.TotalAlloc - before.TotalAlloc}
	for _, n := range counts {
		t.events += n
	}
	t.bytes = t.events * eventBytes
	return t, err
}

// receiveFrom reads until the time is over, beginning anew at the end of what there is.
func receiveFrom(ctx context.Context, s *amqpServer, partition, stretch int, until time.Time) (count int64, err error) {
	conn, err := amqp.Dial(ctx, "amqp://"+s.address, &amqp.ConnOptions{SASLType: amqp.SASLTypePlain("RootManageSharedAccessKey", "SAS_KEY_VALUE")})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	session, err := conn.NewSession(ctx, nil)
	if err != nil {
		return 0, err
	}
	for time.Now().Before(until) {
		receiver, err := session.NewReceiver(ctx, partitionAddress(partition), &amqp.ReceiverOptions{Credit: 1000})
		if err != nil {
			return count, err
		}
		for range stretch {
			if _, err := receiver.Receive(ctx, nil); err != nil {
				return count, err
			}
			if count++; count%512 == 0 && !time.Now().Before(until) {
				break
			}
		}
		if err := receiver.Close(ctx); err != nil {
			return count, err
		}
	}
	return count, nil
}

func partitionAddress(partition int) string {
	return fmt.Sprintf("%s/ConsumerGroups/$Default/Partitions/%d", hubName, partition)
}

// during is how many events pass in a measurement at that rate: enough to be read once.
func (b *bench) during(rate int) int { return max(int(b.period.Seconds()*float64(rate)), 10_000) }
