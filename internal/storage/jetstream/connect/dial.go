package connect

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/sleep"
)

// Conns are the connections of a node. They are three, so that bulk reads do not hold up
// acknowledgements, nor either of them what is asked and announced between nodes.
type Conns struct {
	Publish, Read, Control *nats.Conn
}

// Config is how a node connects.
type Config struct {
	Settings
	// Node is the name that the servers show of the connections.
	Node string
	// Unsafe starts on servers that may lose what they acknowledge; see Check.
	Unsafe bool
	// Inside is the one server that is connected to, in this process: Servers are only shown then, and
	// no others are learnt of. Nil: the servers are elsewhere.
	Inside nats.InProcessConnProvider
	// TLSConfig is how the servers inside other nodes are spoken to: both sides know each other's certificates.
	// No other servers are learnt of then. Nil: as Settings say.
	TLSConfig *tls.Config
	// Fence is asked before each write to a socket; an error ends the connections for good. It does not
	// block. Nil: nothing does.
	Fence func() error
	// Log reports what was lost and found again; nil means slog.Default().
	Log *slog.Logger

	// For tests; zero means the constants of the names.
	sayEvery, connectTime time.Duration
}

const (
	// pingEvery and maxPings find a server that is gone within 6 s, one before it is missed by a
	// client whose time-outs are those of the SDKs.
	pingEvery = 2 * time.Second
	maxPings  = 2
	// WriteTime is how long a write to a socket may take: the client library holds a lock meanwhile, so
	// that a frozen server would stop all who use the connection.
	WriteTime = 5 * time.Second
	// sayEvery is how often it is said that servers are waited for.
	sayEvery = 10 * time.Second
	// connectTime is how long one server may take to answer.
	connectTime = 3 * time.Second
	// maxReconnectWait is the pause between two rounds through all servers, at most.
	maxReconnectWait = 2 * time.Second
)

// Dial connects to the servers. Where none can be reached it waits until one can or ctx ends, and
// says so every 10 s. It returns at once where waiting does not help: a file cannot be read, or the
// servers refuse the credentials. From then on lost connections come back by themselves.
func Dial(ctx context.Context, cfg Config) (*Conns, error) {
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	c := &Conns{}
	for _, one := range []struct {
		conn *(*nats.Conn)
		what string
	}{{&c.Publish, "publish"}, {&c.Read, "read"}, {&c.Control, "control"}} {
		conn, err := cfg.dial(ctx, one.what)
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("connect to %s: %w", cfg.Settings, err)
		}
		*one.conn = conn
	}
	return c, nil
}

// Close closes the connections; safe twice.
func (c *Conns) Close() {
	for _, conn := range []*nats.Conn{c.Publish, c.Read, c.Control} {
		if conn != nil {
			conn.Close()
		}
	}
}

// dial makes one connection.
func (c Config) dial(ctx context.Context, what string) (*nats.Conn, error) {
	options, err := c.options(what)
	if err != nil {
		return nil, err
	}
	said := time.Now()
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, maxReconnectWait) {
		conn, err := options.Connect()
		if err == nil || hopeless(err) {
			return conn, err
		}
		if time.Since(said) >= cmp.Or(c.sayEvery, sayEvery) {
			said = time.Now()
			c.Log.Warn("no NATS server can be reached, waiting for one", "servers", c.Settings.String(), "error", err)
		}
		if sleep.About(ctx, pause) != nil {
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// hopeless tells whether an error stays the same until somebody changes something.
func hopeless(err error) bool {
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return true
	}
	return slices.ContainsFunc([]error{
		nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrSecureConnRequired, nats.ErrSecureConnWanted,
		nats.ErrNkeysNotSupported, fs.ErrNotExist, fs.ErrPermission,
	}, func(one error) bool { return errors.Is(err, one) })
}

// Options are what every connection of a yard has in common, in tests as well: it finds out within
// seconds that a server is gone, connects again for ever, and keeps nothing to send it later.
func Options() []nats.Option {
	return []nats.Option{
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(maxPings), nats.FlusherTimeout(WriteTime),
		nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		// The first round goes to the next server at once; only rounds that found none are apart.
		nats.CustomReconnectDelay(func(rounds int) time.Duration {
			return min(time.Duration(rounds)*100*time.Millisecond, maxReconnectWait)
		}),
		// What is sent while there is no connection is refused: sent later, it would surprise whoever
		// has found out meanwhile that it was not.
		nats.ReconnectBufSize(-1),
	}
}

// options are those of one connection.
func (c Config) options(what string) (nats.Options, error) {
	o := nats.GetDefaultOptions()
	for _, server := range c.Servers {
		scheme := "nats://"
		if c.TLS {
			scheme = "tls://"
		}
		o.Servers = append(o.Servers, scheme+server)
	}
	log := c.Log.With("connection", what)
	all := []nats.Option{
		nats.Name("eventyard " + c.Node + " " + what),
		nats.Timeout(cmp.Or(c.connectTime, connectTime)),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("connection to a NATS server lost", "error", err)
			}
		}),
		nats.ReconnectHandler(func(conn *nats.Conn) {
			log.Info("connected to a NATS server again", "server", conn.ConnectedServerName())
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			log.Warn("a NATS server reports", "error", err)
		}),
	}
	if c.Inside != nil {
		all = append(all, nats.InProcessServer(c.Inside), nats.IgnoreDiscoveredServers())
	}
	if c.TLSConfig != nil {
		all = append(all, nats.Secure(c.TLSConfig), nats.IgnoreDiscoveredServers())
	}
	credentials, err := c.credentials()
	if err != nil {
		return o, err
	}
	fences := fencing(c.Fence, c.Inside, cmp.Or(c.connectTime, connectTime))
	for _, option := range slices.Concat(Options(), all, credentials, fences) {
		if err := option(&o); err != nil {
			return o, err
		}
	}
	return o, nil
}

// credentials are what lets in.
func (c Config) credentials() ([]nats.Option, error) {
	var all []nats.Option
	switch {
	case c.User != "":
		all = append(all, nats.UserInfo(c.User, c.Password))
	case c.Token != "":
		all = append(all, nats.Token(c.Token))
	case c.CredsFile != "":
		all = append(all, nats.UserCredentials(c.CredsFile))
	case c.NKeyFile != "":
		nkey, err := nats.NkeyOptionFromSeed(c.NKeyFile)
		if err != nil {
			return nil, fmt.Errorf("read the nkey's seed: %w", err)
		}
		all = append(all, nkey)
	}
	if c.CAFile != "" {
		all = append(all, nats.RootCAs(c.CAFile))
	}
	if c.CertFile != "" {
		all = append(all, nats.ClientCert(c.CertFile, c.KeyFile))
	}
	return all, nil
}
