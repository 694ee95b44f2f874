package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// Client is a connection to a namespace. All its methods, and those of Hub, may be called by many
// goroutines at once.
type Client struct {
	cfg    Config
	at     endpoint
	entity string // the connection string's hub; empty if it has none
	gate   string // the audience that Dial shows a token for
	tokens tokens
	life   life // until Close

	// tasks are the goroutines that Close waits for. Go is called with mu held and the client open.
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

// Dial connects to a namespace and checks that it accepts the credentials. The connection string is
// a yard's (eventyard connection-string prints it) or that of an Event Hubs namespace or hub.
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
	gate := at.audience(parsed.Hub)
	// A signature may be for less than the hub, such as one group: it is shown for that.
	if signed, err := auth.ParseSignature(parsed.Signature); err == nil && parsed.Hub != "" &&
		auth.HubOf(signed.Path) == auth.At(parsed.Hub).Hub {
		gate = signed.Resource
	}
	return &Client{
		cfg: cfg.withDefaults(), at: at, entity: parsed.Hub, gate: gate, tokens: tokens, life: newLife(),
		senders: make(map[string]*sender),
	}, nil
}

// knock puts a token, for the hub, or what of it the token is for, or, where none is named, for the namespace. Clients of Event Hubs
// never ask for the latter: a namespace that refuses only so wide an audience has found nothing
// wrong with the key.
func (c *Client) knock(ctx context.Context) error {
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	err = conn.authorize(ctx, c.gate)
	if answer, ok := errors.AsType[*CallError](err); ok && c.entity == "" {
		meaning, passing := answer.judge()
		if !passing && (meaning != ErrUnauthorized || strings.HasPrefix(answer.Description, "InvalidAudience")) {
			return nil
		}
	}
	return err
}

// Namespace is the fully qualified name of the namespace, without a port.
func (c *Client) Namespace() string { return c.at.name }

// Close ends all that the client has open: calls in progress and readers end with ErrClosed. Safe
// twice.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	conn := c.conn
	c.mu.Unlock()
	c.life.end()
	if conn != nil {
		conn.close()
	}
	c.tasks.Wait()
	return nil
}

// connect gives the connection, opening one if there is none that lives. All who call it meanwhile
// wait for the same one.
func (c *Client) connect(ctx context.Context) (*connection, error) {
	c.mu.Lock()
	conn, d := c.conn, c.dialing
	switch {
	case c.closed:
		c.mu.Unlock()
		return nil, ErrClosed
	case conn != nil && conn.alive():
		c.mu.Unlock()
		return conn, nil
	case d == nil:
		d = &dialing{done: make(chan struct{})}
		c.dialing = d
		c.tasks.Go(func() { c.dial(d) })
	}
	c.mu.Unlock()
	select {
	case <-d.done:
		return d.conn, d.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// dial opens a connection in place of the last one, which is dead. It is bound to nobody's context:
// others may wait for it as well.
func (c *Client) dial(d *dialing) {
	ctx, cancel := c.bind(context.Background())
	defer cancel()
	conn, err := c.openConnection(ctx)
	var unused *connection
	c.mu.Lock()
	c.dialing = nil
	switch {
	case err != nil:
		d.err = c.unanswered(ctx, err)
	case c.closed:
		unused, d.err = conn, ErrClosed
	default:
		unused, c.conn, d.conn = c.conn, conn, conn
	}
	c.mu.Unlock()
	close(d.done)
	if unused != nil {
		unused.close()
	}
}

// bind gives one attempt its time, and ends it when the client is closed.
func (c *Client) bind(ctx context.Context) (context.Context, context.CancelFunc) {
	return c.life.bind(context.WithTimeout(ctx, c.cfg.Retry.Timeout))
}

// life is the time during which a client, reader or producer is open. Contexts are not kept, so it
// holds what it needs of one.
type life struct {
	over  <-chan struct{}
	end   context.CancelFunc
	onEnd func(func()) (forget func() bool)
}

func newLife() life {
	ctx, end := context.WithCancel(context.Background())
	return life{ctx.Done(), end, func(f func()) func() bool { return context.AfterFunc(ctx, f) }}
}

// ended reports it without waiting for anybody.
func (l life) ended() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

// bind also ends a context when the life ends.
func (l life) bind(ctx context.Context, cancel context.CancelFunc) (context.Context, context.CancelFunc) {
	forget := l.onEnd(cancel)
	return ctx, func() {
		forget()
		cancel()
	}
}

// Hub is one hub of a namespace.
type Hub struct {
	client *Client
	name   string
}

// Hub gives a hub by its name, without asking whether it exists; empty means the connection
// string's EntityPath.
func (c *Client) Hub(name string) *Hub { return &Hub{client: c, name: cmp.Or(name, c.entity)} }

// Name is the hub's, as it was given.
func (h *Hub) Name() string { return h.name }

// Namespace is the fully qualified name of the hub's namespace, without a port.
func (h *Hub) Namespace() string { return h.client.Namespace() }

// named is an error where no hub is named: the request would be for something else then.
func (h *Hub) named() error {
	if h.name == "" {
		return fmt.Errorf("%w: no hub was named, and the connection string has no EntityPath", ErrNotFound)
	}
	return nil
}

// errNoPartition is the same for a partition.
var errNoPartition = fmt.Errorf("%w: no partition was named", ErrNotFound)

// target is the address that events are sent to: a partition's, or where none is named the hub's.
func (h *Hub) target(partition string) string {
	if partition == "" {
		return h.name
	}
	return h.name + "/Partitions/" + partition
}
