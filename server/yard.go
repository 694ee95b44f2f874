package server

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/api/define"
	"github.com/eventyard/eventyard/internal/api/eventgrid"
	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/internal/functions/notify"
	"github.com/eventyard/eventyard/internal/functions/poison/box"
	"github.com/eventyard/eventyard/internal/functions/runner"
	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/handshake"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/access/oidc"
	"github.com/eventyard/eventyard/internal/hubs/blob"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/kafka/brokers"
	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/kafka/transactions"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/service"
	"github.com/eventyard/eventyard/internal/storage"
	"github.com/eventyard/eventyard/internal/transport/certs"
	"github.com/eventyard/eventyard/internal/transport/egress"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

const (
	// usualRootKeys leaves it as it is who may use the blob endpoint.
	usualRootKeys = "auto"
	// blobDir has the larger bodies of blobs, in the data folder.
	blobDir = "blobs"
	// deliveryGrace is how long requests to endpoints may go on when the yard stops, after the
	// requests of its own clients have ended.
	deliveryGrace = 5 * time.Second
	// functionGrace is how long calls of functions may go on when the yard stops; their events are
	// handled again after the next start.
	functionGrace = 5 * time.Second
)

// yard is everything behind the listeners.
type yard struct {
	cfg      Config
	open     openListeners
	registry *prometheus.Registry
	storage  *storage.Storage
	nodes    *cluster.Nodes
	brokers  *brokers.Brokers // the nodes, to Kafka clients
	records

	quota        *quota.Meter // of all that is published
	broker       *broker.Broker
	groups       *groups.Registry
	kafkaGroups  *kafkaCoordinator
	transactions *transactions.Coordinator
	access       *access.Registry
	bearer       *oidc.Verifier // nil without an issuer
	passes       *passes
	certs        *certs.Store // nil without a TLS listener
	blobs        *blob.Service
	secrets      secrets
	root         *rootString
	reported     Access

	client   *egress.Client
	topics   *handshake.Registry
	dead     *deadletter.Service
	delivery *delivery.Service
	grid     gridServices // both, of all nodes

	box     *box.Box
	runner  *runner.Registry
	notices *notify.Service

	figures *figures
	survey  *survey
}

// openYard opens everything in the order of dependence, and creates what the configuration says
// must exist. Subscriptions come later, in ensureSubscriptions, since their endpoints are asked
// first.
func openYard(ctx context.Context, cfg Config, open openListeners) (_ *yard, err error) {
	y := &yard{cfg: cfg, open: open, registry: prometheus.NewRegistry()}
	y.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	defer func() {
		if err != nil {
			err = errors.Join(err, y.close())
		}
	}()
	y.figures = &figures{engine: &engineCounters{y.registry, map[string]prometheus.Counter{}}}
	if y.storage, err = cfg.openStorage(ctx, y.figures.engine); err != nil {
		return nil, err
	}
	served, err := y.servesOthers(ctx)
	if err != nil {
		return nil, err
	}
	y.storage.Local = y.storage.Local && !served // by other nodes it is reached from elsewhere
	if err := y.checkDevelopment(); err != nil {
		return nil, err
	}
	if y.nodes, err = y.join(ctx); err != nil {
		return nil, err
	}
	if y.brokers, err = brokers.Open(ctx, brokers.Config{Nodes: y.nodes, Store: y.storage.Meta, Log: cfg.Log}); err != nil {
		return nil, err
	}
	if y.records, err = openRecords(cfg, y.storage, y.registry); err != nil {
		return nil, err
	}
	ctx = activity.By(ctx, byConfiguration, "")
	if err := y.openHubs(ctx); err != nil {
		return nil, err
	}
	if err := y.openGrid(ctx); err != nil {
		return nil, err
	}
	if err := y.openFunctions(ctx); err != nil {
		return nil, err
	}
	y.survey = y.newSurvey()
	y.openFigures()
	y.registerYard()
	return y, y.describeAccess(ctx)
}

// development: nobody beyond this machine can reach the yard, nor what it keeps everything in.
func (y *yard) development() bool { return y.open.onLoopback() && y.storage.Local }

// checkDevelopment refuses what is for development only where storage can be reached by others. That
// the listeners are on loopback was found out when they were opened.
func (y *yard) checkDevelopment() error {
	if y.development() || !y.cfg.AcceptAnyJWT && y.cfg.DevStorage == Off {
		return nil
	}
	return errors.New("every token, or a key that everybody knows, is taken only in development: the servers that keep the data have to be on loopback, too, and no node of the yard may have been one that others can reach")
}

