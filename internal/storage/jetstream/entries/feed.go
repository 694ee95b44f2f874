package entries

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/jetstream/answers"
)

const (
	// How often a bucket is read of which nothing was heard: an announcement may have been lost.
	watchedIdle, unwatchedIdle = time.Second, 10 * time.Second
	// How much one request asks for, so that no server takes us for a slow reader.
	batchMessages, batchBytes = 1000, 4 << 20
	// fetchTime is how long the next message of an answer is waited for.
	fetchTime = 3 * time.Second
	// troublePause is about how long the feeder waits after a failure, at most.
	troublePause = time.Second
)

// Run feeds the replica until ctx ends or the store is closed, and returns nil then; it closes the
// store. It takes up its work when Load has found the streams.
func (s *Store) Run(ctx context.Context) error {
	defer s.end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	select {
	case <-s.ready:
	case <-ctx.Done():
		return nil
	}
	news, deaf, err := s.conn.Listen(s.layout.announcements("*"))
	if err != nil {
		return fmt.Errorf("listen for changes of entries: %w", err)
	}
	defer deaf()
	var parts sync.WaitGroup
	parts.Go(func() { s.listen(ctx, news) })
	for _, b := range s.buckets {
		parts.Go(func() { s.feed(ctx, b) })
		parts.Go(func() { s.writeBarriers(ctx, b) })
	}
	for sleep.For(ctx, time.Hour, nil) == nil {
		s.replica.prune(time.Now().Add(-s.cfg.deletionLife - time.Hour))
	}
	parts.Wait()
	return nil
}

// listen takes in what other nodes announce. What is lost here is fetched.
func (s *Store) listen(ctx context.Context, news func(context.Context) (*nats.Msg, error)) {
	for ctx.Err() == nil {
		msg, err := news(ctx)
		switch {
		case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrBadSubscription):
			sleep.For(ctx, troublePause, nil)
			continue
		case err != nil: // announcements were dropped, or it is the end
			continue
		}
		b := s.buckets[s.layout.announced(msg.Subject)]
		m, whole, err := readAnnouncement(msg.Data)
		switch {
		case b == nil || err != nil:
			s.log.Debug("an announcement of an entry cannot be read", "subject", msg.Subject, "error", err)
		case whole:
			b.receive(m)
		default:
			b.learn(m.seq)
		}
	}
}

// feed reads a bucket's stream whenever something is missing.
func (s *Store) feed(ctx context.Context, b *bucket) {
	var last time.Time
	failed := false
	for ctx.Err() == nil {
		idle := unwatchedIdle
		if s.replica.watched() {
			idle = watchedIdle
		}
		if later := b.next(time.Now(), last, idle); later > 0 {
			_ = sleep.For(ctx, later, b.wake)
			continue
		}
		err := s.readOn(ctx, b)
		last = time.Now()
		switch {
		case err == nil && failed:
			s.log.Info("changes of entries can be read again", "bucket", b.name)
		case err != nil && ctx.Err() == nil:
			if !failed {
				s.log.Warn("changes of entries cannot be read, trying again", "bucket", b.name, "error", err)
			}
			_ = sleep.About(ctx, troublePause)
		}
		failed = err != nil
	}
}

// readOn reads a stream to its end, and settles a doubt that this raised.
func (s *Store) readOn(ctx context.Context, b *bucket) error {
	if b.rereadAfter(s.cfg.deletionLife / 2) {
		s.log.Warn("entries were out of reach for so long that all are read anew", "bucket", b.name)
	}
	for ended := false; !ended; {
		from := b.position() + 1
		batch, end, err := s.fetch(ctx, b, from)
		if err != nil {
			return err
		}
		b.fetched(from, batch, end)
		ended = end
	}
	if !b.unsettled() {
		return nil
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	seq, err := s.barrier(ctx, b)
	if err == nil {
		b.settle(seq)
	}
	return err
}

// fetch reads messages of a stream from a sequence on, from whichever server answers. ended: it had
// nothing behind them.
func (s *Store) fetch(ctx context.Context, b *bucket, from uint64) (batch []message, ended bool, err error) {
	if !s.conn.IsConnected() {
		return nil, false, errNobody
	}
	inbox := s.conn.NewInbox()
	heard, deaf, err := s.conn.Listen(inbox)
	if err != nil {
		return nil, false, err
	}
	defer deaf()
	ask, err := json.Marshal(map[string]uint64{"seq": from, "batch": batchMessages, "max_bytes": batchBytes})
	if err != nil {
		return nil, false, err
	}
	if err := s.conn.PublishRequest("$JS.API.DIRECT.GET."+s.layout.stream(b.name), inbox, ask); err != nil {
		return nil, false, err
	}
	for previous := uint64(0); ; {
		msg, err := next(ctx, heard)
		if err != nil {
			return nil, false, err
		}
		part, err := answers.ReadPart(msg.Header, previous)
		if err != nil {
			return nil, false, err
		}
		if part.Last {
			return batch, part.Pending == 0, nil
		}
		previous = part.Seq
		m, err := decode(part.Seq, msg.Data)
		if err == nil && m.kind != barrier && part.Subject != s.layout.subject(b.name, m.key) {
			err = fmt.Errorf("%w: key %q under subject %s", errMessage, m.key, part.Subject)
		}
		if err != nil {
			s.log.Error("an entry cannot be read, going on without it", "bucket", b.name, "error", err)
			m = message{seq: part.Seq, kind: barrier}
		}
		batch = append(batch, m)
	}
}

func next(ctx context.Context, heard func(context.Context) (*nats.Msg, error)) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	return heard(ctx)
}
