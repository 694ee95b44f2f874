package hub_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/server"
)

// trust is for the yard's own authority.
func (y *yard) trust(t *testing.T) *tls.Config {
	t.Helper()
	response, err := http.Get(y.Addresses()["http"] + "/api/v1/ca.pem")
	testkit.Must(t, err)
	defer http.DefaultClient.CloseIdleConnections()
	defer response.Body.Close()
	pem := testkit.Value(io.ReadAll(response.Body))(t)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		t.Fatal("the yard's authority has no certificate")
	}
	return &tls.Config{RootCAs: pool}
}

// roundTrip sends an event and reads it.
func roundTrip(t *testing.T, c *hub.Client, body string) {
	t.Helper()
	h := c.Hub("h")
	r := open(t, h, hub.ReadConfig{Partition: "1", From: hub.Latest})
	testkit.Must(t, h.SendTo(t.Context(), "1", event.Text(body)))
	wantBodies(t, next(t, r, 1), body)
	testkit.Must(t, infoError(h))
}

// H8, P12: every way in.
func TestEveryListenerLetsIn(t *testing.T) {
	y := start(t)
	trusted := y.trust(t)
	for name, test := range map[string]struct {
		listener string
		cfg      hub.Config
	}{
		"plain":            {"amqp", hub.Config{}},
		"TLS":              {"amqps", hub.Config{TLS: trusted}},
		"a WebSocket":      {"http", hub.Config{WebSockets: true}},
		"a TLS WebSocket":  {"https", hub.Config{WebSockets: true, TLS: trusted}},
		"a dialer of ours": {"amqp", hub.Config{Dial: new(net.Dialer).DialContext}},
	} {
		t.Run(name, func(t *testing.T) {
			roundTrip(t, y.dial(t, y.at(t, test.listener).String(), test.cfg), "over "+name)
		})
	}
	roundTrip(t, y.Dial(t), "inside the process")
}

func TestACertificateThatNobodyKnowsIsNotTrusted(t *testing.T) {
	y := start(t)
	for _, cfg := range []hub.Config{{}, {WebSockets: true}} {
		listener := "amqps"
		if cfg.WebSockets {
			listener = "https"
		}
		_, err := hub.Dial(t.Context(), y.at(t, listener).String(), cfg)
		var untrusted *tls.CertificateVerificationError
		if !errors.As(err, &untrusted) {
			t.Errorf("%s: %v", listener, err)
		}
	}
}

// H9
func TestDialRefusesAWrongKey(t *testing.T) {
	y := start(t)
	for _, entity := range []string{"", "h"} {
		c := y.at(t, "amqp")
		c.Key, c.Hub = "wrong", entity
		_, err := hub.Dial(t.Context(), c.String(), hub.Config{})
		wantError(t, err, hub.ErrUnauthorized)
		if strings.Contains(err.Error(), "wrong") {
			t.Errorf("the error shows the key: %v", err)
		}
	}
	c := y.at(t, "amqp")
	c.Hub = "none"
	_, err := hub.Dial(t.Context(), c.String(), hub.Config{})
	if err != nil { // a yard may say so now or later
		wantError(t, err, hub.ErrNotFound)
	}
}

func TestConnectionStringsThatAreNone(t *testing.T) {
	for text, cfg := range map[string]hub.Config{
		"":                      {},
		"Endpoint=sb://x/":      {},
		"nonsense":              {},
		"Endpoint=sb://a:b:c/":  {Token: noToken},
		"SharedAccessKeyName=x": {Token: noToken},
		"Endpoint=sb://x/;SharedAccessSignature=SharedAccessSignature none": {},
		"Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey=k":          {Token: noToken},
	} {
		t.Run(text, func(t *testing.T) {
			if c, err := hub.Dial(t.Context(), text, cfg); err == nil {
				t.Errorf("%q is good", text)
				_ = c.Close()
			}
		})
	}
}