// openHubs opens hubs, groups, policies, certificates and blobs.
func (y *yard) openHubs(ctx context.Context) (err error) {
	cfg, log := y.cfg, y.cfg.Log
	y.quota = quota.NewMeter("the yard", "events").Among(y.nodes.Count)
	y.quota.Set(quota.Limit{Events: max(cfg.Quota.Events, 0), Bytes: max(cfg.Quota.Bytes, 0)}, time.Now())
	y.broker, err = broker.Open(ctx, broker.Config{
		Engine: y.storage.Log, Meta: y.storage.Meta, Namespace: cfg.Namespace, Nodes: y.nodes, Quota: y.quota,
		Translators: record.Translators(), Log: log, Metrics: y.registry, Notes: y.notes,
	})
	if err != nil {
		return err
	}
	for _, h := range cfg.Hubs {
		if _, err := y.broker.EnsureHub(ctx, h.config(), h.Groups); err != nil {
			return fmt.Errorf("configured hub %s: %w", h.Name, err)
		}
	}
	if err := y.openBlobs(); err != nil {
		return err
	}
	y.groups, err = groups.New(groups.Config{
		Meta: y.storage.Meta, Broker: y.broker, Circuit: circuit.ByInstance, Foreign: y.blobCheckpoints, Log: log, Metrics: y.registry, Notes: y.notes,
	})
	if err != nil {
		return err
	}
	if err := y.openKafkaGroups(); err != nil {
		return err
	}
	y.passes = &passes{secret: "inside." + crand.Text() + crand.Text()}
	if cfg.OIDC.Issuer != "" {
		if y.bearer, err = oidc.New(oidc.Config{Issuer: cfg.OIDC.Issuer, Audience: cfg.OIDC.Audience, Log: log}); err != nil {
			return err
		}
		y.passes.others = y.bearer
	}
	y.access, err = access.Open(ctx, access.Config{
		Meta: y.storage.Meta, Development: y.development(), AnyBearer: cfg.AcceptAnyJWT, Bearer: y.passes, Issuer: y.bearer != nil,
		FailurePace: cfg.failurePace, Nodes: y.nodes.Count, Looks: y.newLooks(), Log: log, Notes: y.notes,
		Hub: func(name string) (created time.Time, exists bool) {
			hub, err := y.broker.Hub(name)
			return hub.Created, err == nil
		},
		FindHub: y.findHub,
	})
	if err != nil {
		return err
	}
	if mode := cfg.BlobRootKeys; mode != usualRootKeys && y.access.Account().Primary != "" { // or a later start does so
		if _, err := y.access.AllowRootKeys(ctx, mode == "on"); err != nil {
			return err
		}
	}
	// Before the configured policies: only what exists by now could have been read.
	if y.secrets, err = y.openSecrets(ctx); err != nil {
		return err
	}
	for _, p := range cfg.Policies {
		if err := y.ensurePolicy(ctx, p); err != nil {
			return fmt.Errorf("configured policy %s: %w", p.Name, err)
		}
	}
	addresses := y.open.tlsAddresses(cfg)
	certificates := certs.Config{
		Host: cfg.Host, Addresses: addresses,
		CertFile: cfg.TLS.CertFile, KeyFile: cfg.TLS.KeyFile, ClientCAFile: cfg.TLS.ClientCAFile, Log: log, Replaced: y.noteCertificate,
	}
	if folder := y.storage.Folder; folder != "" {
		certificates.Dir = filepath.Join(folder, CertificateDir)
	} else {
		certificates.Authority = authorityEntries{y.storage.Meta}
	}
	if keys := y.storage.Keys; keys != nil {
		certificates.Keys = keys
	}
	certs.SealKeys(certificates)
	if len(addresses) > 0 {
		y.certs, err = certs.Open(certificates)
	}
	return err
}

