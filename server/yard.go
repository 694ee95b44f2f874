package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/access/oidc"
	"github.com/eventyard/eventyard/internal/hubs/blob"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/service"
	"github.com/eventyard/eventyard/internal/storage"
	"github.com/eventyard/eventyard/internal/transport/certs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// yard is what stands behind the listeners.
type yard struct {
	registry  *prometheus.Registry
	storage   *storage.Storage
	broker    *broker.Broker
	groups    *groups.Registry
	access    *access.Registry
	bearer    *oidc.Verifier // nil where nobody's tokens are taken
	passes    *passes
	certs     *certs.Store // nil where no listener has TLS
	blobs     *blob.Service
	grid      gridYard
	functions functionYard
	secrets   secrets
	root      *rootString
	reported  Access
}

// openYard opens storage, broker, access and certificates, and sees to it that the
// configured hubs and policies exist.
func openYard(ctx context.Context, cfg Config, open openListeners) (_ *yard, err error) {
	y := &yard{registry: prometheus.NewRegistry()}
	y.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	defer func() {
		if err != nil {
			err = errors.Join(err, y.close())
		}
	}()
	for _, step := range []func() error{
		func() error { return y.openStorage(ctx, cfg) },
		func() error { return y.openBroker(ctx, cfg) },
		func() error { return y.openGroups(cfg) },
		func() error { return y.openAccess(ctx, cfg, open) },
		func() error { return y.openCerts(cfg, open) },
		func() error { return y.openBlobs(cfg) },
		func() error { return y.openGrid(ctx, cfg, open) },
		func() error { return y.openFunctions(ctx, cfg, open) },
		func() error { return y.describeAccess(ctx, cfg, open) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return y, nil
}

func (y *yard) openBroker(ctx context.Context, cfg Config) (err error) {
	y.broker, err = broker.Open(ctx, broker.Config{
		Engine: y.storage.Log, Meta: y.storage.Meta, Namespace: cfg.Namespace, Log: cfg.Log, Metrics: y.registry,
	})
	if err != nil {
		return err
	}
	for _, h := range cfg.Hubs {
		if _, err := y.broker.EnsureHub(ctx, h.config(), h.Groups); err != nil {
			return fmt.Errorf("configured hub %s: %w", h.Name, err)
		}
	}
	return nil
}

// openGroups makes the registry of leases and checkpoints, which has nothing to close.
func (y *yard) openGroups(cfg Config) (err error) {
	y.groups, err = groups.New(groups.Config{Meta: y.storage.Meta, Broker: y.broker, Log: cfg.Log, Metrics: y.registry})
	return err
}

// openCerts opens the certificates, in which clients find the listeners by the addresses
// that these were given and those that they are bound to.
func (y *yard) openCerts(cfg Config, open openListeners) (err error) {
	var addresses []string
	for _, listener := range open {
		if listener.TLS {
			addresses = append(addresses, listener.Address)
		}
	}
	if len(addresses) == 0 {
		return nil
	}
	for _, listener := range cfg.listeners() {
		if listener.TLS && listener.Open() {
			addresses = append(addresses, listener.Address)
		}
	}
	y.certs, err = certs.Open(certs.Config{
		Dir: filepath.Join(cfg.DataDir, CertificateDir), Host: cfg.Host, Addresses: addresses, CertFile: cfg.TLS.CertFile,
		KeyFile: cfg.TLS.KeyFile, ClientCAFile: cfg.TLS.ClientCAFile, Log: cfg.Log,
	})
	return err
}

// tlsConfig is that of the listeners with TLS; nil where there are none.
func (y *yard) tlsConfig() *tls.Config {
	if y.certs == nil {
		return nil
	}
	return y.certs.TLS()
}

// openStorage opens what the two contracts of storage stand for.
func (y *yard) openStorage(ctx context.Context, cfg Config) (err error) {
	y.storage, err = storage.Open(ctx, storage.Disk(cfg.DataDir), cfg.storage(y.registry))
	return err
}

// parts is what runs behind the listeners, in the order of dependence.
func (y *yard) parts(cfg Config) []service.Part {
	return slices.Concat([]service.Part{
		{Name: "engine", Run: y.storage.Log.Run},
		{Name: "broker", Run: y.broker.Run},
		{Name: "access", Run: y.access.Run},
		y.blobPart(),
	}, y.gridParts(cfg), y.functionParts())
}

// close frees the folder. Nobody waits for the issuer of tokens by then.
func (y *yard) close() error {
	if y.bearer != nil {
		y.bearer.Close()
	}
	if y.grid.client != nil {
		y.grid.client.Close()
	}
	if y.storage == nil {
		return nil
	}
	return y.storage.Close()
}
