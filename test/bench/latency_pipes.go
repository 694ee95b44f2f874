package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/server"
)

// latencyWindow bounds the events that are sent and not yet acknowledged.
const latencyWindow = 4096

// opener starts a server that works in a folder, and makes a way through it.
type opener func(ctx context.Context, dir string) (pipe, error)

func yardPipe(sync string) opener {
	return func(ctx context.Context, dir string) (pipe, error) { return openYardPipe(ctx, dir, sync) }
}

func jetStreamPipe(syncAlways bool) opener {
	return func(ctx context.Context, dir string) (pipe, error) { return openJetStreamPipe(ctx, dir, syncAlways) }
}

// openYardPipe runs a yard in this process.
func openYardPipe(ctx context.Context, dir, sync string) (_ pipe, err error) {
	yard, err := server.New(server.Config{DataDir: filepath.Join(dir, "data"), Sync: sync, AMQP: "127.0.0.1:0", AMQPS: server.Off, HTTP: server.Off, HTTPS: server.Off, Kafka: server.Off, Kafkas: server.Off,
		Hubs: []server.Hub{{Name: hubName, Partitions: 1}}, Log: quiet()})
	if err != nil {
		return pipe{}, err
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- yard.Run(life) }()
	end := func() error { stop(); return <-ended }
	select {
	case <-yard.Started():
	case err := <-ended:
		stop()
		return pipe{}, errors.Join(errors.New("the yard ended at once"), err)
	}
	p, err := amqpPipe(ctx, strings.TrimPrefix(yard.Addresses()["amqp"], "amqp://"))
	if err != nil {
		return pipe{}, errors.Join(err, end())
	}
	hangUp := p.close
	p.close = func() error { return errors.Join(hangUp(), end()) }
	return p, nil
}

// amqpPipe connects twice, as a sender and a receiver would that are strangers. Both are
// bare connections: what client libraries add is not the server's.
func amqpPipe(_ context.Context, address string) (_ pipe, err error) {
	var conns [2]*amqpConn
	hangUp := func() (err error) {
		for _, c := range conns {
			if c != nil {
				err = errors.Join(err, c.Close())
			}
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, hangUp())
		}
	}()
	for i := range conns {
		if conns[i], err = dialAMQP(address); err != nil {
			return pipe{}, err
		}
	}
	in, out := conns[0], conns[1]
	if err := out.attachReceiver(partitionAddress(0), latencyWindow); err != nil {
		return pipe{}, err
	}
	if _, err := in.attachSender(hubName + "/Partitions/0"); err != nil {
		return pipe{}, err
	}
	free := make(chan struct{}, senderWindow)
	for range senderWindow {
		free <- struct{}{}
	}
	settled := make(chan error, 1)
	go func() { settled <- in.settlements(free) }()
	sender := latencySender{conn: in, free: free, settled: settled}
	receiver := latencyReceiver{conn: out}
	return pipe{send: sender.send, receive: receiver.receive, close: func() error {
		err := sender.finish()
		return errors.Join(err, hangUp())
	}}, nil
}

// senderWindow is less than the credit that a yard gives, so that nobody has to count it.
const senderWindow = 500

// latencySender sends events one by one without waiting for each.
type latencySender struct {
	conn    *amqpConn
	free    chan struct{}
	settled chan error
	sent    uint32
	message []byte
}

func (s *latencySender) send(_ context.Context, body []byte) error {
	select {
	case <-s.free:
	case err := <-s.settled:
		return errors.Join(errors.New("connection ended while sending"), err)
	}
	s.message = wire.AppendBinary(wire.AppendDescriptor(s.message[:0], wire.DescriptorData), body)
	id := s.sent
	s.sent++
	return s.conn.send(wire.FrameAMQP, func(dst []byte) []byte {
		return append(wire.AppendTransfer(dst, &wire.Transfer{DeliveryID: wire.Some(id), DeliveryTag: []byte{byte(id >> 8), byte(id)},
			MessageFormat: wire.Some(uint32(0))}), s.message...)
	})
}

