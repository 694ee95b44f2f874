package kafka

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// K1: clients hear what is offered, in every version, and in one that is beyond ours.
func TestApiVersions(t *testing.T) {
	c := serve(t, &handler{}).client()
	for version := int16(0); version <= 4; version++ {
		got := ask[*kmsg.ApiVersionsResponse](c, request(keyApiVersions, version))
		testkit.Equal(t, got.ErrorCode, 0, "version %d", version)
		testkit.Equal(t, len(got.ApiKeys), len(Offered))
		testkit.Equal(t, fmt.Sprint(got.ApiKeys[0].ApiKey, got.ApiKeys[0].MinVersion, got.ApiKeys[0].MaxVersion), "0 0 13",
			"Produce: without 0 older librdkafka does not compress")
	}
	for _, version := range []int16{5, 99, -1} {
		beyond := request(keyApiVersions, version)
		c.send(beyond)
		beyond.SetVersion(0)
		got := c.answer(beyond).(*kmsg.ApiVersionsResponse)
		testkit.Equal(t, got.ErrorCode, codeUnsupportedVersion)
		testkit.Equal(t, len(got.ApiKeys), len(Offered))
	}
	c.lives()
}

// K1: what is not offered ends the connection, as with Kafka.
func TestWhatIsNotOffered(t *testing.T) {
	for _, test := range []struct {
		name         string
		key, version int16
	}{
		{"a request that is not offered", 27, 0},
		{"a version that is told of, for some clients ask for it, but not served", keyProduce, 2},
		{"a version that is too old", 1, 3},
		{"a version that is too new", 22, 6},
		{"a version that nobody knows", 3, 99},
		{"a negative version", 3, -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := serve(t, &handler{})
			c := f.client()
			c.send(request(test.key, test.version))
			c.gone()
			testkit.Eventually(t, "counted", func() bool { return f.refused(reasonProtocol) == 1 })
		})
	}
}

// K6: a request that is too large, or no request at all, ends the connection before it is read.
func TestRequestsThatAreTooLarge(t *testing.T) {
	for name, begin := range map[string][]byte{
		"beyond the limit": {0x7f, 0xff, 0xff, 0xff},
		"negative":         {0xff, 0xff, 0xff, 0xff},
		"HTTP":             []byte("GET / HTTP/1.1\r\n"),
		"TLS":              {0x16, 3, 1, 2, 0, 1},
		"a large body":     {0, 0x50, 0, 0, 0, 3, 0, 12, 0, 0, 0, 1, 0xff, 0xff, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, &handler{})
			c := f.client()
			c.write(begin)
			c.gone()
			testkit.Eventually(t, "counted", func() bool { return f.refused(reasonSize) == 1 })
		})
	}
}

// A request that cannot be decoded ends the connection, and what came before is answered.
func TestMalformedRequests(t *testing.T) {
	f := serve(t, &handler{})
	c := f.client()
	good := request(3, 12)
	c.send(good)
	bad := c.encode(good)
	bad[len(bad)-1] = 9 // tagged fields
	c.write(bad)
	c.answer(good)
	c.gone()
	testkit.Eventually(t, "counted", func() bool { return f.refused(reasonMalformed) == 1 })
}

// K1: several requests are under way, and answered in the order in which they came.
func TestAnswersAreInOrder(t *testing.T) {
	const requests = 5
	var begun, finished atomic.Int32
	all, release := make(chan struct{}), make(chan struct{})
	f := serve(t, &handler{begin: func(ctx context.Context, r *Request) Finish {
		if begun.Add(1) == requests {
			close(all)
		}
		n := begun.Load()
		return func(_ context.Context, w *Writer) error {
			<-release
			testkit.Equal(t, finished.Add(1), n, "finished")
			return w.Respond(r.Body.ResponseKind())
		}
	}})
	c := f.client()
	r := request(3, 12)
	for range requests {
		c.send(r)
	}
	receive(t, all, "all requests")
	testkit.Equal(t, finished.Load(), 0, "finished")
	close(release)
	for range requests {
		c.answer(r)
	}
}

