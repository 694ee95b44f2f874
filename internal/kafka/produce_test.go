package kafka

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// reading is a handler that gives what it reads of Produce requests to a function, and answers.
func reading(part func(p ProducePartition), over func(p *Produce)) *handler {
	return &handler{begin: func(ctx context.Context, r *Request) Finish {
		if r.Produce == nil {
			return echo(ctx, r)
		}
		for {
			p, ok := r.Produce.Next()
			if !ok {
				break
			}
			part(p)
		}
		if over != nil {
			over(r.Produce)
		}
		return respond(kmsg.NewPtrProduceResponse())
	}}
}

// K1: what a Produce request holds is read in every version.
func TestProduceInEveryVersion(t *testing.T) {
	for version := int16(3); version <= 13; version++ {
		for _, transactional := range []*string{nil, kmsg.StringPtr("tx")} {
			r := produceOf(version, []byte("first"), nil, []byte("third"))
			r.TransactionID = transactional
			empty := kmsg.NewProduceRequestTopic()
			empty.Topic, empty.TopicID = "empty", [16]byte{9}
			r.Topics = append(r.Topics, empty)
			r.Topics = append(r.Topics, produceOf(version, []byte("fourth")).Topics...)
			r.Topics[2].Topic, r.Topics[2].TopicID = "invoices", [16]byte{7}
			r.UnknownTags.Set(77, []byte("something new"))
			r.Topics[0].Partitions[0].UnknownTags.Set(78, make([]byte, 3))

			var got []string
			f := serve(t, reading(func(p ProducePartition) {
				got = append(got, fmt.Sprintf("%s%d %d %q %v %v", p.Topic, p.TopicID[0], p.Partition, p.Records, p.Records == nil, p.FirstOfTopic))
			}, func(p *Produce) {
				testkit.Check(t, p.Err())
				testkit.Equal(t, p.Acks, -1)
				testkit.Equal(t, p.Timeout, time.Second)
				testkit.Equal(t, p.Transactional == nil, transactional == nil, "the transactional id is null")
				_, more := p.Next()
				testkit.That(t, !more, "there is something behind the end")
				testkit.Check(t, p.Err())
			}))
			ask[*kmsg.ProduceResponse](f.client(), r)
			orders, invoices := "orders0", "invoices0"
			if version >= 13 {
				orders, invoices = "1", "7"
			}
			testkit.Slices(t, got, []string{
				orders + ` 0 "first" false true`, orders + ` 1 "" true false`, orders + ` 2 "third" false false`, invoices + ` 0 "fourth" false true`,
			}, "version %d", version)
		}
	}
}

// K6: a large request costs no more than the largest of its partitions.
func TestProduceIsReadInParts(t *testing.T) {
	const partitions, size = 16, 1 << 20
	var buffers, total int
	var first *byte
	f := serve(t, reading(func(p ProducePartition) {
		if first != &p.Records[0] {
			first = &p.Records[0]
			buffers++
		}
		total += len(p.Records)
		testkit.That(t, cap(p.Records) <= size+64<<10, "the buffer has %d bytes", cap(p.Records))
		testkit.Equal(t, p.Records[size-1], byte(p.Partition), "the last byte")
	}, nil))
	c := f.client()
	// The head of the request, and then partition by partition from one piece of memory.
	head := c.encode(produceOf(9))
	head = head[:len(head)-3] // the partitions' count, and the tagged fields of the topic and the request
	head = append(head, partitions+1)
	part := binary.BigEndian.AppendUint32(nil, 0)
	part = binary.AppendUvarint(part, size+1)
	part = append(append(part, make([]byte, size)...), 0)
	binary.BigEndian.PutUint32(head, uint32(len(head)-4+partitions*len(part)+2))
	spent := allocatedBy(func() {
		c.write(head)
		for i := range partitions {
			binary.BigEndian.PutUint32(part, uint32(i))
			part[len(part)-2] = byte(i)
			c.write(part)
		}
		c.write([]byte{0, 0})
		c.answer(produceOf(9))
	})
	testkit.Equal(t, total, partitions*size)
	testkit.Equal(t, buffers, 1, "buffers")
	testkit.That(t, spent < 3*size, "a request of %d bytes has cost %d", partitions*size, spent)
}

// K6: records beyond the limit are passed over, and the rest of the request is not.
func TestRecordsThatAreTooLarge(t *testing.T) {
	var got []string
	f := serve(t, reading(func(p ProducePartition) {
		got = append(got, fmt.Sprint(p.Partition, len(p.Records), p.TooLarge))
	}, nil), func(c *Config) { c.MaxRecordsBytes = 100_000 })
	c := f.client()
	ask[*kmsg.ProduceResponse](c, produceOf(9, make([]byte, 100_000), make([]byte, 100_001), make([]byte, 7)))
	testkit.Slices(t, got, []string{"0 100000 false", "1 0 true", "2 7 false"})
	c.lives()
}

