package broker

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/message"
	kafka "github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// kafkaBatch is a batch of Kafka's with these values.
func kafkaBatch(values ...string) []byte {
	b := kafka.Begin(nil, 0, time.Now().UnixMilli())
	for _, v := range values {
		b.Add(&kafka.Record{Timestamp: time.Now().UnixMilli(), Key: []byte("key of " + v), Value: []byte(v)})
	}
	return b.End()
}

// zipped packs the records of a batch.
func zipped(t *testing.T, batch []byte) []byte {
	t.Helper()
	packed := bytes.NewBuffer(bytes.Clone(batch[:kafka.HeadBytes]))
	w := gzip.NewWriter(packed)
	_, err := w.Write(batch[kafka.HeadBytes:])
	testkit.Must(t, err)
	testkit.Must(t, w.Close())
	out := packed.Bytes()
	binary.BigEndian.PutUint32(out[8:], uint32(len(out)-12))
	out[22] = 1 // gzip
	binary.BigEndian.PutUint32(out[17:], crc32.Checksum(out[21:], crc32.MakeTable(crc32.Castagnoli)))
	return out
}

// storeFrame publishes a batch of Kafka's to a hub.
func storeFrame(t *testing.T, b *Broker, hub string, batch []byte) Published {
	t.Helper()
	frames := []eventlog.Batch{testkit.Value(kafka.Check(batch))(t)}
	return testkit.Value(testkit.Value(b.SubmitFrames(t.Context(), hub, FrameTarget{}, frames))(t).Wait(t.Context()))(t)
}

// bodies reads from a cursor to the end, and shows each event as NUMBER=BODY.
func bodies(t *testing.T, c eventlog.Cursor) string {
	t.Helper()
	defer c.Close()
	var all []string
	for {
		run := testkit.Value(c.TryNext(t.Context()))(t)
		if run.Len() == 0 {
			return strings.Join(all, " ")
		}
		testkit.MustEqual(t, c.At(), run.Next(), "where the cursor stands")
		for i, e := range run.Events {
			body, ok := message.Body(e.Message)
			if !ok {
				body = e.Message
			}
			all = append(all, fmt.Sprintf("%d=%.20s", int(run.First)+i, body))
		}
	}
}

// K4: what Kafka's producers have sent is read as single events, from wherever a reader begins, also after a
// restart.
func TestReadersGetTheEventsOfFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		b := y.open(t)
		mustCreate(t, b, "orders", 1)
		mustPublish(t, b, "orders", Target{}, "a", "b")
		time.Sleep(time.Second)
		plain := storeFrame(t, b, "orders", kafkaBatch("c", "d", "e"))
		time.Sleep(time.Second)
		mustPublish(t, b, "orders", Target{}, "f")
		time.Sleep(time.Second)
		packed := storeFrame(t, b, "orders", zipped(t, kafkaBatch("g", "h")))
		time.Sleep(time.Second)
		mustPublish(t, b, "orders", Target{}, "i")

		all := strings.Fields("0=a 1=b 2=c 3=d 4=e 5=f 6=g 7=h 8=i")
		from := func(n int) string { return strings.Join(all[n:], " ") }
		for _, when := range []string{"at once", "after a restart"} {
			cursor := func(at eventlog.Position) eventlog.Cursor {
				return testkit.Value(b.Cursor(t.Context(), "orders", DefaultGroup, "0", at))(t)
			}
			for n := range all {
				testkit.Equal(t, bodies(t, cursor(eventlog.At(eventlog.Sequence(n)))), from(n), "%s, from %d", when, n)
			}
			testkit.Equal(t, bodies(t, cursor(eventlog.Earliest())), from(0), when)
			testkit.Equal(t, bodies(t, cursor(eventlog.Since(plain.Time))), from(2), when)
			testkit.Equal(t, bodies(t, cursor(eventlog.Since(plain.Time.Add(time.Millisecond)))), from(5), when)
			testkit.Equal(t, bodies(t, cursor(eventlog.Since(packed.Time))), from(6), when)
			testkit.Equal(t, bodies(t, cursor(eventlog.Since(packed.Time.Add(time.Millisecond)))), from(8), when)
			testkit.Equal(t, bodies(t, cursor(eventlog.Latest())), "", when)
			r := testkit.Value(b.Receive(t.Context(), ReceiverConfig{Hub: "orders", Group: DefaultGroup, Partition: "0", At: eventlog.At(3)}))(t)
			testkit.Equal(t, bodies(t, r.Cursor), from(3), "%s, a receiver", when)
			r.Close()
			y.Restart(t)
			b = y.open(t)
		}
	})
}

// K4: Kafka's own readers get a frame as it came, with its place filled in.
func TestFramesAreKeptAsTheyCame(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	mustPublish(t, b, "orders", Target{}, "a", "b")
	sent := zipped(t, kafkaBatch("c", "d"))
	storeFrame(t, b, "orders", sent)
	c := testkit.Value(b.RawCursor(t.Context(), "orders", "0", eventlog.At(3)))(t)
	defer c.Close()
	run := testkit.Value(c.TryNext(t.Context()))(t)
	testkit.Equal(t, run.Form, eventlog.FormKafka)
	testkit.Equal(t, testkit.Value(kafka.ReadHead(run.Raw))(t).BaseOffset, 2)
	testkit.Equal(t, string(run.Raw[12:]), string(sent[12:]), "behind the base offset and the length")
	testkit.Must(t, testkit.Err(kafka.Check(run.Raw)))
}

// K4, K6: who waits gets a frame when it comes, and a large one in parts.
func TestAFrameComesInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		b := y.open(t)
		mustCreate(t, b, "orders", 1)
		c := testkit.Value(b.Cursor(t.Context(), "orders", DefaultGroup, "0", eventlog.Earliest()))(t)
		defer c.Close()
		got := make(chan eventlog.Run)
		go func() {
			run, _ := c.Next(context.WithoutCancel(t.Context()))
			got <- run
		}()
		synctest.Wait()
		large := strings.Repeat("x", 600<<10)
		storeFrame(t, b, "orders", zipped(t, kafkaBatch(large, large, large)))
		testkit.Equal(t, len((<-got).Events), 1, "events in the first part")
		testkit.Equal(t, c.At(), 1)
		c.Rest()
		testkit.Equal(t, bodies(t, c), "1="+large[:20]+" 2="+large[:20])
	})
}
