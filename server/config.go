package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/service"
	"github.com/eventyard/eventyard/internal/storage"
	"github.com/eventyard/eventyard/internal/transport/admission"
	"github.com/eventyard/eventyard/tracing"
	"github.com/prometheus/client_golang/prometheus"
)

// Off, in place of an address, closes a listener.
const Off = config.Off

// DefaultRetentionAge is how long a hub keeps its events that says nothing else.
const DefaultRetentionAge = broker.DefaultRetentionAge

// Config says how a yard is run. The zero value works: it keeps its data in
// eventyard-data in the working folder and listens on loopback, at the usual ports.
type Config struct {
	// DataDir is the folder that holds everything. It is made if it is not there, for
	// its owner only. Empty means eventyard-data.
	DataDir string
	// Sync says when an event counts as stored: always (synced to disk), interval or
	// os. Empty means always.
	Sync string
	// SyncInterval is the longest an event waits for its sync when Sync is interval;
	// zero means 1 s.
	SyncInterval time.Duration
	// SegmentBytes is the size of a partition's files; zero means 64 MiB.
	SegmentBytes int64
	// Secrets is where the key comes from that seals secrets in DataDir.
	Secrets Secrets
	// Engine is where the yard keeps everything that several nodes share: NATS servers, as
	// nats://HOST:PORT,HOST:PORT?yard=NAME&replicas=3. Empty, or disk, means DataDir.
	Engine string
	// Node is the name of this process among the nodes that share a yard; on one machine it says
	// nothing. Empty means this machine's name.
	Node string
	// NATSUnsafe starts on servers that may lose what they acknowledge.
	NATSUnsafe bool
	// Peer runs one of the yard's NATS servers inside this process, which keeps what it has in DataDir;
	// then there is no other Engine, and Node and Secrets are those of the bundle.
	Peer Peer

	// AMQP, AMQPS, HTTP, HTTPS, Kafka and Kafkas are the addresses of the listeners, or Off. Port 0 picks
	// a free one. Empty means 127.0.0.1 with port 5672, 5671, 8080, 8443, 9092 and 9093.
	AMQP, AMQPS, HTTP, HTTPS, Kafka, Kafkas string
	// KafkaAdvertise and KafkasAdvertise are where clients of these listeners are led, as host:port. Empty
	// means the name that they have asked for with TLS, Host, or the address that they have connected to; of
	// several nodes, Host, the address of the listener, or this machine's name.
	KafkaAdvertise, KafkasAdvertise string
	// KafkaBrokers is which brokers Kafka clients hear of where several nodes share the yard: all, which is each
	// node that they can reach, or one, for nodes behind a TCP balancer. Empty means all.
	KafkaBrokers string
	// KafkaAutoCreate has Kafka clients that manage the namespace create topics by naming them. On loopback, where nobody is
	// asked who he is, everybody does.
	KafkaAutoCreate bool
	// DevStorage is the address of a listener in the place of the official storage emulator, whose
	// key everybody knows. It is refused when any listener is beyond loopback. Empty means Off.
	DevStorage string
	// AllowPlaintext lets the listeners without TLS listen beyond loopback.
	AllowPlaintext bool
	// AMQPIdleTimeout is how long an AMQP client may be silent; zero means 60 s.
	AMQPIdleTimeout time.Duration
	// AMQPMaxConnections at once; zero means 10,000.
	AMQPMaxConnections int
	// Quota is what all hubs and topics take together in a second. Zero fields mean a default that
	// is far above what a machine stores, those below zero no limit.
	Quota Quota
	// HTTPMaxConnections and KafkaMaxConnections of clients at once; zero means 10,000. Of all three there
	// are fewer where the process may not have so many descriptors.
	HTTPMaxConnections, KafkaMaxConnections int

	// Host is the name under which others reach the yard: in its own certificate and in
	// connection strings. Empty means the address of the listener, or this machine's name.
	Host string
	TLS  TLS
	OIDC OIDC
	// BlobRootKeys says whether the keys of the root policy open blobs, besides the blob account's
	// own: on, off, or auto, as it was left at run time. Empty means auto.
	BlobRootKeys string
	// AcceptAnyJWT takes every bearer token with all rights. It is refused when any listener
	// is beyond loopback.
	AcceptAnyJWT bool

	// TraceURL is where people look at a trace, with {trace} for its id; empty: nothing is linked to.
	TraceURL string

	// PublicURL is where others reach the yard's HTTP listener, for links, for the endpoints of topics and
	// for the console's way back from an issuer. Empty means the address of the listener.
	PublicURL string

	// Namespace is the name that clients find the hubs under; empty means eventyard.
	Namespace string
	// Hubs must exist: what is missing is created before the listeners open.
	Hubs []Hub
	// Policies must exist: what is missing is created before the listeners open, what
	// differs is made as it stands here.
	Policies []Policy
	// Grid says how events are pushed to webhooks. Topics and Subscriptions must exist: what is
	// missing is created, topics before the listeners open, subscriptions once they are.
	Grid          Grid
	Topics        []Topic
	Subscriptions []Subscription
	// Functions must exist: what is missing is created before the listeners open, what differs is
	// made as it stands here. Notify says who is notified when one of them stops.
	Functions []Function
	Notify    Notify

	// Grace is how long a stopping yard lets requests finish; zero means 8 s, negative not at all.
	Grace time.Duration
	// Version is what the yard says it is; empty means development.
	Version string
	// Log takes what an operator should know; nil means slog.Default().
	Log *slog.Logger
	// Tracer makes spans of what is done with events; nil means that there are none. Traces are carried
	// without it, too.
	Tracer tracing.Tracer

	// descriptors is how many the process may have; zero means its limit. Set by tests.
	descriptors int
	// failurePace is of wrong keys; zero means the usual one. Set by tests.
	failurePace quota.Rate
	// share gives storage that other nodes use as well; nil means that it is in DataDir. Set by tests.
	share func(context.Context, storage.Config) (*storage.Storage, error)
}

