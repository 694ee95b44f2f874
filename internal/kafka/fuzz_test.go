package kafka

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
)

// K1: whatever a head says, it is read or refused, and reading stops at the request's end.
func FuzzHeader(f *testing.F) {
	form := kmsg.NewRequestFormatter(kmsg.FormatterClientID("fuzz"))
	for _, o := range Offered {
		f.Add(form.AppendRequest(nil, request(o.Key, o.Highest), 7)[4:])
		f.Add(form.AppendRequest(nil, request(o.Key, o.Lowest), 7)[4:])
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		b := cutOf(append(p, "the next request"...), 0)
		b.left = len(p)
		h, offer, err := readHeader(b, "before")
		if err != nil {
			return
		}
		testkit.Equal(t, h.key, offer.Key)
		rest := make([]byte, b.left)
		b.full(rest)
		testkit.Must(t, b.err)
		testkit.That(t, bytes.HasSuffix(p, rest), "the body is not the end of the request")
		testkit.Equal(t, string(b.in.buf[b.in.begin:b.in.end]), "the next request")
	})
}

// K6: whatever a body says, for every request that we offer, it is decoded or refused, in memory that is
// bounded by what was sent.
func FuzzDecode(f *testing.F) {
	fill := filler{rand.New(rand.NewPCG(5, 6))}
	for _, o := range Offered {
		if _, ok := shapes[o.Key]; !ok {
			continue
		}
		for version := o.From; version <= o.Highest; version++ {
			r := kmsg.RequestForKey(o.Key)
			fill.fill(reflect.ValueOf(r).Elem(), true)
			r.SetVersion(version)
			f.Add(o.Key, version, r.AppendTo(nil))
		}
	}
	f.Fuzz(func(t *testing.T, key, version int16, body []byte) {
		offer, ok := offerOf(key)
		if !ok || !offer.serves(version) {
			return
		}
		if len(body) > 1<<16 {
			body = body[:1<<16]
		}
		r, took, err := decoded(key, version, body)
		if err != nil {
			return
		}
		testkit.That(t, took <= 400*(len(body)+1)+1000, "%d bytes are taken for %d", took, len(body))
		again, _, err := decoded(key, version, r.AppendTo(nil))
		testkit.Must(t, err, "what was decoded cannot be decoded again: ")
		testkit.Slices(t, again.AppendTo(nil), r.AppendTo(nil))
	})
}

// K6: whatever a Produce request says, it is read in parts or refused; and what we read kmsg reads, too.
func FuzzProduce(f *testing.F) {
	for version := int16(3); version <= 13; version++ {
		r := produceOf(version, []byte("first"), nil, bytes.Repeat([]byte("x"), 5000))
		f.Add(version, r.AppendTo(nil))
	}
	s := testkit.Value(New(Config{Handler: &handler{}, Log: testkit.Quiet(), MaxRecordsBytes: 10_000}))(f)
	f.Fuzz(func(t *testing.T, version int16, body []byte) {
		if version < 3 || version > 13 || len(body) > 1<<16 {
			return
		}
		b := cutOf(body, 0)
		c := newConn(t.Context(), s, b.in.nc.(*stream), 1, nil)
		hold := c.newHold()
		defer hold.give()
		p := newProduce(c, hold, version, b)
		defer p.buffer.putBack()
		want := kmsg.NewPtrProduceRequest()
		want.Version, want.Acks, want.TimeoutMillis, want.TransactionID = version, p.Acks, int32(p.Timeout.Milliseconds()), p.Transactional
		for {
			part, ok := p.Next()
			if !ok {
				break
			}
			if part.FirstOfTopic {
				topic := kmsg.NewProduceRequestTopic()
				topic.Topic, topic.TopicID = part.Topic, part.TopicID
				want.Topics = append(want.Topics, topic)
			}
			one := kmsg.NewProduceRequestTopicPartition()
			one.Partition, one.Records = part.Partition, bytes.Clone(part.Records)
			if part.TooLarge {
				one.Records = []byte("too large")
			}
			last := &want.Topics[len(want.Topics)-1]
			last.Partitions = append(last.Partitions, one)
		}
		if p.Err() != nil {
			return
		}
		got := kmsg.NewPtrProduceRequest()
		got.Version = version
		testkit.Must(t, got.ReadFrom(body), "kmsg cannot read it: ")
		got = normal(got)
		testkit.Slices(t, want.AppendTo(nil), got.AppendTo(nil))
	})
}

// normal leaves out what Produce leaves out: topics without partitions, and tagged fields.
func normal(r *kmsg.ProduceRequest) *kmsg.ProduceRequest {
	n := kmsg.NewPtrProduceRequest()
	n.Version, n.Acks, n.TimeoutMillis, n.TransactionID = r.Version, r.Acks, r.TimeoutMillis, r.TransactionID
	for _, topic := range r.Topics {
		if len(topic.Partitions) == 0 {
			continue
		}
		one := kmsg.NewProduceRequestTopic()
		one.Topic, one.TopicID = topic.Topic, topic.TopicID
		for _, part := range topic.Partitions {
			if len(part.Records) > 10_000 {
				part.Records = []byte("too large")
			}
			part.UnknownTags = kmsg.Tags{}
			one.Partitions = append(one.Partitions, part)
		}
		n.Topics = append(n.Topics, one)
	}
	return n
}
