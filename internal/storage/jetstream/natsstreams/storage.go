package natsstreams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

const (
	// patience is how long the acknowledgement of a message is waited for, and the next part of what is
	// read.
	patience = 3 * time.Second
	// readAgain is how long the first part of what is read is waited for before it is asked for once more: of a
	// server that was lost with the request nothing comes, and another one answers.
	readAgain = 700 * time.Millisecond
	// callPatience is how long any other answer is waited for.
	callPatience = 5 * time.Second
	// makePatience is how long a new stream is asked for: servers choose a leader within 4 to 9 seconds
	// where the first vote fails. makePause is the pause before it is asked for again.
	makePatience = 15 * time.Second
	makePause    = 100 * time.Millisecond
)

// Conns are the connections of a storage, which may be the same but should not. They are made with the
// options of package connect, stay the caller's, and are closed after the storage.
type Conns struct{ Publish, Read, Control *nats.Conn }

// Config says whose streams they are.
type Config struct {
	// Yard names the streams among those that share the servers: 1 to 32 letters, digits, '-', '_'.
	Yard string
	// Replicas is how many servers keep a stream that is made without a number; zero means 3.
	Replicas int
}

// Storage is a streams.Storage.
type Storage struct {
	cfg       Config
	names     names
	subjects  subjects
	control   *nats.Conn
	publisher *publisher
	reader    *reader
	announcer *announcer

	life context.Context // ends with Close: what waits is bound to it
	end  context.CancelFunc
}

var _ streams.Storage = (*Storage)(nil)

// Open begins to use connections, which need not be up yet. It does not wait for a server.
func Open(conns Conns, cfg Config) (*Storage, error) {
	cfg.Replicas = cmp.Or(cfg.Replicas, 3)
	n := names{cfg.Yard}
	if err := n.check(); err != nil {
		return nil, fmt.Errorf("streams: %w", err)
	}
	p, err := newPublisher(conns.Publish)
	if err != nil {
		return nil, fmt.Errorf("streams of yard %s: listen for acknowledgements: %w", cfg.Yard, plain(err))
	}
	r, err := newReader(conns.Read)
	if err != nil {
		p.close()
		return nil, fmt.Errorf("streams of yard %s: listen for answers: %w", cfg.Yard, plain(err))
	}
	s := &Storage{
		cfg: cfg, names: n, subjects: subjects{names: n},
		control: conns.Control, publisher: p, reader: r, announcer: newAnnouncer(conns.Control),
	}
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Close ends what waits, with streams.ErrClosed, and whatever comes later: only what was handed over
// and not acknowledged is in doubt. It returns when nothing of the storage runs any more, which a
// server that takes nothing can delay by connect.WriteTime, and may be called again.
func (s *Storage) Close() error {
	s.end()
	s.publisher.close()
	s.announcer.close()
	s.reader.close()
	return nil
}

// MaxMessageBytes is streams.Storage's.
func (s *Storage) MaxMessageBytes() int { return int(s.reader.conn.MaxPayload()) }

// Publish is streams.Storage's.
func (s *Storage) Publish(stream, subject string, data []byte, done func(streams.Seq, error)) {
	whole, err := s.subjects.of(stream, subject)
	if err == nil {
		err = s.publisher.publish(whole, data, done)
	}
	if err != nil {
		done(0, err)
	}
}

// errPatience is why a call has ended that took too long.
var errPatience = fmt.Errorf("%w in time", streams.ErrUnavailable)

// bounded is ctx with the storage's own end and patience.
func (s *Storage) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeoutCause(ctx, callPatience, errPatience)
	ctx, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.life, func() { end(streams.ErrClosed) })
	return ctx, func() {
		stop()
		end(nil)
		cancel()
	}
}

// plain makes errors of the client library those of the contract.
func plain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrConnectionDraining), errors.Is(err, nats.ErrBadSubscription):
		return fmt.Errorf("%w: %w", streams.ErrClosed, err)
	}
	return fmt.Errorf("%w: %w", streams.ErrUnavailable, err)
}
