package server

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/broker"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/engine/disk"
	"github.com/eventyard/eventyard/internal/service"
)

// Off, in place of an address, closes a door.
const Off = config.Off

// DefaultRetentionAge is how long a hub keeps its events that says nothing else.
const DefaultRetentionAge = broker.DefaultRetentionAge

// Config says how a yard is run. The zero value works: it keeps its data in
// eventyard-data in the working folder and listens on 127.0.0.1:8080.
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

	// HTTP is the address of the HTTP door, or Off. Port 0 picks a free one. As there
	// is no access control yet, only loopback addresses are taken. Empty means
	// 127.0.0.1:8080.
	HTTP string

	// Namespace is the name that clients find the hubs under; empty means eventyard.
	Namespace string
	// Hubs must exist: what is missing is created before the doors open.
	Hubs []Hub

	// Grace is how long a stopping yard lets requests finish; zero means 8 s, negative
	// not at all.
	Grace time.Duration
	// Version is what the yard says it is; empty means development.
	Version string
	// Log takes what an operator should know; nil means slog.Default().
	Log *slog.Logger
}

// Hub is a hub that must exist.
type Hub struct {
	Name string
	// Partitions cannot be changed once the hub exists; zero means 4, or what it has.
	Partitions int
	// Retention says when events are removed; nil means after DefaultRetentionAge, or
	// as it is.
	Retention *Retention
	// Groups are consumer groups besides $Default.
	Groups []string
}

// Retention says when events may be removed. Zero fields keep for ever.
type Retention struct {
	Age time.Duration
	// Bytes is for each partition.
	Bytes int64
}

func (c Config) withDefaults() Config {
	usual := config.Default()
	for _, text := range []struct {
		field *string
		usual string
	}{
		{&c.DataDir, usual.Data}, {&c.Sync, usual.Sync}, {&c.HTTP, usual.HTTP},
		{&c.Namespace, usual.Namespace}, {&c.Version, "development"},
	} {
		if *text.field == "" {
			*text.field = text.usual
		}
	}
	if c.Grace == 0 {
		c.Grace = service.DefaultGrace
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

func (c Config) validate() error {
	if _, err := disk.ParseSync(c.Sync); err != nil {
		return err
	}
	if c.HTTP != Off {
		if err := config.CheckLoopback(c.HTTP); err != nil {
			return fmt.Errorf("HTTP door: %w", err)
		}
	}
	for _, h := range c.Hubs {
		if err := h.validate(); err != nil {
			return err
		}
	}
	return nil
}

// ReservedNames are the first path segments that the yard keeps for itself: no hub has
// such a name, nor one that begins with it and a slash.
func ReservedNames() []string { return broker.ReservedNames() }

func (h Hub) validate() error {
	first, _, _ := strings.Cut(strings.ToLower(h.Name), "/")
	switch {
	case !config.IsName(h.Name):
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
		cfg.Retention = &broker.Retention{Age: h.Retention.Age, Bytes: h.Retention.Bytes}
	}
	return cfg
}
