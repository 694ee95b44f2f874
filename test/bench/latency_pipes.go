package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/Azure/go-amqp"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/server"
)

// latencyWindow bounds the events that are sent and not yet acknowledged.
const latencyWindow = 4096

// openYardPipe runs a yard in this process, and a go-amqp sender and receiver.
func openYardPipe(ctx context.Context, dir string) (_ pipe, err error) {
	yard, err := server.New(server.Config{DataDir: filepath.Join(dir, "data"), AMQP: "127.0.0.1:0", AMQPS: server.Off, HTTP: server.Off, HTTPS: server.Off,
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

// amqpPipe connects twice, as a sender and a receiver would that are strangers.
func amqpPipe(ctx context.Context, address string) (pipe, error) {
	dial := func() (*amqp.Conn, *amqp.Session, error) {
		conn, err := amqp.Dial(ctx, "amqp://"+address, &amqp.ConnOptions{SASLType: amqp.SASLTypePlain("RootManageSharedAccessKey", "SAS_KEY_VALUE")})
		if err != nil {
			return nil, nil, err
		}
		session, err := conn.NewSession(ctx, nil)
		return conn, session, err
	}
	in, inSession, err := dial()
	if err != nil {
		return pipe{}, err
	}
	out, outSession, err := dial()
	if err != nil {
		return pipe{}, errors.Join(err, in.Close())
	}
	hangUp := func() error { return errors.Join(in.Close(), out.Close()) }
	receiver, err := outSession.NewReceiver(ctx, partitionAddress(0), &amqp.ReceiverOptions{Credit: 1000})
	if err != nil {
		return pipe{}, errors.Join(err, hangUp())
	}
	sender, err := inSession.NewSender(ctx, hubName+"/Partitions/0", nil)
	if err != nil {
		return pipe{}, errors.Join(err, hangUp())
	}
	receipts := make(chan amqp.SendReceipt, latencyWindow)
	settled := make(chan error, 1)
	go func() { settled <- settle(receipts) }()
	return pipe{
		send: func(ctx context.Context, body []byte) error {
			receipt, err := sender.SendWithReceipt(ctx, amqp.NewMessage(body), nil)
			if err == nil {
				receipts <- receipt
			}
			return err
		},
		receive: func(ctx context.Context) ([]byte, error) {
			m, err := receiver.Receive(ctx, nil)
			if err != nil {
				return nil, err
			}
			return m.GetData(), nil
		},
		close: func() error {
			close(receipts)
			return errors.Join(<-settled, hangUp())
		},
	}, nil
}

// settle waits for each receipt in turn, and reads on after an error so that nobody
// blocks.
func settle(receipts <-chan amqp.SendReceipt) (err error) {
	for receipt := range receipts {
		if err == nil {
			_, err = receipt.Wait(context.Background())
		}
	}
	return err
}

// openJetStreamPipe runs a server in this process that listens on loopback.
func openJetStreamPipe(ctx context.Context, dir string) (_ pipe, err error) {
	srv, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true})
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
	publisher, err := jetstream.New(in, jetstream.WithPublishAsyncMaxPending(latencyWindow))
	if err != nil {
		return pipe{}, err
	}
	if _, err = publisher.CreateStream(ctx, jetstream.StreamConfig{Name: "events", Subjects: []string{"events"}, Storage: jetstream.FileStorage}); err != nil {
		return pipe{}, err
	}
	reader, err := jetstream.New(out)
	if err != nil {
		return pipe{}, err
	}
	consumer, err := reader.OrderedConsumer(ctx, "events", jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy})
	if err != nil {
		return pipe{}, err
	}
	events := make(chan []byte, latencyWindow)
	reading, err := consumer.Consume(func(m jetstream.Msg) { events <- m.Data() })
	if err != nil {
		return pipe{}, err
	}
	return pipe{
		send: func(_ context.Context, body []byte) error {
			_, err := publisher.PublishAsync("events", append([]byte(nil), body...)) // the client may keep it
			return err
		},
		receive: func(ctx context.Context) ([]byte, error) {
			select {
			case body := <-events:
				return body, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
		close: func() error {
			reading.Stop()
			return hangUp()
		},
	}, nil
}
