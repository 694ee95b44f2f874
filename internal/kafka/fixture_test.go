package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what has to come, before it fails.
const patience = 30 * time.Second

// receive takes a value that has to come.
func receive[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

// handler is a Handler made of functions; nil ones let everybody in and answer everything.
type handler struct {
	connected    func(c *Conn) error
	begin        func(ctx context.Context, r *Request) Finish
	disconnected func()
}

func (h *handler) Connected(c *Conn) (Peer, error) {
	if h.connected != nil {
		if err := h.connected(c); err != nil {
			return nil, err
		}
	}
	return peerOf{h}, nil
}

type peerOf struct{ *handler }

func (p peerOf) Begin(ctx context.Context, r *Request) Finish {
	if p.begin != nil {
		return p.begin(ctx, r)
	}
	return echo(ctx, r)
}

func (p peerOf) Disconnected() {
	if p.disconnected != nil {
		p.disconnected()
	}
}

// echo answers with nothing in particular.
func echo(_ context.Context, r *Request) Finish {
	if r.Produce != nil {
		for {
			if _, ok := r.Produce.Next(); !ok {
				return respond(kmsg.NewPtrProduceResponse())
			}
		}
	}
	return respond(r.Body.ResponseKind())
}

func respond(r kmsg.Response) Finish {
	return func(_ context.Context, w *Writer) error { return w.Respond(r) }
}

// fixture is a server with a handler of the test's.
type fixture struct {
	t      testing.TB
	server *Server
	serves sync.WaitGroup
}

// serve makes a server that ends with the test.
func serve(t testing.TB, h Handler, change ...func(*Config)) *fixture {
	t.Helper()
	cfg := Config{Handler: h, Metrics: prometheus.NewRegistry(), Log: testkit.Quiet()}
	for _, f := range change {
		f(&cfg)
	}
	f := &fixture{t: t, server: testkit.Value(New(cfg))(t)}
	t.Cleanup(f.stop)
	return f
}

func (f *fixture) stop() {
	// Not the test's context, which has ended; and clients that are still there are cut off.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f.server.Stop(ctx)
	f.serves.Wait()
}

// listen serves a TCP listener, maybe with TLS, and gives its address.
func (f *fixture) listen(wrap func(net.Listener) net.Listener) string {
	f.t.Helper()
	l := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(f.t)
	address := l.Addr().String()
	if wrap != nil {
		l = wrap(l)
	}
	f.serves.Go(func() { testkit.Check(f.t, f.server.Serve(context.Background(), l)) })
	return address
}

// client is one whose connection is a pipe.
func (f *fixture) client() *client {
	near, far := net.Pipe()
	f.serveConn(far)
	return newClient(f.t, near)
}

func (f *fixture) serveConn(nc net.Conn) {
	f.serves.Go(func() { f.server.ServeConn(context.Background(), nc) })
}

// refused is how often someone was refused for a reason.
func (f *fixture) refused(reason string) int {
	return int(testutil.ToFloat64(f.server.metrics.refused.WithLabelValues(reason)))
}

// client is a small Kafka client, which does what it is told.
type client struct {
	t    testing.TB
	nc   net.Conn
	form *kmsg.RequestFormatter
	sent int32 // the last correlation id
	read int32
}

func newClient(t testing.TB, nc net.Conn) *client {
	t.Cleanup(func() { nc.Close() })
	return &client{t: t, nc: nc, form: kmsg.NewRequestFormatter(kmsg.FormatterClientID("tester"))}
}

// encode makes a request's bytes, in its version.
func (c *client) encode(r kmsg.Request) []byte {
	c.sent++
	return c.form.AppendRequest(nil, r, c.sent)
}

// write sends bytes as they are. The server may have had enough before the last.
func (c *client) write(p []byte) {
	c.t.Helper()
	c.nc.SetWriteDeadline(time.Now().Add(patience))
	if _, err := c.nc.Write(p); err != nil && !closed(err) {
		c.t.Fatal(err)
	}
}

// closed: the other end is gone.
func closed(err error) bool {
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func (c *client) send(requests ...kmsg.Request) {
	c.t.Helper()
	for _, r := range requests {
		c.write(c.encode(r))
	}
}

// frame is the next answer, without its size.
func (c *client) frame() []byte {
	c.t.Helper()
	c.nc.SetReadDeadline(time.Now().Add(patience))
	var size [4]byte
	testkit.Must(c.t, testkit.Err(io.ReadFull(c.nc, size[:])), "read an answer: ")
	p := make([]byte, binary.BigEndian.Uint32(size[:]))
	testkit.Must(c.t, testkit.Err(io.ReadFull(c.nc, p)), "read an answer: ")
	return p
}

// answer reads the answer to a request; it has to be the one that is next.
func (c *client) answer(r kmsg.Request) kmsg.Response {
	c.t.Helper()
	c.read++
	p := c.frame()
	testkit.MustEqual(c.t, int32(binary.BigEndian.Uint32(p)), c.read, "the answer's correlation id")
	p = p[4:]
	resp := r.ResponseKind()
	if resp.IsFlexible() && r.Key() != keyApiVersions {
		testkit.MustEqual(c.t, p[0], 0, "tagged fields of the head")
		p = p[1:]
	}
	testkit.Must(c.t, resp.ReadFrom(p), "decode %s: ", kmsg.NameForKey(r.Key()))
	return resp
}

// ask sends a request and reads its answer.
func ask[R kmsg.Response](c *client, r kmsg.Request) R {
	c.t.Helper()
	c.send(r)
	return c.answer(r).(R)
}

// gone: the server ends the connection, and says nothing more.
func (c *client) gone() {
	c.t.Helper()
	c.nc.SetReadDeadline(time.Now().Add(time.Hour))
	n, err := c.nc.Read(make([]byte, 1))
	if n > 0 || !closed(err) {
		c.t.Fatalf("the connection goes on: %d bytes, %v", n, err)
	}
}

// lives: the connection goes on.
func (c *client) lives() {
	c.t.Helper()
	ask[*kmsg.ApiVersionsResponse](c, request(keyApiVersions, 3))
}

// request is one of that key and version.
func request(key, version int16) kmsg.Request {
	r := kmsg.RequestForKey(key)
	r.SetVersion(version)
	return r
}

// produceOf is a Produce request with one topic, whose partitions have these records.
func produceOf(version int16, records ...[]byte) *kmsg.ProduceRequest {
	r := kmsg.NewPtrProduceRequest()
	r.Version, r.Acks, r.TimeoutMillis = version, -1, 1000
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID = "orders", [16]byte{1, 2, 3}
	for i, p := range records {
		part := kmsg.NewProduceRequestTopicPartition()
		part.Partition, part.Records = int32(i), p
		topic.Partitions = append(topic.Partitions, part)
	}
	r.Topics = append(r.Topics, topic)
	return r
}
