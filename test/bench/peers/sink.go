package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"
)

// sink is a Kafka server that throws away what it is sent, and is the ceiling of what a client can do on the
// machine. Of each partition it counts records and keeps the largest batch. Who fetches is sent copies of that, as many
// as there were records: so a consumer's ceiling is a server that reads no disk.
type sink struct {
	mu     sync.Mutex
	topics map[string][]*sinkPartition // guarded by mu
}

type sinkPartition struct {
	mu    sync.Mutex
	batch []byte // the largest that came; guarded by mu
	count int64  // records in that batch. guarded by mu
	end   int64  // records in all. guarded by mu
	// seen: somebody has been told where batches begin, so that the batch is not changed any more. guarded by mu
	seen bool
}

// sinkOffers are the requests that the sink answers: versions before the flexible ones, so that all answers have the
// same head, and of Fetch the one version whose answer is written by hand.
var sinkOffers = []kmsg.ApiVersionsResponseApiKey{
	{ApiKey: 0, MinVersion: 3, MaxVersion: 8},   // Produce
	{ApiKey: 1, MinVersion: 11, MaxVersion: 11}, // Fetch
	{ApiKey: 2, MinVersion: 1, MaxVersion: 5},   // ListOffsets
	{ApiKey: 3, MinVersion: 1, MaxVersion: 8},   // Metadata
	{ApiKey: 18, MinVersion: 0, MaxVersion: 2},  // ApiVersions
	{ApiKey: 19, MinVersion: 0, MaxVersion: 4},  // CreateTopics
	{ApiKey: 20, MinVersion: 0, MaxVersion: 3},  // DeleteTopics
	{ApiKey: 22, MinVersion: 0, MaxVersion: 1},  // InitProducerId
}

const (
	// sinkRequestBytes bounds a request: more than any client sends by default.
	sinkRequestBytes = 128 << 20
	// sinkFetchBytes is about what a partition adds to an answer, as much as clients ask for by default.
	sinkFetchBytes = 1 << 20
	// sinkIdle is how long a fetch that finds nothing is kept.
	sinkIdle = 50 * time.Millisecond

	errUnknownTopic, errUnsupportedVersion int16 = 3, 35
)

// listenTLS is a listener with a certificate and its key, both in one file.
func listenTLS(address, keys string) (net.Listener, error) {
	pair, err := tls.LoadX509KeyPair(keys, keys)
	if err != nil {
		return nil, err
	}
	return tls.Listen("tcp", address, &tls.Config{Certificates: []tls.Certificate{pair}})
}

// serveSink serves the connections of all listeners until the context ends, and closes them.
func serveSink(ctx context.Context, listeners ...net.Listener) error {
	s := &sink{topics: map[string][]*sinkPartition{}}
	group, ctx := errgroup.WithContext(ctx)
	for _, listener := range listeners {
		group.Go(func() error { return s.serve(ctx, listener) })
	}
	return group.Wait()
}

func (s *sink) serve(ctx context.Context, listener net.Listener) error {
	defer listener.Close()
	host, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	var conns sync.WaitGroup
	defer conns.Wait()
	stopped := context.AfterFunc(ctx, func() { listener.Close() })
	defer stopped()
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		conns.Go(func() {
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			// A client that leaves ends its connection; the client itself says so if that was too early.
			_ = (&sinkConn{sink: s, host: host, port: int32(number), conn: conn, blocks: map[*sinkPartition]*sinkBlock{}}).serve()
		})
	}
}

// sinkConn serves one connection. Its goroutine alone has it.
type sinkConn struct {
	*sink
	// host and port are of the listener by which it came, to which its client is led.
	host    string
	port    int32
	conn    net.Conn
	request []byte // used again for each
	answer  []byte // used again for each
	blocks  map[*sinkPartition]*sinkBlock
}

