package server

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/api/eventgrid"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/api/subscribe"
	"github.com/eventyard/eventyard/internal/api/v1"
	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/handshake"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/retrylog"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/service"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// gridYard is the part of a yard that pushes events.
type gridYard struct {
	client         *egress.Client
	asker          *handshake.Asker
	topics         *topics.Registry
	deletionNotice *deletionNotice
	retryLogs      *retrylog.Logs
	dead           *deadletter.Service
	delivery       *delivery.Service
	// links makes what endpoints' owners open; publish what publishers post to.
	links   func(s topics.Subscription, token string) string
	publish func(r *http.Request, topic string, tls bool) string
}

// openGrid opens definitions, retry logs, dead letters and delivery, in the order of dependence,
// and sees to it that the configured topics exist.
func (y *yard) openGrid(ctx context.Context, cfg Config, open openListeners) (err error) {
	g := &y.grid
	if g.client, err = egress.New(egress.Config{
		Allow: cfg.Grid.Allow, Loopback: open.development(), UserAgent: "eventyard/" + cfg.Version, Log: cfg.Log,
	}); err != nil {
		return fmt.Errorf("open the way out: %w", err)
	}
	origin := cmp.Or(cfg.Grid.Origin, defaultOrigin)
	g.asker = handshake.New(handshake.Config{Client: g.client, Origin: origin, Timeout: cfg.Grid.Timeout, Log: cfg.Log})
	g.links = func(s topics.Subscription, token string) string {
		base := open.linkBase(cfg)
		if base == "" {
			return "" // nobody could open it
		}
		return base + eventgrid.ValidationPath(s.Source.Topic, s.ID, token)
	}
	g.publish = func(r *http.Request, topic string, tls bool) string {
		return open.publishURL(cfg, r, topic, tls)
	}
	for _, step := range []func() error{
		func() error { return y.openTopics(ctx, cfg) },
		func() error { return y.openDelivery(ctx, cfg, origin) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// openTopics opens definitions and, over them, dead letters. Whether a target of dead letters may be used is known
// before either is open.
func (y *yard) openTopics(ctx context.Context, cfg Config) (err error) {
	g := &y.grid
	dead := deadletter.Config{
		Engine: y.storage.Log, Meta: y.storage.Meta, Broker: y.broker, DataDir: cfg.DataDir, AllowDirs: cfg.Grid.DeadLetterFolders,
		Transport: g.client.Transport(), Delay: cfg.Grid.DeadLetterDelay, GiveUp: cfg.Grid.DeadLetterGiveUp, Keep: cfg.Grid.DeadLetterKeep,
		Log: cfg.Log, Metrics: y.registry,
	}
	g.topics, err = topics.Open(ctx, topics.Config{
		Engine: y.storage.Log, Meta: y.storage.Meta, Broker: y.broker, Validate: g.asker, ValidationURL: g.links,
		ValidationWindow: cfg.Grid.ValidationWindow, Retention: cfg.Grid.TopicRetention, Log: cfg.Log,
		CheckTarget:   dead.CheckTarget,
		CheckEndpoint: func(s topics.Subscription) error { return g.client.Check(*s.Webhook) },
	})
	if err != nil {
		return fmt.Errorf("open topics: %w", err)
	}
	g.deletionNotice = newDeletionNotice(g.topics, g.asker, cfg.Log)
	for _, t := range cfg.Topics {
		if err := y.ensureTopic(ctx, t); err != nil {
			return fmt.Errorf("configured topic %s: %w", t.Name, err)
		}
	}
	dead.Topics = g.topics
	if g.dead, err = deadletter.Open(ctx, dead); err != nil {
		return fmt.Errorf("open dead letters: %w", err)
	}
	return nil
}

// ensureTopic leaves what the configuration has no words for as it was set since.
func (y *yard) ensureTopic(ctx context.Context, t Topic) error {
	want := topics.Topic{Name: t.Name}
	if there, err := y.grid.topics.Topic(t.Name); err == nil {
		want.Mapping, want.DisableKeys, want.Tags = there.Mapping, there.DisableKeys, there.Tags
	}
	if err := subscribe.ApplyTopic(t, &want); err != nil {
		return err
	}
	_, err := y.grid.topics.EnsureTopic(ctx, topics.TopicConfig{Topic: want})
	return err
}

// deliveryGrace is how long requests to endpoints may go on when the yard stops, which comes after
// the requests of its own clients have ended.
const deliveryGrace = 5 * time.Second

func (y *yard) openDelivery(ctx context.Context, cfg Config, origin string) (err error) {
	g := &y.grid
	jitter := rand.Float64 // it only lengthens: a status has a least wait
	if cfg.Grid.Jitter < 0 {
		jitter = nil
	}
	g.retryLogs, err = retrylog.Open(ctx, retrylog.Config{
		Engine: y.storage.Log, Meta: y.storage.Meta, Ladder: retry.Ladder(), Jitter: jitter, Spread: max(cfg.Grid.Jitter, 0), Log: cfg.Log, Metrics: y.registry,
	})
	if err != nil {
		return fmt.Errorf("open retry logs: %w", err)
	}
	g.delivery, err = delivery.Open(ctx, delivery.Config{
		Meta: y.storage.Meta, Topics: g.topics, Broker: y.broker, Dead: g.dead, RetryLogs: g.retryLogs,
		Sender: webhook.New(webhook.Config{
			Client: g.client, Broker: y.broker, Origin: origin, Timeout: cfg.Grid.Timeout, Late: cfg.Grid.LateWindow,
		}),
		Probation: retry.Probation{After: cfg.Grid.ProbationAfter, Cap: cfg.Grid.ProbationCap},
		Grace:     min(cfg.Grace, deliveryGrace), Log: cfg.Log, Metrics: y.registry,
	})
	if err != nil {
		return fmt.Errorf("open delivery: %w", err)
	}
	g.dead.RedriveTo(g.delivery.Redeliver)
	return nil
}

// gridParts is what runs of the grid, in the order of dependence.
func (y *yard) gridParts(cfg Config) []service.Part {
	return []service.Part{
		{Name: "topics", Run: y.grid.topics.Run},
		{Name: "deletion notices", Run: y.grid.deletionNotice.Run},
		{Name: "dead letters", Run: y.grid.dead.Run},
		{Name: "delivery", Run: y.grid.delivery.Run},
		{Name: "configured subscriptions", Run: func(ctx context.Context) error { return y.ensureSubscriptions(ctx, cfg) }},
	}
}

// eventGridAPI is what the HTTP listeners serve of the grid in Event Grid's own forms.
func (y *yard) eventGridAPI(cfg Config, stopping context.Context) frame.API {
	return eventgrid.New(eventgrid.Config{
		Topics: y.grid.deletionNotice, Pull: y.grid.delivery, Access: y.access,
		Endpoint: func(r *http.Request, topic string) string {
			return cmp.Or(y.grid.publish(r, topic, false), y.grid.publish(r, topic, true))
		},
		Stopping: stopping, Log: cfg.Log, Metrics: y.registry,
	}).API()
}

// gridAPI is what the HTTP listener serves of the grid.
func (y *yard) gridAPI() *v1.Grid {
	return &v1.Grid{
		Topics: y.grid.deletionNotice, Delivery: y.grid.delivery, Dead: y.grid.dead, Endpoint: y.grid.publish, ValidationURL: y.grid.links,
	}
}

// linkBase is the URL of the HTTP listener for whoever is sent a link: the public one, else that of the
// plain listener, else that of the other; empty where there is none.
func (o openListeners) linkBase(cfg Config) string {
	return cmp.Or(strings.TrimSuffix(cfg.PublicURL, "/"), o.httpBase(cfg, nil, false), o.httpBase(cfg, nil, true))
}

// httpBase is the URL of the HTTP listener with TLS or without, as a client reaches it who sent a request, or
// anybody if there is none; empty where there is no such listener.
func (o openListeners) httpBase(cfg Config, r *http.Request, tls bool) string {
	for _, d := range o {
		if d.TLS != tls || !strings.HasPrefix(d.Name, "http") {
			continue
		}
		host := cfg.Host
		if r != nil {
			host = cmp.Or(host, d.reachedBy(r))
		}
		return d.Name + strings.TrimSuffix(strings.TrimPrefix(d.connectTo(host).Endpoint, "sb"), "/")
	}
	return ""
}

// publishURL is where a topic is published to. The public URL is one of them.
func (o openListeners) publishURL(cfg Config, r *http.Request, topic string, tls bool) string {
	base := o.httpBase(cfg, r, tls)
	if cfg.PublicURL != "" {
		base = ""
		if strings.HasPrefix(cfg.PublicURL, "https:") == tls {
			base = strings.TrimSuffix(cfg.PublicURL, "/")
		}
	}
	if base == "" {
		return ""
	}
	return base + "/topics/" + topic + "/api/events"
}
