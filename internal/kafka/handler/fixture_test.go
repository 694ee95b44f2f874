package handler

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/hubstest"
	"github.com/eventyard/eventyard/internal/kafka"
	"github.com/eventyard/eventyard/internal/kafka/groups"
	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/kafka/transactions"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
	"github.com/eventyard/eventyard/internal/transport/pipe"
)

// Whatever a connection has begun has ended when the connection has.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// yard is a real broker behind the listener and a real Kafka server, on connections in memory.
type yard struct {
	t            testing.TB
	storage      *storagetest.Storage
	broker       *broker.Broker
	policies     *access.Registry
	groups       *groups.Coordinator
	transactions *transactions.Coordinator
	handler      *Handler
	listener     *pipe.Listener
	registry     *prometheus.Registry
	memory       *admission.Memory // nil: the default
	log          *testkit.ErrorLog
	stop         func() // the server
}

// newYard opens a yard in which everybody may do everything; newClosedYard one that asks who one is.
func newYard(t testing.TB, change ...func(*yard, *Config)) *yard { return openYard(t, true, change...) }

func newClosedYard(t testing.TB, change ...func(*yard, *Config)) *yard {
	return openYard(t, false, change...)
}

// within gives the yard so much memory for what clients send and have not taken.
func within(bytes int) func(*yard, *Config) {
	return func(y *yard, _ *Config) { y.memory = admission.NewMemory(bytes, bytes, admission.DefaultPatience) }
}

func openYard(t testing.TB, open bool, change ...func(*yard, *Config)) *yard {
	t.Helper()
	y := &yard{t: t, listener: pipe.NewListener("yard"), registry: prometheus.NewRegistry(), log: testkit.NewErrorLog(t, slog.LevelDebug)}
	hubs := hubstest.Open(t, storagetest.Config{SegmentBytes: 1 << 22, Log: y.log.Logger})
	y.storage, y.broker = hubs.Storage, hubs.Broker
	y.policies = testkit.Value(access.Open(t.Context(), access.Config{Meta: hubs.Meta, Hub: y.created, Development: true, Log: y.log.Logger}))(t)
	y.groups = testkit.Value(groups.New(groups.Config{Meta: hubs.Meta, Broker: y.broker, Node: "here", Log: y.log.Logger, Metrics: y.registry}))(t)
	testkit.Run(t, y.groups.Run)
	y.transactions = testkit.Value(transactions.New(transactions.Config{Meta: hubs.Meta, Broker: y.broker, Groups: y.groups, Log: y.log.Logger}))(t)
	testkit.Run(t, y.transactions.Run)
	cfg := Config{
		Broker: y.broker, Access: y.policies, Groups: y.groups, Transactions: y.transactions, Open: open, Log: y.log.Logger, Metrics: y.registry,
		Advertise: func(*kafka.Conn) (string, int32) { return "yard.test", 9092 },
	}
	for _, c := range change {
		c(y, &cfg)
	}
	front := testkit.Value(New(cfg))(t)
	y.handler = front
	serving := kafka.Config{Handler: front, Memory: y.memory, Log: y.log.Logger, Metrics: y.registry}
	if !open {
		serving.Auth = front
	}
	server := testkit.Value(kafka.New(serving))(t)
	y.stop = testkit.Run(t, func(ctx context.Context) error { return server.Serve(ctx, y.listener) })
	return y
}

func (y *yard) created(name string) (time.Time, bool) {
	hub, err := y.broker.Hub(name)
	return hub.Created, err == nil
}

// hub makes a hub.
func (y *yard) hub(name string, partitions int) broker.Hub {
	y.t.Helper()
	return testkit.Value(y.broker.EnsureHub(y.t.Context(), broker.HubConfig{Name: name, Partitions: partitions}, nil))(y.t)
}

// policy makes one, with a key that is made of its name.
func (y *yard) policy(hub, name string, rights auth.Rights) {
	y.t.Helper()
	_, err := y.policies.Create(y.t.Context(), access.Policy{Hub: hub, Name: name, Rights: rights, Primary: keyOf(name), Secondary: keyOf(name) + "2"})
	testkit.Must(y.t, err)
}

func keyOf(policy string) string {
	if policy == auth.RootPolicy {
		return auth.DevelopmentKey
	}
	return policy + "-key-of-a-length-that-is-allowed-0123456789"
}

// publish stores single events as the AMQP listener does, all in one batch.
func (y *yard) publish(hub, partition string, bodies ...string) {
	y.t.Helper()
	events := make([]eventlog.Event, len(bodies))
	for i, body := range bodies {
		events[i].Message = wire.AppendBinary(wire.AppendDescriptor(nil, wire.DescriptorData), []byte(body))
	}
	_, err := y.broker.Publish(y.t.Context(), hub, broker.Target{Partition: partition}, events)
	testkit.Must(y.t, err)
}

