package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// The load generator of our own sends and reads frames that are encoded beforehand, so
// that as much as possible of the machine is left to the server.
const (
	rawConns      = 2
	rawBatch      = 500
	rawEventBytes = 100
	rawWindow     = 32 // publications under way on each connection
	rawCredit     = 20_000
)

// batchFormat marks a publication of several events (eventhubs).
const batchFormat = 0x80013700

// measureListener finds what the AMQP listener does with small events.
func measureListener(ctx context.Context, b *bench) error {
	program, err := b.program(ctx)
	if err != nil {
		return err
	}
	b.progress("listener: events of %d bytes, %d connections, encoded beforehand", rawEventBytes, rawConns)
	r, err := b.compare(ctx, limit{period: b.period, bytes: cachedBytes},
		onYard(fmt.Sprintf("in: batches of %d, sync `os`", rawBatch), program, "os", rawConns, pour),
		onYard("out: one by one", program, "os", rawConns, b.drainFilled))
	if err != nil {
		return err
	}
	b.report.goal("AMQP listener, events of 100 bytes in, batches of 500, sync `os`", r[0].rate(), "events/s", atLeast(1_000_000))
	b.report.goal("AMQP listener, events of 100 bytes out", r[1].rate(), "events/s", atLeast(1_000_000))
	b.report.rates("The AMQP listener with a load generator of frames encoded beforehand: events of 100 bytes, 2 cores shared with it", r,
		"Allocations are the generator's.")
	return nil
}

// publication is a batch's encoding.
func publication(events, eventBytes int) []byte {
	var dst []byte
	event := dataMessage(randomBytes(eventBytes))
	for range events {
		dst = append(dst, dataMessage(event)...)
	}
	return dst
}

// pour sends the same batch on each connection to a partition of its own, with a window
// of publications under way.
func pour(ctx context.Context, s *amqpServer, lim limit) (tally, error) {
	payload := publication(rawBatch, rawEventBytes)
	began := time.Now()
	stop := func(sent int64) bool {
		return time.Since(began) >= lim.period || ctx.Err() != nil || sent*rawBatch*rawEventBytes*rawConns >= lim.bytes
	}
	counts := make([]int64, rawConns)
	err := each(rawConns, func(i int) (err error) {
		counts[i], err = pourInto(s, i, payload, stop)
		return err
	})
	t := tally{took: time.Since(began)}
	for _, n := range counts {
		t.events += n * rawBatch
	}
	t.bytes = t.events * rawEventBytes
	return t, err
}

// pourInto sends until it is told to stop, and gives how many publications were accepted.
func pourInto(s *amqpServer, partition int, payload []byte, stop func(sent int64) bool) (int64, error) {
	conn, err := dialAMQP(s.address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := conn.attachSender(fmt.Sprintf("%s/Partitions/%d", hubName, partition)); err != nil {
		return 0, err
	}
	free := make(chan struct{}, rawWindow)
	for range rawWindow {
		free <- struct{}{}
	}
	var sent int64
	settled := make(chan error, 1)
	go func() { settled <- conn.settlements(free) }()
	for !stop(sent) {
		select {
		case <-free:
		case err := <-settled:
			return 0, errors.Join(errors.New("connection ended while sending"), err)
		}
		if err := conn.publish(uint32(sent), payload); err != nil {
			return 0, err
		}
		sent++
	}
	for range rawWindow { // all of the window is free again: everything was accepted
		select {
		case <-free:
		case err := <-settled:
			return 0, errors.Join(errors.New("connection ended before all was settled"), err)
		}
	}
	return sent, nil
}

// publish writes a publication in a frame of its own, without copying it.
func (c *amqpConn) publish(id uint32, payload []byte) error {
	dst, frame := wire.BeginFrame(c.out[:0], wire.FrameAMQP, 0)
	dst = wire.AppendTransfer(dst, &wire.Transfer{DeliveryID: wire.Some(id), DeliveryTag: []byte{byte(id >> 8), byte(id)},
		MessageFormat: wire.Some(uint32(batchFormat))})
	dst = wire.EndFrame(dst, frame)
	size := uint32(len(dst) + len(payload))
	dst[0], dst[1], dst[2], dst[3] = byte(size>>24), byte(size>>16), byte(size>>8), byte(size)
	c.out = dst
	buffers := net.Buffers{dst, payload}
	_, err := buffers.WriteTo(c.Conn)
	return err
}

// settlements reads what became of publications and frees their places. It ends with the
// connection.
func (c *amqpConn) settlements(free chan<- struct{}) error {
	for {
		r, err := c.await(wire.DescriptorDisposition)
		if err != nil {
			return err
		}
		d, err := r.ReadDisposition()
		if err != nil {
			return err
		}
		if d.State.Outcome != wire.OutcomeAccepted {
			return fmt.Errorf("publication %d: %w", d.First, d.State.Error)
		}
		for range d.Last.Or(d.First) - d.First + 1 {
			free <- struct{}{}
		}
	}
}

// fillOverAMQP publishes so many events to each partition.
func fillOverAMQP(ctx context.Context, s *amqpServer, partitions, eventBytes, events int) error {
	batch := min(rawBatch, 60_000/(eventBytes+20))
	payload := publication(batch, eventBytes)
	publications := int64((events + batch - 1) / batch)
	return each(partitions, func(i int) error {
		_, err := pourInto(s, i, payload, func(sent int64) bool { return sent >= publications || ctx.Err() != nil })
		return errors.Join(err, ctx.Err())
	})
}

// drainFilled fills the yard, which does not count, and reads.
func (b *bench) drainFilled(ctx context.Context, s *amqpServer, lim limit) (tally, error) {
	stretch := b.during(1_000_000)
	if err := fillOverAMQP(ctx, s, rawConns, rawEventBytes, stretch); err != nil {
		return tally{}, err
	}
	began := time.Now()
	counts := make([]int64, rawConns)
	err := each(rawConns, func(i int) (err error) {
		for err == nil && time.Since(began) < lim.period && ctx.Err() == nil {
			var n int64
			n, err = drainOnce(s, i, int64(stretch), began.Add(lim.period))
			counts[i] += n
		}
		return err
	})
	t := tally{took: time.Since(began)}
	for _, n := range counts {
		t.events += n
	}
	t.bytes = t.events * rawEventBytes
	return t, err
}

// drainOnce reads a partition from its beginning to its end, or until the time is over.
func drainOnce(s *amqpServer, partition int, stretch int64, until time.Time) (count int64, err error) {
	conn, err := dialAMQP(s.address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.attachReceiver(partitionAddress(partition), rawCredit); err != nil {
		return 0, err
	}
	for count < stretch {
		body, err := conn.next()
		if err != nil {
			return count, err
		}
		if wire.Descriptor(body[2]) != wire.DescriptorTransfer {
			continue
		}
		count++
		if count%(rawCredit/2) != 0 {
			continue
		}
		if !time.Now().Before(until) {
			break
		}
		if err := conn.grant(uint32(count), rawCredit); err != nil {
			return count, err
		}
	}
	return count, nil
}
