package hub

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// endpoint is where a namespace is, and what it is called.
type endpoint struct {
	// host is as the connection string has it, maybe with a port; name is without.
	host, name string
	// port is the connection string's; empty if it has none.
	port string
	// plain: no TLS.
	plain bool
}

// parse reads a connection string. Where there is a token of its own it needs no key.
func parse(text string, bearer bool) (auth.ConnectionString, error) {
	c, err := auth.ParseConnectionString(text)
	if !bearer {
		return c, err
	}
	if err == nil {
		return c, errors.New("the connection string has a key or signature beside Config.Token: one of them is enough")
	}
	// What is missing is stood in for, so that everything else is still checked.
	c, err = auth.ParseConnectionString(text + ";SharedAccessSignature=none")
	c.Signature = ""
	return c, err
}

func newEndpoint(c auth.ConnectionString) (endpoint, error) {
	at := endpoint{host: c.Host(), plain: c.Emulator}
	if !strings.Contains(strings.TrimPrefix(at.host, "["), ":") || strings.HasSuffix(at.host, "]") {
		at.name = strings.Trim(at.host, "[]")
		return at, nil
	}
	name, port, err := net.SplitHostPort(at.host)
	if err != nil {
		return at, fmt.Errorf("the connection string's endpoint: %w", err)
	}
	at.name, at.port = name, port
	return at, nil
}

// The ports that need not be named.
const (
	portPlain    = "5672"
	portTLS      = "5671"
	portWeb      = "80"
	portWebTLS   = "443"
	webSocketURI = "/$servicebus/websocket"
)

// address is what is dialled.
func (at endpoint) address(web bool) string {
	port := at.port
	switch {
	case port != "":
	case web && at.plain:
		port = portWeb
	case web:
		port = portWebTLS
	case at.plain:
		port = portPlain
	default:
		port = portTLS
	}
	return net.JoinHostPort(at.name, port)
}

// webSocket is the URL that AMQP over WebSockets is found at.
func (at endpoint) webSocket() string {
	if at.plain {
		return "ws://" + at.address(true) + webSocketURI
	}
	return "wss://" + at.address(true) + webSocketURI
}

// audience is what a token for a path of the namespace is made for, as the official
// client writes it.
func (at endpoint) audience(path string) string {
	if at.plain {
		return "amqp://" + at.host + "/" + path
	}
	return "amqps://" + at.host + "/" + path
}
