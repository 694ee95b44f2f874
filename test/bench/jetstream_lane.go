package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// jsYard is an embedded server and a lane to each of its streams.
type jsYard struct {
	server *server.Server
	conns  []*nats.Conn
	lanes  []*jsLane
}

// openJetStream starts a server that listens nowhere and makes its streams.
func openJetStream(ctx context.Context, dir string, syncAlways, atomicBatches bool, s jsSettings) (_ *jsYard, err error) {
	srv, err := server.NewServer(&server.Options{
		DontListen: true, JetStream: true, StoreDir: dir, SyncAlways: syncAlways, NoLog: true, NoSigs: true,
	})
	if err != nil {
		return nil, err
	}
	y := &jsYard{server: srv}
	defer func() {
		if err != nil {
			err = errors.Join(err, y.close())
		}
	}()
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		return nil, errors.New("nats-server does not get ready")
	}
	for range s.connections {
		conn, err := nats.Connect("", nats.InProcessServer(srv))
		if err != nil {
			return nil, err
		}
		y.conns = append(y.conns, conn)
	}
	for i := range partitions {
		lane, err := openLane(ctx, y.conns[i%len(y.conns)], i, atomicBatches, s.window)
		if err != nil {
			return nil, err
		}
		y.lanes = append(y.lanes, lane)
	}
	return y, nil
}

// settle waits until everything published is acknowledged.
func (y *jsYard) settle(ctx context.Context) error {
	return each(len(y.lanes), func(i int) error { return y.lanes[i].settle(ctx) })
}

func (y *jsYard) close() error {
	for _, c := range y.conns {
		c.Close()
	}
	y.server.Shutdown()
	y.server.WaitForShutdown()
	return nil
}

// jsLane publishes to one stream, with a bounded number of publications under way. It
// does without the client's own asynchronous publishing, which costs more per message.
type jsLane struct {
	conn    *nats.Conn
	subject string
	reply   string
	events  [][]byte
	frame   []byte
	// window has an entry for each publication that is not yet acknowledged.
	window  chan struct{}
	refused atomic.Pointer[string]
	batches int // sent so far
}

func openLane(ctx context.Context, conn *nats.Conn, number int, atomicBatches bool, window int) (*jsLane, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	l := &jsLane{conn: conn, subject: fmt.Sprintf("events.%d", number), reply: nats.NewInbox(),
		frame: randomBytes(batchEvents * eventBytes), window: make(chan struct{}, window)}
	for i := range batchEvents {
		l.events = append(l.events, l.frame[i*eventBytes:][:eventBytes])
	}
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{
		Name: fmt.Sprintf("events-%d", number), Subjects: []string{l.subject},
		Storage: jetstream.FileStorage, Replicas: 1, AllowAtomicPublish: atomicBatches,
	})
	if err != nil {
		return nil, err
	}
	_, err = conn.Subscribe(l.reply, l.acknowledged)
	return l, err
}

// publishSingles sends each event as a message of its own.
func (l *jsLane) publishSingles(ctx context.Context) error {
	for _, e := range l.events {
		if err := l.enter(ctx); err != nil {
			return err
		}
		if err := l.conn.PublishRequest(l.subject, l.reply, e); err != nil {
			return err
		}
	}
	return nil
}

// publishFrame sends all events as one message.
func (l *jsLane) publishFrame(ctx context.Context) error {
	if err := l.enter(ctx); err != nil {
		return err
	}
	return l.conn.PublishRequest(l.subject, l.reply, l.frame)
}

// publishAtomic sends the events as messages that count together or not at all. Only
// the last one is acknowledged.
func (l *jsLane) publishAtomic(ctx context.Context) error {
	if err := l.enter(ctx); err != nil {
		return err
	}
	l.batches++
	id := []string{l.subject + "." + strconv.Itoa(l.batches)}
	for i, e := range l.events {
		msg := &nats.Msg{Subject: l.subject, Data: e, Header: nats.Header{
			"Nats-Batch-Id": id, "Nats-Batch-Sequence": {strconv.Itoa(i + 1)},
		}}
		if i == len(l.events)-1 {
			msg.Header["Nats-Batch-Commit"] = []string{"1"}
			msg.Reply = l.reply
		}
		if err := l.conn.PublishMsg(msg); err != nil {
			return err
		}
	}
	return nil
}

// enter waits for a place in the window.
func (l *jsLane) enter(ctx context.Context) error {
	if text := l.refused.Load(); text != nil {
		return fmt.Errorf("publish to %s: %s", l.subject, *text)
	}
	select {
	case l.window <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// acknowledged takes the answer to one publication.
func (l *jsLane) acknowledged(m *nats.Msg) {
	if bytes.Contains(m.Data, []byte(`"error"`)) || len(m.Data) == 0 {
		text := fmt.Sprintf("answer %q %v", m.Data, m.Header)
		l.refused.Store(&text)
	}
	<-l.window
}

// settle waits until the window is empty, by taking all its places.
func (l *jsLane) settle(ctx context.Context) error {
	for range cap(l.window) {
		if err := l.enter(ctx); err != nil {
			return err
		}
	}
	return nil
}