// K1: acks=0 has no answer, and the next request has.
func TestNoAnswer(t *testing.T) {
	f := serve(t, &handler{begin: func(ctx context.Context, r *Request) Finish {
		finish := echo(ctx, r)
		if r.Produce != nil && r.Produce.Acks == 0 {
			return func(_ context.Context, w *Writer) error { w.Nothing(); return nil }
		}
		return finish
	}})
	c := f.client()
	for range 3 {
		quiet := produceOf(9, []byte("x"))
		quiet.Acks = 0
		c.send(quiet)
		c.read++
		ask[*kmsg.ProduceResponse](c, produceOf(9, []byte("x")))
	}
}

// K6: a client that does not wait for answers is not read on for ever.
func TestPipelining(t *testing.T) {
	const requests = 3 * maxUnderWay
	var begun atomic.Int32
	release := make(chan struct{})
	f := serve(t, &handler{begin: func(ctx context.Context, r *Request) Finish {
		begun.Add(1)
		return func(ctx context.Context, w *Writer) error {
			<-release
			return w.Respond(r.Body.ResponseKind())
		}
	}})
	c := f.client()
	r := request(60, 1)
	var all []byte
	for range requests {
		all = append(all, c.encode(r)...)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		c.nc.Write(all)
	}()
	// One more is being finished, and one waits to be put into the queue.
	testkit.Eventually(t, "as many are begun as may be", func() bool { return begun.Load() == maxUnderWay+2 })
	testkit.Equal(t, len(f.only().queue), maxUnderWay, "in the queue")
	close(release)
	for range requests {
		c.answer(r)
	}
	receive(t, sent, "the end of the requests")
}

// only is the one connection that there is.
func (f *fixture) only() *Conn {
	for _, c := range f.server.conns.All() {
		return c
	}
	f.t.Fatal("there is no connection")
	return nil
}

// K1: a request tells what it says of itself, and its connection who it is of.
func TestWhatAHandlerKnows(t *testing.T) {
	var got string
	f := serve(t, &handler{
		connected: func(c *Conn) error {
			got = fmt.Sprint(c.Identity(), c.TLS(), c.ServerName() == "", c.LocalAddr() != nil, c.RemoteAddr() != nil, c.Context().Err(), c.Log() != nil)
			return nil
		},
		begin: func(ctx context.Context, r *Request) Finish {
			got += fmt.Sprint(" ", r.Key, r.Version, r.ClientID, r.Body.GetVersion(), *r.Body.(*kmsg.MetadataRequest).Topics[0].Topic)
			return echo(ctx, r)
		},
	})
	r := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr("orders")
	r.Topics = append(r.Topics, topic)
	r.Version = 12
	c := f.client()
	ask[*kmsg.MetadataResponse](c, r)
	testkit.Equal(t, got, "<nil> false true true true <nil> true 3 12tester12orders")
	infos := f.server.Connections()
	testkit.MustEqual(t, len(infos), 1)
	i := infos[0]
	testkit.Equal(t, fmt.Sprintf("%d %s %v %q %s %d", i.ID, i.Remote, i.TLS, i.Holder, i.ClientID, i.Requests), `1 pipe false "" tester 1`)
	testkit.That(t, i.Received > 10 && !i.Began.IsZero(), "%+v", i)
	testkit.Eventually(t, "what was sent is counted", func() bool { return f.server.Connections()[0].Sent > 10 })
}

// A handler may refuse a connection, and end it.
func TestConnectionsThatAreRefused(t *testing.T) {
	f := serve(t, &handler{connected: func(*Conn) error { return context.Canceled }})
	c := f.client()
	c.lives()
	c.send(request(3, 12))
	c.gone()
	testkit.Eventually(t, "counted", func() bool { return f.refused(reasonHandler) == 1 })

	conns, ended := make(chan *Conn, 1), make(chan error, 1)
	f = serve(t, &handler{begin: func(ctx context.Context, r *Request) Finish {
		return func(ctx context.Context, w *Writer) error {
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return ctx.Err()
		}
	}, connected: func(c *Conn) error { conns <- c; return nil }})
	c = f.client()
	c.send(request(3, 12))
	receive(t, conns, "the connection").Close(errAccount)
	c.gone()
	testkit.ErrorIs(t, receive(t, ended, "the end"), errAccount)
}

