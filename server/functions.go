package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/define"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/functions/notify"
	"github.com/eventyard/eventyard/internal/functions/poison/box"
	"github.com/eventyard/eventyard/internal/functions/runner"
	"github.com/eventyard/eventyard/internal/service"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// Notify says who is told when a circuit opens, and how mail is sent. The zero value tells nobody.
type Notify struct {
	// To are mailto: and http(s): URLs that are told of all functions' circuits.
	To []string
	// LinkLife is how long the link in a notice is good; zero means 72 h.
	LinkLife time.Duration
	SMTP     SMTP
}

// SMTP is the server that takes mail.
type SMTP struct {
	// Addr is host:port; empty: no mail is sent. From is the sender.
	Addr, From string
	// Username and Password log in; empty: no login.
	Username, Password string
	// TLS is starttls (also if empty), tls or none; CAFile has authorities to trust, empty the system's.
	TLS, CAFile string
}

// Function is a function that must exist.
type Function = admin.FunctionRequest

// functionYard is the part of a yard that calls programs with events.
type functionYard struct {
	box     *box.Box
	runner  *runner.Registry
	notices *notify.Service
}

// openFunctions opens poison events, functions and, over their circuits, notices. What is wrong with a target of notices is
// known before either is open.
func (y *yard) openFunctions(ctx context.Context, cfg Config, open openListeners) (err error) {
	f := &y.functions
	f.box = box.New(box.Config{Broker: y.broker, Meta: y.storage.Meta, Log: cfg.Log})
	instance, err := node(cfg.DataDir)
	if err != nil { // worth no more than a few seconds
		cfg.Log.Warn("this yard's functions wait for their leases to run out after a crash", "error", err)
	}
	notices, err := y.noticeConfig(cfg, open)
	if err != nil {
		return err
	}
	f.runner, err = runner.Open(ctx, runner.Config{
		Meta: y.storage.Meta, Broker: y.broker, Groups: y.groups, Box: f.box,
		HTTP:          &http.Client{Transport: y.grid.client.Transport(), CheckRedirect: notFollowed},
		CheckEndpoint: func(url string) error { return y.grid.client.Check(egress.Endpoint{URL: url}) },
		CheckTarget:   notices.CheckTarget,
		Targets:       cfg.Notify.To,
		Topics:        y.grid.topics,
		CheckTopic:    func(topic string) error { _, err := y.grid.topics.Topic(topic); return err },
		Instance:      instance, Stop: min(max(cfg.Grace/2, time.Second), functionGrace), Log: cfg.Log, Metrics: y.registry,
	})
	if err != nil {
		return fmt.Errorf("open functions: %w", err)
	}
	notices.Circuits = f.runner
	if f.notices, err = notify.Open(ctx, notices); err != nil {
		return fmt.Errorf("open notices: %w", err)
	}
	for _, target := range cfg.Notify.To {
		if err := notices.CheckTarget(target); err != nil {
			return fmt.Errorf("notify.to: %w", err)
		}
	}
	for _, one := range cfg.Functions {
		if err := y.ensureFunction(ctx, one); err != nil {
			return fmt.Errorf("configured function %s: %w", one.Name, err)
		}
	}
	return nil
}

// functionGrace is how long calls of functions may go on when the yard stops; what is cut off comes again.
const functionGrace = 5 * time.Second

// notFollowed hands redirects to whoever asked: a program that was moved is to be named where it is.
func notFollowed(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// noticeConfig is how notices are sent, all but the circuits that they are about.
func (y *yard) noticeConfig(cfg Config, open openListeners) (notify.Config, error) {
	mail, err := cfg.Notify.SMTP.settings()
	return notify.Config{
		Topics: y.grid.topics, Meta: y.storage.Meta, Client: y.grid.client, SMTP: mail,
		Link: func() string { return open.resumeBase(cfg) }, LinkLife: cfg.Notify.LinkLife, Log: cfg.Log, Metrics: y.registry,
	}, err
}

// resumeBase is where links of notices lead. Whoever has one can resume, so it goes by the listener with TLS where others can reach that.
func (o openListeners) resumeBase(cfg Config) string {
	reachable := slices.DeleteFunc(slices.Clone(o), func(d openListener) bool { return d.OnLoopback() })
	return cmp.Or(strings.TrimSuffix(cfg.PublicURL, "/"), reachable.httpBase(cfg, nil, true), reachable.httpBase(cfg, nil, false), o.linkBase(cfg))
}

func (s SMTP) settings() (notify.SMTP, error) {
	cfg := notify.SMTP{Addr: s.Addr, From: s.From, Username: s.Username, Password: s.Password, TLS: s.TLS}
	if s.CAFile != "" {
		pem, err := os.ReadFile(s.CAFile)
		if err != nil {
			return cfg, fmt.Errorf("notify.smtp.caFile: %w", err)
		}
		cfg.CA = string(pem)
	}
	return cfg, nil
}

// ensureFunction makes a configured function as it stands there.
func (y *yard) ensureFunction(ctx context.Context, f Function) error {
	var d runner.Definition
	if err := define.Apply(f, &d); err != nil {
		return err
	}
	return y.functions.runner.Ensure(ctx, d)
}

// validateFunctions looks at what can be wrong with functions by themselves.
func (c Config) validateFunctions() error {
	for _, f := range c.Functions {
		var d runner.Definition
		err := define.Apply(f, &d)
		if err == nil {
			err = runner.Check(d)
		}
		if err != nil {
			return fmt.Errorf("function %s: %w", f.Name, err)
		}
	}
	return nil
}

// functionParts is what runs of functions behind the listeners. The functions themselves stop before
// the listeners do: see Server.serve.
func (y *yard) functionParts() []service.Part {
	return []service.Part{{Name: "notices", Run: y.functions.notices.Run}}
}

// noticeAPI is the page that links in notices lead to.
func (y *yard) noticeAPI() frame.API {
	need := frame.Open("the link's signed token is what lets in")
	return frame.Plain("notices", notify.Serves, y.functions.notices,
		frame.Route{Method: http.MethodGet, Path: notify.PathPrefix + "{token}", Need: need},
		frame.Route{Method: http.MethodPost, Path: notify.PathPrefix + "{token}", Need: need})
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