// shares divides the descriptors of the process: storage comes before connections. Its clients are
// those of AMQP, of HTTP and of Kafka.
func (c Config) shares() admission.Shares {
	return admission.Divide(cmp.Or(c.descriptors, descriptorLimit()), c.AMQPMaxConnections, c.HTTPMaxConnections, c.kafkaClients())
}

// kafkaClients is how many connections of Kafka clients there may be: none take descriptors from others where
// there is no listener for them.
func (c Config) kafkaClients() int {
	if c.Kafka == Off && c.Kafkas == Off {
		return 0
	}
	return c.KafkaMaxConnections
}

// fewConnections of a kind is what a yard should not be left with unawares.
const fewConnections = 64

// lacks: there are fewer connections than somebody asked for, or few.
func (c Config) lacks(s admission.Shares) bool {
	usual := config.Default()
	lack := func(have, want, usual int) bool { return have < want && (want != usual || have < fewConnections) }
	return lack(s.Clients[0], c.AMQPMaxConnections, usual.AMQPMaxConnections) ||
		lack(s.Clients[1], c.HTTPMaxConnections, usual.HTTPMaxConnections) ||
		lack(s.Clients[2], c.kafkaClients(), usual.KafkaMaxConnections)
}

// Secrets says where the secret key comes from: 32 random bytes as base64, or several lines of them,
// the newest first, which seals; the others only open what was sealed before. At most one is given;
// none means the file secret.key in DataDir, which is made.
type Secrets struct {
	// Key is the key itself, KeyFile the file that holds it, KeyCommand a command of the shell that
	// prints it.
	Key, KeyFile, KeyCommand string
}

// Rotate puts a new key before the old one in the file that holds it, and gives its name. The next
// start seals everything with it. The error is fs.ErrNotExist where there is no file yet.
func (s Secrets) Rotate(dataDir string) (file string, err error) {
	return storage.SecretKey(s).Rotate(Config{DataDir: dataDir}.withDefaults().DataDir)
}

// CheckFile reads the file that was named, as a start does; without one it finds nothing wrong.
func (s Secrets) CheckFile(ctx context.Context) error { return storage.SecretKey(s).CheckFile(ctx) }