// R2: connections beyond the permits are closed at once.
func TestNoPermit(t *testing.T) {
	listener := admission.New(admission.Limits{}).Listener(1)
	f := serve(t, &handler{}, func(c *Config) { c.Admission = listener })
	from := func() *client {
		near, far := net.Pipe()
		f.serveConn(addressed{far, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1}})
		return newClient(t, near)
	}
	first := from()
	first.lives()
	from().gone()
	testkit.Equal(t, f.refused(reasonConnections), 1)
	first.nc.Close()
	testkit.Eventually(t, "its permit is free", func() bool {
		p := testkit.Value(listener.Enter(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 1}))(t)
		defer p.Leave()
		return p.Know("") == nil
	})
	from().lives()
}

// R2: of the connections that clients may have one policy has half, and others find room beside it.
func TestOneAccountHasHalfOfTheConnections(t *testing.T) {
	f := serve(t, &handler{}, asked, func(c *Config) { c.Admission = admission.New(admission.Limits{}).Listener(2) })
	from := func() *client {
		near, far := net.Pipe()
		f.serveConn(addressed{far, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1}})
		return newClient(t, near)
	}
	first := from()
	testkit.Equal(t, first.plainly("alice", "alice's password").ErrorCode, 0)
	second := from()
	second.handshake(mechanismPlain, 1)
	shown := kmsg.NewPtrSASLAuthenticateRequest()
	shown.Version, shown.SASLAuthBytes = 2, []byte("\x00alice\x00alice's password")
	second.send(shown)
	second.gone() // without an answer, which clients would take for a wrong password
	testkit.Equal(t, f.refused(reasonConnections), 1)
	other := from()
	testkit.Equal(t, other.plainly("bob", "bob's password").ErrorCode, 0)
	other.works()
	first.works()
}

// addressed is a connection that says where it comes from.
type addressed struct {
	net.Conn
	from net.Addr
}

func (a addressed) RemoteAddr() net.Addr { return a.from }

// Requests, errors and bytes are counted, by few labels.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	f := serve(t, &handler{begin: func(ctx context.Context, r *Request) Finish {
		return func(_ context.Context, w *Writer) error {
			w.Failed(3)
			w.Failed(0)
			w.Failed(31_000)
			resp := kmsg.NewPtrInitProducerIDResponse()
			resp.ErrorCode = 31
			return w.Respond(resp)
		}
	}}, func(c *Config) { c.Metrics = registry })
	c := f.client()
	ask[*kmsg.InitProducerIDResponse](c, request(22, 4))
	c.lives()
	testkit.Must(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP eventyard_kafka_connections Kafka connections now, those being set up included.
# TYPE eventyard_kafka_connections gauge
eventyard_kafka_connections 1
# HELP eventyard_kafka_errors_total Error codes that Kafka clients were answered with, by request and code.
# TYPE eventyard_kafka_errors_total counter
eventyard_kafka_errors_total{api="InitProducerID",code="-1"} 1
eventyard_kafka_errors_total{api="InitProducerID",code="3"} 1
eventyard_kafka_errors_total{api="InitProducerID",code="31"} 1
`), "eventyard_kafka_connections", "eventyard_kafka_errors_total"))
	testkit.Equal(t, int(testutil.ToFloat64(f.server.metrics.byKey[22])), 1)
	testkit.Equal(t, int(testutil.ToFloat64(f.server.metrics.byKey[keyApiVersions])), 1)
	testkit.That(t, testutil.ToFloat64(f.server.metrics.bytesIn) > 20 && testutil.ToFloat64(f.server.metrics.bytesOut) > 20, "bytes are not counted")
}

func TestConfigsThatMakeNoSense(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no handler":         func(c *Config) { c.Handler = nil },
		"small requests":     func(c *Config) { c.MaxRequestBytes = 1000 },
		"huge requests":      func(c *Config) { c.MaxRequestBytes = 1 << 31 },
		"huge records":       func(c *Config) { c.MaxRecordsBytes = 1 << 29 },
		"a negative timeout": func(c *Config) { c.ReadTimeout = -1 },
		"metrics twice":      func(c *Config) { testkit.Check(t, testkit.Err(newMetrics(c.Metrics))) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Handler: &handler{}, Metrics: prometheus.NewRegistry()}
			change(&cfg)
			_, err := New(cfg)
			testkit.That(t, err != nil, "it is taken")
		})
	}
}