func (c *sinkConn) serve() error {
	reader := bufio.NewReaderSize(c.conn, 64<<10)
	for {
		var size [4]byte
		if _, err := io.ReadFull(reader, size[:]); err != nil {
			return err
		}
		n := binary.BigEndian.Uint32(size[:])
		if n < 10 || n > sinkRequestBytes {
			return fmt.Errorf("a request of %d bytes", n)
		}
		c.request = slices.Grow(c.request[:0], int(n))[:n]
		if _, err := io.ReadFull(reader, c.request); err != nil {
			return err
		}
		if err := c.respond(); err != nil {
			return err
		}
	}
}

// respond answers the request that was read.
func (c *sinkConn) respond() error {
	key, version := int16(binary.BigEndian.Uint16(c.request)), int16(binary.BigEndian.Uint16(c.request[2:]))
	correlation := c.request[4:8]
	body := c.request[10:]
	if n := int16(binary.BigEndian.Uint16(c.request[8:])); n > 0 { // the client's id
		if int(n) > len(body) {
			return errors.New("a request that is cut off")
		}
		body = body[n:]
	}
	c.answer = append(append(c.answer[:0], 0, 0, 0, 0), correlation...)
	if !offered(key, version) {
		if key != 18 {
			return fmt.Errorf("request %d of version %d", key, version)
		}
		// Kafka's rule: who asks in a version that is not known is answered in the first.
		return c.send(versions(0, errUnsupportedVersion))
	}
	request := kmsg.RequestForKey(key)
	request.SetVersion(version)
	var err error
	if produce, ok := request.(*kmsg.ProduceRequest); ok {
		err = produce.UnsafeReadFrom(body) // nothing of it is kept but copies
	} else {
		err = request.ReadFrom(body)
	}
	if err != nil {
		return err
	}
	switch r := request.(type) {
	case *kmsg.ProduceRequest:
		return c.produce(r)
	case *kmsg.FetchRequest:
		return c.fetch(r)
	case *kmsg.ListOffsetsRequest:
		return c.send(c.listOffsets(r))
	case *kmsg.MetadataRequest:
		return c.send(c.metadata(r))
	case *kmsg.CreateTopicsRequest:
		return c.send(c.create(r))
	case *kmsg.DeleteTopicsRequest:
		return c.send(c.remove(r))
	case *kmsg.InitProducerIDRequest:
		answer := r.ResponseKind().(*kmsg.InitProducerIDResponse)
		answer.ProducerID = time.Now().UnixNano()
		return c.send(answer)
	default:
		return c.send(versions(version, 0))
	}
}

func offered(key, version int16) bool {
	return slices.ContainsFunc(sinkOffers, func(o kmsg.ApiVersionsResponseApiKey) bool {
		return o.ApiKey == key && o.MinVersion <= version && version <= o.MaxVersion
	})
}

func versions(version, code int16) *kmsg.ApiVersionsResponse {
	answer := kmsg.NewPtrApiVersionsResponse()
	answer.Version, answer.ErrorCode, answer.ApiKeys = version, code, sinkOffers
	return answer
}

func (c *sinkConn) send(answer kmsg.Response) error {
	c.answer = answer.AppendTo(c.answer)
	return c.flush(net.Buffers{c.answer})
}

// flush sends an answer in pieces, the first of which begins with room for its length.
func (c *sinkConn) flush(pieces net.Buffers) error {
	size := -4
	for _, b := range pieces {
		size += len(b)
	}
	binary.BigEndian.PutUint32(pieces[0], uint32(size))
	_, err := pieces.WriteTo(c.conn)
	return err
}

func (s *sink) partition(topic string, number int32) *sinkPartition {
	s.mu.Lock()
	defer s.mu.Unlock()
	if all := s.topics[topic]; number >= 0 && int(number) < len(all) {
		return all[number]
	}
	return nil
}

