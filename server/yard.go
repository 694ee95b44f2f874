package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/eventyard/eventyard/internal/broker"
	"github.com/eventyard/eventyard/internal/engine/bolt"
	"github.com/eventyard/eventyard/internal/engine/disk"
	"github.com/eventyard/eventyard/internal/service"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metaName is the meta store's file in the data folder.
const metaName = "meta.db"

// yard is what stands behind the doors.
type yard struct {
	registry *prometheus.Registry
	engine   *disk.Engine
	meta     *bolt.Store
	broker   *broker.Broker
}

// openYard opens storage and broker and sees to it that the configured hubs exist.
func openYard(ctx context.Context, cfg Config) (_ *yard, err error) {
	if err := makeFolder(cfg.DataDir); err != nil {
		return nil, err
	}
	y := &yard{registry: prometheus.NewRegistry()}
	y.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	defer func() {
		if err != nil {
			err = errors.Join(err, y.close())
		}
	}()
	if err := y.openStorage(cfg); err != nil {
		return nil, err
	}
	y.broker, err = broker.Open(ctx, broker.Config{
		Engine: y.engine, Meta: y.meta, Namespace: cfg.Namespace, Log: cfg.Log, Metrics: y.registry,
	})
	if err != nil {
		return nil, err
	}
	for _, h := range cfg.Hubs {
		if _, err := y.broker.EnsureHub(ctx, h.config(), h.Groups); err != nil {
			return nil, fmt.Errorf("configured hub %s: %w", h.Name, err)
		}
	}
	return y, nil
}

// openStorage opens the engine first: its lock tells at once whether another yard
// has the folder.
func (y *yard) openStorage(cfg Config) error {
	sync, err := disk.ParseSync(cfg.Sync)
	if err != nil {
		return err
	}
	engine, err := disk.Open(disk.Config{
		Dir: cfg.DataDir, Sync: sync, SyncInterval: cfg.SyncInterval, SegmentBytes: cfg.SegmentBytes,
		Log: cfg.Log, Metrics: y.registry,
	})
	if err != nil {
		return err
	}
	y.engine = engine
	store, err := bolt.Open(bolt.Config{
		Path: filepath.Join(cfg.DataDir, metaName), NoSync: sync == disk.OS, Log: cfg.Log,
	})
	if err != nil {
		return err
	}
	y.meta = store
	return nil
}

// makeFolder makes the data folder for its owner only.
func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	return nil
}

// parts is what runs behind the doors, in the order of dependence.
func (y *yard) parts() []service.Part {
	return []service.Part{
		{Name: "engine", Run: y.engine.Run},
		{Name: "broker", Run: y.broker.Run},
	}
}

// close frees the folder: the engine before the meta store that its hubs are in.
func (y *yard) close() error {
	var engine, meta error
	if y.engine != nil {
		engine = y.engine.Close()
	}
	if y.meta != nil {
		meta = y.meta.Close()
	}
	return errors.Join(engine, meta)
}
