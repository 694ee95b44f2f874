// Package hub is the client of hubs, a yard's or Azure Event Hubs' own: send events, send batches
// with a size limit, read a partition, ask for runtime information. It speaks AMQP 1.0 and
// reconnects by itself.
//
//	client, err := hub.Dial(ctx, connectionString, hub.Config{})
//	orders := client.Hub("orders")
//	err = orders.Send(ctx, event.Text("door opened")) // nil means durable
//	for ev, err := range orders.Read(ctx, hub.ReadConfig{Partition: "3"}) { … }
//
// A client has one network connection. It carries a link for each address that is sent to, one for
// each reader and each producer, and one pair of links for each node that answers requests ($cbs
// for tokens, $management, and a yard's $yard). What breaks is opened again when it is next needed;
// nothing is opened ahead of need. The protocol machinery, and every request to a hub, is that of
// the official client.
package hub

import (
	"cmp"
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
	// Token gives a bearer token for Microsoft Entra ID or another OIDC issuer, for connection
	// strings without a key, such as "Endpoint=sb://space.servicebus.windows.net/". It is called
	// again when three quarters of a token's life are over; where expires is zero, after 15
	// minutes. Calls do not overlap. nil: the connection string has a key or a signature.
	Token func(ctx context.Context) (token string, expires time.Time, err error)
	// TLS is used for endpoints with TLS; nil means the system's certificates.
	TLS *tls.Config
	// WebSockets reaches the hub over HTTPS (HTTP for a yard without TLS), for networks that let
	// nothing else through. A port in the connection string is then that of the HTTP listener.
	WebSockets bool
	// Dial opens the network connection; nil means a net.Dialer. It is how a yard in this process
	// is reached without a socket. TLS and WebSockets are put on top of what it gives.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Retry says how often and how long failed calls are tried again.
	Retry Retry
	// Name is the name that the hub shows for this client; empty means the program's name.
	Name string
	// Log takes what the client carries on from; nil means slog.Default().
	Log *slog.Logger
}

// Retry is how a call that failed for a passing reason is tried again, with doubled and jittered
// delays, within the call's context. Sending again may store events twice when the connection broke
// before the reply came; Event Hubs' own clients do the same. A Producer avoids that.
type Retry struct {
	// Attempts in all; 0 means 5, 1 means that nothing is tried again. Readers, once open, try
	// until their context ends.
	Attempts int
	// First and Max bound the delay; 0 means 200 ms and 10 s.
	First, Max time.Duration
	// Timeout of one attempt; 0 means 30 s.
	Timeout time.Duration
}

func (c Config) withDefaults() Config {
	c.Retry.Attempts = cmp.Or(max(c.Retry.Attempts, 0), 5)
	c.Retry.First = cmp.Or(max(c.Retry.First, 0), 200*time.Millisecond)
	c.Retry.Max = cmp.Or(max(c.Retry.Max, 0), 10*time.Second)
	c.Retry.Timeout = cmp.Or(max(c.Retry.Timeout, 0), 30*time.Second)
	c.Name = cmp.Or(c.Name, filepath.Base(os.Args[0]))
	c.Log = cmp.Or(c.Log, slog.Default())
	if c.Dial == nil {
		// This notices within half a minute that the other machine is gone.
		c.Dial = (&net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3,
		}}).DialContext
	}
	return c
}
