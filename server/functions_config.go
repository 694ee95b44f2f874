package server

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/define"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/functions/runner"
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
	for _, f := range c.Functions {
		var d runner.Definition
		err := define.Apply(admin.FunctionRequest(f), &d)
		if err == nil {
			err = runner.Check(d)
		}
		if err != nil {
			return fmt.Errorf("function %s: %w", f.Name, err)
		}
	}
	return nil
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