// finish waits until all that was sent is settled.
func (s *latencySender) finish() error {
	for range senderWindow {
		select {
		case <-s.free:
		case err := <-s.settled:
			return errors.Join(errors.New("connection ended before all was settled"), err)
		}
	}
	return nil
}

// latencyReceiver reads events one by one.
type latencyReceiver struct {
	conn     *amqpConn
	received uint32
}

func (r *latencyReceiver) receive(context.Context) ([]byte, error) {
	in, err := r.conn.await(wire.DescriptorTransfer)
	if err != nil {
		return nil, err
	}
	if _, err := in.ReadTransfer(); err != nil {
		return nil, err
	}
	if r.received++; r.received%(latencyWindow/2) == 0 {
		if err := r.conn.grant(r.received, latencyWindow); err != nil {
			return nil, err
		}
	}
	message, err := wire.Sections(in.Rest())
	if err != nil {
		return nil, err
	}
	body := wire.NewReader(message.Body)
	return body.ReadData()
}

// openJetStreamPipe runs a server in this process that listens on loopback.
func openJetStreamPipe(ctx context.Context, dir string, syncAlways bool) (_ pipe, err error) {
	srv, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: dir, SyncAlways: syncAlways, NoLog: true, NoSigs: true})
	if err != nil {
		return pipe{}, err
	}
	srv.Start()
	end := func() error {
		srv.Shutdown()
		srv.WaitForShutdown()
		return nil
	}
	if !srv.ReadyForConnections(10 * time.Second) {
		return pipe{}, errors.Join(errors.New("nats-server does not get ready"), end())
	}
	p, err := natsPipe(ctx, srv.ClientURL())
	if err != nil {
		return pipe{}, errors.Join(err, end())
	}
	hangUp := p.close
	p.close = func() error { return errors.Join(hangUp(), end()) }
	return p, nil
}

// natsPipe publishes with a reply subject for the acknowledgements and reads from a
// consumer that pushes: the leanest ways that its client has.
func natsPipe(ctx context.Context, url string) (_ pipe, err error) {
	in, err := nats.Connect(url)
	if err != nil {
		return pipe{}, err
	}
	out, err := nats.Connect(url)
	if err != nil {
		in.Close()
		return pipe{}, err
	}
	hangUp := func() error { in.Close(); out.Close(); return nil }
	defer func() {
		if err != nil {
			err = errors.Join(err, hangUp())
		}
	}()
	events := make(chan *nats.Msg, 1<<16) // it drops what does not fit
	deliver := nats.NewInbox()
	if _, err := out.ChanSubscribe(deliver, events); err != nil {
		return pipe{}, err
	}
	if err := out.Flush(); err != nil {
		return pipe{}, err
	}
	if err := makeStream(ctx, in, deliver); err != nil {
		return pipe{}, err
	}
	reply := nats.NewInbox()
	if _, err := in.Subscribe(reply, func(*nats.Msg) {}); err != nil {
		return pipe{}, err
	}
	return pipe{
		send: func(_ context.Context, body []byte) error {
			return in.PublishRequest("events", reply, body)
		},
		receive: func(ctx context.Context) ([]byte, error) {
			select {
			case m := <-events:
				return m.Data, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
		close: hangUp,
	}, nil
}

// makeStream makes a stream on files and a consumer that pushes to a subject.
func makeStream(ctx context.Context, conn *nats.Conn, deliver string) error {
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "events", Subjects: []string{"events"}, Storage: jetstream.FileStorage}); err != nil {
		return err
	}
	old, err := conn.JetStream()
	if err != nil {
		return err
	}
	_, err = old.AddConsumer("events", &nats.ConsumerConfig{DeliverSubject: deliver, AckPolicy: nats.AckNonePolicy, MaxDeliver: 1, MemoryStorage: true, Replicas: 1})
	return err
}