func (c *sinkConn) produce(r *kmsg.ProduceRequest) error {
	answer := r.ResponseKind().(*kmsg.ProduceResponse)
	for _, t := range r.Topics {
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			partition := kmsg.NewProduceResponseTopicPartition()
			partition.Partition = p.Partition
			if found := c.partition(t.Topic, p.Partition); found == nil {
				partition.ErrorCode = errUnknownTopic
			} else {
				partition.BaseOffset = found.take(p.Records)
			}
			topic.Partitions = append(topic.Partitions, partition)
		}
		answer.Topics = append(answer.Topics, topic)
	}
	if r.Acks == 0 {
		return nil
	}
	return c.send(answer)
}

// recordsAt is where a batch of format 2 has the number of its records.
const recordsAt = 57

// take counts a batch, and gives the offset of its first record.
func (p *sinkPartition) take(batch []byte) (first int64) {
	if len(batch) < recordsAt+4 {
		return 0
	}
	count := int64(binary.BigEndian.Uint32(batch[recordsAt:]))
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.seen && count > 0 && len(batch) > len(p.batch) {
		p.batch, p.count = append(p.batch[:0], batch...), count
	}
	first, p.end = p.end, p.end+count
	return first
}

// bounds gives the batch that is sent for all, its records, and the end: that of the last copy, so that nobody waits
// for a part of one.
func (p *sinkPartition) bounds() (batch []byte, count, end int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.batch == nil {
		return nil, 0, 0
	}
	p.seen = true
	return p.batch, p.count, (p.end + p.count - 1) / p.count * p.count
}

// sinkBlock is copies of a partition's batch, one behind the other.
type sinkBlock struct {
	bytes         []byte
	batch         int // bytes of one
	count, copies int64
}

// from makes the copies those that begin with the batch of an offset, and leaves out what is behind the end. A batch's
// first offset is not a part of its checksum.
func (b *sinkBlock) from(offset, end int64) []byte {
	first := offset / b.count * b.count
	n := min(b.copies, (end-first)/b.count)
	for i := range n {
		binary.BigEndian.PutUint64(b.bytes[int(i)*b.batch:], uint64(first+i*b.count))
	}
	return b.bytes[:int(n)*b.batch]
}

func (c *sinkConn) block(p *sinkPartition, batch []byte, count int64) *sinkBlock {
	b := c.blocks[p]
	if b == nil {
		copies := max(sinkFetchBytes/len(batch), 1)
		b = &sinkBlock{bytes: slices.Repeat(batch, copies), batch: len(batch), count: count, copies: int64(copies)}
		c.blocks[p] = b
	}
	return b
}

// fetch writes its answer by hand, so that no record is copied (FetchResponse, version 11). Of many partitions those that
// come first fill the answer, and the others follow in the next.
func (c *sinkConn) fetch(r *kmsg.FetchRequest) error {
	type part struct {
		number int32
		code   int16
		end    int64
		bytes  []byte
	}
	found, topics := 0, make([][]part, len(r.Topics))
	for i, t := range r.Topics {
		for _, p := range t.Partitions {
			answer := part{number: p.Partition}
			if partition := c.partition(t.Topic, p.Partition); partition == nil {
				answer.code = errUnknownTopic
			} else if batch, count, end := partition.bounds(); p.FetchOffset < end && found < int(r.MaxBytes) {
				answer.end, answer.bytes = end, c.block(partition, batch, count).from(p.FetchOffset, end)
			} else {
				answer.end = end
			}
			found += len(answer.bytes)
			topics[i] = append(topics[i], answer)
		}
	}
	if found == 0 {
		time.Sleep(min(sinkIdle, time.Duration(r.MaxWaitMillis)*time.Millisecond))
	}
	be := binary.BigEndian
	c.answer = append(c.answer, make([]byte, 10)...) // no throttling, no error, no session
	c.answer = be.AppendUint32(c.answer, uint32(len(topics)))
	heads := []int{0} // where each piece of c.answer begins; records lie between two
	var records [][]byte
	for i, parts := range topics {
		c.answer = be.AppendUint16(c.answer, uint16(len(r.Topics[i].Topic)))
		c.answer = append(c.answer, r.Topics[i].Topic...)
		c.answer = be.AppendUint32(c.answer, uint32(len(parts)))
		for _, p := range parts {
			c.answer = be.AppendUint32(c.answer, uint32(p.number))
			c.answer = be.AppendUint16(c.answer, uint16(p.code))
			c.answer = be.AppendUint64(c.answer, uint64(p.end)) // high watermark
			c.answer = be.AppendUint64(c.answer, uint64(p.end)) // last stable offset
			c.answer = be.AppendUint64(c.answer, 0)             // where the log starts
			c.answer = be.AppendUint32(c.answer, 0)             // no aborted transactions
			c.answer = be.AppendUint32(c.answer, ^uint32(0))    // no replica is preferred
			c.answer = be.AppendUint32(c.answer, uint32(len(p.bytes)))
			heads, records = append(heads, len(c.answer)), append(records, p.bytes)
		}
	}
	var pieces net.Buffers
	for i, r := range records {
		pieces = append(pieces, c.answer[heads[i]:heads[i+1]], r)
	}
	return c.flush(append(pieces, c.answer[heads[len(records)]:]))
}