func noToken(context.Context) (string, time.Time, error) {
	return "", time.Time{}, errors.New("no token")
}

// H9: a signature that somebody made is good for what it was made for.
func TestASignatureIsAsGoodAsAKey(t *testing.T) {
	y := start(t)
	c := y.at(t, "amqp")
	for _, resource := range []string{"sb://whatever/h", "sb://whatever/"} {
		signed := c
		signed.Signature = auth.Sign(resource, c.Policy, c.Key, time.Now().Add(time.Hour))
		signed.Policy, signed.Key = "", ""
		roundTrip(t, y.dial(t, signed.String(), hub.Config{}), resource)
	}
	late := c
	late.Signature = auth.Sign("sb://whatever/", c.Policy, c.Key, time.Now().Add(-time.Hour))
	late.Policy, late.Key = "", ""
	wantError(t, testkit.Err(hub.Dial(t.Context(), late.String(), hub.Config{})), hub.ErrUnauthorized)
}

// H9: a bearer token in place of a key, asked for once while it is good.
func TestABearerTokenLetsIn(t *testing.T) {
	y := start(t, func(cfg *server.Config) { cfg.AcceptAnyJWT = true })
	var asked atomic.Int64
	text := "Endpoint=" + y.at(t, "amqp").Endpoint + ";UseDevelopmentEmulator=true"
	client := y.dial(t, text, hub.Config{Token: func(context.Context) (string, time.Time, error) {
		asked.Add(1)
		return "header.claims.signature", time.Now().Add(time.Hour), nil
	}})
	roundTrip(t, client, "bearer")
	roundTrip(t, client, "bearer")
	if n := asked.Load(); n != 1 {
		t.Errorf("asked for %d tokens", n)
	}
	_, err := hub.Dial(t.Context(), text, hub.Config{Token: noToken, Retry: hub.Retry{Attempts: 1}})
	if err == nil || !strings.Contains(err.Error(), "no token") {
		t.Errorf("without a token: %v", err)
	}
}

func TestDialGivesUp(t *testing.T) {
	refuse := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("nobody there") }
	text := "Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey=k"
	quick := hub.Retry{Attempts: 3, First: time.Microsecond, Max: time.Microsecond}
	_, err := hub.Dial(t.Context(), text, hub.Config{Dial: refuse, Retry: quick})
	if err == nil || !strings.Contains(err.Error(), "nobody there") {
		t.Errorf("answered %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, testkit.Err(hub.Dial(ctx, text, hub.Config{Dial: refuse})), context.Canceled)
}

// What is dialled where the connection string leaves it open.
func TestPortsThatAreNotNamed(t *testing.T) {
	for _, test := range []struct {
		text string
		web  bool
		want string
	}{
		{"Endpoint=sb://x.servicebus.windows.net/", false, "x.servicebus.windows.net:5671"},
		{"Endpoint=sb://x.servicebus.windows.net/", true, "x.servicebus.windows.net:443"},
		{"Endpoint=sb://localhost;UseDevelopmentEmulator=true", false, "localhost:5672"},
		{"Endpoint=sb://localhost;UseDevelopmentEmulator=true", true, "localhost:80"},
		{"Endpoint=sb://[::1]:77;UseDevelopmentEmulator=true", false, "[::1]:77"},
		{"Endpoint=sb://[::1];UseDevelopmentEmulator=true", false, "[::1]:5672"},
	} {
		t.Run(test.text, func(t *testing.T) {
			var dialled string
			_, err := hub.Dial(t.Context(), test.text+";SharedAccessKeyName=n;SharedAccessKey=k", hub.Config{
				WebSockets: test.web, Retry: hub.Retry{Attempts: 1},
				Dial: func(_ context.Context, _, address string) (net.Conn, error) {
					dialled = address
					return nil, errors.New("enough")
				},
			})
			if err == nil || dialled != test.want {
				t.Errorf("%s: dialled %s, want %s: %v", test.text, dialled, test.want, err)
			}
		})
	}
}