// TLS names the files with the certificates of the listeners with TLS.
type TLS struct {
	// CertFile and KeyFile are PEM; empty: the yard makes its own.
	CertFile, KeyFile string
	// ClientCAFile has the authorities of client certificates; empty: none is asked for.
	ClientCAFile string
}

// OIDC says whose bearer tokens are taken; the zero value: nobody's.
type OIDC struct {
	Issuer, Audience string
	// ClientID is what the issuer knows the console as; empty: nobody signs in there by it. Scope is
	// what is asked for besides openid, with blanks between.
	ClientID, Scope string
}

// Hub is a hub that must exist.
type Hub struct {
	Name string
	// Partitions cannot be changed once the hub exists; zero means 4, or what it has.
	Partitions int
	// Retention says when events are removed; nil means after DefaultRetentionAge, or as it is.
	Retention *Retention
	// Quota bounds what is published in a second; nil means no limit, or as it is, and so do its nil
	// fields.
	Quota *admin.QuotaRequest
	// Groups are consumer groups besides $Default.
	Groups []string
}

// Quota is what may be published in a second; zero means any number.
type Quota struct{ Events, Bytes int64 }

// Retention says when events may be removed. Zero keeps forever; nil means as usual, or as it is.
type Retention struct {
	Age *time.Duration
	// Bytes is for each partition.
	Bytes *int64
}

func (c Config) withDefaults() Config {
	usual := config.Default()
	c.DataDir, c.Sync = cmp.Or(c.DataDir, usual.Data), cmp.Or(c.Sync, usual.Sync)
	c.Namespace, c.Version = cmp.Or(c.Namespace, usual.Namespace), cmp.Or(c.Version, "development")
	c.AMQP, c.AMQPS = cmp.Or(c.AMQP, usual.AMQP), cmp.Or(c.AMQPS, usual.AMQPS)
	c.HTTP, c.HTTPS = cmp.Or(c.HTTP, usual.HTTP), cmp.Or(c.HTTPS, usual.HTTPS)
	c.Kafka, c.Kafkas = cmp.Or(c.Kafka, usual.Kafka), cmp.Or(c.Kafkas, usual.Kafkas)
	c.KafkaBrokers = cmp.Or(c.KafkaBrokers, usual.KafkaBrokers)
	c.DevStorage = cmp.Or(c.DevStorage, usual.DevStorage)
	c.AMQPIdleTimeout = cmp.Or(c.AMQPIdleTimeout, time.Duration(usual.AMQPIdleTimeout))
	c.AMQPMaxConnections = cmp.Or(c.AMQPMaxConnections, usual.AMQPMaxConnections)
	c.HTTPMaxConnections = cmp.Or(c.HTTPMaxConnections, usual.HTTPMaxConnections)
	c.KafkaMaxConnections = cmp.Or(c.KafkaMaxConnections, usual.KafkaMaxConnections)
	c.Quota.Events = cmp.Or(c.Quota.Events, int64(usual.Quota.Events))
	c.Quota.Bytes = cmp.Or(c.Quota.Bytes, int64(usual.Quota.Bytes))
	c.BlobRootKeys = cmp.Or(c.BlobRootKeys, usual.Blob.RootKeys)
	c.Grace = cmp.Or(c.Grace, service.DefaultGrace)
	c.Log = cmp.Or(c.Log, slog.Default())
	return c
}

