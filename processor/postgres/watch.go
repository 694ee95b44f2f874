package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/internal/stores"
)

// A listener that has heard nothing for so long asks whether its connection still
// stands; a broken one would be silent, too.
const (
	askAfter   = 30 * time.Second
	answerTime = 10 * time.Second
)

// Watch reports changes until ctx ends, by LISTEN on a connection of its own. When that breaks it
// connects again and reports a change, as some may have been missed; it returns an error only when
// it cannot connect.
func (s *Store) Watch(ctx context.Context, g processor.Group, ready func(), changed chan<- struct{}) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	for {
		conn, err := s.listen(ctx, g)
		if err != nil {
			return fmt.Errorf("watch %s/%s: %w", g.Hub, g.Group, err)
		}
		if ready != nil {
			ready()
			ready = nil
		} else {
			stores.Notify(changed)
		}
		err = hear(ctx, conn, changed)
		conn.Close(context.WithoutCancel(ctx))
		if ctx.Err() != nil {
			return err
		}
	}
}

// listen opens a connection that hears of the group's changes.
func (s *Store) listen(ctx context.Context, g processor.Group) (*pgx.Conn, error) {
	connect := s.cfg.Connect
	if connect == nil {
		connect = s.takeConn
	}
	conn, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "listen "+s.channel(g)); err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	return conn, nil
}

// takeConn takes a connection out of the pool for good. It is not one of the pool's any
// more, so it does not count against its size. One that had lain idle may be broken.
func (s *Store) takeConn(ctx context.Context) (*pgx.Conn, error) {
	for {
		pooled, err := s.pool.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		conn := pooled.Hijack()
		if conn.Ping(ctx) == nil {
			return conn, nil
		}
		conn.Close(context.WithoutCancel(ctx))
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
	}
}

// hear reports notifications until the connection breaks or ctx ends. Now and then it asks whether
// the connection still stands; a notification that comes before the answer is kept for the next
// wait.
func hear(ctx context.Context, conn *pgx.Conn, changed chan<- struct{}) error {
	for {
		waiting, cancel := context.WithTimeout(ctx, askAfter)
		_, err := conn.WaitForNotification(waiting)
		cancel()
		switch {
		case err == nil:
			stores.Notify(changed)
			continue
		case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
			return err
		}
		asking, cancel := context.WithTimeout(ctx, answerTime)
		err = conn.Ping(asking)
		cancel()
		if err != nil {
			return err
		}
	}
}