func (c *sinkConn) listOffsets(r *kmsg.ListOffsetsRequest) kmsg.Response {
	answer := r.ResponseKind().(*kmsg.ListOffsetsResponse)
	for _, t := range r.Topics {
		topic := kmsg.NewListOffsetsResponseTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			partition := kmsg.NewListOffsetsResponseTopicPartition()
			partition.Partition, partition.Offset, partition.Timestamp = p.Partition, 0, -1
			if found := c.partition(t.Topic, p.Partition); found == nil {
				partition.ErrorCode = errUnknownTopic
			} else if p.Timestamp == -1 {
				_, _, partition.Offset = found.bounds()
			}
			topic.Partitions = append(topic.Partitions, partition)
		}
		answer.Topics = append(answer.Topics, topic)
	}
	return answer
}

func (c *sinkConn) metadata(r *kmsg.MetadataRequest) kmsg.Response {
	answer := r.ResponseKind().(*kmsg.MetadataResponse)
	broker := kmsg.NewMetadataResponseBroker()
	broker.NodeID, broker.Host, broker.Port = 1, c.host, c.port
	answer.Brokers, answer.ControllerID = append(answer.Brokers, broker), 1
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := slices.Collect(maps.Keys(c.topics))
	if r.Topics != nil {
		asked = nil
		for _, t := range r.Topics {
			asked = append(asked, *t.Topic)
		}
	}
	for _, name := range asked {
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic = kmsg.StringPtr(name)
		if c.topics[name] == nil {
			topic.ErrorCode = errUnknownTopic
		}
		for i := range c.topics[name] {
			partition := kmsg.NewMetadataResponseTopicPartition()
			partition.Partition, partition.Leader, partition.LeaderEpoch = int32(i), 1, 0
			partition.Replicas, partition.ISR = []int32{1}, []int32{1}
			topic.Partitions = append(topic.Partitions, partition)
		}
		answer.Topics = append(answer.Topics, topic)
	}
	return answer
}

func (c *sinkConn) create(r *kmsg.CreateTopicsRequest) kmsg.Response {
	answer := r.ResponseKind().(*kmsg.CreateTopicsResponse)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range r.Topics {
		partitions := make([]*sinkPartition, max(t.NumPartitions, 1))
		for i := range partitions {
			partitions[i] = &sinkPartition{}
		}
		c.topics[t.Topic] = partitions
		topic := kmsg.NewCreateTopicsResponseTopic()
		topic.Topic = t.Topic
		answer.Topics = append(answer.Topics, topic)
	}
	return answer
}

func (c *sinkConn) remove(r *kmsg.DeleteTopicsRequest) kmsg.Response {
	answer := r.ResponseKind().(*kmsg.DeleteTopicsResponse)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range r.TopicNames {
		delete(c.topics, name)
		topic := kmsg.NewDeleteTopicsResponseTopic()
		topic.Topic = kmsg.StringPtr(name)
		answer.Topics = append(answer.Topics, topic)
	}
	return answer
}