func (c Config) validate() error {
	if err := errors.Join(c.storage(nil).Check(), c.validateNode(), c.validatePeer()); err != nil {
		return err
	}
	for _, h := range c.Hubs {
		if err := h.validate(); err != nil {
			return err
		}
	}
	// The rest is checked in the words of the settings; what has no place here has its
	// default there.
	settings := config.Default()
	settings.AMQP, settings.AMQPS, settings.HTTP, settings.HTTPS = c.AMQP, c.AMQPS, c.HTTP, c.HTTPS
	settings.Kafka, settings.Kafkas, settings.DevStorage = c.Kafka, c.Kafkas, c.DevStorage
	settings.KafkaAdvertise, settings.KafkasAdvertise, settings.KafkaBrokers = c.KafkaAdvertise, c.KafkasAdvertise, c.KafkaBrokers
	settings.KafkaAutoCreate = c.KafkaAutoCreate
	settings.AllowPlaintext, settings.AcceptAnyJWT = c.AllowPlaintext, c.AcceptAnyJWT
	settings.AMQPIdleTimeout, settings.AMQPMaxConnections = quantity.Duration(c.AMQPIdleTimeout), c.AMQPMaxConnections
	settings.HTTPMaxConnections, settings.KafkaMaxConnections = c.HTTPMaxConnections, c.KafkaMaxConnections
	settings.Host, settings.TLS, settings.OIDC = c.Host, config.TLS(c.TLS), config.OIDC(c.OIDC)
	settings.PublicURL, settings.Blob.RootKeys, settings.TraceURL = c.PublicURL, c.BlobRootKeys, c.TraceURL
	for _, t := range c.Topics {
		settings.Topics = append(settings.Topics, admin.TopicRequest(t))
	}
	for _, s := range c.Subscriptions {
		settings.Subscriptions = append(settings.Subscriptions, admin.SubscriptionRequest(s))
	}
	for _, f := range c.Functions {
		settings.Functions = append(settings.Functions, admin.FunctionRequest(f))
	}
	for _, p := range c.Policies {
		settings.Policies = append(settings.Policies, admin.PolicyRequest(p))
	}
	settings.Notify = c.Notify.settings()
	if err := settings.Check(); err != nil {
		return err
	}
	return errors.Join(c.validateGrid(), c.validateFunctions())
}

// storage is how events and definitions are kept.
func (c Config) storage(metrics prometheus.Registerer) storage.Config {
	return storage.Config{
		Sync: c.Sync, SyncInterval: c.SyncInterval, SegmentBytes: c.SegmentBytes, OpenSegments: c.shares().Storage,
		SecretKey: storage.SecretKey(c.Secrets), Own: ownNames(), Program: "eventyard " + c.Version,
		NATS: storage.NATS{Node: c.nodeName(), Unsafe: c.NATSUnsafe}, Peer: c.Peer.storage(),
		Log: c.Log, Metrics: metrics,
	}
}

// openStorage opens what the yard keeps everything in.
func (c Config) openStorage(ctx context.Context, metrics prometheus.Registerer) (*storage.Storage, error) {
	if c.share != nil {
		return c.share(ctx, c.storage(metrics))
	}
	return storage.Open(ctx, c.storageURL(), c.storage(metrics))
}

// storageURL is where the storage is.
func (c Config) storageURL() string {
	if c.Peer.Bundle != nil {
		return storage.PeerOf(c.DataDir)
	}
	if c.Engine == "" || c.Engine == "disk" {
		return storage.Disk(c.DataDir)
	}
	return c.Engine
}

// ReservedNames are the first path segments that the yard keeps for itself: no hub has
// such a name, nor one that begins with it and a slash.
func ReservedNames() []string { return broker.ReservedNames() }

func (h Hub) validate() error {
	first, _, _ := strings.Cut(strings.ToLower(h.Name), "/")
	switch {
	case !config.IsHubName(h.Name):
		return fmt.Errorf("hub %q: %w", h.Name, broker.ErrInvalidName)
	case slices.Contains(broker.ReservedNames(), first):
		return fmt.Errorf("hub %q: %w: %q is a path of the yard itself", h.Name, broker.ErrReservedName, first)
	case h.Partitions < 0 || h.Partitions > broker.MaxPartitions:
		return fmt.Errorf("hub %q with %d partitions: %w", h.Name, h.Partitions, broker.ErrInvalidPartitionCount)
	}
	return nil
}

func (h Hub) config() broker.HubConfig {
	cfg := broker.HubConfig{Name: h.Name, Partitions: h.Partitions}
	if h.Retention != nil {
		cfg.Age, cfg.Bytes = h.Retention.Age, h.Retention.Bytes
	}
	cfg.QuotaEvents, cfg.QuotaBytes = spec.QuotaParts(h.Quota)
	return cfg
}
