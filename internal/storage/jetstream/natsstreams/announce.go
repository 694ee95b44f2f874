package natsstreams

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// announcer sends announcements, so that nobody waits for a socket. Its goroutine ends with close.
type announcer struct {
	conn     *nats.Conn
	queue    chan announcement
	stop     chan struct{}
	stopOnce sync.Once
	running  sync.WaitGroup
}

type announcement struct {
	subject string
	data    []byte
}

// maxAnnouncements is how many wait at most. Those beyond are lost, as any may be.
const maxAnnouncements = 4096

func newAnnouncer(conn *nats.Conn) *announcer {
	a := &announcer{conn: conn, queue: make(chan announcement, maxAnnouncements), stop: make(chan struct{})}
	a.running.Go(a.run)
	return a
}

func (a *announcer) run() {
	for {
		select {
		case <-a.stop:
			return
		case one := <-a.queue:
			if a.conn.IsConnected() { // what is kept for later would be old
				_ = a.conn.Publish(one.subject, one.data)
			}
		}
	}
}

func (a *announcer) close() {
	a.stopOnce.Do(func() { close(a.stop) })
	a.running.Wait()
}

// Announce is streams.Storage's. The client library sends together what waits when it flushes.
func (s *Storage) Announce(stream string, data []byte) {
	if checkStream(stream) != nil || s.life.Err() != nil {
		return
	}
	select {
	case s.announcer.queue <- announcement{s.names.announcements(stream), bytes.Clone(data)}:
	default:
	}
}

// Listen is streams.Storage's.
func (s *Storage) Listen(stream string, heard func(data []byte)) (stop func(), err error) {
	if err := checkStream(stream); err != nil {
		return nil, err
	}
	if s.life.Err() != nil {
		return nil, streams.ErrClosed
	}
	var stopped atomic.Bool
	sub, err := s.control.Subscribe(s.names.announcements(stream), func(msg *nats.Msg) {
		if !stopped.Load() {
			heard(msg.Data)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listen on stream %s: %w", stream, plain(err))
	}
	end := func() {
		stopped.Store(true)
		_ = sub.Unsubscribe()
	}
	alone := context.AfterFunc(s.life, end)
	return func() {
		alone()
		end()
	}, nil
}
