package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/otlp"
	"github.com/eventyard/eventyard/server"
	"github.com/spf13/cobra"
)

const serveHelp = `Run a yard until Ctrl-C or SIGTERM stops it. Requests in progress may finish; a second
signal ends it at once. SIGHUP makes it look at its certificate and read the level of the log
anew; where it was started at a terminal it stops with that.

Clients of Azure Event Hubs connect to the AMQP listeners, with the connection string that is
printed, and Kafka clients to the Kafka listeners. While every listener is on loopback the
well-known key of the official emulator is valid, and Kafka clients need none; beyond it real keys
are needed, and TLS, unless --allow-plaintext is given:

  eventyard serve --amqps :5671 --https :8443 --host yard.example.com

An address like :5671 stands for all of this machine's, 0.0.0.0:5671 for those of IPv4,
[::]:5671 for those of IPv6. A connection string with all rights is in the file
DATA/connection-string; serve prints the file's path, not the key. If the yard was on loopback
before, where everybody on this machine could read its keys, the root policy gets new ones.

Every flag is also a setting in eventyard.yaml and a variable; eventyard config doc
prints them all. Flags win over variables, and these over the file.`

// serveCommand is `eventyard serve`.
type serveCommand struct{ *cli }

func (c serveCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a yard",
		Long:  serveHelp,
		Example: `  eventyard serve
  eventyard serve --data /var/lib/eventyard --http 127.0.0.1:0
  eventyard serve --config Config.json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.loadConfig(cmd)
			if err != nil {
				return err
			}
			return c.serve(cmd.Context(), cfg, func() (config.Config, error) { return c.loadConfig(cmd) })
		},
	}
	addConfigFlags(cmd)
	return cmd
}

// serve runs a yard. reload reads the configuration anew.
func (c serveCommand) serve(ctx context.Context, cfg config.Config, reload func() (config.Config, error)) error {
	level := &slog.LevelVar{}
	level.Set(levelOf(cfg.Log))
	made := c.serverConfig(cfg)
	made.Log = newLogger(c.stderr, cfg.Log.Format, level)
	var err error
	if made.Peer, err = peerConfig(cfg); err != nil {
		return err
	}
	spans := "" // where they go
	if traces := spansTo(cfg, made); traces.Wanted() {
		spans = traces.To()
		exporter, err := otlp.Open(ctx, traces)
		if err != nil {
			return err
		}
		defer exporter.Close() // when the yard has stopped
		made.Tracer = exporter
	}
	s, err := server.New(made)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	hangups := make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGHUP) { // else it runs by nohup
		signal.Notify(hangups, syscall.SIGHUP)
	}
	defer signal.Stop(hangups)
	go func() { ended <- s.Run(ctx) }()
	select {
	case err := <-ended:
		return adviseRunning(cfg, err)
	case <-s.Started():
	}
	c.sayReady(cfg, s, spans)
	for {
		select {
		case err := <-ended:
			if err == nil {
				fmt.Fprintln(c.stdout, "stopped")
			}
			return err
		case <-hangups:
			if isTerminal(c.stdin) {
				stop() // the terminal is gone, and with it who could stop the yard
				continue
			}
			c.reload(s, made.Log, level, reload)
		}
	}
}

// adviseRunning says of an address that is in use that the yard of the same folder has it, where that is so: who
// starts a yard twice need not look for another program.
func adviseRunning(cfg config.Config, err error) error {
	if !errors.As(err, new(*server.ListenerError)) || !errors.Is(err, syscall.EADDRINUSE) || cfg.Engine != "disk" || cfg.Cluster.Bundle != "" {
		return err
	}
	if running, unknown := server.Running(cfg.Data); unknown != nil || !running {
		return err
	}
	return &advisedError{
		fmt.Sprintf("a yard runs on %s already: %v", absolute(cfg.Data), err),
		"use that one: eventyard status; or stop it first; or start another beside it, with another folder by --data and other addresses by " + strings.Join(listenerFlags(err), ", "),
	}
}

// spansTo says where spans go.
func spansTo(cfg config.Config, made server.Config) otlp.Config {
	return otlp.Config{Endpoint: cfg.OTLP.Endpoint, Sample: cfg.OTLP.Ratio(), Version: made.Version, Node: cfg.Node, Log: made.Log}
}

// reload takes what can change while a yard runs: the files of the certificate, and the level of the
// log. What is wrong with the configuration is logged, and nothing changes.
func (c serveCommand) reload(s *server.Server, log *slog.Logger, level *slog.LevelVar, read func() (config.Config, error)) {
	unusable := s.Reload() // which has logged it
	cfg, err := read()
	if err != nil {
		log.Error("the configuration was read again and is wrong; nothing of it was taken", "error", err)
		return
	}
	level.Set(levelOf(cfg.Log))
	if unusable != nil {
		log.Info("reloaded: level of the log; the certificate before goes on, and other settings need a restart", "level", level.Level())
		return
	}
	log.Info("reloaded: certificate and level of the log; other settings need a restart", "level", level.Level())
}

func levelOf(cfg config.Log) (level slog.Level) {
	_ = level.UnmarshalText([]byte(cfg.Level)) // checked with the configuration
	return level
}

// sayReady prints where the yard is, for people and for scripts: a line for each
// address, its name first. The last line is always the same.
func (c serveCommand) sayReady(cfg config.Config, s *server.Server, spans string) {
	addresses := s.Addresses()
	fmt.Fprintf(c.stdout, "eventyard %s is ready\n", thisBuild().Version)
	for _, listener := range cfg.Listeners() {
		if url, open := addresses[listener.Name]; open {
			fmt.Fprintf(c.stdout, "  %-6s %s\n", listener.Name, url)
		}
	}
	if cfg.Cluster.Bundle != "" {
		fmt.Fprintf(c.stdout, "  engine NATS server inside\n  node   %s\n  data   %s\n", s.Node(), absolute(cfg.Data))
	} else if cfg.OnServers() {
		fmt.Fprintf(c.stdout, "  engine NATS servers\n  node   %s\n", s.Node())
	} else {
		fmt.Fprintf(c.stdout, "  data   %s\n  sync   %s\n", absolute(cfg.Data), explainSync(cfg))
	}
	if spans != "" {
		fmt.Fprintf(c.stdout, "  spans  %s\n", spans)
	}
	c.sayAccess(s.Access())
	fmt.Fprintln(c.stdout, readyEnd)
	if len(addresses) == 0 {
		fmt.Fprintln(c.stderr, newPaint(c.stderr).yellow("warning:"), "every listener is off; nobody can reach this yard")
	}
}

// readyEnd is the last line about a yard that is ready.
const readyEnd = "Ctrl-C stops it."

// sayAccess prints what clients are let in by. A key that is a secret is not shown, unless there is no
// file to keep it in: what is printed here often ends in the log of a container.
func (c serveCommand) sayAccess(reported server.Access) {
	switch {
	case reported.Development:
		if reported.ServedOthers {
			c.warn([]string{"others could reach this yard before; this start is in development, where the well-known key has all rights, " +
				"and " + auth.RootPolicy + " will get new keys at the next start beyond loopback"})
		}
		fmt.Fprintf(c.stdout, "Every listener is on loopback, so every user and program of this machine may use it, with this connection string:\n  %s\n", reported.ConnectionString)
	case reported.File == "":
		c.warn(renewal(reported))
		if reported.Show {
			fmt.Fprintf(c.stdout, "Others can reach this yard. This connection string has all rights, and no node shows it again:\n  %s\n", reported.ConnectionString)
			return
		}
		fmt.Fprintln(c.stdout, "Others can reach this yard. The node that started first has shown a connection string with all rights.")
	default:
		c.warn(renewal(reported))
		fmt.Fprintf(c.stdout, "Others can reach this yard. A connection string with all rights is in %s\n", absolute(reported.File))
	}
}

// renewal says what came of the time in which everybody here could read keys.
func renewal(reported server.Access) (warnings []string) {
	if !reported.Renewed {
		return nil
	}
	warnings = append(warnings, auth.RootPolicy+" has new keys, and the old ones are no longer valid: "+
		"while every listener was on loopback, every user and program of this machine could read them")
	if len(reported.Readable) > 0 {
		var policies []string
		for _, p := range reported.Readable {
			policies = append(policies, strings.TrimPrefix(describePolicy(p.Name, p.Hub), "policy "))
		}
		warnings = append(warnings, "the keys of other policies could be read as well, and are still valid: "+nameSome(policies)+
			"; replace both keys of each with: eventyard policy regenerate POLICY [--hub HUB] [--key secondary]")
	}
	if len(reported.ReadableTopics) > 0 {
		warnings = append(warnings, "the keys of topics could be read as well, and are still valid: "+nameSome(reported.ReadableTopics)+
			"; replace both keys of each with: eventyard topic regenerate TOPIC [--key key2]")
	}
	return warnings
}

// nameSome names some of many.
func nameSome(names []string) string {
	text := strings.Join(names[:min(len(names), mostNamed)], ", ")
	if more := len(names) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func explainSync(cfg config.Config) string {
	switch cfg.Sync {
	case "interval":
		return fmt.Sprintf("interval: a power cut may cost the last %s", cfg.SyncInterval)
	case "os":
		return "os: a power cut may cost events that were acknowledged"
	}
	return "always: what was acknowledged survives a power cut"
}

func (c *cli) serverConfig(cfg config.Config) server.Config {
	grace := time.Duration(cfg.Grace)
	if grace == 0 {
		grace = -1 // the server's zero is its default
	}
	return server.Config{
		DataDir:      cfg.Data,
		Engine:       cfg.EngineURL(),
		Node:         cfg.Node,
		NATSUnsafe:   cfg.NATSUnsafe,
		Sync:         cfg.Sync,
		SyncInterval: time.Duration(cfg.SyncInterval),
		SegmentBytes: int64(cfg.SegmentBytes),
		Secrets:      server.Secrets(cfg.Secrets),
		AMQP:         cfg.AMQP,
		AMQPS:        cfg.AMQPS,
		HTTP:         cfg.HTTP,
		HTTPS:        cfg.HTTPS,
		Kafka:        cfg.Kafka,
		Kafkas:       cfg.Kafkas,
		DevStorage:   cfg.DevStorage,

		KafkaAdvertise:      cfg.KafkaAdvertise,
		KafkasAdvertise:     cfg.KafkasAdvertise,
		KafkaBrokers:        cfg.KafkaBrokers,
		KafkaAutoCreate:     cfg.KafkaAutoCreate,
		AllowPlaintext:      cfg.AllowPlaintext,
		AcceptAnyJWT:        cfg.AcceptAnyJWT,
		AMQPIdleTimeout:     time.Duration(cfg.AMQPIdleTimeout),
		AMQPMaxConnections:  cfg.AMQPMaxConnections,
		HTTPMaxConnections:  cfg.HTTPMaxConnections,
		KafkaMaxConnections: cfg.KafkaMaxConnections,
		Quota:               server.Quota{Events: orNone(int64(cfg.Quota.Events)), Bytes: orNone(int64(cfg.Quota.Bytes))},
		TLS:                 server.TLS(cfg.TLS),
		OIDC:                server.OIDC(cfg.OIDC),
		BlobRootKeys:        cfg.Blob.RootKeys,

		Host:      cfg.Host,
		Namespace: cfg.Namespace,
		Hubs:      configuredHubs(cfg.Hubs),
		Policies:  configured(cfg.Policies, func(p admin.PolicyRequest) server.Policy { return server.Policy(p) }),
		PublicURL: cfg.PublicURL,
		TraceURL:  cfg.TraceURL,
		Grid:      gridConfig(cfg.Grid),
		Topics:    configured(cfg.Topics, func(t admin.TopicRequest) server.Topic { return server.Topic(t) }),
		Grace:     grace,
		Version:   thisBuild().Version,

		Subscriptions: configured(cfg.Subscriptions, func(s admin.SubscriptionRequest) server.Subscription { return server.Subscription(s) }),
		Functions:     configured(cfg.Functions, func(f admin.FunctionRequest) server.Function { return server.Function(f) }),
		Notify: server.Notify{
			To: cfg.Notify.Targets(), LinkLife: time.Duration(cfg.Notify.LinkLife), SMTP: server.SMTP(cfg.Notify.SMTP),
		},
	}
}

// configured puts the definitions of the configuration into the server's words.
func configured[A, B any](list []A, of func(A) B) []B {
	var all []B
	for _, d := range list {
		all = append(all, of(d))
	}
	return all
}

// gridConfig translates zeros: those of the settings mean none, those of the server its defaults.
func gridConfig(cfg config.Grid) server.Grid {
	networks, err := cfg.Networks()
	if err != nil {
		panic("grid.allow was not checked: " + err.Error()) // loading the configuration does
	}
	grid := server.Grid{
		Allow: networks, Timeout: time.Duration(cfg.Timeout), LateWindow: orNone(time.Duration(cfg.LateWindow)),
		Jitter: float64(cfg.JitterPercent) / 100, ProbationAfter: cfg.ProbationAfter, ProbationCap: time.Duration(cfg.ProbationCap),
		ValidationWindow: time.Duration(cfg.ValidationWindow), Origin: cfg.Origin, TopicRetention: time.Duration(cfg.TopicRetention),
		DeadLetterDelay: orNone(time.Duration(cfg.DeadLetterDelay)), DeadLetterGiveUp: time.Duration(cfg.DeadLetterGiveUp),
		DeadLetterKeep: time.Duration(cfg.DeadLetterKeep), DeadLetterFolders: cfg.Folders(), DeadLetterAccounts: cfg.Accounts(),
	}
	if grid.Jitter == 0 {
		grid.Jitter = -1
	}
	if grid.ProbationAfter == 0 {
		grid.ProbationAfter = -1
	}
	return grid
}

// orNone gives a setting as the server has it, whose zero is its default.
func orNone[T ~int64](n T) T {
	if n == 0 {
		return -1
	}
	return n
}

func configuredHubs(hubs []admin.HubRequest) []server.Hub {
	all := make([]server.Hub, len(hubs))
	for i, h := range hubs {
		all[i] = server.Hub{Name: h.Name, Quota: h.Quota, Groups: slices.Clone(h.Groups)}
		if h.Partitions != nil {
			all[i].Partitions = *h.Partitions
		}
		if h.Retention == nil {
			continue
		}
		all[i].Retention = &server.Retention{Bytes: h.Retention.Bytes}
		if h.Retention.Age != nil {
			age, _ := time.ParseDuration(*h.Retention.Age) // written by the spec
			all[i].Retention.Age = &age
		}
	}
	return all
}

func newLogger(w io.Writer, format string, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
