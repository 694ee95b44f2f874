package server

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/define"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/functions/runner"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// Notify says who is notified when a circuit opens, and how mail is sent. The zero value: nobody.
type Notify struct {
	// To are mailto: and http(s): URLs that are notified of all functions' circuits.
	To []string
	// LinkLife is how long the link in a notice is valid; zero means 72 h.
	LinkLife time.Duration
	SMTP     SMTP
}

// SMTP is the server that takes mail.
type SMTP struct {
	// Addr is host:port; empty: no mail is sent. From is the sender.
	Addr, From string
	// Username and Password log in; empty: no login.
	Username, Password string
	// TLS is starttls (also if empty), tls or none; CAFile has authorities to trust, empty the
	// system's.
	TLS, CAFile string
}

// validateFunctions looks at what can be wrong with functions by themselves.
func (c Config) validateFunctions() error {
	if len(c.Functions) == 0 {
		return nil
	}
	client, err := egress.New(egress.Config{Allow: c.Grid.Allow, Loopback: c.mayBeDevelopment(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer client.Close()
	for _, f := range c.Functions {
		var d runner.Definition
		err := define.Apply(admin.FunctionRequest(f), &d)
		if err == nil {
			err = runner.Check(d)
		}
		if err == nil {
			err = client.Check(egress.Endpoint{URL: d.Endpoint})
		}
		if err != nil {
			return fmt.Errorf("function %s: %w", f.Name, err)
		}
	}
	return nil
}

// mayBeDevelopment is false where it is certain that others can reach the yard. What a name is bound to is known
// when it is open.
func (c Config) mayBeDevelopment() bool {
	if c.Peer.Bundle != nil || c.Engine != "" && c.Engine != "disk" {
		return false
	}
	return !slices.ContainsFunc(c.listeners(), func(l config.Listener) bool {
		host, _, _ := net.SplitHostPort(l.Address)
		_, err := netip.ParseAddr(host)
		return l.Open() && !l.OnLoopback() && (host == "" || err == nil)
	})
}

// settings puts it into the words of the settings; what is not given has its default.
func (n Notify) settings() config.Notify {
	usual := config.Default().Notify
	usual.To = strings.Join(n.To, ",")
	usual.LinkLife = cmp.Or(quantity.Duration(n.LinkLife), usual.LinkLife)
	mode := cmp.Or(n.SMTP.TLS, usual.SMTP.TLS)
	usual.SMTP = config.SMTP(n.SMTP)
	usual.SMTP.TLS = mode
	return usual
}
