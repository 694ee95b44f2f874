package topics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/looks"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// Limits and defaults.
const (
	// MaxTopics is the most that a yard may have, MaxSubscriptions the most of one source.
	MaxTopics        = 10_000
	MaxSubscriptions = 20_000

	// DefaultRetention outlives the longest time to live, probation and dead-letter window.
	DefaultRetention        = 48 * time.Hour
	DefaultValidationWindow = 10 * time.Minute
)

// Broker is what the registry needs of the broker.
type Broker interface {
	Namespace() string
	Hub(name string) (broker.Hub, error)
	Partition(ctx context.Context, hub, partition string) (broker.PartitionInfo, error)
}

// Agreement is how a handshake ended.
type Agreement struct {
	// Agreed: events may go out. Awaiting: the endpoint answered, and somebody has to open the
	// validation URL. Neither: Why says what it did instead.
	Agreed, Awaiting bool
	Why              string
	// Rate is requests a minute; 0: any.
	Rate int
}

// Validator asks an endpoint whether it wants the events. code and url are what it is sent;
// topic is the source's resource id. It may take as long as its own time-outs allow.
type Validator interface {
	Validate(ctx context.Context, s Subscription, topic, code, url string) Agreement
}

// Config is what a registry works with.
type Config struct {
	// Engine keeps the topics' events, Meta the definitions; Broker knows the hubs. All three
	// are required; the registry closes none.
	Engine eventlog.Engine
	Meta   meta.Store
	Broker Broker
	// Validate may be nil in tests: everybody agrees.
	Validate Validator
	// CheckTarget says whether a dead-letter target may be used (folders!); CheckEndpoint whether
	// a webhook's URL may. Either may be nil: all may.
	CheckTarget   func(Target) error
	CheckEndpoint func(Subscription) error
	// ValidationURL makes the link that an endpoint's owner opens. Nil: there is none, and who
	// does not agree at once never does.
	ValidationURL func(s Subscription, token string) string
	// ValidationWindow is how long it is good; zero: 10 min.
	ValidationWindow time.Duration
	// MaxTimeToLive and MaxAttempts change the limits of retry policies; zero: 24 h and 30.
	// Retention is how long topics keep events; zero: 48 h, or a day more than MaxTimeToLive.
	MaxTimeToLive time.Duration
	MaxAttempts   int
	Retention     time.Duration
	// Quota bounds what is published to all topics; nil: nothing does. Nodes says how many nodes share
	// the topics' own quotas; nil: there is one.
	Quota *quota.Meter
	Nodes func() int
	// Looks makes fresh looks at what other nodes may have changed a moment ago; nil: there are none.
	Looks *looks.Looks
	// Log receives what changed; nil means slog.Default().
	Log *slog.Logger
	// Notes takes what becomes of topics and subscriptions; nil means nobody does.
	Notes activity.Notes
}

func (c Config) withDefaults() Config {
	c.ValidationWindow = cmp.Or(c.ValidationWindow, DefaultValidationWindow)
	c.Retention = cmp.Or(c.Retention, max(DefaultRetention, c.MaxTimeToLive+24*time.Hour))
	c.Log = cmp.Or(c.Log, slog.Default())
	if c.CheckTarget == nil {
		c.CheckTarget = func(Target) error { return nil }
	}
	if c.CheckEndpoint == nil {
		c.CheckEndpoint = func(Subscription) error { return nil }
	}
	if c.ValidationURL == nil {
		c.ValidationURL = func(Subscription, string) string { return "" }
	}
	return c
}

// Registry keeps definitions. All methods may be called by many goroutines at once.
//
// It is divided by what each part owns: the topics with their logs are the topicRegistry's, the
// subscriptions the Registry's own. Both are tables with locks of their own, and what they hold is
// shown to readers by one view. sources and rules own nothing that changes.
type Registry struct {
	*topicRegistry
	sources sources
	rules   rules

	subscriptions *mirror.Table[*record]
	validator     Validator
	validationURL func(s Subscription, token string) string
	window        time.Duration
}

