// Package hub is the client of hubs, a yard's or Azure Event Hubs' own: send events,
// send batches with a size limit, read a partition, ask for runtime information. It
// speaks AMQP 1.0 and reconnects by itself.
//
//	client, err := hub.Dial(ctx, connectionString, hub.Config{})
//	orders := client.Hub("orders")
//	err = orders.Send(ctx, event.Text("door opened")) // nil means durable
//	for ev, err := range orders.Read(ctx, hub.ReadConfig{Partition: "3"}) { … }
//
// A client has one network connection. On it stand a link for each place it sends to, one
// for each reader and each producer, and one pair for each of the nodes that answer requests ($cbs for
// tokens, $management, and a yard's $yard). Whatever breaks is opened anew when it is needed
// next; nothing is opened ahead of need. The protocol's machinery is that of the official
// client, and so is every request that is made of a hub.
package hub

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Config is what Dial works with. The zero Config works.
type Config struct {
	// Token gives a bearer token for Microsoft Entra ID or another OIDC issuer, for connection strings
	// without a key, such as "Endpoint=sb://space.servicebus.windows.net/". It is asked again
	// when three quarters of a token's life are over; where expires is zero, after 15 minutes. Calls do
	// not overlap. nil: the connection string has a key or a signature.
	Token func(ctx context.Context) (token string, expires time.Time, err error)
	// TLS is used for endpoints with TLS; nil means the system's certificates.
	TLS *tls.Config
	// WebSockets reaches the hub over HTTPS (HTTP for a yard without TLS), for networks that let nothing
	// else through. A port in the connection string is then that of the HTTP listener.
	WebSockets bool
	// Dial opens the network connection; nil means a net.Dialer. It is how a yard in
	// this process is reached without a socket. TLS and WebSockets are put on top of what it gives.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Retry says how often and how long failed calls are tried again.
	Retry Retry
	// Name is told to the hub, which shows it; empty means the program's name.
	Name string
	// Log takes what the client carries on from; nil means slog.Default().
	Log *slog.Logger
}

// Retry is how a call that failed for a passing reason is tried again, with doubled and
// jittered delays, within the call's context. Sending again may store events twice when the
// connection broke before the answer came; Event Hubs' own clients do the same. Who cannot have that sends by a Producer.
type Retry struct {
	// Attempts in all; 0 means 5, 1 means that nothing is tried again. Readers, once open,
	// try until their context ends.
	Attempts int
	// First and Max bound the delay; 0 means 200 ms and 10 s.
	First, Max time.Duration
	// Timeout of one attempt; 0 means 30 s.
	Timeout time.Duration
}

func (c Config) withDefaults() Config {
	c.Retry = c.Retry.withDefaults()
	if c.Name == "" {
		c.Name = filepath.Base(os.Args[0])
	}
	if c.Dial == nil {
		c.Dial = newDialer().DialContext
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

func (r Retry) withDefaults() Retry {
	if r.Attempts <= 0 {
		r.Attempts = 5
	}
	if r.First <= 0 {
		r.First = 200 * time.Millisecond
	}
	if r.Max <= 0 {
		r.Max = 10 * time.Second
	}
	if r.Timeout <= 0 {
		r.Timeout = 30 * time.Second
	}
	return r
}
