package server

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/service"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/testkit"
)

// The printed reference shows defaults; they are what the parts do when left alone.
func TestDefaultsAgree(t *testing.T) {
	c := config.Default()
	if c.SegmentBytes != disk.DefaultSegmentBytes || time.Duration(c.SyncInterval) != disk.DefaultSyncInterval ||
		time.Duration(c.Grace) != service.DefaultGrace {
		t.Errorf("defaults have come apart: %+v", c)
	}
	if mode, err := disk.ParseSync(c.Sync); err != nil || mode != disk.Always {
		t.Errorf("sync %s: %v, %v", c.Sync, mode, err)
	}
}

// R3: the log reports the limit of open files where it takes something away that somebody asked for,
// or leaves little.
func TestTheLimitOfOpenFilesIsReportedWhereItMatters(t *testing.T) {
	for _, c := range []struct {
		what  string
		cfg   Config
		lacks bool
	}{
		{"nothing configured, a usual limit", Config{descriptors: 20_000}, false},
		{"nothing configured, a shell's limit", Config{descriptors: 1024}, false},
		{"nothing configured, a tiny limit", Config{descriptors: 512}, true},
		{"as many as there are", Config{descriptors: 20_000, AMQPMaxConnections: 4000, HTTPMaxConnections: 4000, KafkaMaxConnections: 4000}, false},
		{"as many as there are without Kafka", Config{descriptors: 20_000, AMQPMaxConnections: 6000, HTTPMaxConnections: 6000, Kafka: Off, Kafkas: Off}, false},
		{"too many over AMQP", Config{descriptors: 20_000, AMQPMaxConnections: 12_000}, true},
		{"too many over HTTP", Config{descriptors: 20_000, HTTPMaxConnections: 12_000}, true},
		{"too many over Kafka", Config{descriptors: 20_000, KafkaMaxConnections: 12_000}, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			cfg := c.cfg.withDefaults()
			testkit.Equal(t, cfg.lacks(cfg.shares()), c.lacks)
		})
	}
}