// client is a connection that speaks Kafka.
type client struct {
	t      testing.TB
	conn   net.Conn
	number int32
}

func (y *yard) client() *client {
	y.t.Helper()
	conn := testkit.Value(y.listener.Dial(y.t.Context()))(y.t)
	y.t.Cleanup(func() { _ = conn.Close() })
	return &client{t: y.t, conn: conn}
}

// login logs in by a policy's name and key.
func (y *yard) login(policy string) *client {
	y.t.Helper()
	c := y.client()
	testkit.MustEqual(y.t, c.plain(policy, keyOf(policy)), codeNone)
	return c
}

// plain shows user and password, and gives what is answered.
func (c *client) plain(user, password string) int16 {
	c.t.Helper()
	shake := kmsg.NewPtrSASLHandshakeRequest()
	shake.Mechanism = "PLAIN"
	testkit.MustEqual(c.t, ask[*kmsg.SASLHandshakeResponse](c, 1, shake).ErrorCode, codeNone)
	show := kmsg.NewPtrSASLAuthenticateRequest()
	show.SASLAuthBytes = []byte("\x00" + user + "\x00" + password)
	return ask[*kmsg.SASLAuthenticateResponse](c, 2, show).ErrorCode
}

// ask sends a request and waits for its answer.
func ask[R kmsg.Response](c *client, version int16, request kmsg.Request) R {
	c.t.Helper()
	c.send(version, request)
	return c.receive(request).(R)
}

func (c *client) send(version int16, request kmsg.Request) {
	c.t.Helper()
	request.SetVersion(version)
	c.number++
	_, err := c.conn.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, request, c.number))
	testkit.Must(c.t, err)
}

func (c *client) receive(request kmsg.Request) kmsg.Response {
	c.t.Helper()
	response, err := c.tryReceive(request)
	testkit.Must(c.t, err)
	return response
}

func (c *client) tryReceive(request kmsg.Request) (kmsg.Response, error) {
	var size [4]byte
	if _, err := io.ReadFull(c.conn, size[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c.conn, body); err != nil {
		return nil, err
	}
	response := request.ResponseKind()
	response.SetVersion(request.GetVersion())
	body = body[4:] // the number of the request
	if response.IsFlexible() {
		body = body[1:]
	}
	return response, response.ReadFrom(body)
}

// ended waits until the server has closed the connection.
func (c *client) ended() {
	c.t.Helper()
	_, err := io.Copy(io.Discard, c.conn)
	testkit.That(c.t, err == nil || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe), "it ended with %v", err)
}

// batch is one that a producer makes.
type batch struct {
	codec  int16
	values []string
	// times are those of the values; none: base.
	times []int64
	// producer 0: it is not idempotent.
	producer int64
	epoch    int16
	first    int32
	// transactional: it is part of a transaction.
	transactional bool
}

const base = 1_700_000_000_000

var codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// raw encodes a batch.
func (b batch) raw(t testing.TB) []byte {
	t.Helper()
	w := record.Begin(nil, 0, base)
	for i, value := range b.values {
		r := record.Record{Timestamp: base, Value: []byte(value)}
		if b.times != nil {
			r.Timestamp = b.times[i]
		}
		w.Add(&r)
	}
	raw := w.End()
	raw = append(raw[:record.HeadBytes:record.HeadBytes], pack(t, b.codec, raw[record.HeadBytes:])...)
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	attributes := record.Attributes(b.codec)
	if b.transactional {
		attributes |= record.Transactional
	}
	binary.BigEndian.PutUint16(raw[21:], uint16(attributes))
	if b.producer != 0 {
		binary.BigEndian.PutUint64(raw[43:], uint64(b.producer))
		binary.BigEndian.PutUint16(raw[51:], uint16(b.epoch))
		binary.BigEndian.PutUint32(raw[53:], uint32(b.first))
	}
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}

func pack(t testing.TB, codec int16, records []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch codecs[codec] {
	case "none":
		return records
	case "snappy":
		return s2.EncodeSnappy(nil, records)
	case "gzip":
		w = gzip.NewWriter(&out)
	case "lz4":
		w = lz4.NewWriter(&out)
	case "zstd":
		w = testkit.Value(zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1)))(t)
	}
	_, err := w.Write(records)
	testkit.Must(t, err)
	testkit.Must(t, w.Close())
	return out.Bytes()
}

// values makes a batch of nothing but values.
func values(all ...string) batch { return batch{values: all} }

