package postgres

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/eventyard/eventyard/internal/testkit"
)

// fault breaks one connection at one of its writes, counted over all connections. Each
// write is what goes to the server at once: a statement, or several.
type fault struct {
	mu     sync.Mutex
	writes int // guarded by mu
	at     int
	// answered: the server gets the write and answers; only the answer is lost. Otherwise
	// it never hears of it.
	answered bool
}

// hit counts a write and tells whether it is the one.
func (f *fault) hit() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	return f.writes == f.at
}

func (f *fault) connect(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	testkit.Must(t, err)
	cfg.MaxConns = 2
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, addr)
		return &faultyConn{Conn: conn, fault: f}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	testkit.Must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

type faultyConn struct {
	net.Conn
	*fault
	broken bool // used by the connection's one user
}

func (c *faultyConn) Write(data []byte) (int, error) {
	if c.broken || !c.hit() {
		return c.Conn.Write(data)
	}
	c.broken = true
	defer c.Conn.Close()
	if !c.answered {
		return 0, io.ErrClosedPipe
	}
	n, err := c.Conn.Write(data)
	if err == nil {
		_, err = c.Conn.Read(make([]byte, 1)) // it has done what it was told
	}
	return n, err
}