// What a handler leaves is passed over.
func TestProduceThatIsNotRead(t *testing.T) {
	f := serve(t, &handler{begin: func(_ context.Context, r *Request) Finish {
		r.Produce.Next()
		return respond(kmsg.NewPtrProduceResponse())
	}})
	c := f.client()
	ask[*kmsg.ProduceResponse](c, produceOf(9, make([]byte, 10), make([]byte, 200_000), make([]byte, 10)))
	ask[*kmsg.ProduceResponse](c, produceOf(9, make([]byte, 10), make([]byte, 10)))
}

// A request that ends before its end, or makes no sense, ends the connection; what was begun is finished.
func TestProduceThatBreaksOff(t *testing.T) {
	whole := func(c *client) []byte {
		return c.encode(produceOf(9, []byte("first"), bytes.Repeat([]byte("x"), 5000)))
	}
	for name, test := range map[string]struct {
		send   func(c *client)
		want   error
		reason string
	}{
		"the client goes": {func(c *client) {
			p := whole(c)
			c.write(p[:len(p)-2000])
			c.nc.Close()
		}, io.ErrUnexpectedEOF, ""},
		"records that are not there": {func(c *client) {
			p := whole(c)
			p = p[:len(p)-2000]
			binary.BigEndian.PutUint32(p, uint32(len(p)-4))
			c.write(p)
			c.gone()
		}, errMalformed, reasonMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			read, finished, left := make(chan error, 1), make(chan error, 1), make(chan struct{})
			parts := 0
			f := serve(t, &handler{begin: func(ctx context.Context, r *Request) Finish {
				for {
					if _, ok := r.Produce.Next(); !ok {
						break
					}
					parts++
				}
				read <- r.Produce.Err()
				return func(ctx context.Context, w *Writer) error {
					w.Nothing()
					finished <- nil
					return nil
				}
			}, disconnected: func() { close(left) }})
			c := f.client()
			test.send(c)
			testkit.ErrorIs(t, receive(t, read, "the error"), test.want)
			testkit.Equal(t, parts, 1, "partitions")
			receive(t, finished, "Finish")
			receive(t, left, "Disconnected")
			if test.reason != "" {
				testkit.Equal(t, f.refused(test.reason), 1, "refused")
			}
		})
	}
}

// K6: where there is no memory left nothing is read on, and others who take nothing are cut off.
func TestProduceWaitsForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := admission.NewMemory(1<<20, 1<<20, admission.DefaultPatience)
		var stalled atomic.Bool
		other := memory.Share("other", func() { stalled.Store(true) })
		testkit.That(t, other.TryTake(1<<20), "there is room")
		got := 0
		f := serve(t, reading(func(p ProducePartition) { got += len(p.Records) }, nil), func(c *Config) { c.Memory = memory })
		c := f.client()
		r := produceOf(9, make([]byte, 200_000))
		go c.send(r)
		synctest.Wait()
		testkit.Equal(t, got, 0, "read")
		time.Sleep(2 * admission.DefaultPatience)
		testkit.That(t, stalled.Load(), "who keeps it all is left in peace")
		other.Give()
		c.answer(r)
		testkit.Equal(t, got, 200_000, "read")
		synctest.Wait()
		testkit.That(t, memory.Share("other", nil).TryTake(1<<20), "all was given back")
	})
}

// K6: a client that drips while others wait for memory is cut off; one whose request is worked on is not.
func TestWhoDripsIsCutOff(t *testing.T) {
	for name, drips := range map[string]bool{"it drips": true, "it waits for the handler": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := admission.NewMemory(1<<18, 1<<18, admission.DefaultPatience)
				work := make(chan struct{})
				f := serve(t, reading(func(ProducePartition) { <-work }, nil), func(c *Config) { c.Memory = memory })
				c := f.client()
				r := produceOf(9, make([]byte, 150_000))
				p := c.encode(r)
				if drips {
					p = p[:len(p)-10]
				}
				c.write(p)
				got := make(chan error)
				go func() { got <- memory.Share("other", nil).Take(t.Context(), 1<<18) }()
				time.Sleep(3 * admission.DefaultPatience)
				close(work)
				if drips {
					c.gone()
				} else {
					c.answer(r)
				}
				testkit.Must(t, <-got)
			})
		})
	}
}
