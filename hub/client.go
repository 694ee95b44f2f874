package hub

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Client is a connection to a namespace. All its methods, and those of Hub, may be called by
// many goroutines at once.
type Client struct {
	cfg    Config
	at     endpoint
	entity string // the connection string's hub; empty if it has none
	tokens tokens

	// closing is closed by stop; onClose calls a function then.
	closing <-chan struct{}
	stop    context.CancelFunc
	onClose func(func()) (forget func() bool)

	// tasks are the goroutines that Close waits for. Add is called with mu held and
	// the client open.
	tasks sync.WaitGroup

	mu      sync.Mutex
	closed  bool               // guarded by mu
	conn    *connection        // guarded by mu; the last one, which may be dead
	dialing *dialing           // guarded by mu; nil unless one is being opened
	senders map[string]*sender // guarded by mu; by address
}

// dialing is a connection that is being opened, for all who wait for it.
type dialing struct {
	done chan struct{}
	// conn and err are set before done is closed.
	conn *connection
	err  error
}

// Dial reaches a namespace and checks that it lets us in. The connection string is a
// yard's (eventyard connection-string prints it) or that of an Event Hubs namespace or hub.
func Dial(ctx context.Context, connectionString string, cfg Config) (*Client, error) {
	c, err := newClient(connectionString, cfg)
	if err != nil {
		return nil, fmt.Errorf("dial hub: %w", err)
	}
	if err := c.retry(ctx, asking, c.knock); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("dial %s: %w", c.at.host, err)
	}
	return c, nil
}

func newClient(connectionString string, cfg Config) (*Client, error) {
	parsed, err := parse(connectionString, cfg.Token != nil)
	if err != nil {
		return nil, err
	}
	at, err := newEndpoint(parsed)
	if err != nil {
		return nil, err
	}
	tokens, err := newTokens(parsed, cfg.Token)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	return &Client{
		cfg: cfg.withDefaults(), at: at, entity: parsed.Hub, tokens: tokens,
		closing: ctx.Done(), stop: stop,
		onClose: func(f func()) func() bool { return context.AfterFunc(ctx, f) },
		senders: make(map[string]*sender),
	}, nil
}

// knock puts a token, for the hub or, where none is named, for the namespace. Clients of
// Event Hubs never ask for the latter: so a namespace that only finds it too much has still
// found nothing wrong with the key.
func (c *Client) knock(ctx context.Context) error {
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	err = conn.authorize(ctx, c.at.audience(c.entity))
	if answer := (*CallError)(nil); c.entity == "" && errors.As(err, &answer) && tooWide(answer) {
		return nil
	}
	return err
}

func tooWide(answer *CallError) bool {
	meaning, passing := answer.judge()
	return !passing && (meaning != ErrUnauthorized || strings.HasPrefix(answer.Description, "InvalidAudience"))
}

// Namespace is the fully qualified name of the namespace, without a port.
func (c *Client) Namespace() string { return c.at.name }

// Hub gives a hub by its name, without asking whether it exists; empty means the
// connection string's EntityPath.
func (c *Client) Hub(name string) *Hub {
	if name == "" {
		name = c.entity
	}
	return &Hub{client: c, name: name}
}

// Close ends all that the client has open: calls under way and readers answer ErrClosed. Safe
// twice.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	conn := c.conn
	c.mu.Unlock()
	c.stop()
	if conn != nil {
		conn.close()
	}
	c.tasks.Wait()
	return nil
}

// isClosed tells it without waiting for anybody.
func (c *Client) isClosed() bool {
	select {
	case <-c.closing:
		return true
	default:
		return false
	}
}

// connect gives the connection, opening one if there is none that lives. All who ask
// meanwhile wait for the same one.
func (c *Client) connect(ctx context.Context) (*connection, error) {
	d, conn, err := c.connecting()
	if d == nil {
		return conn, err
	}
	select {
	case <-d.done:
		return d.conn, d.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (c *Client) connecting() (*dialing, *connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, nil, ErrClosed
	case c.conn != nil && c.conn.alive():
		return nil, c.conn, nil
	case c.dialing == nil:
		c.dialing = &dialing{done: make(chan struct{})}
		c.tasks.Add(1)
		go c.dial(c.dialing)
	}
	return c.dialing, nil, nil
}

// dial opens a connection. It is bound to nobody's context: others may wait for it as
// well.
func (c *Client) dial(d *dialing) {
	defer c.tasks.Done()
	ctx, cancel := c.bind(context.Background())
	defer cancel()
	d.conn, d.err = c.openConnection(ctx)
	d.err = c.unanswered(ctx, d.err)
	dead := c.dialed(d)
	close(d.done)
	if dead != nil {
		dead.close()
	}
}

// dialed notes the outcome and gives the connection that is of no more use.
func (c *Client) dialed(d *dialing) (dead *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dialing = nil
	switch {
	case d.err != nil:
		return nil
	case c.closed:
		dead, d.conn, d.err = d.conn, nil, ErrClosed
		return dead
	}
	dead, c.conn = c.conn, d.conn
	return dead
}

// bind gives one attempt its time, and ends it when the client is closed.
func (c *Client) bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Retry.Timeout)
	forget := c.onClose(cancel)
	return ctx, func() {
		forget()
		cancel()
	}
}