// Open reads the definitions, makes YardEvents, and finishes deletions that were interrupted.
// It starts no goroutine; Run does the rest.
func Open(ctx context.Context, cfg Config) (*Registry, error) {
	if cfg.Engine == nil || cfg.Meta == nil || cfg.Broker == nil {
		return nil, errors.New("open topics: an engine, a meta store and a broker are required")
	}
	cfg = cfg.withDefaults()
	topics := &topicRegistry{engine: cfg.Engine, logs: eventlog.NewProvider(cfg.Engine), retention: cfg.Retention, quota: cfg.Quota, looks: cfg.Looks, log: cfg.Log}
	topics.view = newView(topics.openLog)
	topics.view.nodes = cfg.Nodes
	k := &Registry{
		topicRegistry: topics,
		sources:       sources{broker: cfg.Broker, namespace: cfg.Broker.Namespace(), view: topics.view},
		rules: rules{
			broker: cfg.Broker, limits: retry.Limits{MaxAttempts: cfg.MaxAttempts, TimeToLive: cfg.MaxTimeToLive},
			checkTarget: cfg.CheckTarget, checkEndpoint: cfg.CheckEndpoint,
		},
		validator:     cfg.Validate,
		validationURL: cfg.ValidationURL,
		window:        cfg.ValidationWindow,
	}
	topics.topics = mirror.New(mirror.Config[*topicRecord]{
		Store: cfg.Meta, Prefix: topicsPrefix, Name: "topics", Log: cfg.Log,
		Decode: k.sources.decodeTopic, Encode: encode[*topicRecord], Apply: topics.view.showTopics, Made: cfg.noteTopic,
	})
	k.subscriptions = mirror.New(mirror.Config[*record]{
		Store: cfg.Meta, Prefix: subscriptionsPrefix, Name: "subscriptions", Log: cfg.Log,
		Decode: k.sources.decodeSubscription, Encode: encode[*record], Apply: topics.view.showSubscriptions, Made: cfg.noteSubscription,
	})
	topics.subscriptions = k.subscriptions
	if err := k.load(ctx); err != nil {
		return nil, fmt.Errorf("open topics: %w", err)
	}
	return k, nil
}

// leftoverAge is how old a subscription has to be before it is removed because its topic is not
// there: the topic may be new, and not known to this node yet.
const leftoverAge = 24 * time.Hour

// load reads subscriptions before topics: what names a topic that is not there then was left
// behind by the topic's deletion. Nobody sees such leftovers. They are removed to keep nothing for
// ever, and what fails is left to the next start.
func (k *Registry) load(ctx context.Context) error {
	if err := k.subscriptions.Load(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{k.topics.Load, k.provideAll, k.resumeDeletions} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	logs := k.view.live.Load().logs
	left := slices.DeleteFunc(k.subscriptions.Items(), func(s mirror.Item[*record]) bool {
		_, there := logs[s.Value.SourceID]
		return there || s.Value.Source.Hub != "" || time.Since(s.Value.Updated) < leftoverAge
	})
	if err := k.subscriptions.DeleteAll(ctx, left); err != nil {
		k.log.Warn("subscriptions of deleted topics are still stored, the next start tries again", "error", err)
	}
	if _, err := k.Topic(YardEvents); err == nil {
		return nil
	}
	_, err := k.CreateTopic(ctx, TopicConfig{Topic{Name: YardEvents}})
	if errors.Is(err, ErrTopicExists) { // another node was the first
		if err = k.topics.Load(ctx); err == nil {
			err = k.provideAll(ctx)
		}
	}
	return err
}

// Run follows what other nodes change, has logs provided that the engine could not provide before,
// gives up handshakes whose time is over, and ends subscriptions that expire, until ctx ends, and
// returns nil then.
func (k *Registry) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var parts sync.WaitGroup
	var errs [2]error
	for i, run := range []func(context.Context) error{k.topics.Run, k.subscriptions.Run} {
		parts.Go(func() {
			errs[i] = run(ctx)
			stop()
		})
	}
	parts.Go(func() { k.keepTime(ctx) })
	parts.Go(func() { k.logs.Run(ctx, k.unprovided) })
	parts.Wait()
	return errors.Join(errs[:]...)
}

// Snapshot is everything at one moment. Nothing in it may be changed.
//
// Of topics that are being deleted, and of those that this node has not heard of yet, neither
// the topic nor a subscription is in it. Subscriptions of hubs always are: HubID says whether the
// hub is still the one they were made for.
type Snapshot struct {
	// Topics by folded name, Subscriptions by ID.
	Topics        map[string]*Topic
	Subscriptions Index
	// BySource are the subscriptions of a source, by its SourceID, in order of creation.
	BySource map[string][]*Subscription
}

// Snapshot gives the present one; it costs nothing.
func (k *Registry) Snapshot() *Snapshot { return &k.view.live.Load().Snapshot }

// OnChange has f called, quickly and without changing anything, after each change.
func (k *Registry) OnChange(f func()) (stop func()) { return k.view.listeners.Add(f) }

// now has the precision that makes an order of creation, and none that storing loses.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
