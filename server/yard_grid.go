package server

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/azureblob"
	"github.com/eventyard/eventyard/internal/api/subscribe"
	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/handshake"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/retrylog"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// openGrid opens topics, dead letters, retry logs and delivery.
func (y *yard) openGrid(ctx context.Context) (err error) {
	cfg, log := y.cfg.Grid, y.cfg.Log
	y.client, err = egress.New(egress.Config{
		Allow: cfg.Allow, Loopback: y.development(), UserAgent: "eventyard/" + y.cfg.Version,
		Connections: y.cfg.shares().Outgoing, Log: log, Metrics: y.registry,
	})
	if err != nil {
		return fmt.Errorf("open the client of webhooks: %w", err)
	}
	origin := cmp.Or(cfg.Origin, defaultOrigin)
	asker := handshake.New(handshake.Config{Client: y.client, Origin: origin, Timeout: cfg.Timeout, Log: log})
	accounts, err := cfg.accounts()
	if err != nil {
		return err
	}
	// Topics check the targets of dead letters, which need topics to be open.
	dead := deadletter.Config{
		Engine: y.storage.Log, Meta: y.storage.Meta, Broker: y.broker, DataDir: y.storage.Folder,
		Blobs: y.blobs, BlobAccount: azureblob.Account, Accounts: accounts,
		AllowDirs: cfg.DeadLetterFolders, Transport: y.client.Transport(), Delay: cfg.DeadLetterDelay,
		GiveUp: cfg.DeadLetterGiveUp, Keep: cfg.DeadLetterKeep, Sharded: y.shared(), Log: log, Metrics: y.registry,
	}
	defined, err := topics.Open(ctx, topics.Config{
		Engine: y.storage.Log, Meta: y.storage.Meta, Broker: y.broker, Validate: asker, ValidationURL: y.validationURL,
		ValidationWindow: cfg.ValidationWindow, Retention: cfg.TopicRetention, Quota: y.quota, Nodes: y.nodes.Count, Looks: y.newLooks(), Log: log, Notes: y.notes,
		CheckTarget:   dead.CheckTarget,
		CheckEndpoint: func(s topics.Subscription) error { return y.client.Check(*s.Webhook) },
	})
	if err != nil {
		return fmt.Errorf("open topics: %w", err)
	}
	y.topics = handshake.NewRegistry(defined, asker, log)
	y.journal.PublishBy(defined.Announce)
	y.secrets.readTopics(defined.Topics())
	for _, t := range y.cfg.Topics {
		want := topics.Topic{Name: t.Name}
		if there, err := defined.Topic(t.Name); err == nil { // what the configuration does not mention stays
			want.Mapping, want.DisableKeys, want.Quota, want.Tags, want.Domain = there.Mapping, there.DisableKeys, there.Quota, there.Tags, there.Domain
		}
		err := subscribe.ApplyTopic(admin.TopicRequest(t), &want)
		if err == nil {
			_, err = defined.EnsureTopic(ctx, topics.TopicConfig{Topic: want})
		}
		if err != nil {
			return fmt.Errorf("configured topic %s: %w", t.Name, err)
		}
	}
	dead.Topics = defined
	if y.dead, err = deadletter.Open(ctx, dead); err != nil {
		return fmt.Errorf("open dead letters: %w", err)
	}
	jitter := rand.Float64 // it only lengthens a wait: a status has a least wait
	if cfg.Jitter < 0 {
		jitter = nil
	}
	retries := retrylog.Config{Engine: y.storage.Log, Meta: y.storage.Meta, Ladder: retry.Ladder(), Jitter: jitter, Spread: max(cfg.Jitter, 0), Log: log}
	if retries.Metrics, err = retrylog.NewMetrics(y.registry, retries.Ladder); err != nil {
		return err
	}
	delivers := delivery.Config{
		Meta: y.storage.Meta, Topics: defined, Broker: y.broker, Dead: y.dead,
		Sender: webhook.New(webhook.Config{
			Client: y.client, Broker: y.broker, Origin: origin, Timeout: cfg.Timeout, Late: cfg.LateWindow, Tracer: y.cfg.Tracer,
		}),
		Probation: retry.Probation{After: cfg.ProbationAfter, Cap: cfg.ProbationCap}, Workers: y.client.Seats(),
		Grace: min(y.cfg.Grace, deliveryGrace), Log: log, Metrics: y.registry, Notes: y.notes, Tracer: y.cfg.Tracer,
	}
	if y.shared() {
		delivers.OpenLogs = func(ctx context.Context, held shards.Held) (*retrylog.Logs, error) {
			own := retries
			own.Held = &held
			return retrylog.Open(ctx, own)
		}
	} else {
		if delivers.RetryLogs, err = retrylog.Open(ctx, retries); err != nil {
			return fmt.Errorf("open retry logs: %w", err)
		}
	}
	if y.delivery, err = delivery.Open(ctx, delivers); err != nil {
		return fmt.Errorf("open delivery: %w", err)
	}
	y.dead.RedriveTo(y.delivery.Redeliver)
	y.connections, y.condition = y.newConnections(), newCondition(y)
	return y.shareGrid()
}