// openFunctions opens poison events, functions and the notices about their circuits.
func (y *yard) openFunctions(ctx context.Context) (err error) {
	cfg, log := y.cfg, y.cfg.Log
	y.box = box.New(box.Config{Broker: y.broker, Meta: y.storage.Meta, Log: log})
	instance, err := cfg.instance(y.storage.Folder)
	if err != nil { // costs a few seconds after a crash, no more
		log.Warn("this yard's functions wait for their leases to run out after a crash", "error", err)
	}
	smtp := cfg.Notify.SMTP
	mail := notify.SMTP{Addr: smtp.Addr, From: smtp.From, Username: smtp.Username, Password: smtp.Password, TLS: smtp.TLS}
	if smtp.CAFile != "" {
		pem, err := os.ReadFile(smtp.CAFile)
		if err != nil {
			return fmt.Errorf("notify.smtp.caFile: %w", err)
		}
		mail.CA = string(pem)
	}
	// Functions check the targets of notices, which need the circuits of functions to be open.
	notices := notify.Config{
		Topics: y.topics.Registry, Meta: y.storage.Meta, Client: y.client, SMTP: mail,
		Link: func() string { return y.open.resumeBase(cfg) }, LinkLife: cfg.Notify.LinkLife, Log: log, Metrics: y.registry, Notes: y.notes,
	}
	y.runner, err = runner.Open(ctx, runner.Config{
		Meta: y.storage.Meta, Broker: y.broker, Groups: y.groups, Box: y.box,
		HTTP: &http.Client{
			Transport: y.client.Transport(),
			// A program that was moved is to be named where it is.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		CheckEndpoint: func(url string) error { return y.client.Check(egress.Endpoint{URL: url}) },
		CheckTarget:   notices.CheckTarget,
		Targets:       cfg.Notify.To,
		Topics:        y.topics.Registry,
		CheckTopic:    y.checkPoisonTopic,
		Instance:      instance, Stop: min(max(cfg.Grace/2, time.Second), functionGrace), Log: log, Metrics: y.registry, Notes: y.notes, Tracer: cfg.Tracer,
	})
	if err != nil {
		return fmt.Errorf("open functions: %w", err)
	}
	y.calls, notices.Circuits = y.newCalls(), y.runner
	if y.notices, err = notify.Open(ctx, notices); err != nil {
		return fmt.Errorf("open notices: %w", err)
	}
	for _, target := range cfg.Notify.To {
		if err := notices.CheckTarget(target); err != nil {
			return fmt.Errorf("notify.to: %w", err)
		}
	}
	for _, f := range cfg.Functions {
		var d runner.Definition
		err := define.Apply(admin.FunctionRequest(f), &d)
		if err == nil {
			err = y.runner.Ensure(ctx, d)
		}
		if err != nil {
			return fmt.Errorf("configured function %s: %w", f.Name, err)
		}
	}
	return nil
}

// checkPoisonTopic says why poison cannot go to a topic.
func (y *yard) checkPoisonTopic(name string) error {
	t, err := y.topics.Topic(name)
	if err == nil && t.Name == topics.YardEvents {
		err = fmt.Errorf("%w: only the yard publishes there", topics.ErrReserved)
	}
	return err
}

// validationURL is the link that the owner of an endpoint opens to agree; empty where no listener
// could serve it.
func (y *yard) validationURL(s topics.Subscription, token string) string {
	base := y.open.linkBase(y.cfg)
	if base == "" {
		return ""
	}
	return base + eventgrid.ValidationPath(s.Source.Topic, s.ID, token)
}

// publishURL is where events of a topic are posted to.
func (y *yard) publishURL(r *http.Request, topic string, tls bool) string {
	return y.open.publishURL(y.cfg, r, topic, tls)
}

// parts is what runs, in the order of dependence: the last stops first. Functions call programs,
// which may call the listeners, so functions stop before these.
func (y *yard) parts(listeners service.Part) []service.Part {
	return []service.Part{
		{Name: "engine", Run: y.storage.Log.Run},
		{Name: "nodes", Run: y.nodes.Run},
		{Name: "entries", Run: y.tidyEntries},
		{Name: "Kafka brokers", Run: y.brokers.Run},
		{Name: "activity", Run: lookout{y.records, y.nodes, y.storage.DiskFolder, y.cfg.Version}.run},
		{Name: "trial writes", Run: y.trial.run},
		{Name: "storage checks", Run: y.condition.checks.run},
		{Name: "room", Run: y.condition.room.run},
		{Name: "storage", Run: y.watchStorage},
		{Name: "broker", Run: y.broker.Run},
		{Name: "Kafka groups", Run: y.kafkaGroups.Run},
		{Name: "Kafka transactions", Run: y.transactions.Run},
		{Name: "access", Run: y.access.Run},
		{Name: "blobs", Run: y.blobs.Run},
		{Name: "topics", Run: y.topics.Registry.Run},
		{Name: "deletion notices", Run: y.topics.Run},
		{Name: "dead letters", Run: y.dead.Run},
		{Name: "delivery", Run: y.delivery.Run},
		{Name: "placement", Run: y.runPlacement},
		{Name: "configured subscriptions", Run: y.ensureSubscriptions},
		{Name: "notices", Run: y.notices.Run},
		{Name: "series", Run: y.figures.sampler.Run},
		{Name: "survey", Run: y.survey.run},
		listeners,
		{Name: "functions", Run: y.runner.Run},
	}
}

// close frees the storage.
func (y *yard) close() error {
	if y.bearer != nil {
		y.bearer.Close()
	}
	if y.client != nil {
		y.client.Close()
	}
	if y.storage == nil {
		return nil
	}
	return y.storage.Close()
}