// produceRequest has one batch for a partition.
func produceRequest(t testing.TB, hub broker.Hub, partition int32, b batch) *kmsg.ProduceRequest {
	t.Helper()
	r := kmsg.NewPtrProduceRequest()
	r.Acks, r.TimeoutMillis = acksAll, 30_000
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID = hub.Name, hub.ID
	part := kmsg.NewProduceRequestTopicPartition()
	part.Partition, part.Records = partition, b.raw(t)
	topic.Partitions = append(topic.Partitions, part)
	r.Topics = append(r.Topics, topic)
	return r
}

// produce stores a batch, and gives what is answered of its partition.
func (c *client) produce(hub broker.Hub, partition int32, b batch) kmsg.ProduceResponseTopicPartition {
	c.t.Helper()
	return c.produceBy(13, produceRequest(c.t, hub, partition, b))
}

func (c *client) produceBy(version int16, r *kmsg.ProduceRequest) kmsg.ProduceResponseTopicPartition {
	c.t.Helper()
	answer := ask[*kmsg.ProduceResponse](c, version, r)
	testkit.MustEqual(c.t, len(answer.Topics), 1, "topics")
	testkit.MustEqual(c.t, len(answer.Topics[0].Partitions), 1, "partitions")
	return answer.Topics[0].Partitions[0]
}

// at is a partition and an offset.
type at struct {
	hub       broker.Hub
	partition int32
	offset    int64
}

// fetchRequest asks for as much as there is now, without a session.
func fetchRequest(wanted ...at) *kmsg.FetchRequest {
	r := kmsg.NewPtrFetchRequest()
	r.ReplicaID, r.MaxWaitMillis, r.MinBytes, r.MaxBytes, r.SessionEpoch = -1, 0, 1, 50<<20, epochFinal
	for _, a := range wanted {
		part := kmsg.NewFetchRequestTopicPartition()
		part.Partition, part.FetchOffset, part.PartitionMaxBytes, part.CurrentLeaderEpoch = a.partition, a.offset, 1<<20, -1
		topic := kmsg.NewFetchRequestTopic()
		topic.Topic, topic.TopicID = a.hub.Name, a.hub.ID
		topic.Partitions = append(topic.Partitions, part)
		r.Topics = append(r.Topics, topic)
	}
	return r
}

// fetch gives what a partition has from an offset on.
func (c *client) fetch(hub broker.Hub, partition int32, offset int64) kmsg.FetchResponseTopicPartition {
	c.t.Helper()
	return c.fetchBy(18, fetchRequest(at{hub, partition, offset}))
}

func (c *client) fetchBy(version int16, r *kmsg.FetchRequest) kmsg.FetchResponseTopicPartition {
	c.t.Helper()
	answer := ask[*kmsg.FetchResponse](c, version, r)
	testkit.MustEqual(c.t, answer.ErrorCode, codeNone, "the code of the whole")
	testkit.MustEqual(c.t, len(answer.Topics), 1, "topics")
	testkit.MustEqual(c.t, len(answer.Topics[0].Partitions), 1, "partitions")
	return answer.Topics[0].Partitions[0]
}

// recordsOf reads batches as clients do: "offset:value" of each record. A batch without records is
// "gap to" where it goes on, and what is cut off at the end is passed over.
func recordsOf(t testing.TB, raw []byte) (all []string) {
	t.Helper()
	for len(raw) >= record.HeadBytes {
		size := int(binary.BigEndian.Uint32(raw[8:])) + 12
		if size > len(raw) {
			break
		}
		one := raw[:size]
		raw = raw[size:]
		testkit.MustEqual(t, binary.BigEndian.Uint32(one[17:]), crc32.Checksum(one[21:], crc32.MakeTable(crc32.Castagnoli)), "the checksum")
		first := int64(binary.BigEndian.Uint64(one))
		if binary.BigEndian.Uint32(one[57:]) == 0 {
			all = append(all, fmt.Sprintf("gap to %d", first+int64(binary.BigEndian.Uint32(one[23:]))+1))
			continue
		}
		head := testkit.Value(record.ReadHead(one))(t)
		testkit.Must(t, head.Each(one, func(i int, r *record.Record) bool {
			all = append(all, fmt.Sprintf("%d:%s", head.BaseOffset+int64(i), r.Value))
			return true
		}))
	}
	return all
}

// wantRecords fails unless there are exactly these.
func wantRecords(t testing.TB, part kmsg.FetchResponseTopicPartition, want ...string) {
	t.Helper()
	testkit.Equal(t, part.ErrorCode, codeNone, "code")
	testkit.Slices(t, recordsOf(t, part.RecordBatches), want, "records")
}

// metric is the sum of all series of a name.
func (y *yard) metric(name string) (sum float64) {
	y.t.Helper()
	for _, family := range testkit.Value(y.registry.Gather())(y.t) {
		if family.GetName() == name {
			for _, m := range family.GetMetric() {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}
